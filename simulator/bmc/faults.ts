/** What can be wrong with a simulated BMC, as rows; and how packets and requests fare with it. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Clock } from '../../model/clock';
import { alterAnswers, type Alteration } from './altered-answers';
import { sendJson } from '../http';

interface FaultRow {
  readonly kind: 'number' | 'flag' | 'names';
  /** Of numbers. */
  readonly most?: number;
  readonly about: string;
}
export const FAULTS = {
  latency: { kind: 'number', most: 600_000, about: 'milliseconds by which each answer is late' },
  loss: { kind: 'number', most: 1, about: 'share of UDP packets that are lost, each way; of HTTP requests, whose connection is dropped' },
  hang: { kind: 'flag', about: 'it takes what it is sent, and never answers' },
  wrong_password: { kind: 'flag', about: 'it refuses the password' },
  flap: { kind: 'number', most: 3_600_000, about: 'the power state that it tells turns over every so many milliseconds' },
  restart: { kind: 'number', most: 3_600_000, about: 'milliseconds that it is away when it is reset: 5000 unless told' },
  redfish_missing: { kind: 'names', about: 'resources that are not there (404): Bios, Storage, … or * for all but the service root' },
  redfish_error: { kind: 'names', about: 'resources that fail (500)' },
  redfish_types: { kind: 'names', about: 'resources whose members have wrong types' },
  redfish_garbage: { kind: 'names', about: 'resources that are no whole JSON' },
} as const satisfies Readonly<Record<string, FaultRow>>;
export type FaultName = keyof typeof FAULTS;
type ValueOf = { readonly number: number; readonly flag: boolean; readonly names: readonly string[] };
/** Absent: not so. */
export type Faults = { readonly [name in FaultName]?: ValueOf[(typeof FAULTS)[name]['kind']] };

const isName = (name: string): name is FaultName => Object.hasOwn(FAULTS, name);
const FAULT_NAMES = Object.keys(FAULTS).join(', ');
const RESOURCE = /^(\*|[\w.-]{1,80})$/;

/** The value of a fault, from JSON; undefined: it is not of its kind. */
function valueOf(row: FaultRow, value: unknown): number | boolean | readonly string[] | undefined {
  if (row.kind === 'flag') return typeof value === 'boolean' ? value : undefined;
  if (row.kind === 'number') return typeof value === 'number' && value >= 0 && value <= row.most! ? value : undefined;
  return Array.isArray(value) && value.length <= 100 && value.every((one) => typeof one === 'string' && RESOURCE.test(one))
    ? (value as string[])
    : undefined;
}
const KINDS = {
  number: (row: FaultRow) => `a number, ${row.most!} at most`,
  flag: () => 'true or false',
  names: () => 'names of resources',
};

/** Faults as JSON has them. Throws an Error that names what is wrong. */
export function readFaults(given: unknown): Faults {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw new Error('faults are an object');
  const entries = Object.entries(given).map(([name, value]) => {
    if (!isName(name)) throw new Error(`there is no fault "${name.slice(0, 40)}": they are ${FAULT_NAMES}`);
    const row: FaultRow = FAULTS[name];
    const read = valueOf(row, value);
    if (read === undefined) throw new Error(`the fault ${name} needs ${KINDS[row.kind](row)}`);
    return [name, read] as const;
  });
  // What does nothing is not there.
  return Object.fromEntries(entries.filter(([, value]) => value !== 0 && value !== false && !(Array.isArray(value) && value.length === 0)));
}
/** Faults as people write them: latency=300,loss=0.2,hang,redfish_missing=Bios+Storage. An empty value takes the fault away. */
export function parseFaults(text: string): Readonly<Record<string, unknown>> {
  const words = text.split(/[,\s]+/).filter((word) => word !== '' && word !== 'none');
  return Object.fromEntries(
    words.map((word): [string, unknown] => {
      const [name, value] = word.split(/=(.*)/s) as [string, string?];
      if (!isName(name)) throw new Error(`there is no fault "${name}": they are ${FAULT_NAMES}`);
      const { kind } = FAULTS[name];
      if (kind === 'flag') return [name, value === undefined || value === 'true' || (value === 'false' || value === '' ? false : value)];
      if (kind === 'names') return [name, (value ?? '').split('+').filter((one) => one !== '')];
      return [name, value === undefined ? undefined : Number(value)];
    }),
  );
}

/** The faults of the BMCs of a machine, which may change while they run, and what they were asked. */
export interface FaultBox {
  now: Faults;
  readonly traffic?: Traffic;
}
/** Requests that were heard: how many, how many have no answer now, and the most that ever had none. */
export interface Traffic {
  calls: number;
  open: number;
  most: number;
}
export const noTraffic = (): Traffic => ({ calls: 0, open: 0, most: 0 });
/** Call what it answers when the request is answered, or never will be. */
export function callBegins({ traffic }: FaultBox): () => void {
  if (!traffic) return () => {};
  traffic.calls++;
  traffic.open++;
  traffic.most = Math.max(traffic.most, traffic.open);
  return () => {
    traffic.open--;
  };
}
export interface FaultSetup {
  readonly box: FaultBox;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
}
const happens = (share: number | undefined, random: FaultSetup['random']): boolean =>
  share !== undefined && random(4).readUInt32LE() / 2 ** 32 < share;

/** How datagrams fare: `take` says whether one is heard at all, `give` sends one, late or never; then it is `over`. */
export interface DatagramFate {
  take(): boolean;
  give(send: () => void, over?: () => void): void;
}
export function datagramFate({ box, clock, random }: FaultSetup, signal: AbortSignal): DatagramFate {
  return {
    take: () => !box.now.hang && !happens(box.now.loss, random),
    give: (send, over = () => {}) => {
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

const named = (names: readonly string[] | undefined, parts: readonly string[]): boolean =>
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

/** How requests to a Redfish service fare. */
export function faultyRequests(setup: FaultSetup, listener: RequestListener): RequestListener {
  const { box, clock, random } = setup;
  const meet = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const faults = box.now;
    response.once('close', callBegins(box));
    if (faults.hang) return;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    if (faults.latency !== undefined) await clock.sleep(faults.latency, gone.signal);
    const lost = happens(faults.loss, random);
    // Half of what is lost was heard: the answer is what does not arrive.
    if (lost && happens(0.5, random)) {
      response.destroy();
      return;
    }
    const parts = (request.url ?? '').split(/[/?]/).filter((part) => part !== '');
    const isRoot = parts.length <= 2;
    const refusals: readonly (readonly [keyof typeof REFUSALS, boolean])[] = [
      [401, faults.wrong_password === true],
      [404, named(faults.redfish_missing, parts)],
      [500, named(faults.redfish_error, parts)],
    ];
    const refusal = isRoot ? undefined : refusals.find(([, isSo]) => isSo)?.[0];
    if (refusal) {
      refuse(response, refusal);
      return;
    }
    const alterations: readonly (readonly [Alteration, boolean])[] = [
      ['dropped', lost],
      ['garbage', named(faults.redfish_garbage, parts)],
      ['types', named(faults.redfish_types, parts)],
    ];
    const alteration = alterations.find(([, isSo]) => isSo)?.[0];
    if (alteration) alterAnswers(response, alteration);
    listener(request, response);
  };
  return (request, response) =>
    void meet(request, response).catch(() => {
      response.destroy();
    });
}
