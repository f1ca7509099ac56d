/** Sends every request of the table as every persona, and records the results. */
import {
  KINDS,
  LABEL_OF,
  OPERATIONS,
  SETUP,
  STATE_OPERATIONS,
  STATES,
  thingsOf,
  type Call,
  type Kind,
  type Operation,
  type State,
} from './operations';
import { ADMIN, OF_STATES, PERSONAS, WITHOUT_OWNER, type Persona } from './personas';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { requestText } from '../../support/request';
import { until } from '../../support/until';
import { NEWEST_VERSION } from '../../support/newest';

/** The headers that identify a persona to this server. */
type Identify = (persona: Persona) => Readonly<Record<string, string>>;
/** Writes the state of a node to the database of the server. */
type SetState = (node: string, state: State) => Promise<void>;
/** `OPERATION | KIND`, `OPERATION | KIND | STATE` → persona → result. */
export type Table = Readonly<Record<string, Readonly<Record<string, string>>>>;

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const labelled = (text: string): string => text.replace(UUID, (uuid) => LABEL_OF.get(uuid) ?? 'UUID');

interface Reply {
  readonly status: number;
  readonly body: unknown;
}
/** The message of an error. */
function faultOf(body: unknown): string {
  const message = (body as { readonly error_message?: unknown } | undefined)?.error_message;
  const fault = typeof message === 'string' ? (JSON.parse(message) as unknown) : message;
  return labelled((fault as { readonly faultstring?: string } | undefined)?.faultstring ?? '');
}
/** The paths of redacted and masked values. */
function hiddenIn(value: unknown, path: string, found: Set<string>): void {
  if (typeof value === 'string') {
    if (/^\*\* .*\*\*$/.test(value)) found.add(`${path}=${value}`);
    else if (value === '******') found.add(`${path}=masked`);
  } else if (Array.isArray(value)) for (const item of value) hiddenIn(item, `${path}[]`, found);
  else if (value !== null && typeof value === 'object')
    for (const [key, entry] of Object.entries(value)) hiddenIn(entry, `${path}.${key}`, found);
}
/** The items of a list, by their labels. */
function itemsOf(body: unknown): string | undefined {
  const lists = Object.values(body ?? {}).filter(Array.isArray);
  const items = lists.length === 1 ? (lists[0] as readonly unknown[]) : undefined;
  return items
    ?.map((item) => (typeof item === 'string' ? item : (item as { readonly uuid?: string } | null)?.uuid))
    .flatMap((uuid) => (uuid !== undefined && LABEL_OF.has(uuid) ? [LABEL_OF.get(uuid)!] : []))
    .sort()
    .join(' ');
}
const PROJECTS = ['owner', 'lessee'];
/** One cell of the table. */
function cellOf(call: Call, { status, body }: Reply): string {
  if (status >= 400) return `${status} ${faultOf(body)}`.trim();
  const hidden = new Set<string>();
  hiddenIn(body, '', hidden);
  const items = call.method === 'GET' ? itemsOf(body) : undefined;
  const created =
    call.method === 'POST'
      ? PROJECTS.flatMap((name) =>
          (body as Record<string, unknown> | undefined)?.[name] ? [`${name}=${String((body as Record<string, unknown>)[name])}`] : [],
        )
      : [];
  return [status, ...(items === undefined ? [] : [`[${items}]`]), ...created, ...[...hidden].sort()].join(' ');
}

