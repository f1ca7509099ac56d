/** Sends the same requests to two servers, and finds the differences of their answers, apart from unavoidable ones. */
import { request as httpRequest } from 'node:http';
import { until } from '../support/until';
import type { Sent, Step } from './requests/steps';
import { NEWEST_VERSION } from '../support/newest';

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export async function ask(base: string, { method, path, version, body, headers }: Sent): Promise<Answered> {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
  const sent = {
    ...(version === null ? {} : { 'X-OpenStack-Ironic-API-Version': version }),
    ...(text === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(text)) }),
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${base}${path}`, { method, headers: sent, timeout: 60_000 }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          headers: Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)])),
          body: Buffer.concat(chunks).toString(),
        }),
      );
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error(`${method} ${path}: no answer`)));
    // A server may answer and close before it has read the whole request: the answer has 100 ms to arrive.
    request.on('error', (error) => void setTimeout(() => reject(new Error(`${base}: ${method} ${path}: ${error.message}`)), 100));
    request.end(text);
  });
}

/** Milliseconds between two looks at a server. */
const EVERY_MS = 50;
/** Waits until the node has no reservation and no pending change. @param wanted the state that it must have then */
export async function settle(base: string, node: string, wanted?: string): Promise<void> {
  const isSettled = async (): Promise<boolean> => {
    const { body } = await ask(base, { method: 'GET', path: `/v1/nodes/${node}`, version: NEWEST_VERSION });
    const {
      reservation,
      target_provision_state: target,
      target_power_state: power,
      provision_state: state,
      last_error: error,
    } = JSON.parse(body) as Record<string, string | null>;
    if (reservation || power || (target && !/failed|wait|hold/.test(state ?? ''))) return false;
    if (wanted === undefined || state === wanted) return true;
    throw new Error(`${base}: ${node} is ${state ?? 'nowhere'}, not ${wanted}: ${error ?? ''}`);
  };
  await until(`${base}: ${node} settles`, isSettled, EVERY_MS);
}

/** Waits until each allocation has a result. */
export async function settleAllocations(base: string): Promise<void> {
  const areSettled = async (): Promise<boolean> => {
    const { body } = await ask(base, { method: 'GET', path: '/v1/allocations?state=allocating&limit=1', version: NEWEST_VERSION });
    return (JSON.parse(body) as { allocations: readonly unknown[] }).allocations.length === 0;
  };
  await until(`${base}: each allocation settles`, areSettled, EVERY_MS);
}

const COMPARED = [
  'content-type',
  'location',
  'x-openstack-ironic-api-version',
  'x-openstack-ironic-api-minimum-version',
  'x-openstack-ironic-api-maximum-version',
];
/** Members that each server generates or measures itself. */
const OWN: ReadonlySet<string> = new Set(['agent_token', 'duration_seconds']);
const KNOWN_UUID = /^(?:aaaaaaaa|bbbbbbbb|cccccccc|ffffffff)-/;

/** Makes values comparable: sorts what has no order (lists of names, members of objects), and replaces what each server generates. */
export function alike(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return alikeText(value);
  if (Array.isArray(value)) {
    const members = value.map((item) => alike(item));
    return /^(?:enabled_\w+|hosts|drivers)$/.test(key) ? members.map((member) => JSON.stringify(member)).sort() : members;
  }
  if (value === null || typeof value !== 'object') return value;
  const members = Object.entries(value)
    // The reference's conductor on SQLite counts as dead after a minute, and its reservations change updated_at.
    .filter(([name]) => name !== 'alive' && name !== 'updated_at')
    .sort(([entry], [other]) => (entry < other ? -1 : 1));
  // Whether a member of driver_internal_info is null or absent does not matter.
  const told = key === 'driver_internal_info' ? members.filter(([, member]) => member !== null) : members;
  return Object.fromEntries(told.map(([name, item]) => [name, OWN.has(name) && item !== null ? name.toUpperCase() : alike(item, name)]));
}
function alikeText(text: string): string {
  return (
    text
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00)?/g, 'TIME')
      .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (uuid) => (KNOWN_UUID.test(uuid) ? uuid : 'UUID'))
      .replace(/^Unexpected arguments: (.*)$/, (_, names: string) => `Unexpected arguments: ${names.split(', ').sort().join(', ')}`)
      .replace(
        /(Field\(s\) ")(.*)(" are)/,
        (_, before: string, names: string, after: string) => before + names.split(', ').sort().join(', ') + after,
      )
      // A set in Python has no order.
      .replace(
        /(connectivity attributes \()([\w, ]+)(\))/,
        (_, before: string, names: string, after: string) => before + names.split(', ').sort().join(', ') + after,
      )
      // Each server has its own numbers of rows.
      .replace(/(because portgroup )\d+( contains)/, '$1N$2')
      .replace(/( for node )(?:\d+|UUID|[0-9a-f-]{36})( )/, '$1N$2')
  );
}

/** Descriptions of driver properties are each project's own words. */
function withoutWords({ method, path }: Sent, body: unknown): unknown {
  if (body === null || typeof body !== 'object' || 'error_message' in body) return body;
  if (path.endsWith('/properties')) return Object.keys(body);
  // The reference answers a PATCH with the node still reserved; ours has released it.
  return method === 'PATCH' ? { ...body, reservation: null } : body;
}

export interface ComparedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}
export function seen(base: string, sent: Sent, { status, headers, body }: Answered): ComparedResponse {
  const text = body.replaceAll(base, 'BASE');
  let value: unknown = text;
  try {
    value = JSON.parse(text);
    const inner = (value as { error_message?: string } | null)?.error_message;
    if (typeof inner === 'string') value = { error_message: alike(JSON.parse(inner)) };
    else value = alike(value);
  } catch {
    // Not JSON: compared as it is.
  }
  // The header `allow` of a 405 has the methods of the path here, and those of the controller there: only its presence is compared.
  const shown = Object.entries(headers).flatMap(([name, entry]) =>
    name === 'allow' ? ([[name, 'told']] as const) : COMPARED.includes(name) ? ([[name, entry]] as const) : [],
  );
  return {
    status,
    headers: Object.fromEntries(shown.map(([name, item]) => [name, alikeText(item.replace(base, 'BASE'))])),
    body: withoutWords(sent, value),
  };
}

export interface Difference {
  readonly request: Sent;
  readonly reference: ComparedResponse;
  readonly ours: ComparedResponse;
}
export interface Outcome {
  readonly asked: number;
  /** The reference failed (5xx) at a client error, and ours answered properly. */
  readonly failures: readonly Difference[];
  readonly differences: readonly Difference[];
}

/** Sends the steps to both servers, one after the other. */
export async function compare(reference: string, ours: string, steps: readonly Step[]): Promise<Outcome> {
  const differences: Difference[] = [];
  const failures: Difference[] = [];
  let asked = 0;
  for (const step of steps) {
    if ('settle' in step) {
      await Promise.all([reference, ours].map((base) => settle(base, step.settle, step.state)));
      continue;
    }
    if ('settleAllocations' in step) {
      await Promise.all([reference, ours].map((base) => settleAllocations(base)));
      continue;
    }
    const [there, here] = await Promise.all([ask(reference, step), ask(ours, step)]);
    if (step.quiet) continue;
    asked++;
    const [one, other] = [seen(reference, step, there), seen(ours, step, here)];
    if (one.status >= 500 && other.status < 500) failures.push({ request: step, reference: one, ours: other });
    else if (JSON.stringify(one) !== JSON.stringify(sameOrder(other, one)))
      differences.push({ request: step, reference: one, ours: other });
  }
  return { asked, failures, differences };
}
/** Headers have no order. */
const sameOrder = (value: ComparedResponse, like: ComparedResponse): ComparedResponse => ({
  ...value,
  headers: Object.fromEntries(
    [...Object.keys(like.headers), ...Object.keys(value.headers)].flatMap((name) =>
      name in value.headers ? [[name, value.headers[name]!]] : [],
    ),
  ),
});
