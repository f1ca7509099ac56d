/**
 * Every verb from every state in which fake hardware can rest, on the real Ironic and on our server. The answers, and the nodes afterwards
 * with their history, are compared.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startBoth, type Both } from './both';
import { alike, ask, seen, settle } from './compare';
import { ACTS, starts, type Act, type Start } from './lifecycle-states';
import { get, MAX, send, type Sent, type Step } from './requests/steps';

/** The fields of a node that are compared. */
const FIELDS = [
  'provision_state',
  'target_provision_state',
  'last_error',
  'fault',
  'maintenance',
  'maintenance_reason',
  'power_state',
  'target_power_state',
  'clean_step',
  'deploy_step',
  'service_step',
  'instance_info',
  'instance_uuid',
  'traits',
  'retired',
  'protected',
  'lessee',
  'console_enabled',
  'boot_mode',
] as const;

interface Left {
  readonly node: Readonly<Record<string, unknown>> | null;
  /** `SEVERITY type: event`, the oldest first. */
  readonly history: readonly string[];
}
interface Difference {
  readonly act: string;
  readonly reference: unknown;
  readonly ours: unknown;
}

/** Intended differences, each with its reason. */
const INTENDED: readonly { readonly why: string; readonly is: (state: string, difference: Difference) => boolean }[] = [
  {
    why: 'our server rebuilds a node without an image; in Ironic, the request fails (500)',
    is: (_, { reference }) => JSON.stringify(reference).includes("local variable 'auto_lessee'"),
  },
  {
    why: 'our server refuses unknown arguments of a step; in Ironic, servicing runs the step without them',
    is: (_, { act }) => act === 'service with unknown step arguments',
  },
  {
    why: 'a retired node never becomes available when its instance ends; in Ironic, it does if it is not cleaned',
    is: (_, { act, reference }) => act === 'retired: deleted' && JSON.stringify(reference).includes('"available"'),
  },
  {
    why: 'write_image without the step that boots the agent fails at once; in Ironic, the node waits for an agent, and its last_error says that it was aborted',
    is: (state, { act }) => state === 'deploy failed' && act === 'active without the core step deploy',
  },
];
/** Removes Python's message for the failure of an unknown step. */
const withoutWords = (text: string): string =>
  text
    .replace(/failed step \{[^}]*'nosuch'[^}]*\}: .*/, 'failed step nosuch')
    .replace(/steps=\[\{[^}]*'nosuch'[^}]*\}\]/, 'steps=[nosuch]');
const worded = (value: unknown): unknown => (typeof value === 'string' ? withoutWords(value) : value);

let both: Both;
let files: Server;
let image: string;
beforeAll(async () => {
  files = createServer((_, response) => response.writeHead(200, { 'content-length': '4' }).end('disk'));
  await new Promise<void>((listening) => files.listen(0, '127.0.0.1', listening));
  image = `http://127.0.0.1:${(files.address() as AddressInfo).port}/disk.raw`;
  both = await startBoth({
    DEFAULT: { enabled_deploy_interfaces: 'fake,direct,ramdisk' },
    agent: { require_tls: 'false' },
    inspector: { require_managed_boot: 'false' },
    // Nodes stay behind in waiting states.
    conductor: { max_concurrent_deploy: '5000', max_concurrent_clean: '5000' },
  });
}, 1_800_000);
afterAll(async () => {
  await both?.stop();
  files?.close();
  files?.closeAllConnections();
}, 60_000);

let made = 0;
const json = async (base: string, path: string): Promise<Readonly<Record<string, unknown>> | null> => {
  const { status, body } = await ask(base, get(path));
  return status === 404 ? null : (JSON.parse(body) as Readonly<Record<string, unknown>>);
};
async function leftOn(base: string, path: string): Promise<Left> {
  const whole = await json(base, path);
  if (whole === null) return { node: null, history: [] };
  const node = alike(Object.fromEntries(FIELDS.map((name) => [name, worded(whole[name])]))) as Readonly<Record<string, unknown>>;
  const { history } = (await json(base, `${path}/history?detail=true`)) as {
    readonly history: readonly Readonly<Record<string, string>>[];
  };
  const told = history.map(({ severity, event_type: type, event }) => `${severity!} ${type!}: ${withoutWords(event!)}`);
  return { node, history: alike(told) as readonly string[] };
}

