/** The faults of simulated BMCs, and their effects on packets and requests. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Clock } from '../../model/clock';
import { isObject } from '../../model/json';
import { corruptResponses, type ResponseCorruption } from './altered-answers';
import { sendJson } from '../http';

interface FaultDefinition {
  readonly kind: 'number' | 'flag' | 'names';
  /** The upper bound; only of the kind `number`. */
  readonly most?: number;
  readonly about: string;
}
export const FAULTS = {
  latency: { kind: 'number', most: 600_000, about: 'milliseconds of delay before each answer' },
  loss: { kind: 'number', most: 1, about: 'share of UDP packets that are lost, each way; of HTTP requests, whose connection is dropped' },
  hang: { kind: 'flag', about: 'it accepts requests and never answers' },
  wrong_password: { kind: 'flag', about: 'it refuses the password' },
  flap: { kind: 'number', most: 3_600_000, about: 'milliseconds after which the reported power state changes, again and again' },
  restart: { kind: 'number', most: 3_600_000, about: 'milliseconds without answers after a reset; default: 5000' },
  stopped: { kind: 'names', about: 'sensors of fans that stand still: Fan1, … or *' },
  parts: { kind: 'names', about: 'parts with a condition: PSU1.failed, sda.failing, DIMM1.errors, CPU1.hot, Fan1.slow, sda.gone, …' },
  events_refused: { kind: 'flag', about: 'the Redfish service refuses subscriptions to its events' },
  events_forgotten: { kind: 'flag', about: 'a reset of the BMC ends all subscriptions' },
  events_key: { kind: 'flag', about: 'events are sent to another path than the subscription says' },
  events_flood: { kind: 'number', most: 10_000, about: 'how often each event is sent' },
  redfish_missing: { kind: 'names', about: 'resources that do not exist (404): Bios, Storage, … or * for all but the service root' },
  redfish_error: { kind: 'names', about: 'resources that fail (500)' },
  redfish_types: { kind: 'names', about: 'resources whose members have wrong types' },
  redfish_garbage: { kind: 'names', about: 'resources whose JSON is cut off' },
} as const satisfies Readonly<Record<string, FaultDefinition>>;
type FaultName = keyof typeof FAULTS;
type ValueOf = { readonly number: number; readonly flag: boolean; readonly names: readonly string[] };
/** Absent: the BMC does not have this fault. */
export type Faults = { readonly [name in FaultName]?: ValueOf[(typeof FAULTS)[name]['kind']] };

const isName = (name: string): name is FaultName => Object.hasOwn(FAULTS, name);
const FAULT_NAMES = Object.keys(FAULTS).join(', ');
const RESOURCE = /^(\*|[\w.-]{1,80})$/;

/** Checks a fault's value from JSON. Undefined: the value is invalid. */
function valueOf(row: FaultDefinition, value: unknown): number | boolean | readonly string[] | undefined {
  if (row.kind === 'flag') return typeof value === 'boolean' ? value : undefined;
  if (row.kind === 'number') return typeof value === 'number' && value >= 0 && value <= row.most! ? value : undefined;
  return Array.isArray(value) &&
    value.length <= 100 &&
    value.every((candidate) => typeof candidate === 'string' && RESOURCE.test(candidate))
    ? (value as string[])
    : undefined;
}
const KINDS = {
  number: (row: FaultDefinition) => `a number, ${row.most!} at most`,
  flag: () => 'true or false',
  names: () => 'names of resources',
};

/** Checks faults from JSON. @throws an Error that names the first wrong one */
export function readFaults(faults: unknown): Faults {
  if (!isObject(faults)) throw new Error('faults are an object');
  const entries = Object.entries(faults).map(([name, value]) => {
    if (!isName(name)) throw new Error(`there is no fault "${name.slice(0, 40)}": they are ${FAULT_NAMES}`);
    const fault: FaultDefinition = FAULTS[name];
    const checked = valueOf(fault, value);
    if (checked === undefined) throw new Error(`the fault ${name} needs ${KINDS[fault.kind](fault)}`);
    return [name, checked] as const;
  });
  // 0, false and an empty list mean that the BMC does not have the fault.
  return Object.fromEntries(entries.filter(([, value]) => value !== 0 && value !== false && !(Array.isArray(value) && value.length === 0)));
}
/** Parses a command line's faults: latency=300,loss=0.2,hang,redfish_missing=Bios+Storage. An empty value removes the fault. */
export function parseFaults(text: string): Readonly<Record<string, unknown>> {
  const words = text.split(/[,\s]+/).filter((word) => word !== '' && word !== 'none');
  return Object.fromEntries(
    words.map((word): [string, unknown] => {
      const [name, value] = word.split(/=(.*)/s) as [string, string?];
      if (!isName(name)) throw new Error(`there is no fault "${name}": they are ${FAULT_NAMES}`);
      const { kind } = FAULTS[name];
      if (kind === 'flag') return [name, value === undefined || value === 'true' || (value === 'false' || value === '' ? false : value)];
      if (kind === 'names') return [name, (value ?? '').split('+').filter((part) => part !== '')];
      return [name, value === undefined ? undefined : Number(value)];
    }),
  );
}

