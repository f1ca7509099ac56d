/** Sets the clock before the first TLS connection: with a wrong clock, certificates seem to be not yet valid, or expired. */
import { reasonOf } from '../model/errors';
import type { Machine } from './machine';

/** Sets the kernel's clock and the hardware's by ipa-ntp-server, if it is given; rejects only when `signal` is aborted. */
export async function setClock({ parameters, ntpTime, run, log }: Machine, signal: AbortSignal): Promise<void> {
  const server = parameters.ntpServer;
  if (server === null) return;
  try {
    const time = await ntpTime(server, signal);
    await run('date', ['-u', '-s', `@${Math.round(time / 1000)}`]);
    // The deployed system reads it.
    await run('hwclock', ['-w', '-u']).catch((error: unknown) => log.warn(`The hardware's clock is not set: ${reasonOf(error)}`));
    log.info(`The clock is set by ${server}: ${new Date(time).toISOString()}`);
  } catch (error) {
    signal.throwIfAborted();
    log.error(`Failed to sync time to ntp server ${server}: ${reasonOf(error)}`);
  }
}
