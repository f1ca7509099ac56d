/** Stops the services of a running system, and starts the loaded kernel in its place. */
import type { Clock } from '../../model/clock';
import type { KernelCalls } from '../kexec/kernel-calls';
import type { Run } from '../system/run';

export interface Leave {
  /** Throws an Error with the reason unless the system can be left. */
  check(): Promise<void>;
  /** Returns when the services stop, or not at all. Throws an Error with the reason. */
  go(): Promise<void>;
}
interface LeaveHost {
  readonly run: Run;
  readonly exists: (path: string) => boolean;
  /** Writes to a file of /proc. */
  readonly write: (path: string, text: string) => void;
  /** Asks all processes but this one to end. */
  readonly endProcesses: () => void;
  readonly kernelCalls: KernelCalls;
  readonly clock: Clock;
}

const SYSTEMD = '/run/systemd/system';
/** systemd starts the loaded kernel by this program. */
const KEXEC_PROGRAMS = ['/usr/sbin/kexec', '/sbin/kexec', '/usr/bin/kexec'];
const SYSTEMCTL_MS = 60_000;
const SYNC_MS = 120_000;
/** For processes that end, on a system without systemd. */
const GRACE_MS = 5000;
const SYSRQ = '/proc/sysrq-trigger';

function withSystemd({ run, exists }: LeaveHost): Leave {
  return {
    check: async () => {
      if (!KEXEC_PROGRAMS.some(exists)) throw new Error('The instance has no program kexec (kexec-tools), which systemd needs');
    },
    // systemd stops the units, unmounts the file systems, and starts the kernel that is loaded.
    go: async () => void (await run('systemctl', ['kexec', '--no-block'], { timeoutMs: SYSTEMCTL_MS })),
  };
}
function withSignals({ run, write, endProcesses, kernelCalls, clock }: LeaveHost): Leave {
  return {
    check: async () => {},
    go: async () => {
      endProcesses();
      await clock.sleep(GRACE_MS);
      await run('sync', [], { timeoutMs: SYNC_MS });
      // Remounts all file systems read-only (Documentation/admin-guide/sysrq.rst).
      write(SYSRQ, 'u');
      await kernelCalls.start();
    },
  };
}

export const leaveOf = (host: LeaveHost): Leave => (host.exists(SYSTEMD) ? withSystemd(host) : withSignals(host));
