# A boot sector that writes the text behind it to the serial line and echoes its input; it restarts at `r` and switches off at `q`.
.code16
start:
  cli                       # else the firmware's timer reads the serial line first
  xorw %ax, %ax
  movw %ax, %ds
  movw $0x7c00 + message - start, %si
next:
  lodsb
  testb %al, %al
  jz listen
  call put
  jmp next
listen:
  movw $0x3fd, %dx          # line status: data ready
  inb %dx, %al
  testb $0x01, %al
  jz listen
  movw $0x3f8, %dx
  inb %dx, %al
  cmpb $'r', %al
  je restart
  cmpb $'q', %al
  je quit
  call put
  jmp listen
restart:
  movb $0xfe, %al           # the keyboard controller's reset line
  outb %al, $0x64
  hlt
quit:
  movw $0x604, %dx          # PM1a control of the Q35: soft off
  movw $0x2000, %ax
  outw %ax, %dx
  hlt
put:
  movb %al, %ah
wait:
  movw $0x3fd, %dx          # line status: transmitter empty
  inb %dx, %al
  testb $0x20, %al
  jz wait
  movw $0x3f8, %dx
  movb %ah, %al
  outb %al, %dx
  ret
message:
