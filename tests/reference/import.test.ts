/**
 * `bloomery import` from a real Ironic with one of everything, from each database that Ironic runs on, from its API, and from the oldest
 * release that is supported: all that its API shows is the same here.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hashSync } from 'bcryptjs';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startEmbedded } from '../../store/embedded/embedded';
import { timeoutSignal } from '../../wire/timeout-signal';
import { startRealIronic, type RealIronic } from '../lab/inspection/real-ironic';
import { startMariadb } from '../lab/support/mariadb';
import { startServerProcess } from '../../demo/lab/server';
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
async function startPostgres(place: string): Promise<Database> {
  mkdirSync(place, { recursive: true });
  const server = await startEmbedded({ stateDir: place, log: silentLog, clock: systemClock });
  return { url: server.connection.replace(/^postgresql:/, 'postgresql+psycopg2:'), stop: () => server.stop() };
}
const DATABASES: Readonly<Record<string, (place: string) => Promise<Database>>> = {
  PostgreSQL: startPostgres,
  MariaDB: async (place) => {
    const server = await startMariadb(place);
    return { url: await server.create('ironic'), stop: () => server.close() };
  },
  SQLite: async (place) => ({ url: `sqlite:///${join(place, 'ironic', 'ironic.sqlite')}`, stop: async () => {} }),
};

interface Case {
  readonly database: keyof typeof DATABASES;
  /** The real Ironic's version, and its newest microversion. */
  readonly release: string;
  readonly minor: number;
  readonly from: 'database' | 'API';
  /** The API requires a password. */
  readonly guarded?: true;
}
const CASES: Readonly<Record<string, Case>> = {
  PostgreSQL: { database: 'PostgreSQL', release: '39.0.0', minor: 109, from: 'database' },
  MariaDB: { database: 'MariaDB', release: '39.0.0', minor: 109, from: 'database' },
  SQLite: { database: 'SQLite', release: '39.0.0', minor: 109, from: 'database' },
  API: { database: 'SQLite', release: '39.0.0', minor: 109, from: 'API', guarded: true },
  '2024.1': { database: 'MariaDB', release: '24.1.5', minor: 90, from: 'database' },
  'API of 2024.1': { database: 'SQLite', release: '24.1.5', minor: 90, from: 'API' },
};
/** The microversion of the requests to both servers. */
let minor = 0;

/** A user of http_basic. Servers without passwords ignore it. */
const USER = { OS_USERNAME: 'admin', OS_PASSWORD: 'of the administrator' };
const authorization = `Basic ${Buffer.from(`${USER.OS_USERNAME}:${USER.OS_PASSWORD}`).toString('base64')}`;

