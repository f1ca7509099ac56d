/**
 * The introspection service: the real ironic-inspector in front of the real Ironic and our service get the same requests, and must answer
 * alike.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../../demo/lab/machines';
import { startRealInspector, type RealInspector } from '../../lab/inspection/real-inspector';
import { freePort } from '../../support/free-port';
import { startBoth, type Both } from '../both';
import { ask, type Answered } from '../compare';

jest.setTimeout(300_000);
const VERSION = 'X-OpenStack-Ironic-Inspector-API-Version';
const uuidOf = (number: number): string => `aaaaaaaa-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
const NODE = uuidOf(1);
const STRANGER = uuidOf(99);
const RULE = 'cccccccc-0000-4000-8000-000000000001';

let folder: string;
let both: Both;
let inspector: RealInspector;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-inspector-'));
  const own = { ours: { inspector_service: { enabled: 'true' } } };
  const settings = {
    DEFAULT: { listen_address: '127.0.0.1', listen_port: '0' },
    processing: { overwrite_existing: 'true' },
  };
  both = await startBoth({}, { ours: { ...settings, ...own.ours } });
  inspector = await startRealInspector(join(folder, 'inspector'), '127.0.0.1', await freePort(), both.reference);
  // The first run installs packages, which may take ten minutes.
}, 1_200_000);
afterAll(async () => {
  await inspector?.stop();
  await both?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly version?: string;
}
const HEADERS = ['content-type', 'x-openstack-ironic-inspector-api-minimum-version', 'x-openstack-ironic-inspector-api-maximum-version'];
/** The compared parts of an answer: status, headers, and the body with placeholders for the server's address, times and generated UUIDs. */
function seen(base: string, { status, headers, body }: Answered): object {
  const text = body
    .replaceAll(base, 'BASE')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?/g, 'TIME')
    .replace(/valid states are \\"\[.*?\]/, 'valid states are [STATES]')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g, (uuid) =>
      /^(aaaaaaaa|cccccccc)/.test(uuid) ? uuid : 'UUID',
    );
  const allow = headers['allow']?.split(', ').sort().join(', ');
  return { status, headers: [...HEADERS.map((name) => headers[name]), allow], text };
}
/** Repeats a request while the node is locked: a server releases the node a moment after the awaited state, and either may be first. */
async function unlocked(base: string, request: Parameters<typeof ask>[1]): Promise<Answered> {
  let answered = await ask(base, request);
  await until(
    60,
    () => `the node to be unlocked at ${base}: ${answered.body}`,
    async () => {
      if (!/Node (is )?locked, please/.test(answered.body)) return true;
      answered = await ask(base, request);
      return false;
    },
  );
  return answered;
}
async function answers({ version, ...sent }: Sent): Promise<{ readonly theirs: object; readonly ours: object }> {
  const headers = version === undefined ? {} : { [VERSION]: version };
  const request = { ...sent, version: null, headers };
  const [there, here] = [inspector.url, both.inspectorUrl!];
  const [one, other] = await Promise.all([unlocked(there, request), unlocked(here, request)]);
  return { theirs: seen(there, one), ours: seen(here, other) };
}
async function same(sent: Sent): Promise<object> {
  const { theirs, ours } = await answers(sent);
  expect({ sent, ...ours }).toEqual({ sent, ...theirs });
  return ours;
}
const get = (path: string): Sent => ({ method: 'GET', path });
const post = (path: string, body?: unknown): Sent => ({ method: 'POST', path, ...(body === undefined ? {} : { body }) });
const action = { action: 'fail', message: 'm' };
const rule = (more: object): Sent => post('/v1/rules', { actions: [action], ...more });
const when = (condition: object): Sent => rule({ conditions: [condition] });

