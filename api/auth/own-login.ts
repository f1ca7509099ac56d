/** Authenticates this server at Keystone before the first request needs it, so that wrong options show at the start. */
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { reasonOf } from '../../model/errors';
import { KeystoneError } from '../../wire/keystone/sender';

/** The result of this login, for the health check. The services of a process share it. */
export interface LoginStatus {
  /** Why Keystone refuses this server, without secrets. Undefined: Keystone does not refuse it, or was not asked yet. */
  refusal: string | undefined;
}
interface OwnLogin {
  /** Authenticates in the background, and tries again until it succeeds. Does nothing while an earlier call still tries. */
  start(): void;
}

const RETRY_MS = 30_000;

interface LoginParts {
  /** @throws KeystoneError */
  readonly authenticate: () => Promise<unknown>;
  readonly status: LoginStatus;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborted when the server stops. */
  readonly signal: AbortSignal;
}
export function createOwnLogin({ authenticate, status, clock, log, signal }: LoginParts): OwnLogin {
  let running = false;
  /** The last reason in the log. A reason is logged again only after another one. */
  let logged: string | undefined;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await authenticate();
        if (logged !== undefined) log.info('authenticated at Keystone');
        status.refusal = logged = undefined;
        return;
      } catch (error) {
        if (signal.aborted) return;
        const reason = reasonOf(error);
        status.refusal = error instanceof KeystoneError && error.kind === 'refused' ? reason : undefined;
        if (reason !== logged) log.error('cannot authenticate at Keystone: requests without a cached token fail', { error: reason });
        logged = reason;
      }
      await clock.sleep(RETRY_MS, signal).catch(() => {});
    }
  }
  return {
    start() {
      if (running) return;
      running = true;
      void run().finally(() => (running = false));
    },
  };
}
