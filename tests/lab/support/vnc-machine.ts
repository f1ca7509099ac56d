/** A machine in QEMU with a VNC server, which boots a program of one sector: it paints a moving picture, and writes the first key on the screen. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/until';
import { openMonitor } from '../../../simulator/qemu/monitor';
import { connect } from 'node:net';

/**
 * VGA mode 13h: 320×200. The colour of a pixel is x + y + the number of the picture. A key: text mode, and the key's character.
 *
 *     mov ax,13h / int 10h / push 0a000h / pop es
 *     frame: xor di,di / xor dx,dx
 *     row: mov al,dl / add al,bl / mov cx,320
 *     pixel: stosb / inc al / loop pixel
 *     inc dx / cmp dx,200 / jne row
 *     inc bl / mov ah,1 / int 16h / jz frame
 *     mov ah,0 / int 16h / push ax / mov ax,3 / int 10h / pop ax / mov ah,0eh / int 10h
 *     stop: hlt / jmp stop
 */
const PROGRAM =
  'b81300cd106800a007' +
  '31ff31d2' +
  '88d000d8b94001' +
  'aafec0e2fb' +
  '4281fac80075ed' +
  'fec3b401cd1674e1' +
  'b400cd1650b80300cd1058b40ecd10' +
  'f4ebfd';
const SECTOR = 512;

interface VncMachine {
  /** The Unix socket of its VNC server. */
  readonly socket: string;
  readonly stop: () => Promise<void>;
}
/** @param password that the VNC server demands; absent: none */
export async function startVncMachine(folder: string, password?: string): Promise<VncMachine> {
  const [disk, socket, monitor] = [join(folder, 'disk.img'), join(folder, 'vnc.sock'), join(folder, 'qmp.sock')];
  const bytes = Buffer.alloc(SECTOR);
  Buffer.from(PROGRAM, 'hex').copy(bytes);
  // The signature of a boot sector.
  bytes.writeUInt16LE(0xaa55, 510);
  writeFileSync(disk, bytes);
  const words = ['-nodefaults', '-display', 'none', '-machine', 'pc,accel=tcg', '-m', '32', '-vga', 'std', '-boot', 'c'];
  const child = spawn(
    'qemu-system-x86_64',
    [
      ...words,
      '-drive',
      `file=${disk},format=raw,if=ide`,
      '-vnc',
      `unix:${socket}${password === undefined ? '' : ',password=on'}`,
      '-qmp',
      `unix:${monitor},server=on,wait=off`,
    ],
    { stdio: 'inherit' },
  );
  const ended = once(child, 'exit');
  await until('the sockets of QEMU', () => existsSync(socket) && existsSync(monitor));
  if (password !== undefined) {
    const line = connect(monitor);
    const qemu = await openMonitor(line, () => {});
    await qemu.execute('set_password', { protocol: 'vnc', password });
    line.destroy();
  }
  return {
    socket,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
