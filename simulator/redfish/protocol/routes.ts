/** What a resource of the service is: a row with a path and what each method does there. */
import type { Clock } from '../../../model/clock';
import type { Log } from '../../../model/log';
import type { MachineControl } from '../../hardware/control';
import type { MachineDescription } from '../../hardware/description';
import type { Hardware } from '../../hardware/hardware';
import type { HttpClient } from '../../http';
import type { Restart } from '../../bmc/restart';
import type { Privilege } from './privileges';
import { typeName, type ResourceType } from './versions';

/** A machine that a BMC stands before; its name is its identifier in paths. */
export type System = MachineControl & { readonly description: MachineDescription; readonly hardware: Hardware };
export type ResourceBody = Readonly<Record<string, unknown>>;
export interface Answer {
  readonly status: number;
  readonly body?: ResourceBody;
  /** In place of `body`; what it is, a header says. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}
/** Milliseconds since the epoch in `used`. */
export interface Session {
  readonly id: string;
  readonly token: string;
  /** Name of an account. */
  readonly user: string;
  used: number;
}
/** What the service knows beside its machines. */
export interface Service {
  readonly systems: ReadonlyMap<string, System>;
  readonly username: string;
  readonly password: string;
  /** By token. */
  readonly sessions: Map<string, Session>;
  /** `taskMs`: what a task takes once it runs. */
  readonly settings: { sessionSeconds: number; readonly taskMs: number };
  readonly restart: Restart;
  /** Work that outlives its request; the service waits for it when it closes. */
  background(work: Promise<void>): void;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  /** Aborted when the service closes. */
  readonly signal: AbortSignal;
}
/** Where a request is. */
export interface RouteContext {
  readonly service: Service;
  /** Below the service root: /Systems/sim-0/Bios. */
  readonly path: string;
  /** What stands at {…} in the row's path. */
  readonly values: readonly string[];
}
export type SystemContext = RouteContext & { readonly system: System };
/** Undefined: done, and there is nothing to say (204). */
export type Reply = Answer | undefined | Promise<Answer | undefined>;
export interface Route<Where extends RouteContext = RouteContext> {
  readonly path: string;
  /** Undefined: there is none with these values. */
  readonly get?: (at: Where) => ResourceBody | undefined;
  /** In place of `get`, where the status tells something. */
  readonly answer?: (at: Where) => Answer;
  readonly patch?: (at: Where, body: ResourceBody) => Reply;
  readonly post?: (at: Where, body: ResourceBody) => Reply;
  readonly delete?: (at: Where, body: ResourceBody) => Reply;
  /** Answers POST without a login. */
  readonly open?: true;
  /** Is read without a login. */
  readonly public?: true;
  /** What a change needs (ConfigureComponents). */
  readonly needs?: Privilege;
}

/** Whose hardware state keeps what belongs to the service as a whole: accounts, subscriptions. */
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
/** A row of a collection whose members are made elsewhere. */
export const collectionRoute = <Where extends RouteContext>(
  path: string,
  type: string,
  members: (at: Where) => readonly string[],
): Route<Where> => ({
  path,
  get: (at) => collection(at.path, type, members(at)),
});
export const HEALTHY = { State: 'Enabled', Health: 'OK', HealthRollup: 'OK' } as const;
/** How Redfish writes a time (DSP0266 §9.6). */
export const dateTime = (milliseconds: number): string => new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z');
