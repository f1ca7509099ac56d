/** The types of handlers: requests, responses and the services that handlers use. */
import type { Options } from '../../config/options';
import type { IncomingHttpHeaders } from 'node:http';
import type { Conductor } from '../../conductor/conductor';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Notifier } from '../../model/notifications';
import type { Metrics } from '../../model/metrics';
import type { HealthRule } from '../../model/rules/health-rules';
import type { Operations } from '../schema/operations';
import type { Origin } from '../../model/origin';
import type { Caller } from '../../policy/caller';
import type { Store } from '../../store/store';
import type { Peer } from '../http/source';
import type { Slices } from '../http/sliced-answers';
import type { CurrentState } from '../http/current-state';
import type { Stream } from '../http/streaming';
import type { Arguments } from '../schema/arguments';
import type { Document } from '../schema/document';
import type { Validators } from '../schema/schema';
import type { AgentAddresses } from './agent-addresses';
import type { AgentTokens } from './agent-tokens';
import type { EventFeed } from './event-feed';
import type { Fragments } from './fragments';
import type { BmcEventDoor } from './bmc-event-door';
import type { HardwarePushes } from './hardware-pushes';
import type { SmartReports } from './smart-reports';
import type { Permission } from './permission';

/** Authentication: a strategy of [DEFAULT]auth_strategy. */
export interface Strategy {
  /**
   * @param path as in the request, without trailing slashes: some paths are public
   * @param source where the request comes from, for limits
   * @throws Unauthenticated
   */
  identify(headers: IncomingHttpHeaders, path: string, method: string, source: string): Promise<Caller>;
}
/** Authentication and authorization. */
export interface Auth extends Strategy {
  /**
   * A step (`step:execute:…`) that no rule of the operator names is allowed.
   * @param target the projects that the resource belongs to; absent: whether the caller may do this to any resource
   */
  allowed(caller: Caller, policy: string, target?: { readonly owner: string | null; readonly lessee: string | null }): boolean;
}
/** What `npm run types` knows of an operation (api/schema/operations.ts). Code for several operations names what it needs of them. */
export interface OperationTypes {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Arguments;
  readonly body: unknown;
}
export interface Request<Operation extends OperationTypes = OperationTypes> {
  readonly minor: number;
  readonly caller: Caller;
  /** Whether the policy of the operation has allowed the request (access.ts). */
  readonly permission: Permission;
  readonly params: Operation['params'];
  /** Arguments of the query, and of the body where its members are arguments: checked values by name. */
  readonly query: Operation['query'];
  /** `fields` of the query is a segment of the path. It is checked when the record is found. */
  readonly isFieldOfPath: boolean;
  /** The parsed body, `{}` when there was none. It is valid for its schema, unless it is a resource (fields.ts). */
  readonly body: Operation['body'];
  /** Scheme and host for links, without a trailing slash. */
  readonly base: string;
  readonly headers: IncomingHttpHeaders;
  /** Where the request comes from, for limits. */
  readonly source: string;
  /** The path as in the request. */
  readonly path: string;
  /** A trailing `.json` was removed from the path (below 1.91). It may belong to a name. */
  readonly jsonSuffix: boolean;
  readonly origin: Origin;
  /** Called with the node of the path once it is found, for the audit log. */
  readonly onNode: (node: { readonly uuid: string }) => void;
  readonly peer: Peer;
}
export interface Answer {
  readonly status: number;
  /** A value to serialise. Absent: no body and no content type. */
  readonly body?: unknown;
  /** Serialised JSON, in place of `body`. */
  readonly text?: string;
  /** Serialised JSON in pieces, in place of `body`. */
  readonly bytes?: readonly Buffer[];
  /** Serialised JSON in slices, in place of `body`: a list, which may be long. */
  readonly slices?: Slices;
  /** A stream of server-sent events, in place of any body. */
  readonly stream?: Stream;
  readonly headers?: Readonly<Record<string, string>>;
}
/** The services that handlers use. */
export interface ApiContext {
  readonly store: Store;
  readonly conductor: Conductor;
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly auth: Auth;
  readonly document: Document;
  readonly random: (bytes: number) => Buffer;
  readonly validators: Validators;
  readonly current: CurrentState;
  readonly fragments: Fragments;
  readonly feed: EventFeed;
  readonly pushes: HardwarePushes;
  readonly smartReports: SmartReports;
  readonly eventDoor: BmcEventDoor;
  readonly notifier: Notifier;
  readonly agentAddresses: AgentAddresses;
  readonly agentTokens: AgentTokens;
  /** The built-in rules, with those of [health]rules. */
  readonly healthRules: readonly HealthRule[];
}
export type RequestOf<Id extends keyof Operations> = Request<Operations[Id]>;
/** A request with this parameter in its path. */
export type RequestOn<Param extends string> = Request<OperationTypes & { readonly params: Readonly<Record<Param, string>> }>;
export type Handler<Operation extends OperationTypes = OperationTypes> = (
  request: Request<Operation>,
  context: ApiContext,
) => Promise<Answer>;
/** One handler for each operation of openapi.yaml. */
export type Handlers = { readonly [Id in keyof Operations]: Handler<Operations[Id]> };
/** The handlers of a file; a name that is no operation is an error of the compiler. */
export type SomeHandlers = Partial<Handlers>;
