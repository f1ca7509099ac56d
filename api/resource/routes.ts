/** What a handler gets and gives, and how a path finds its operation. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Conductor } from '../../conductor/conductor';
import type { Clock } from '../../model/clock';
import { Fault } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import type { Log } from '../../model/log';
import type { Notifier } from '../../model/notifications';
import type { Metrics } from '../../model/metrics';
import type { Origin } from '../../model/origin';
import { repr } from '../../model/python';
import { open } from '../../model/versions';
import type { Store } from '../../store/store';
import type { CurrentState } from '../http/current-state';
import { refuseByGate, type Arguments } from '../schema/arguments';
import type { Document, Operation, PathItem } from '../schema/document';
import { Refusal } from '../http/errors';
import type { EventFeed } from './event-feed';
import type { Fragments } from './fragments';
import type { HardwarePushes } from './hardware-pushes';
import type { ApiOptions } from '../http/options';
import type { Validators } from '../schema/schema';
import type { Stream } from '../http/streaming';

/** Who asks. */
export interface Caller {
  readonly user: string | null;
  readonly project: string | null;
  readonly roles: readonly string[];
  readonly system: boolean;
}
/** How callers prove who they are, and what they may do. */
export interface Auth {
  /**
   * @param path as the caller wrote it, without slashes at the end: some are public
   * @throws Unauthenticated
   */
  identify(headers: IncomingHttpHeaders, path: string, method: string): Promise<Caller>;
  /** A step (`step:execute:…`) is allowed unless the operator's rules name it. `owner`, `lessee`: projects that the thing asked for belongs to. Without a target: whether there is anything that they might do so to. */
  allowed(caller: Caller, policy: string, target?: { readonly owner: string | null; readonly lessee: string | null }): boolean;
}
export interface Request {
  readonly minor: number;
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
  /** Arguments of the query, and of the body where its members are arguments: checked values by name. */
  readonly query: Arguments;
  /** The body as JSON, `{}` when there was none; held against its schema, unless it is a resource (fields.ts). */
  readonly body: unknown;
  /** What links begin with: scheme and host, without a slash. */
  readonly base: string;
  readonly headers: IncomingHttpHeaders;
  /** The path as the caller wrote it. */
  readonly path: string;
  /** Below 1.91 a `.json` at the end was cut off: a name may really end so. */
  readonly jsonSuffix: boolean;
  readonly origin: Origin;
}
export interface Answer {
  readonly status: number;
  /** JSON; absent: no body and no content type. */
  readonly body?: unknown;
  /** In place of `body`: JSON as it is sent, in pieces. */
  readonly bytes?: readonly Buffer[];
  /** In place of both: what is sent from now on, as text/event-stream. */
  readonly stream?: Stream;
  readonly headers?: Readonly<Record<string, string>>;
}
export interface ApiContext {
  readonly store: Store;
  readonly conductor: Conductor;
  readonly options: ApiOptions;
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
  readonly notifier: Notifier;
}
export type Handler = (request: Request, context: ApiContext) => Promise<Answer>;
export type Handlers = Readonly<Record<string, Handler>>;

/** A door without a handler, or a handler without a door, stops the start. */
export function checkHandlers(document: Document, handlers: Handlers): void {
  const doors = document.paths.flatMap(({ operations }) => [...operations.values()]);
  const missing = doors.filter(({ operationId }) => !Object.hasOwn(handlers, operationId)).map(({ operationId }) => operationId);
  const idle = Object.keys(handlers).filter((name) => !doors.some(({ operationId }) => operationId === name));
  if (missing.length > 0 || idle.length > 0)
    throw new Error(`openapi.yaml and the handlers differ: no handler for [${missing.join(', ')}], no operation for [${idle.join(', ')}]`);
}

export interface Match {
  readonly operation: Operation;
  readonly params: Readonly<Record<string, string>>;
  /** A field named by a further path segment. */
  readonly field?: string;
  /** The operation is not there for this version, which is told after the arguments were looked at. */
  readonly closed?: true;
}
export type Matcher = (method: string, segments: readonly string[], minor: number) => Match;

/** Nothing is behind the path, which is told of the methods that it has. */
const isMissing = (rest: PathItem['rest']): boolean => Array.isArray(rest) && rest[0] === 404;
const isParameter = (segment: string | undefined): boolean => segment?.startsWith('{') ?? false;
const fits = (place: PathItem, segments: readonly string[]): boolean =>
  place.segments.length === segments.length && place.segments.every((part, index) => isParameter(part) || part === segments[index]);
const paramsOf = (place: PathItem, segments: readonly string[]): Record<string, string> =>
  Object.fromEntries(place.segments.flatMap((part, index) => (isParameter(part) ? [[part.slice(1, -1), segments[index]!]] : [])));

/**
 * @returns finds the operation for a method and a path (`v1` first, decoded segments)
 * @throws Refusal, Fault: why there is none for this version
 */
