/** Authenticates this server at Keystone before the first request needs it, so that wrong options show at the start. */
import { retry, type Clock } from '../../model/clock';
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

  function pauseAfter(error: unknown): number | undefined {
    if (signal.aborted) return undefined;
    const reason = reasonOf(error);
    status.refusal = error instanceof KeystoneError && error.kind === 'refused' ? reason : undefined;
    if (reason !== logged) log.error('cannot authenticate at Keystone: requests without a cached token fail', { error: reason });
    logged = reason;
    return RETRY_MS;
  }
  async function run(): Promise<void> {
    await retry({ clock, signal }, authenticate, pauseAfter);
    if (logged !== undefined) log.info('authenticated at Keystone');
    status.refusal = logged = undefined;
  }
  return {
    start() {
      if (running) return;
      running = true;
      // Rejected: the server stops.
      run()
        .catch(() => {})
        .finally(() => (running = false));
    },
  };
}
