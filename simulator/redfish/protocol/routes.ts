/** Types and helpers of all routes of the Redfish service: the service's state, a route's form, and the parts of a resource's body. */
import type { Clock } from '../../../model/clock';
import type { Log } from '../../../model/log';
import type { MachineControl } from '../../hardware/control';
import type { MachineDescription } from '../../hardware/description';
import type { Hardware } from '../../hardware/hardware';
import type { HttpClient } from '../../http';
import type { FaultBox } from '../../bmc/faults';
import type { Restart } from '../../bmc/restart';
import type { Privilege } from './privileges';
import { typeName, type ResourceType } from './versions';

/** A machine behind the BMC; its name is its identifier in paths. */
export type System = MachineControl & { readonly description: MachineDescription; readonly hardware: Hardware };
export type ResourceBody = Readonly<Record<string, unknown>>;
export interface ServiceAnswer {
  readonly status: number;
  readonly body?: ResourceBody;
  /** Sent instead of `body`; `headers` has its content type. */
  readonly text?: string;
  /** Sent instead of all else, and ends the connection; `status` is not sent then. Empty: the connection ends without an answer. */
  readonly bytes?: string;
  readonly headers?: Readonly<Record<string, string>>;
}
export interface Session {
  readonly id: string;
  readonly token: string;
  /** The account's name. */
  readonly user: string;
  /** Milliseconds since the epoch: the time of the session's last request. */
  used: number;
}
/** A running service. */
export interface Service {
  readonly systems: ReadonlyMap<string, System>;
  /** Resources of the maker, which hide the standard ones. */
  readonly makerRoutes?: readonly Route<SystemContext>[];
  readonly username: string;
  readonly password: string;
  /** By token. */
  readonly sessions: Map<string, Session>;
  /** `taskMs`: the duration of a task in milliseconds. */
  readonly settings: { sessionSeconds: number; readonly taskMs: number };
  readonly restart: Restart;
  /** Absent: the BMC never has a fault. */
  readonly faults: FaultBox | undefined;
  /** Adds work that continues after the answer to its request. The service waits for the work when it closes. */
  background(work: Promise<void>): void;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  /** Aborted when the service closes. */
  readonly signal: AbortSignal;
}
/** The service and the path of one request. */
export interface RouteContext {
  readonly service: Service;
  /** Below the service root: /Systems/sim-0/Bios. */
  readonly path: string;
  /** The values of {…} in the route's path. */
  readonly values: readonly string[];
}
export type SystemContext = RouteContext & { readonly system: System };
/** Undefined: 204, No Content. */
type Reply = ServiceAnswer | undefined | Promise<ServiceAnswer | undefined>;
export interface Route<Context extends RouteContext = RouteContext> {
  readonly path: string;
  /** Undefined: there is no such resource. */
  readonly get?: (at: Context) => ResourceBody | undefined;
  /** Instead of `get`, where GET needs another status or another content type. */
  readonly answer?: (at: Context) => ServiceAnswer;
  readonly patch?: (at: Context, body: ResourceBody) => Reply;
  readonly post?: (at: Context, body: ResourceBody) => Reply;
  readonly delete?: (at: Context, body: ResourceBody) => Reply;
  /** POST needs no login. */
  readonly open?: true;
  /** GET needs no login. */
  readonly public?: true;
  /** The privilege that a change needs; absent: ConfigureComponents. */
  readonly needs?: Privilege;
}

/** The machine whose state also holds the data of the whole service: accounts and subscriptions. */
export const bmcOf = ({ systems }: Service): System | undefined => systems.values().next().value;

export const ROOT = '/redfish/v1';
export const link = (path: string): ResourceBody => ({ '@odata.id': `${ROOT}${path}` });
export const resource = (path: string, type: ResourceType, id: string, name: string, more: ResourceBody): ResourceBody => ({
  '@odata.id': `${ROOT}${path}`,
  '@odata.type': typeName(type),
  Id: id,
  Name: name,
  ...more,
});
/** @param type of the members, such as `ComputerSystem` */
export const collection = (path: string, type: string, members: readonly string[]): ResourceBody => ({
  '@odata.id': `${ROOT}${path}`,
  '@odata.type': `#${type}Collection.${type}Collection`,
  Name: `${type} collection`,
  'Members@odata.count': members.length,
  Members: members.map((member) => link(`${path}/${member}`)),
});
/** The route of a read-only collection. */
export const collectionRoute = <Context extends RouteContext>(
  path: string,
  type: string,
  members: (at: Context) => readonly string[],
): Route<Context> => ({
  path,
  get: (at) => collection(at.path, type, members(at)),
});
export const HEALTHY = { State: 'Enabled', Health: 'OK', HealthRollup: 'OK' } as const;
/** A time in Redfish's format (DSP0266 §9.6). */
export const dateTime = (milliseconds: number): string => new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z');
