import { kernelProcessors } from '../../../wire/processors/kernel-processor';

const head = (at: number, magic: string): Buffer => {
  const bytes = Buffer.alloc(1024);
  bytes.write(magic, at, 'latin1');
  return bytes;
};
it.each([
  [['x86_64', 'i686'], head(0x202, 'HdrS')],
  [['aarch64'], head(0x38, 'ARM\x64')],
  [['riscv64'], head(0x38, 'RSC\x05')],
  [[], head(0x38, 'ARM')],
  [[], Buffer.from('\x1f\x8b')],
  [[], Buffer.alloc(0)],
])('knows a kernel for %j', (cpus, bytes) => {
  expect(kernelProcessors(bytes)).toEqual(cpus);
});