/** The current faults of a machine's BMCs, and a count of their requests. */
export interface FaultBox {
  now: Faults;
  readonly traffic?: Traffic;
  /** Called after each change; absent: the faults never change. */
  onChange?(listener: (before: Faults, after: Faults) => void): void;
}
export function faultBox(first: Faults): FaultBox & Required<Pick<FaultBox, 'traffic' | 'onChange'>> {
  const listeners: ((before: Faults, after: Faults) => void)[] = [];
  let now = first;
  return {
    get now() {
      return now;
    },
    set now(next) {
      const before = now;
      now = next;
      for (const listener of listeners) listener(before, next);
    },
    traffic: noTraffic(),
    onChange: (listener) => void listeners.push(listener),
  };
}
/** Counts of the requests that the BMCs received. */
interface Traffic {
  calls: number;
  /** The number of requests that have no answer yet. */
  open: number;
  /** The maximum of `open`. */
  most: number;
}
const noTraffic = (): Traffic => ({ calls: 0, open: 0, most: 0 });
/** Counts a request. @returns a function that the caller calls when the request is answered or given up */
export function countRequest({ traffic }: FaultBox): () => void {
  if (!traffic) return () => {};
  traffic.calls++;
  traffic.open++;
  traffic.most = Math.max(traffic.most, traffic.open);
  return () => {
    traffic.open--;
  };
}
interface FaultSetup {
  readonly box: FaultBox;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
}
const happens = (share: number | undefined, random: FaultSetup['random']): boolean =>
  share !== undefined && random(4).readUInt32LE() / 2 ** 32 < share;

interface FaultyDatagrams {
  /** Whether the next datagram arrives. */
  arrives(): boolean;
  /** Calls `send` at once, after the latency, or never if the datagram is lost; in each case calls `over` afterwards. */
  deliver(send: () => void, over?: () => void): void;
}
export function faultyDatagrams({ box, clock, random }: FaultSetup, signal: AbortSignal): FaultyDatagrams {
  return {
    arrives: () => !box.now.hang && !happens(box.now.loss, random),
    deliver: (send, over = () => {}) => {
      const { latency, loss, hang } = box.now;
      const lost = hang === true || happens(loss, random);
      if (!lost && latency !== undefined) {
        void clock
          .sleep(latency, signal)
          .then(send, () => {})
          .then(over);
        return;
      }
      if (!lost) send();
      over();
    },
  };
}

const includesAny = (names: readonly string[] | undefined, parts: readonly string[]): boolean =>
  names !== undefined && names.some((name) => name === '*' || parts.includes(name));
const REFUSALS = {
  401: ['InsufficientPrivilege', 'There is no valid session established with the implementation.'],
  404: ['ResourceMissingAtURI', 'The resource at the URI was not found.'],
  500: ['InternalError', 'The request failed due to an internal service error.'],
} as const;
function refuse(response: ServerResponse, status: keyof typeof REFUSALS): void {
  const [id, message] = REFUSALS[status];
  sendJson(response, status, { error: { code: `Base.1.8.${id}`, message } }, { 'odata-version': '4.0' });
}

/** Wraps the listener of a Redfish service with the faults. */
export function faultyRequests(setup: FaultSetup, listener: RequestListener): RequestListener {
  const { box, clock, random } = setup;
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const faults = box.now;
    response.once('close', countRequest(box));
    if (faults.hang) return;
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    if (faults.latency !== undefined) await clock.sleep(faults.latency, closed.signal);
    const lost = happens(faults.loss, random);
    // The service handles half of the lost requests: only their answers are lost.
    if (lost && happens(0.5, random)) {
      response.destroy();
      return;
    }
    const parts = (request.url ?? '').split(/[/?]/).filter((part) => part !== '');
    const isRoot = parts.length <= 2;
    const refusals: readonly (readonly [keyof typeof REFUSALS, boolean])[] = [
      [401, faults.wrong_password === true],
      [404, includesAny(faults.redfish_missing, parts)],
      [500, includesAny(faults.redfish_error, parts)],
    ];
    const refusal = isRoot ? undefined : refusals.find(([, isSo]) => isSo)?.[0];
    if (refusal) {
      refuse(response, refusal);
      return;
    }
    const alterations: readonly (readonly [ResponseCorruption, boolean])[] = [
      ['dropped', lost],
      ['garbage', includesAny(faults.redfish_garbage, parts)],
      ['types', includesAny(faults.redfish_types, parts)],
    ];
    const alteration = alterations.find(([, isSo]) => isSo)?.[0];
    if (alteration) corruptResponses(response, alteration);
    listener(request, response);
  };
  return (request, response) =>
    void handle(request, response).catch(() => {
      response.destroy();
    });
}