const SAME: readonly Sent[] = [
  ...['/', '/v1', '/v1/', '/v2', '/v1/foo', '/v1/introspection/a/b', '/v1/introspection', '/v1/introspection/', '/v1/rules'].map(get),
  ...[
    'limit=0',
    'limit=-1',
    'limit=abc',
    'limit=5000',
    'marker=abc',
    `marker=${STRANGER}`,
    'state=a,b',
    'state=',
    'state=finished,error',
  ].map((query) => get(`/v1/introspection?${query}`)),
  ...['1.0', '1.18', '1.19', '0.9', '2.0', 'latest', 'LATEST', '1.-1'].map((version) => ({ ...get('/v1/rules'), version })),
  ...['nope', STRANGER].flatMap((node) => [
    get(`/v1/introspection/${node}`),
    post(`/v1/introspection/${node}`),
    post(`/v1/introspection/${node}?manage_boot=maybe`),
    post(`/v1/introspection/${node}/abort`),
    get(`/v1/introspection/${node}/data`),
    get(`/v1/introspection/${node}/data/unprocessed`),
    post(`/v1/introspection/${node}/data/unprocessed`),
    post(`/v1/introspection/${node}/data/unprocessed`, { a: 1 }),
    post(`/v1/introspection/${node}/data/unprocessed`, [1]),
    post(`/v1/introspection/${node}/data/unprocessed`, '{x'),
  ]),
  ...[
    ['PUT', `/v1/introspection/${STRANGER}`],
    ['DELETE', '/v1/introspection'],
    ['GET', '/v1/continue'],
    ['OPTIONS', '/v1/rules'],
    ['PATCH', '/v1/rules/x'],
    ['POST', '/v1'],
  ].map(([method, path]) => ({ method: method!, path: path! })),
  post('/v1/continue', []),
  ...['x', uuidOf(3)].flatMap((uuid) => [get(`/v1/rules/${uuid}`), { method: 'DELETE', path: `/v1/rules/${uuid}` }]),
  rule({ uuid: 'x' }),
  rule({ scope: 'x'.repeat(256) }),
  ...[{ action: 'fail' }, { action: 'fail', message: 'm', x: 1 }, { action: 'set-attribute', path: '/a' }, { action: 'add-trait' }].map(
    (item) => post('/v1/rules', { actions: [item] }),
  ),
  when({ op: 'eq', field: 'a' }),
  when({ op: 'zz', field: 'a' }),
  when({ op: 'eq' }),
  when({ op: 'eq', field: 1, value: 1 }),
  when({ op: 'eq', field: 'a', value: 1, multiple: 'none' }),
  when({ op: 'eq', field: 'a', value: 1, invert: 'x' }),
  when({ op: 'eq', field: 'foo://a', value: 1 }),
  when({ op: 'in-net', field: 'a', value: 'x' }),
  rule({ conditions: {} }),
  rule({ conditions: [1] }),
  { ...rule({ uuid: RULE, description: 'dé', scope: 's', conditions: [{ op: 'eq', field: 'a', value: 1 }] }), version: '1.5' },
  rule({ uuid: RULE }),
  rule({ conditions: [{ op: 'is-empty', field: 'node://extra.a', invert: true, multiple: 'all' }] }),
  get('/v1/rules'),
  get(`/v1/rules/${RULE}`),
  { method: 'DELETE', path: `/v1/rules/${RULE}` },
  { method: 'DELETE', path: '/v1/rules' },
  get('/v1/rules'),
];
it('our service responds to simple and invalid requests as ironic-inspector does', async () => {
  const differences: object[] = [];
  for (const sent of SAME) {
    const { theirs, ours } = await answers(sent);
    if (JSON.stringify(theirs) !== JSON.stringify(ours)) differences.push({ sent, theirs, ours });
  }
  expect(differences).toEqual([]);
});