interface TableParts {
  readonly url: string;
  readonly identify: Identify;
  /** Absent: no rows of states. */
  readonly setState?: SetState;
  /** Projects of the personas, and their IDs on the server. Absent: these are the IDs. */
  readonly projects?: ReadonlyMap<string, string>;
  /** Rows of these names. Absent: all. */
  readonly only?: RegExp;
}
export async function tableOf({ url, identify, setState, projects = new Map(), only = /^/ }: TableParts): Promise<Table> {
  const replaced = (text: string, pairs: readonly (readonly [string, string])[]): string =>
    pairs.reduce((before, [from, to]) => before.replaceAll(from, to), text);
  const toServer = [...projects];
  const fromServer = toServer.map(([name, id]) => [id, name] as const);
  const ask = async (persona: Persona, { method, path, body }: Call): Promise<Reply> => {
    const reply = await requestText(url + replaced(path, toServer), method, {
      headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': NEWEST_VERSION, ...identify(persona) },
      ...(body === undefined ? {} : { body: replaced(JSON.stringify(body), toServer) }),
      signal: timeoutSignal(120_000),
    });
    const text = replaced(reply.text, fromServer);
    const isJson = reply.type?.includes('json') === true && text !== '';
    return { status: reply.status, body: isJson ? (JSON.parse(text) as unknown) : undefined };
  };
  const settled = (node: string): Promise<void> =>
    until(
      `${node} to be released`,
      async () => {
        const { body } = await ask(ADMIN, { method: 'GET', path: `/v1/nodes/${node}?fields=reservation,provision_state` });
        const { reservation, provision_state: state } = body as { readonly reservation: string | null; readonly provision_state: string };
        return reservation === null && state !== 'verifying';
      },
      20,
    );
  for (const kind of KINDS) {
    const things = thingsOf(kind);
    for (const step of SETUP) {
      const call = step(things);
      const reply = call && (await ask(ADMIN, call));
      if (reply && reply.status >= 300) throw new Error(`${call.method} ${call.path}: ${reply.status} ${faultOf(reply.body)}`);
    }
    await settled(things.node);
  }

  const cell = async (operation: Operation, things: ReturnType<typeof thingsOf>, persona: Persona): Promise<string> => {
    if (operation.before) await ask(ADMIN, operation.before(things));
    const call = operation.call(things);
    const reply = await ask(persona, call);
    if (reply.status < 300 && operation.after) {
      const after = await ask(ADMIN, operation.after(things));
      if (after.status >= 300) throw new Error(`after ${operation.name} as ${persona.name}: ${after.status} ${faultOf(after.body)}`);
    }
    if (operation.settles) await settled(things.node);
    return cellOf(call, reply);
  };
  const rowOf = async (operation: Operation, kind: Kind, personas: readonly Persona[]): Promise<Record<string, string>> => {
    const things = thingsOf(kind);
    const isReading = operation.call(things).method === 'GET' && !operation.alone;
    const cells: string[] = [];
    if (isReading) cells.push(...(await Promise.all(personas.map((persona) => cell(operation, things, persona)))));
    else for (const persona of personas) cells.push(await cell(operation, things, persona));
    return Object.fromEntries(personas.map((persona, index) => [persona.name, cells[index]!]));
  };
  const table: Record<string, Record<string, string>> = {};
  const names = new Map<string, number>();
  for (const operation of OPERATIONS) {
    // Two requests may have the same name.
    const count = names.get(operation.name) ?? 0;
    names.set(operation.name, count + 1);
    const name = count === 0 ? operation.name : `${operation.name} (${count + 1})`;
    for (const kind of operation.once ? KINDS.slice(0, 1) : KINDS) {
      const row = operation.once ? name : `${name} | ${kind}`;
      if (only.test(row)) table[row] = await rowOf(operation, kind, kind === 'owned' ? PERSONAS : WITHOUT_OWNER);
    }
  }
  const { node } = thingsOf('owned');
  for (const state of setState ? STATES : []) {
    await setState!(node, state);
    for (const operation of STATE_OPERATIONS) {
      const row = `${operation.name} | owned | ${state}`;
      if (!only.test(row)) continue;
      table[row] = await rowOf(operation, 'owned', OF_STATES);
      const { body } = await ask(ADMIN, { method: 'GET', path: `/v1/nodes/${node}?fields=provision_state` });
      const { provision_state: after } = body as { readonly provision_state: string };
      if (after !== state) throw new Error(`${row}: the node is in the state ${after} now`);
    }
  }
  return table;
}
