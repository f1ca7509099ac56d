/** What the parts of the start need, and where they say how they are stopped. */
import type { LoginStatus } from '../api/auth/own-login';
import type { RunningConductor } from '../conductor/index';
import type { LoadedOptions, Options } from '../config/options';
import type { Clock } from '../model/clock';
import type { Log } from '../model/log';
import type { Metrics, Scrape } from '../model/metrics';
import type { OpenStore } from '../store/postgres';
import type { Services } from '../wire/keystone/services';
import type { Role } from './roles';

export type StopOptions = Parameters<RunningConductor['stop']>[0];

/** The values that all parts of the start need. */
export interface StartContext {
  /** The options before values of this host are added. */
  readonly given: LoadedOptions;
  readonly roles: readonly Role[];
  readonly stateDir: string;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly scrape: Scrape;
  /** URL of an external database. */
  readonly databaseUrl: string | undefined;
  /** Whether other processes may use the same database. */
  readonly sharesDatabase: boolean;
  /** Called in reverse order to stop what was started. */
  readonly stops: (() => Promise<void>)[];
  /** Called at SIGHUP. */
  readonly reloads: (() => void)[];
  /** The state of this server's own login at Keystone. */
  readonly loginStatus: LoginStatus;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** How the server stops; only once it does. */
  readonly stopOptions: () => StopOptions;
}

/** The same with the store, and with options completed for this host. */
export interface StoreContext extends StartContext {
  readonly store: OpenStore;
  readonly options: Options;
  /** Clients of OpenStack services. */
  readonly services: Services;
}