/** Our service reports the client error; the reference answers with a 5xx, or (unknown machines) with another 4xx. */
it.each<[string, Sent, number, number]>([
  ['an invalid version', { ...get('/v1/rules'), version: 'abc' }, 500, 400],
  ['an empty version', { ...get('/v1/rules'), version: '' }, 500, 200],
  ['a report that is not JSON', post('/v1/continue', '{x'), 500, 400],
  ['an empty report', post('/v1/continue'), 500, 400],
  ['a rule that is a list', post('/v1/rules', [1]), 500, 400],
  ['HEAD of the rules', { method: 'HEAD', path: '/v1/rules' }, 500, 200],
  [
    'the report of an unknown machine',
    post('/v1/continue', { inventory: { interfaces: [{ name: 'a', mac_address: '52:54:00:ff:ff:ff' }] } }),
    400,
    404,
  ],
])('our service and ironic-inspector intentionally respond with different statuses to %s', async (_, sent, there, here) => {
  const { theirs, ours } = await answers(sent);
  expect([theirs, ours]).toMatchObject([{ status: there }, { status: here }]);
});

async function ironic(method: string, path: string, body?: unknown): Promise<void> {
  for (const base of [both.reference, both.ours]) {
    const { status, body: text } = await ask(base, { method, path, version: '1.80', ...(body === undefined ? {} : { body }) });
    if (status >= 300) throw new Error(`${base} ${method} ${path}: ${status} ${text}`);
  }
}
async function node(number: number, more: object = {}): Promise<string> {
  const uuid = uuidOf(number);
  await ironic('POST', '/v1/nodes', { uuid, name: `machine-${number}`, driver: 'fake-hardware', ...more });
  return uuid;
}
const macOf = (number: number, port = 0): string => `52:54:00:00:0${port}:${number.toString(16).padStart(2, '0')}`;
const port = (uuid: string, address: string): Promise<void> => ironic('POST', '/v1/ports', { node_uuid: uuid, address });
const stateOf = async (base: string, uuid: string): Promise<string> => {
  const { body } = await ask(base, { method: 'GET', path: `/v1/introspection/${uuid}`, version: null });
  return (JSON.parse(body) as { state: string }).state;
};
async function reach(uuid: string, state: string): Promise<void> {
  for (const base of [inspector.url, both.inspectorUrl!]) {
    let now = '';
    await until(
      60,
      () => `${state} at ${base}, not ${now}`,
      async () => (now = await stateOf(base, uuid)) === state,
    );
  }
}
const GIB = 1024 ** 3;
const inventory = (number: number, more: object = {}): object => ({
  bmc_address: `192.0.2.${number}`,
  interfaces: [
    { name: 'eth0', mac_address: macOf(number), ipv4_address: `10.0.0.${number}`, has_carrier: true },
    { name: 'eth1', mac_address: macOf(number, 1).toUpperCase(), ipv4_address: null, ipv6_address: `fd00::${number}%eth1` },
    { name: 'lo', mac_address: '00:00:00:00:00:00', ipv4_address: '127.0.0.1' },
  ],
  disks: [
    { name: '/dev/sda', size: 20 * GIB, model: 'M' },
    { name: '/dev/sdb', size: 500 * GIB, model: 'N' },
  ],
  cpu: { count: 4, architecture: 'x86_64', flags: ['vmx', 'aes'], model_name: 'Prozessor é' },
  memory: { physical_mb: 8192, total: 8 * GIB - 1 },
  boot: { current_boot_mode: 'uefi' },
  ...more,
});
const report = (number: number, more: object = {}): object => ({
  inventory: inventory(number),
  root_disk: { name: '/dev/sda', size: 20 * GIB, model: 'M' },
  boot_interface: `01-${macOf(number).replaceAll(':', '-')}`,
  configuration: { collectors: ['default', 'logs'] },
  logs: 'AAAA',
  ...more,
});
/** The node and ports on each server, with numbers as text, as the reference writes them. */
async function nodes(number: number): Promise<readonly [theirs: object, ours: object]> {
  const look = async (base: string): Promise<object> => {
    const read = async (path: string): Promise<Record<string, unknown>> =>
      JSON.parse((await ask(base, { method: 'GET', path, version: '1.80' })).body) as Record<string, unknown>;
    const { properties, extra, traits, provision_state: provision, name } = await read(`/v1/nodes/${uuidOf(number)}`);
    const { ports } = (await read(`/v1/ports?node=${uuidOf(number)}&detail=true`)) as { ports: readonly Record<string, unknown>[] };
    const texts = Object.entries(properties as Record<string, string | number>).map(
      ([key, value]) => [key, String(value).split(',').sort().join()] as const,
    );
    return {
      name,
      provision,
      extra,
      traits,
      properties: Object.fromEntries(texts),
      ports: ports
        .map(({ address, pxe_enabled: pxe, extra: more }) => ({ address, pxe, more }))
        .sort((a, b) => (String(a.address) < String(b.address) ? -1 : 1)),
    };
  };
  return [await look(both.reference), await look(both.ours)];
}

