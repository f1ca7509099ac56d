import { kernelProcessor } from '../../../wire/images/kernel-processor';

const head = (at: number, magic: string): Buffer => {
  const bytes = Buffer.alloc(1024);
  bytes.write(magic, at, 'latin1');
  return bytes;
};
it.each([
  ['x86_64', head(0x202, 'HdrS')],
  ['aarch64', head(0x38, 'ARM\x64')],
  ['riscv64', head(0x38, 'RSC\x05')],
  [undefined, head(0x38, 'ARM')],
  [undefined, Buffer.from('\x1f\x8b')],
  [undefined, Buffer.alloc(0)],
])('knows a kernel for %s', (cpu, bytes) => {
  expect(kernelProcessor(bytes)).toBe(cpu);
});
