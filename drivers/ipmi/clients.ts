/** The IPMI client of this conductor, which [ipmi]client selects. */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { createIpmiPool, type IpmiPool, type SolPool } from '../../wire/ipmi/client';
import { createIpmitoolPool } from '../../wire/ipmi/ipmitool';
import { createSdrCache, type SdrCache } from '../../wire/ipmi/records/sdr-repository';

interface IpmiClients extends SolPool {
  readonly ipmi: IpmiPool;
  readonly sdrCache: SdrCache;
  close(): Promise<void>;
}
/** Consoles always use the native client, because a console of ipmitool needs a terminal. */
export function createIpmiClients(
  options: Options,
  { log, clock, random }: { readonly log: Log; readonly clock: Clock; readonly random: (bytes: number) => Buffer },
): IpmiClients {
  const native = createIpmiPool({
    log,
    clock,
    random,
    maxSessions: options['ipmi.max_sessions'],
    idleMs: options['ipmi.session_idle_timeout'] * 1000,
  });
  const { openSol } = native;
  const sdrCache = createSdrCache(clock);
  if (options['ipmi.client'] === 'native') return { ipmi: native, sdrCache, openSol, close: () => native.close() };
  const ipmi = createIpmitoolPool({
    log,
    clock,
    debug: options['ipmi.debug'],
    passwordInEnvironment: options['ipmi.store_cred_in_env'],
    ownRetries: options['ipmi.use_ipmitool_retries'],
    interval: options['ipmi.min_command_interval'],
    killOnTimeout: options['ipmi.kill_on_timeout'],
  });
  return { ipmi, sdrCache, openSol, close: () => Promise.all([ipmi.close(), native.close()]).then(() => {}) };
}