type Body = Readonly<Record<string, unknown>>;
async function call(base: string, method: string, path: string, body?: unknown): Promise<Body> {
  const response = await fetch(`${base}/v1${path}`, {
    method,
    headers: { authorization, 'content-type': 'application/json', 'x-openstack-ironic-api-version': `1.${minor}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Body);
}

/** A program that adds the rows that only a conductor writes. */
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

/** Creates one of everything. @returns the UUID of the node with all that belongs to it */
async function fill(base: string): Promise<string> {
  const make = async (path: string, body: Body): Promise<string> => String((await call(base, 'POST', path, body))['uuid']);
  const chassis = await make('/chassis', { description: 'Rack 1 ✓', extra: { row: 1 } });
  const full = await make('/nodes', {
    name: 'full',
    driver: 'fake-hardware',
    chassis_uuid: chassis,
    resource_class: 'baremetal',
    driver_info: { ipmi_address: '192.0.2.1', ipmi_password: 'hidden "ünicode" \\ $x' },
    properties: { cpus: 8, capabilities: 'boot_mode:uefi' },
    extra: { deep: { list: [1, 'two', null] } },
    description: 'the one with everything',
    network_data: {},
    automated_clean: false,
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
  if (minor >= 92)
    await make('/runbooks', { name: 'CUSTOM_BOOK', steps: [{ interface: 'deploy', step: 'erase_devices', args: {}, order: 1 }] });
  const condition = { op: 'eq', args: ['{inventory.system_vendor.manufacturer}', 'Example'] };
  const actions = [{ op: 'set-attribute', args: ['/extra/seen', true] }];
  if (minor >= 96) await make('/inspection_rules', { description: 'rule', conditions: [condition], actions });

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
    ...(minor >= 96 ? ['runbooks', 'inspection_rules'] : []),
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
    // MariaDB keeps whole seconds, and Ironic then leaves out the fraction. Ironic shows traits in the order of its database, which
    // PostgreSQL does not define.
    found[path] = JSON.parse(text.replace(/(T\d\d:\d\d:\d\d)\+00:00/g, '$1.000000+00:00'), (key, value: unknown) =>
      key === 'traits' ? (value as readonly string[]).toSorted() : value,
    );
  }
  return found;
}

/** Ironic 39 shows more of a port group at any microversion, and masks the secrets of volume targets. */
function asShownBy39(found: Body): Body {
  const groups = (found['/portgroups?detail=true'] as Record<string, readonly Body[]>)['portgroups']!;
  const targets = (found['/volume/targets?detail=true'] as Record<string, readonly Body[]>)['targets']!;
  const added = { category: null, dynamic_portgroup: false, physical_network: null };
  return {
    ...found,
    '/portgroups?detail=true': { portgroups: groups.map((group) => ({ ...added, ...group })) },
    '/volume/targets?detail=true': { targets: targets.map((target) => ({ ...target, properties: { auth_password: '******' } })) },
  };
}

/** Writes the secrets of `fill`, which an API does not show, to a file. */
async function writeSecrets(file: string, base: string): Promise<void> {
  const targets = (await call(base, 'GET', '/volume/targets'))['targets'] as readonly Body[];
  const all = {
    full: { driver_info: { ipmi_password: 'hidden "ünicode" \\ $x' } },
    [String(targets[0]!['uuid'])]: { properties: { auth_password: 'x' } },
  };
  writeFileSync(file, JSON.stringify(all));
}

it.each(Object.entries(CASES))(
  '%s: our API shows the same after the import as the real Ironic before it',
  async (name, { database: kind, release, minor: newest, from, guarded }) => {
    minor = newest;
    const place = join(folder, name.replaceAll(' ', '-'));
    mkdirSync(place);
    const database = await DATABASES[kind]!(place);
    stops.push(() => database.stop());
    const node = execFileSync(process.execPath, [join(root, 'scripts/release/node.mjs')], { encoding: 'utf8' }).trim();
    const calm = { conductor: { sync_power_state_interval: '86400' }, DEFAULT: { ...ENABLED, host: 'real-ironic' } };
    const bin = await programs('ironic-databases', [`ironic==${release}`, 'psycopg2-binary', 'pymysql']);
    const users = join(place, 'htpasswd');
    writeFileSync(users, `${USER.OS_USERNAME}:${hashSync(USER.OS_PASSWORD, 4)}\n`);
    const access = guarded ? { auth_strategy: 'http_basic', http_basic_auth_user_file: users } : {};
    const settings = { ...calm, DEFAULT: { ...calm.DEFAULT, ...access }, database: { connection: database.url } };
    const ironic: RealIronic = await startRealIronic(join(place, 'ironic'), '127.0.0.1', await freePort(), settings, undefined, bin);
    stops.push(() => ironic.stop());
    const configuration = join(place, 'ironic/ironic.conf');
    const full = await fill(ironic.url);
    await run(join(bin, 'python'), ['-c', CONDUCTOR_ROWS, configuration, full], { env: { ...process.env, PYTHONWARNINGS: 'ignore' } });
    const before = await everything(ironic.url, full);

    const source = from === 'API' ? ['--api', ironic.url] : ['--ironic-config', configuration];
    const words = ['import', ...source, '--state-dir', join(place, 'ours/state')];
    const credentials: NodeJS.ProcessEnv = guarded ? { ...USER } : {};
    const bloomery = async (...more: readonly string[]): Promise<string> =>
      (await run(node, [join(root, 'bin/bloomery'), ...words, ...more], { env: { ...process.env, DATABASE_URL: '', ...credentials } }))
        .stdout;
    if (guarded) {
      credentials['OS_PASSWORD'] = 'a wrong one';
      await expect(bloomery('--dry-run')).rejects.toThrow(/HTTP status 401.*check OS_USERNAME and OS_PASSWORD/s);
      Object.assign(credentials, USER);
    }
    const secrets: string[] = [];
    if (from === 'API') {
      const refused = await bloomery('--dry-run').catch((error: unknown) => error as { readonly code: number; readonly stdout: string });
      expect(refused).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/^This would be imported:\n {7}1 chassis\n {7}3 nodes\n/) as string,
      });
      expect((refused as { readonly stdout: string }).stdout).toContain(
        'Not imported:\n  node full: the API does not show driver_info/ipmi_password: give the value with --secrets\n',
      );
      secrets.push('--secrets', join(place, 'secrets.json'));
      await writeSecrets(secrets[1]!, ironic.url);
    }
    const dry = await bloomery('--dry-run', ...secrets);
    expect(dry).toContain('This would be imported:\n');
    expect(dry).toContain('       4 nodes\n');
    const first = await bloomery(...secrets);
    expect(first).toContain('       4 nodes\n');
    if (release !== '39.0.0')
      expect(first).toContain('runbooks, inspection rules: this Ironic is of an older release, which does not have them\n');
    expect(await bloomery(...secrets)).toContain('       0 nodes (4 were here already)\n');
    await stopAll();

    const ours = await startServerProcess(join(place, 'ours'), {
      ...calm,
      api: { host_ip: '127.0.0.1', port: 0 },
      boot: { http_host: '127.0.0.1', http_port: 0, tftp: 'false' },
    });
    stops.push(() => ours.stop());
    const url = /API (\S+?),/.exec(ours.ready)![1]!;
    expect(await everything(url, full)).toEqual(release === '39.0.0' ? before : asShownBy39(before));
  },
  1_800_000,
);
