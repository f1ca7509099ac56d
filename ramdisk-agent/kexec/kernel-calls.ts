/**
 * The two system calls that replace the running kernel (kexec_file_load(2), reboot(2)). The program `kexec` makes the same ones, and needs
 * libraries of Xen, which the ramdisk does not have.
 */
import { openLibc } from '../../wire/sockets/libc';

export interface KernelCalls {
  /** Loads a kernel, which replaces one that was loaded before. Throws an Error with the reason. */
  load(kernel: number, initrd: number | null, commandLine: string): Promise<void>;
  /** Starts the loaded kernel: returns only when that is impossible. Throws an Error with the reason. */
  start(): Promise<void>;
}

/** Numbers of the Linux ABI. */
const KEXEC_FILE_LOAD: Readonly<Record<string, number>> = { x86_64: 320, aarch64: 294 };
const NO_INITRD = 4;
const REBOOT_KEXEC = 0x45584543;
/** errno → what it means here. */
const REASONS: Readonly<Record<number, string>> = {
  1: 'the running kernel does not allow it (lockdown, or kexec_load_disabled)',
  8: 'the file is not a kernel that the running kernel can start',
  12: 'there is not enough memory',
  16: 'another kernel is being loaded',
  22: 'the kernel, its initial ramdisk or its command line is invalid',
  38: 'the running kernel was built without it',
  99: 'the memory that the kernel needs is not free',
  129: 'the signature of the kernel is not accepted',
};

/** @param machine as uname(1) reports it */
export function kernelCalls(machine: string): KernelCalls {
  const failure = (what: string, errno: number): Error => new Error(`${what}: ${REASONS[errno] ?? `error ${errno}`}`);
  return {
    load: async (kernel, initrd, commandLine) => {
      const number = KEXEC_FILE_LOAD[machine];
      if (number === undefined) throw new Error(`no kernel can be loaded on a machine of type ${machine}`);
      const { koffi, own } = await openLibc('the calls of kexec');
      const call = own.func('long syscall(long, int, int, unsigned long, const char *, unsigned long)') as (...values: unknown[]) => number;
      // The length includes the terminating NUL.
      const length = Buffer.byteLength(commandLine) + 1;
      if (call(number, kernel, initrd ?? -1, length, commandLine, initrd === null ? NO_INITRD : 0) !== 0)
        throw failure('the kernel cannot be loaded', koffi.errno());
    },
    start: async () => {
      const { koffi, own } = await openLibc('the calls of kexec');
      const reboot = own.func('int reboot(int)') as (command: number) => number;
      reboot(REBOOT_KEXEC);
      throw failure('the loaded kernel cannot be started', koffi.errno());
    },
  };
}