/** Sends the steps to both servers, one after the other; the node settles after each. */
async function each(steps: readonly Step[], path: string): Promise<readonly { readonly reference: unknown; readonly ours: unknown }[]> {
  const answers: { readonly reference: unknown; readonly ours: unknown }[] = [];
  for (const step of steps as readonly Sent[]) {
    const [there, here] = await Promise.all([ask(both.reference, step), ask(both.ours, step)]);
    const shown = (base: string, answer: typeof there): unknown => {
      const { status, body } = seen(base, step, answer);
      // A PATCH answers with the whole node, which is compared below.
      return status >= 400 ? { status, body } : { status };
    };
    answers.push({ reference: shown(both.reference, there), ours: shown(both.ours, here) });
    if (step.method === 'DELETE' && step.path === path && here.status < 300 && there.status < 300) continue;
    await Promise.all([settle(both.reference, path.split('/').at(-1)!), settle(both.ours, path.split('/').at(-1)!)]);
  }
  return answers;
}
const differ = (left: unknown, right: unknown): boolean => JSON.stringify(left) !== JSON.stringify(right);

/** Creates a node in the state, on both servers. */
async function make({ node: { traits = [], ...node } = {}, by }: Start): Promise<string> {
  const uuid = `aaaaaaaa-0000-4000-8000-${String(++made).padStart(12, '0')}`;
  const path = `/v1/nodes/${uuid}`;
  const created = [
    send('POST', '/v1/nodes', {
      driver: 'fake-hardware',
      rescue_interface: 'fake',
      bios_interface: 'fake',
      console_interface: 'fake',
      uuid,
      ...node,
    }),
  ];
  const tagged = (traits as readonly string[]).length > 0 ? [send('PUT', `${path}/traits`, { traits })] : [];
  for (const { reference, ours } of await each([...created, ...tagged, ...by(path)], path)) expect(ours).toEqual(reference);
  return path;
}

const refused = (answer: unknown): boolean => (answer as { readonly status: number }).status >= 400;
const total = { acts: 0, alike: 0, intended: 0 };
async function walk(start: Start, acts: readonly Act[]): Promise<readonly Difference[]> {
  const differences: Difference[] = [];
  /** A node that has refused every act so far: it is as new, and serves for the next act. */
  let fresh: string | undefined;
  for (const { name, steps } of acts) {
    const path = fresh ?? (await make(start));
    fresh = undefined;
    total.acts++;
    const answers = await each(steps(path), path);
    const untouched = answers.length === 1 && answers.every(({ reference, ours }) => refused(reference) && refused(ours));
    const [reference, ours] = untouched ? [null, null] : await Promise.all([leftOn(both.reference, path), leftOn(both.ours, path)]);
    const whole = (which: 'reference' | 'ours', left: Left | null) => ({ answers: answers.map((answer) => answer[which]), left });
    const pair = { act: name, reference: whole('reference', reference), ours: whole('ours', ours) };
    if (differ(pair.reference, pair.ours)) differences.push(pair);
    else total.alike++;
    if (untouched) fresh = path;
  }
  return differences;
}

/** Only the members that differ, so that the message is readable. */
function brief({ act, reference, ours }: Difference): string {
  const lines = (value: unknown, at = ''): [string, string][] =>
    value !== null && typeof value === 'object'
      ? Object.entries(value).flatMap(([key, entry]) => lines(entry, `${at}.${key}`))
      : [[at, JSON.stringify(value)]];
  const [one, other] = [new Map(lines(reference)), new Map(lines(ours))];
  const keys = [...new Set([...one.keys(), ...other.keys()])].filter((key) => one.get(key) !== other.get(key));
  return [act, ...keys.map((key) => `  ${key}: ${one.get(key) ?? '-'} | ours: ${other.get(key) ?? '-'}`)].join('\n');
}

describe('our server and the real Ironic, from each state,', () => {
  it.each(Object.keys(starts('')))(
    'respond alike to each verb and request, and leave the same node: %s',
    async (state) => {
      const differences = await walk(starts(image)[state]!, ACTS);
      const unintended = differences.filter((difference) => !INTENDED.some(({ is }) => is(state, difference)));
      total.intended += differences.length - unintended.length;
      expect(unintended.map(brief)).toEqual([]);
    },
    600_000,
  );
  it('are compared in more than 900 operations', () => {
    console.info(`${total.acts} operations at version 1.${MAX}: ${total.alike} alike, ${total.intended} with intended differences`);
    expect(total.acts).toBeGreaterThan(900);
  });
});
