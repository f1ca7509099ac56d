/** Mutates a Redfish service's answers, in the same way in every run, and lets our side work with them. */
import { RedfishError, type RedfishMethod, type RedfishPool } from '../../../wire/redfish';
import { evaluate } from '../../../wire/redfish/transport';

type Next = () => number;
const pick = <T>(from: readonly T[], next: Next): T => from[Math.floor(next() * from.length)]!;
const deep = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as unknown;
const PLACES = [
  '/redfish/v1/',
  '/redfish/v1/Systems',
  '//other.example/x',
  'http://other.example/',
  '/a b',
  '',
  '#/x',
  '/redfish/v1/Systems#/Members/0',
];
/** Values that may replace any value. */
const VALUES: readonly ((next: Next) => unknown)[] = [
  () => null,
  () => '',
  () => 0,
  () => -1,
  () => 1e308,
  () => 0.1,
  () => true,
  () => [],
  () => ({}),
  () => [null, 5, {}, 'x'],
  () => 'x'.repeat(20_000),
  () => '\u0000\ud800%00../..',
  () => '__proto__',
  () => 'toString',
  () => deep(500),
  () => Array.from({ length: 300 }, (_, n) => n),
  (next) => ({ '@odata.id': pick(PLACES, next) }),
  (next) => Array.from({ length: 50 }, () => ({ '@odata.id': pick(PLACES, next) })),
];
type Branch = Record<string, unknown> | unknown[];
const isBranch = (value: unknown): value is Branch => typeof value === 'object' && value !== null;
/** Some value in the tree: its owner and its name there. */
function somewhere(root: Branch, next: Next): { readonly owner: Record<string, unknown>; readonly name: string } | undefined {
  let owner: Branch = root;
  for (;;) {
    const names = Object.keys(owner);
    if (names.length === 0) return undefined;
    const name = pick(names, next);
    const value = (owner as Record<string, unknown>)[name];
    if (!isBranch(value) || Object.keys(value).length === 0 || next() < 0.25) return { owner: owner as Record<string, unknown>, name };
    owner = value;
  }
}
type Bend = (text: string, next: Next) => string;
const inTree =
  (work: (at: { readonly owner: Record<string, unknown>; readonly name: string }, root: Branch, next: Next) => void): Bend =>
  (text, next) => {
    try {
      const root = JSON.parse(text) as unknown;
      const at = isBranch(root) ? somewhere(root, next) : undefined;
      if (at) work(at, root as Branch, next);
      return JSON.stringify(root);
    } catch {
      // An earlier mutation has made the text invalid.
      return text;
    }
  };
const at = (text: string, next: Next): number => Math.floor(next() * text.length);
const BENDS: readonly Bend[] = [
  (text) => text,
  inTree(({ owner, name }, _, next) => (owner[name] = pick(VALUES, next)(next))),
  inTree(({ owner, name }) => delete owner[name]),
  inTree(({ owner, name }, root, next) => {
    const other = somewhere(root, next);
    if (other) owner[name] = structuredClone(other.owner[other.name]);
  }),
  inTree(
    ({ owner }, _, next) =>
      (owner[pick(['Members@odata.nextLink', '@odata.id', 'Members', 'Status', 'constructor'], next)] = pick(VALUES, next)(next)),
  ),
  (text, next) => text.slice(0, at(text, next)),
  (text, next) => text + text.slice(at(text, next)),
  (text, next) => {
    const place = at(text, next);
    return text.slice(0, place) + String.fromCharCode(Math.floor(next() * 256)) + text.slice(place + 1);
  },
];
function bend(text: string, next: Next): string {
  let bent = text;
  for (let bends = 1 + Math.floor(next() * 3); bends > 0; bends--) bent = pick(BENDS, next)(bent, next);
  return bent;
}

const HEADERS: readonly Readonly<Record<string, string>>[] = [
  {},
  { etag: '"1"' },
  { etag: '' },
  { location: '/redfish/v1/TaskService/TaskMonitors/1' },
  { location: 'http://[' },
  { location: 'https://other.example/redfish/v1/Systems' },
  { 'retry-after': '1e9' },
  { 'retry-after': '-5' },
  { 'retry-after': 'Sat, 01 Jan 2000 00:00:00 GMT' },
];
const TASK = JSON.stringify({
  '@odata.id': '/redfish/v1/TaskService/Tasks/1',
  TaskState: 'Running',
  PercentComplete: 5,
  Messages: [{ Message: 'm' }],
});
const ERROR = JSON.stringify({
  error: { code: 'Base.1.8.GeneralError', message: 'm', '@Message.ExtendedInfo': [{ MessageId: 'Base.1.8.X', Message: 'x' }] },
});

export interface BentService {
  readonly pool: RedfishPool;
  /** The number of answers so far. */
  readonly answers: () => number;
  /** The bodies of this operation's answers, one after another. `begin` starts a new operation. */
  readonly said: () => string;
  readonly begin: () => void;
}
/** More requests than any operation of ours may send, wherever the service's links lead. */
const MAX_ASKED = 5000;
/** A service of these resources with mutated answers; the client's own `evaluate` interprets them. */
export function bentService(resources: ReadonlyMap<string, string>, next: Next): BentService {
  let [answers, asked] = [0, 0];
  let said = '';
  const answerTo = (method: RedfishMethod, path: string): readonly [status: number, text: string] => {
    if (next() < 0.02) return [pick([400, 401, 404, 409, 412, 500, 503], next), ERROR];
    if (path.includes('TaskMonitors'))
      return pick(
        [
          [202, TASK],
          [200, TASK.replace('Running', 'Completed')],
          [204, ''],
        ] as const,
        next,
      );
    if (method !== 'GET')
      return pick(
        [
          [204, ''],
          [200, '{}'],
          [202, TASK],
          [202, ''],
          [201, TASK],
        ] as const,
        next,
      );
    const found = resources.get(path.replace(/#.*/, ''));
    return found === undefined ? [404, ERROR] : [200, found];
  };
  const request: RedfishPool['request'] = async (target, method, path) => {
    answers++;
    if (++asked > MAX_ASKED) throw new Error(`more than ${MAX_ASKED} requests for one operation`);
    // The client itself refuses a malformed path before it sends anything.
    if (!/^\/(?!\/)[\x21-\x7e]*$/.test(path)) throw new RedfishError('protocol', 'a link that is no path');
    const [status, text] = answerTo(method, path);
    const bent = next() < 0.3 ? bend(text, next) : text;
    said += bent;
    return evaluate(method, `${target.address}${path}`, status, next() < 0.8 ? {} : pick(HEADERS, next), Buffer.from(bent));
  };
  return {
    pool: { request, close: async () => {} },
    answers: () => answers,
    said: () => said,
    begin: () => {
      asked = 0;
      said = '';
    },
  };
}