it('both services start an introspection, accept and store its report, and process it again', async () => {
  const uuid = await node(1);
  await port(uuid, macOf(1));
  expect(await same(post(`/v1/introspection/${uuid}`))).toMatchObject({ status: 202 });
  await reach(uuid, 'waiting');
  await same(get(`/v1/introspection/${uuid}`));
  await same(get('/v1/introspection/machine-1'));
  await same(get(`/v1/introspection/${uuid}/data`));
  expect(await same(post('/v1/continue', report(1)))).toMatchObject({ status: 200 });
  await reach(uuid, 'finished');
  await same(get(`/v1/introspection/${uuid}`));
  await same(get('/v1/introspection/machine-1/data'));
  await same(get(`/v1/introspection/${uuid}/data/unprocessed`));
  const [theirs, ours] = await nodes(1);
  expect(ours).toEqual(theirs);
  expect(await same(post(`/v1/introspection/${uuid}/data/unprocessed`))).toMatchObject({ status: 202 });
  await reach(uuid, 'finished');
  await same(post(`/v1/introspection/${uuid}/data/unprocessed`, report(1, { memory_mb: 1, again: true })));
  for (const base of [inspector.url, both.inspectorUrl!])
    await until(
      60,
      () => `the data to be there at ${base}`,
      async () => (await ask(base, { method: 'GET', path: `/v1/introspection/${uuid}/data`, version: null })).body.includes('again'),
    );
  await reach(uuid, 'finished');
  await same(get(`/v1/introspection/${uuid}/data`));
  await same(post(`/v1/introspection/${uuid}/abort`));
  await reach(uuid, 'finished');
});

const RULES: readonly object[] = [
  {
    conditions: [
      { op: 'ge', field: 'memory_mb', value: 4096 },
      { op: 'eq', field: 'inventory.disks[*].size', value: 500 * GIB, multiple: 'any' },
      { op: 'contains', field: 'node://name', value: '^machine' },
    ],
    actions: [
      { action: 'set-attribute', path: '/extra/memory', value: '{data[memory_mb]} MiB' },
      { action: 'set-attribute', path: 'extra/deep', value: { a: ['{data[inventory][cpu][count]}'] } },
      { action: 'set-capability', name: 'disk', value: 'large' },
      { action: 'extend-attribute', path: '/extra/list', value: 'x', unique: true },
      { action: 'add-trait', name: 'CUSTOM_X' },
    ],
  },
  { conditions: [{ op: 'is-empty', field: 'not.there' }], actions: [{ action: 'set-attribute', path: '/extra/empty', value: true }] },
  {
    conditions: [{ op: 'eq', field: 'cpus', value: 4, invert: true }],
    actions: [{ action: 'set-attribute', path: '/extra/wrong', value: 1 }],
  },
  { scope: 'elsewhere', actions: [{ action: 'set-attribute', path: '/extra/scope', value: 1 }] },
  {
    conditions: [{ op: 'in-net', field: 'inventory.bmc_address', value: '192.0.2.0/24' }],
    actions: [{ action: 'remove-trait', name: 'CUSTOM_Y' }],
  },
  {
    conditions: [{ op: 'matches', field: 'inventory.interfaces[*].mac_address', value: '52:54:.*', multiple: 'first' }],
    actions: [{ action: 'set-attribute', path: '/extra/first', value: 'yes' }],
  },
];
it('both services apply rules to the node alike', async () => {
  const uuid = await node(2);
  await port(uuid, macOf(2));
  for (const item of RULES) await same(post('/v1/rules', item));
  await same(post(`/v1/introspection/${uuid}?manage_boot=0`));
  await same(post('/v1/continue', report(2)));
  await reach(uuid, 'finished');
  const [theirs, ours] = await nodes(2);
  expect(ours).toEqual(theirs);
  expect(ours).toMatchObject({ extra: { memory: '8192 MiB', empty: true }, traits: ['CUSTOM_X'] });
  await same({ method: 'DELETE', path: '/v1/rules' });
});

