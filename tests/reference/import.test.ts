/** `bloomery import` from a real Ironic with one of everything, on each database that Ironic runs on: all that its API shows is the same here. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startEmbedded } from '../../store/embedded/embedded';
import { timeoutSignal } from '../../wire/timeout-signal';
import { endReference, startRealIronic } from '../lab/inspection/real-ironic';
import { startServerProcess } from '../lab/support/server';
import { programs, root } from '../lab/support/venv';
import { freePort } from '../support/free-port';
import { until } from '../support/until';
import { ENABLED } from './both';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-import-'));
/** What a test has started, in the order of the start. */
const stops: (() => Promise<unknown>)[] = [];
const stopAll = async (): Promise<void> => {
  for (const stop of stops.splice(0).reverse()) await stop();
};
afterEach(stopAll);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Database {
  /** SQLAlchemy's URL. */
  readonly url: string;
  stop(): Promise<void>;
}
/** A MariaDB without a network, for this test only. */
async function startMariadb(place: string): Promise<Database> {
  mkdirSync(place, { recursive: true });
  const [data, socket] = [join(place, 'data'), join(place, 'socket')];
  await run('mariadb-install-db', ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--user=root']);
  const words = ['--no-defaults', `--datadir=${data}`, `--socket=${socket}`, '--skip-networking', '--user=root'];
  const child = spawn('mariadbd', words, { stdio: 'ignore' });
  const client = (sql: string): Promise<unknown> => run('mariadb', ['--no-defaults', `--socket=${socket}`, '-uroot', '-e', sql]);
  await until(
    'MariaDB',
    () =>
      client('SELECT 1').then(
        () => true,
        () => false,
      ),
    200,
  );
  await client('CREATE DATABASE ironic CHARACTER SET utf8mb3');
  return { url: `mysql+pymysql://root@localhost/ironic?unix_socket=${socket}`, stop: () => endReference(child) };
}
async function startPostgres(place: string): Promise<Database> {
  mkdirSync(place, { recursive: true });
  const server = await startEmbedded({ stateDir: place, log: silentLog, clock: systemClock });
  return { url: server.connection.replace(/^postgresql:/, 'postgresql+psycopg2:'), stop: () => server.stop() };
}
const DATABASES: Readonly<Record<string, (place: string) => Promise<Database>>> = {
  PostgreSQL: startPostgres,
  MariaDB: startMariadb,
  SQLite: async (place) => ({ url: `sqlite:///${join(place, 'ironic', 'ironic.sqlite')}`, stop: async () => {} }),
};

type Body = Readonly<Record<string, unknown>>;
async function call(base: string, method: string, path: string, body?: unknown): Promise<Body> {
  const response = await fetch(`${base}/v1${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.109' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Body);
}

/** What no client can create: rows that the conductor writes. */
const CONDUCTOR_ROWS = `
import sys
from ironic.common import context, service
service.prepare_command(['test', '--config-file', sys.argv[1]])
from ironic import objects
objects.register_all()
c = context.get_admin_context()
n = objects.Node.get_by_uuid(c, sys.argv[2])
objects.BIOSSettingList.create(c, n.id, [
    {'name': 'Boot', 'value': 'Uefi', 'attribute_type': 'Enumeration', 'allowable_values': ['Uefi', 'Bios'], 'read_only': False},
    {'name': 'Cores', 'value': '8', 'attribute_type': 'Integer', 'lower_bound': 0, 'upper_bound': 64, 'unique': True}])
objects.FirmwareComponent(c, node_id=n.id, component='bmc', initial_version='1.0', current_version='1.1', vendor='Example').create()
objects.NodeHistory(c, node_id=n.id, conductor='real-ironic', event='it failed', event_type='deployment', severity='ERROR').create()
objects.NodeInventory(c, node_id=n.id, inventory_data={'memory': {'physical_mb': 4096}}, plugin_data={'all': [1, None]}).create()
`;

/** One of everything. @returns the UUID of the node with all that belongs to it */
async function fill(base: string): Promise<string> {
  const make = async (path: string, body: Body): Promise<string> => String((await call(base, 'POST', path, body))['uuid']);
  const chassis = await make('/chassis', { description: 'Rack 1 ✓', extra: { row: 1 } });
  const full = await make('/nodes', {
    ...{ name: 'full', driver: 'fake-hardware', chassis_uuid: chassis, resource_class: 'baremetal' },
    driver_info: { ipmi_address: '192.0.2.1', ipmi_password: 'hidden "ünicode" \\ $x' },
    properties: { cpus: 8, capabilities: 'boot_mode:uefi' },
    ...{ extra: { deep: { list: [1, 'two', null] } }, description: 'the one with everything', network_data: {}, automated_clean: false },
  });
  const own = ['owner', 'lessee'].map((field) => ({ op: 'add', path: `/${field}`, value: `project-${field}` }));
  await call(base, 'PATCH', `/nodes/${full}`, own);
  await call(base, 'PUT', `/nodes/${full}/traits`, { traits: ['CUSTOM_B', 'CUSTOM_A'] });
  const group = await make('/portgroups', {
    node_uuid: full,
    name: 'bond',
    address: '02:00:00:00:00:10',
    mode: '802.3ad',
    properties: { miimon: '100' },
  });
  await make('/ports', { node_uuid: full, address: '02:00:00:00:00:01', portgroup_uuid: group, physical_network: 'net', extra: { a: 1 } });
  const link = { switch_id: '0a:1b:2c:3d:4e:5f', port_id: 'Ethernet1', switch_info: 'leaf' };
  await make('/ports', { node_uuid: full, address: '02:00:00:00:00:02', local_link_connection: link, pxe_enabled: false });
  await make('/volume/connectors', { node_uuid: full, type: 'iqn', connector_id: 'iqn.2020-01.org.example:1' });
  await make('/volume/targets', {
    node_uuid: full,
    volume_type: 'iscsi',
    volume_id: 'v1',
    boot_index: 0,
    properties: { auth_password: 'x' },
  });
  const steps = [{ interface: 'deploy', step: 'erase_devices', args: { a: [1] }, priority: 10 }];
  await make('/deploy_templates', { name: 'CUSTOM_TEMPLATE', steps, extra: { t: true } });
  await make('/runbooks', { name: 'CUSTOM_BOOK', steps: [{ interface: 'deploy', step: 'erase_devices', args: {}, order: 1 }] });
  const condition = { op: 'eq', args: ['{inventory.system_vendor.manufacturer}', 'Example'] };
  await make('/inspection_rules', {
    description: 'rule',
    conditions: [condition],
    actions: [{ op: 'set-attribute', args: ['/extra/seen', true] }],
  });

  const reach = async (name: string, verbs: readonly (readonly [string, string])[]): Promise<void> => {
    await make('/nodes', {
      name,
      driver: 'fake-hardware',
      resource_class: name,
      instance_info: { image_source: 'http://example.org/image', image_checksum: 'a'.repeat(32) },
    });
    for (const [target, state] of verbs) {
      await call(base, 'PUT', `/nodes/${name}/states/provision`, { target });
      await until(`${name} ${state}`, async () => (await call(base, 'GET', `/nodes/${name}`))['provision_state'] === state, 200);
    }
  };
  const available = [
    ['manage', 'manageable'],
    ['provide', 'available'],
  ] as const;
  await reach('managed', available.slice(0, 1));
  await reach('free', available);
  await reach('deployed', [...available, ['active', 'active']]);
  await call(base, 'PUT', '/nodes/managed/maintenance', { reason: 'a fan' });
  await call(base, 'PATCH', '/nodes/deployed', [
    { op: 'replace', path: '/protected', value: true },
    { op: 'add', path: '/protected_reason', value: 'production' },
  ]);
  const allocation = await make('/allocations', { name: 'mine', node: 'deployed' });
  await until('the allocation', async () => (await call(base, 'GET', `/allocations/${allocation}`))['state'] === 'active', 200);
  return full;
}

/** All that the API shows, without the server's own address. */
async function everything(base: string, full: string): Promise<Body> {
  const lists = [
    'chassis',
    'nodes',
    'ports',
    'portgroups',
    'volume/connectors',
    'volume/targets',
    'allocations',
    'deploy_templates',
    'runbooks',
    'inspection_rules',
  ];
  const nodes = ((await call(base, 'GET', '/nodes'))['nodes'] as readonly Body[]).map(({ uuid }) => `/nodes/${String(uuid)}`);
  const ofNode = ['bios?detail=true', 'firmware', 'inventory', 'traits', 'vifs'].map((name) => `/nodes/${full}/${name}`);
  const paths = [
    ...lists.map((name) => `/${name}${name === 'allocations' ? '' : '?detail=true'}`),
    ...nodes,
    ...nodes.map((path) => `${path}/history?detail=true`),
    ...ofNode,
  ];
  const found: Record<string, unknown> = {};
  for (const path of paths) {
    const text = JSON.stringify(await call(base, 'GET', path)).replaceAll(base, '');
    // MariaDB keeps whole seconds, and Ironic then leaves out the fraction.
    found[path] = JSON.parse(text.replace(/(T\d\d:\d\d:\d\d)\+00:00/g, '$1.000000+00:00'));
  }
  return found;
}

it.each(Object.keys(DATABASES))('%s', async (name) => {
  const place = join(folder, name);
  mkdirSync(place);
  const database = await DATABASES[name]!(place);
  stops.push(() => database.stop());
  const node = execFileSync(process.execPath, [join(root, 'scripts/release/node.mjs')], { encoding: 'utf8' }).trim();
  const calm = { conductor: { sync_power_state_interval: '86400' }, DEFAULT: { ...ENABLED, host: 'real-ironic' } };
  const packages = ['ironic==39.0.0', 'psycopg2-binary', 'pymysql'];
  const bin = await programs('ironic-databases', packages);
  const ironic = await startRealIronic(
    join(place, 'ironic'),
    '127.0.0.1',
    await freePort(),
    { ...calm, database: { connection: database.url } },
    undefined,
    bin,
  );
  stops.push(() => ironic.stop());
  const configuration = join(place, 'ironic/ironic.conf');
  const full = await fill(ironic.url);
  await run(join(bin, 'python'), ['-c', CONDUCTOR_ROWS, configuration, full], { env: { ...process.env, PYTHONWARNINGS: 'ignore' } });
  const before = await everything(ironic.url, full);

  const words = ['import', '--ironic-config', configuration, '--state-dir', join(place, 'ours/state')];
  const bloomery = async (...more: readonly string[]): Promise<string> =>
    (await run(node, [join(root, 'bin/bloomery'), ...words, ...more], { env: { ...process.env, DATABASE_URL: '' } })).stdout;
  expect(await bloomery('--dry-run')).toMatch(/^This would be imported:\n {7}1 chassis\n {7}4 nodes\n/);
  expect(await bloomery()).toMatch(/^Imported:\n {7}1 chassis\n {7}4 nodes\n/);
  expect(await bloomery()).toMatch(/^ {7}0 nodes \(4 were here already\)\n/m);
  await stopAll();

  const ours = await startServerProcess(join(place, 'ours'), {
    ...calm,
    api: { host_ip: '127.0.0.1', port: 0 },
    boot: { http_host: '127.0.0.1', http_port: 0, tftp: 'false' },
  });
  stops.push(() => ours.stop());
  const url = /API (\S+?),/.exec(ours.ready)![1]!;
  expect(await everything(url, full)).toEqual(before);
});
