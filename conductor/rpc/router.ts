/** Routes calls of the API to the responsible conductor, and retries if that one has just stopped. */
import type { Options } from '../../config/options';
import { retry, type Clock } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { ConductorRecord } from '../../model/records';
import { chooseByHash } from '../../model/ring';
import type { Store } from '../../store/store';
import type { ConductorApi, ScreenPlaces } from '../conductor';
import { conductorApi, OPERATIONS, type ConductorSelector, type OperationName, type Perform } from '../operations';
import { NoResponse, type RpcClient } from './client';

/** The conductor in this process. */
interface LocalConductor {
  readonly host: string;
  readonly perform: Perform;
}
interface RouterSetup {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly options: Pick<Options, 'conductor.heartbeat_timeout'>;
  readonly here?: LocalConductor | undefined;
  /** Absent: other processes cannot be reached. */
  readonly client?: RpcClient | undefined;
}

/** Between attempts to reach a conductor that does not answer. */
const PAUSE_MS = 500;
/** Interval at which a long call checks that its conductor is still alive. */
const WATCH_MS = 5000;
/** Limit of every call. */
const MAX_MS = 600_000;

function noConductor(name: OperationName, { key, driver, conductor_group: group = '' }: ConductorSelector): Fault {
  if (driver !== undefined && driver === key) return new Fault('DriverNotFound', { driver_name: driver });
  const reason =
    driver === undefined
      ? 'No conductor service registered.'
      : `No conductor service registered which supports driver ${driver} for conductor group "${group}". Ensure the driver is valid and enabled.`;
  return new Fault(name === 'createNode' ? 'NoConductor' : 'NoValidHost', { reason });
}

type Find = (name: OperationName, args: readonly unknown[]) => Promise<ConductorRecord | undefined>;
/** Undefined: the local conductor. Throws the client's error if no conductor is responsible, or the node does not exist. */
function createFind({ store, options, here }: RouterSetup): Find {
  const timeout = options['conductor.heartbeat_timeout'];
  return async (name, args) => {
    const { conductors } = await store.conductors.alive(timeout);
    if (here && conductors.every(({ hostname }) => hostname === here.host)) return undefined;
    const to = await OPERATIONS[name].to(store, args);
    const candidates = conductors.filter(
      ({ drivers, conductor_group: group }) =>
        (to.driver === undefined || Object.hasOwn(drivers, to.driver)) &&
        (to.conductor_group === undefined || group === to.conductor_group),
    );
    const responsible = chooseByHash(candidates, to.key);
    if (!responsible) throw noConductor(name, to);
    // If the responsible conductor has no address, the local one can lock the node as well.
    return responsible.hostname === here?.host || (here && responsible.address === null) ? undefined : responsible;
  };
}
const unreachable = (hostname: string): NoResponse => new NoResponse(`conductor ${hostname} cannot be reached by other processes`, false);

/** Connects to the conductor of a node. */
export function createStreamRouter(setup: RouterSetup): NonNullable<ScreenPlaces['connect']> {
  const { here, client } = setup;
  const find = createFind(setup);
  return async (uuid, path, protocols, signal) => {
    if (here && !client) return undefined;
    const callee = await find('consoleInfo', [uuid]);
    if (!callee) return undefined;
    const { hostname, address } = callee;
    if (!client || address === null) throw unreachable(hostname);
    return client.connect({ hostname, address }, path, protocols, signal);
  };
}

/** Makes the functions for all calls of the API in this process. */
export function createRouter(setup: RouterSetup): ConductorApi {
  const { store, clock, log, options, here, client } = setup;
  const timeout = options['conductor.heartbeat_timeout'];
  const find = createFind(setup);

  /** Calls the conductor, and waits only while its row is renewed. */
  async function callAt(callee: ConductorRecord, call: Parameters<RpcClient['call']>[1]): Promise<unknown> {
    const { hostname, address, instance } = callee;
    if (!client || address === null) throw unreachable(hostname);
    const ended = new AbortController();
    const gone = new AbortController();
    const watch = async (): Promise<void> => {
      for (let waited = 0; waited < MAX_MS; waited += WATCH_MS) {
        await clock.sleep(WATCH_MS, ended.signal);
        const rows = await store.conductors.list(timeout).catch(() => undefined);
        if (rows && !rows.some((row) => row.hostname === hostname && row.locks_valid && row.instance === instance)) break;
      }
      gone.abort(new Error('its heartbeats stopped'));
    };
    watch().catch(() => {});
    try {
      return await client.call({ hostname, address }, call, gone.signal);
    } finally {
      ended.abort();
    }
  }

  return conductorApi(async (name, args, origin) => {
    const until = clock.now() + timeout * 1000;
    let callee: ConductorRecord | undefined;
    const call = async (): Promise<unknown> => {
      callee = client || !here ? await find(name, args) : undefined;
      return callee ? callAt(callee, { method: name, args, ...(origin ? { origin } : {}) }) : here!.perform(name, args, origin);
    };
    return retry({ clock }, call, (error) => {
      if (!callee || !(error instanceof NoResponse)) return undefined;
      log.warn('a conductor did not answer', { operation: name, reason: reasonOf(error) });
      const gone = (what: string): Fault =>
        new Fault('TemporaryFailure', { message: `Conductor ${callee!.hostname} ${what}` }, { cause: error });
      if (error.mayHaveRun && !OPERATIONS[name].repeatable)
        throw gone('went away while it worked on the request, which may have been done.');
      if (clock.now() >= until) throw gone('does not answer, and no other has taken its place yet. Please retry later.');
      return PAUSE_MS;
    });
  });
}