it.each<[string, number, object]>([
  ['without the boot interface', 5, { inventory: inventory(5), root_disk: null }],
  ['without disks, memory and processors', 6, { inventory: { ...inventory(6), disks: [], memory: {}, cpu: { flags: [] } } }],
])('both services process a report %s alike', async (_, number, given) => {
  const address = `192.0.2.${number}`;
  const uuid = await node(number, { driver_info: { ipmi_address: address } });
  await port(uuid, macOf(number));
  await same(post(`/v1/introspection/${uuid}`));
  await reach(uuid, 'waiting');
  await same(post('/v1/continue', given));
  await reach(uuid, 'finished');
  await same(get(`/v1/introspection/${uuid}`));
  await same(get(`/v1/introspection/${uuid}/data`));
  const [theirs, ours] = await nodes(number);
  expect(ours).toEqual(theirs);
});

/** The reference's state machine refuses the event `error`: its introspection waits until the timeout. */
it.each<[string, number, object, RegExp]>([
  ['a report of a failed ramdisk', 3, report(3, { error: 'boom' }), /hook ramdisk_error: Ramdisk reported error: boom/],
  [
    'a report without a suitable interface',
    4,
    { inventory: { ...inventory(4), interfaces: [{ name: 'eth0', mac_address: macOf(4) }] } },
    /hook validate_interfaces: No suitable interfaces found in {'eth0': {'ip': None/,
  ],
])('our service ends the introspection with an error for %s, where ironic-inspector keeps waiting', async (_, number, given, why) => {
  const uuid = await node(number, { driver_info: { ipmi_address: `192.0.2.${number}` } });
  await port(uuid, macOf(number));
  await same(post(`/v1/introspection/${uuid}`));
  await reach(uuid, 'waiting');
  const { theirs, ours } = await answers(post('/v1/continue', given));
  expect(theirs).toMatchObject({
    status: 400,
    text: expect.stringMatching(/Can not transition from state 'waiting' on event 'error'/) as string,
  });
  expect(ours).toMatchObject({ status: 400, text: expect.stringMatching(why) as string });
  expect(await Promise.all([inspector.url, both.inspectorUrl!].map((base) => stateOf(base, uuid)))).toEqual(['waiting', 'error']);
  await same(post(`/v1/introspection/${uuid}/abort`));
  await reach(uuid, 'error');
  await until(
    30,
    () => 'the service to show the abort',
    async () =>
      (await ask(both.inspectorUrl!, { method: 'GET', path: `/v1/introspection/${uuid}`, version: null })).body.includes('Canceled'),
  );
});

it('both services refuse, abort and list introspections alike', async () => {
  const uuid = await node(7);
  await same(post(`/v1/introspection/${uuid}?manage_boot=False`));
  await same(get(`/v1/introspection/${uuid}`));
  await port(uuid, macOf(7));
  await same(post(`/v1/introspection/${uuid}?manage_boot=False`));
  await same(post(`/v1/introspection/${uuid}/abort`));
  await reach(uuid, 'error');
  await same(get(`/v1/introspection/${uuid}`));
  await same(get('/v1/introspection'));
  await same(get('/v1/introspection?limit=2'));
  await same(get(`/v1/introspection?limit=2&marker=${NODE}`));
  await same(get('/v1/introspection?state=error'));
});