export function matcher({ paths: places }: Document): Matcher {
  /** Of two that fit, the one with the word and not the parameter. */
  const ordered = [...places].sort((a, b) => a.segments.filter(isParameter).length - b.segments.filter(isParameter).length);
  const byLength = new Map(
    ordered.map(({ segments: { length } }) => [length, ordered.filter((place) => place.segments.length === length)]),
  );
  const at = (segments: readonly string[], method?: string): PathItem | undefined => {
    const fitting = (byLength.get(segments.length) ?? []).filter((place) => fits(place, segments));
    return fitting.find(({ operations }) => method !== undefined && operations.has(method)) ?? fitting[0];
  };
  const closing = places.filter(({ closed }) => closed !== null).sort((a, b) => b.segments.length - a.segments.length);
  /** Says so when the path leads into what this version does not have; of two such places the deeper one speaks. */
  function checkClosed(method: string, segments: readonly string[], minor: number): void {
    const found = closing.find((place) => !open(place.gate, minor) && fits(place, segments.slice(0, place.segments.length)));
    if (!found) return;
    const [reading, writing, sentence] = found.closed!;
    throw new Refusal(method === 'GET' ? reading : writing, sentence);
  }
  const memberOf = ({ segments }: PathItem): PathItem | undefined =>
    places.find(
      ({ segments: own }) =>
        own.length === segments.length + 1 && isParameter(own.at(-1)) && segments.every((part, index) => part === own[index]),
    );

  /** @param every also those that the router looks at only when it finds no method */
  function checkRouted(place: PathItem, segments: readonly string[], every = false): void {
    const params = paramsOf(place, segments);
    for (const { name, routed } of place.arguments) {
      const ident = params[name];
      if (ident === undefined || !(routed || (every && name === 'node_ident'))) continue;
      if (places.some(({ reserved, segments: own }) => reserved.includes(ident) && own.at(-1) === `{${name}}`)) throw new Refusal(404);
      if (![isLogicalName, isUuid].some((test) => test(ident))) throw new Refusal(400, `Expected UUID or name for node: ${ident}`);
    }
  }
  /** The method is none of this path's. */
  function wrongMethod(place: PathItem, method: string, segments: readonly string[], minor: number): never {
    // Below a node, the router looks at its identifier before it says which method is missing.
    if (place.segments[2] === '{node_ident}' && place.segments[1] === 'nodes' && (segments.length === 4 || method !== 'GET'))
      checkRouted(place, segments, true);
    const member = memberOf(place);
    const needed = member?.operations.get(method);
    if (needed) {
      if (Array.isArray(needed.below) && !open(needed.gate, minor)) refuseByGate(needed.below, needed.gate.since);
      const { label: said } = needed.arguments.filter(({ from }) => from === 'path').at(-1)!;
      throw new Fault('MissingParameterValue', { message: `Missing mandatory parameter: ${said}` });
    }
    const collection = at(segments.slice(0, -1));
    const creation = method === 'POST' ? collection?.operations.get(method) : undefined;
    if (creation && Array.isArray(creation.below) && !open(creation.gate, minor)) refuseByGate(creation.below, creation.gate.since);
    if (creation?.bodyName)
      throw new Fault('InvalidParameterValue', {
        message: `Schema error for ${creation.bodyName}: ${repr(segments.at(-1))} is not of type 'object'`,
      });
    if (
      place.rest !== null &&
      place.rest !== 'fields' &&
      place.rest !== 405 &&
      !isMissing(place.rest) &&
      ['POST', 'PATCH', 'DELETE'].includes(method)
    )
      refuseByGate(place.rest, 1);
    const allowed = [place, member, isParameter(place.segments.at(-1)) ? collection : undefined].flatMap((one) => [
      ...(one?.operations.keys() ?? []),
    ]);
    throw new Refusal(405, '', { Allow: [...new Set(allowed)].sort().join(', ') });
  }
  /** The path goes on behind one that is known. */
  function behind(method: string, segments: readonly string[], minor: number, isField: boolean): Match {
    for (let length = segments.length - 1; length > 1; length--) {
      const place = ordered.find((one) => fits(one, segments.slice(0, length)) && one.rest !== null) ?? at(segments.slice(0, length));
      if (!place) continue;
      checkRouted(place, segments);
      const operation = place.operations.get(method);
      const hides = typeof place.below === 'number' || (operation !== undefined && Array.isArray(place.below));
      if (hides && !open(place.gate, minor))
        refuseByGate(Array.isArray(operation?.below) ? operation.below : place.below, place.gate.since);
      const rest = operation?.rest ?? place.rest;
      const field = segments[length]!;
      if (
        rest === 'fields' &&
        method === 'GET' &&
        operation &&
        length === segments.length - 1 &&
        (isField || !place.reserved.includes(field))
      )
        return open(operation.gate, minor)
          ? { operation, params: paramsOf(place, segments), field }
          : refuseByGate(operation.below, operation.gate.since);
      if (rest === 405) wrongMethod(place, '', segments.slice(0, length), minor);
      // `detail` belongs to lists.
      if (method === 'GET' && field === 'detail' && place.reserved.includes(field)) refuseByGate([404, 'Resource could not be found.'], 1);
      if (isMissing(rest) && !operation) wrongMethod(place, method, segments.slice(0, length), minor);
      if (rest !== null && rest !== 'fields') refuseByGate(rest, 1);
      if (rest === 'fields' && method !== 'GET') wrongMethod(place, method, segments.slice(0, length), minor);
      break;
    }
    throw new Refusal(404);
  }

  return (method, segments, minor) => {
    checkClosed(method, segments, minor);
    const place = at(segments, method);
    if (!place) return behind(method, segments, minor, false);
    checkRouted(place, segments);
    if (typeof place.below === 'number' && !open(place.gate, minor)) throw new Refusal(place.below);
    const operation = place.operations.get(method);
    if (!operation) return place.only ? behind(method, segments, minor, false) : wrongMethod(place, method, segments, minor);
    const found = { operation, params: paramsOf(place, segments) };
    const { gate, below } = operation;
    if (open(gate, minor) || below === 'handler') return found;
    if (below === 'member') return behind(method, segments, minor, true);
    if (below === 405) return wrongMethod(place, '', segments, minor);
    return Array.isArray(below) && below[2] !== 'early' ? { ...found, closed: true } : refuseByGate(below, gate.since);
  };
}
