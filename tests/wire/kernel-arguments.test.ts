import { isKernelCommandLine } from '../../wire/kernel-arguments';

it.each([
  '',
  'nofb vga=normal',
  '  a  b=c\n',
  'BOOTIF=${mac} console=ttyS0,115200n8 root=UUID=1 url=http://[fe80::1]/?q=1&r=2',
  'sshkey="ssh-ed25519 AAAA a@b" a=x;y||z a=b#c',
  'a=1 -- init /etc single',
])('%j is a kernel command line', (text) => expect(isKernelCommandLine(text)).toBe(true));

it.each([
  '#',
  'a #b',
  'a\nb',
  'a\tb',
  'a\0',
  'a="b',
  'a="b"c',
  '"a b"=c',
  'a=""',
  'a=',
  '=x',
  ';',
  'a || b',
  'a="b && c"',
  'a="b #c"',
  'a\u{85}b',
  'ä=1',
  'a=ä',
  'a/b=1',
  'a -- "b c"',
  'a -- b ; c',
])('%j is no kernel command line', (text) => expect(isKernelCommandLine(text)).toBe(false));
