/**
 * The real Ironic and our server run the same operations on two equal simulated machines, over Redfish. Afterwards the nodes, the stored
 * settings and the machines are compared.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import type { BiosState } from '../../../simulator/hardware/bios-settings';
import type { MEDIA } from '../../../simulator/hardware/boot-media';
import { startFleet, type Fleet, type FleetMachine } from '../../../simulator/fleet/fleet';
import { until } from '../../../demo/lab/machines';
import { startBoth, type Both } from '../both';
import { alike, ask } from '../compare';
import { get, send } from '../requests/steps';

jest.setTimeout(600_000);
/** The seed of a machine with two disks for the system and twelve for data. */
const SEED = 12;
const NAME = 'sim-0';
let folder: string;
let files: Server;
let filesUrl: string;
let both: Both;
interface Side {
  readonly url: string;
  readonly fleet: Fleet;
  readonly machine: FleetMachine;
}
/** The real Ironic's side, and ours. */
const sides: Side[] = [];

const FILES: Readonly<Record<string, string>> = {
  '/bios.bin': 'firmware bios 2.1\n',
  '/bios-next.bin': 'firmware bios 2.2\n',
  '/bmc.bin': 'firmware bmc 3.0\n',
  '/nic.bin': 'firmware nic 4.0\n',
  '/broken.bin': 'nothing of the kind\n',
  '/tool.iso': 'no image that anybody boots',
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-redfish-both-'));
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), name);
  files = createServer((request, response) => {
    const content = FILES[request.url!];
    const path = join(both.httpRoot, request.url!.replace(/^\/ipxe\//, '/pxelinux.cfg/'));
    const found = content ?? (existsSync(path) ? readFileSync(path) : undefined);
    if (found === undefined) response.writeHead(404).end();
    else response.writeHead(200, { 'content-length': Buffer.byteLength(found) }).end(request.method === 'HEAD' ? '' : found);
  });
  await new Promise<void>((done) => files.listen(0, '127.0.0.1', done));
  filesUrl = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  both = await startBoth(
    {
      DEFAULT: {
        enabled_hardware_types: 'redfish',
        enabled_bios_interfaces: 'redfish',
        enabled_boot_interfaces: 'ipxe',
        enabled_console_interfaces: 'no-console',
        enabled_deploy_interfaces: 'direct',
        enabled_firmware_interfaces: 'redfish',
        enabled_inspect_interfaces: 'no-inspect',
        enabled_management_interfaces: 'redfish',
        enabled_power_interfaces: 'redfish',
        enabled_raid_interfaces: 'redfish',
        enabled_rescue_interfaces: 'no-rescue',
        enabled_storage_interfaces: 'noop',
        enabled_vendor_interfaces: 'redfish',
      },
      conductor: { deploy_kernel: `file://${folder}/kernel`, deploy_ramdisk: `file://${folder}/ramdisk`, file_url_allowed_paths: folder },
      redfish: {
        firmware_update_status_interval: '1',
        firmware_update_required_successes: '1',
        firmware_update_validation_interval: '1',
        firmware_update_reboot_delay: '2',
        firmware_update_bmc_version_check_interval: '1',
        firmware_update_nic_starting_wait: '1',
        raid_config_status_interval: '1',
        post_boot_retry_delay: '1',
      },
    },
    { reference: { deploy: { http_url: filesUrl } }, ours: { boot: { http_host: '127.0.0.1', http_port: '0', tftp: 'false' } } },
  );
  for (const [url, bootUrl] of [
    [both.reference, filesUrl],
    [both.ours, both.bootUrl!],
  ] as const) {
    const parts = { host: '127.0.0.1', log: silentLog, clock: systemClock, random: randomBytes };
    const fleet = await startFleet({ ...parts, count: 1, seed: SEED, bootUrl, taskMs: 500, behaviour: { firmwareMs: 10, bootMs: 50 } });
    sides.push({ url, fleet, machine: fleet.machines[0]! });
  }
});
afterAll(async () => {
  await both?.stop();
  for (const { fleet } of sides) await fleet.close();
  files?.closeAllConnections();
  await new Promise((closed) => files.close(closed));
  rmSync(folder, { recursive: true, force: true });
});

const json = async ({ url }: Side, path: string): Promise<JsonObject> => JSON.parse((await ask(url, get(path))).body) as JsonObject;
/** Waits until the node rests. */
async function rest(side: Side): Promise<JsonObject> {
  let node: JsonObject = {};
  const { provision_state, last_error } = node;
  await until(
    120,
    () => `${side.url}: ${JSON.stringify({ provision_state, last_error, node })}`,
    async () => {
      node = await json(side, `/v1/nodes/${NAME}`);
      const { reservation, target_power_state: power, target_provision_state: target, provision_state: state } = node;
      return !reservation && !power && (!target || /failed/.test(String(state)));
    },
  );
  return node;
}

const NODE = ['provision_state', 'last_error', 'maintenance', 'fault', 'clean_step', 'boot_mode', 'secure_boot', 'power_state'] as const;
const component = (value: JsonObject): JsonObject => ({ ...value, links: null });
/** A boolean is True here; the reference shows what its database makes of it: 1 in SQLite. */
const setting = (value: JsonObject): JsonObject => ({
  ...component(value),
  ...(value['attribute_type'] === 'Boolean' && { value: ['1', 'True'].includes(value['value'] as string) }),
});
type Media = typeof MEDIA.initial;
/** Each server names its images for virtual media itself. */
const inserted = (media: Media | undefined): object =>
  Object.fromEntries(Object.entries(media ?? {}).map(([drive, medium]) => [drive, medium && { ...medium, url: 'URL' }]));
/** The state of a node and its machine: from the API, and from the simulator. */
async function seen(side: Side): Promise<JsonObject> {
  const node = await rest(side);
  const path = `/v1/nodes/${NAME}`;
  const { bios } = (await json(side, `${path}/bios?detail=true`)) as { bios?: readonly JsonObject[] };
  const { firmware } = (await json(side, `${path}/firmware`)) as { firmware?: readonly JsonObject[] };
  const state = side.machine.control.hardware.snapshot() as JsonObject & { readonly bios?: BiosState; readonly media?: Media };
  const { bios: settings, firmware: versions, volumes, secureBoot, media, indicators } = state;
  const byName = (key: string) => (a: JsonObject, b: JsonObject) => String(a[key]).localeCompare(String(b[key]));
  return alike({
    node: Object.fromEntries(NODE.map((name) => [name, node[name]])),
    raid: { ...(node['raid_config'] as object), last_updated: undefined },
    bios: bios?.map(setting).sort(byName('name')),
    firmware: firmware?.map(component).sort(byName('component')),
    machine: { settings: settings?.current, pending: settings?.pending, versions, volumes, secureBoot, media: inserted(media), indicators },
    boot: side.machine.control.boot(),
    on: side.machine.control.isOn(),
  }) as JsonObject;
}

type Call = (side: Side) => readonly [method: string, path: string, body?: unknown];
/** Sends the same requests to both sides. @returns the answers, with the states afterwards */
async function act(...calls: readonly Call[]): Promise<{ readonly theirs: JsonObject; readonly ours: JsonObject }> {
  const [theirs, ours] = await Promise.all(
    sides.map(async (side) => {
      const answers: unknown[] = [];
      for (const call of calls) {
        const [method, path, body] = call(side);
        const answer = await ask(side.url, send(method, `/v1/nodes${path}`, body));
        const { error_message: error } = (answer.body.startsWith('{') ? JSON.parse(answer.body) : {}) as { error_message?: string };
        answers.push({ status: answer.status, error: error && alike(JSON.parse(error)) });
        await rest(side);
      }
      return { answers, ...(await seen(side)) };
    }),
  );
  return { theirs: theirs!, ours: ours! };
}
/** Sends the requests, checks that both sides are equal, and answers the common result. */
async function same(...calls: readonly Call[]): Promise<JsonObject> {
  const { theirs, ours } = await act(...calls);
  expect(ours).toEqual(theirs);
  return theirs;
}
const provision =
  (target: string, more: object = {}): Call =>
  () => ['PUT', `/${NAME}/states/provision`, { target, ...more }];
const clean = (step: string, args?: object, more: object = {}): Call => {
  const [kind, name] = step.split('.') as [string, string];
  return provision('clean', { clean_steps: [{ interface: kind, step: name, ...(args && { args }) }], ...more });
};
const DRY = { disable_ramdisk: true };
const put =
  (path: string, body: unknown): Call =>
  () => ['PUT', `/${NAME}${path}`, body];

/** Repairs a node after a failed step. */
const restored: readonly Call[] = [() => ['DELETE', `/${NAME}/maintenance`], provision('manage')];

it('both servers enrol and verify a node alike', async () => {
  const found = await same(
    ({ machine }) => [
      'POST',
      '',
      {
        name: NAME,
        driver: 'redfish',
        driver_info: {
          redfish_address: machine.redfish.address,
          redfish_system_id: machine.redfish.systemId,
          redfish_username: machine.redfish.username,
          redfish_password: machine.redfish.password,
        },
      },
    ],
    provision('manage'),
  );
  expect(found).toMatchObject({
    node: { provision_state: 'manageable', last_error: null, boot_mode: 'uefi', secure_boot: false },
    bios: expect.arrayContaining([expect.objectContaining({ name: 'WatchdogMinutes', value: '5', attribute_type: 'Integer' })]) as unknown,
    firmware: ['bios', 'bmc', expect.stringMatching(/^nic:/) as unknown].map(
      (name) => expect.objectContaining({ component: name, initial_version: '1.0' }) as unknown,
    ),
  });
  for (const side of sides) {
    const { uuid } = await json(side, `/v1/nodes/${NAME}`);
    expect((await ask(side.url, send('POST', '/v1/ports', { node_uuid: uuid, address: side.machine.macs[0] }))).status).toBe(201);
  }
});

describe('BIOS', () => {
  const settings = [
    { name: 'QuietBoot', value: true },
    { name: 'PowerProfile', value: 'Performance' },
    { name: 'WatchdogMinutes', value: '7' },
    { name: 'AssetTag', value: 'rack 4' },
  ];
  it.each(['for the first time', 'that are already set'])('apply_configuration applies settings %s', async () => {
    expect(await same(clean('bios.apply_configuration', { settings }, DRY))).toMatchObject({
      node: { provision_state: 'manageable', last_error: null },
      machine: { settings: { QuietBoot: true, PowerProfile: 'Performance', WatchdogMinutes: 7, AssetTag: 'rack 4' } },
    });
  });
  it('apply_configuration fails for a value that the registry does not allow', async () => {
    await same(clean('bios.apply_configuration', { settings: [{ name: 'PowerProfile', value: 'Warp' }] }, DRY));
    await same(...restored);
  });
  it('factory_reset resets the settings', async () => {
    const found = await same(clean('bios.factory_reset', undefined, DRY));
    expect(found).toMatchObject({
      node: { provision_state: 'manageable', last_error: null },
      machine: { settings: { AdminPassword: null } },
    });
  });
});

describe('RAID', () => {
  const wanted = {
    logical_disks: [
      { size_gb: 200, raid_level: '1', is_root_volume: true, disk_type: 'hdd' },
      { size_gb: 1000, raid_level: '5', volume_name: 'data' },
      { size_gb: 500, raid_level: '6' },
    ],
  };
  it('create_configuration fails for the size MAX without named drives', async () => {
    const any = { logical_disks: [{ size_gb: 'MAX', raid_level: '1' }] };
    expect(await same(put('/states/raid', any), clean('raid.create_configuration'))).toMatchObject({
      node: { provision_state: 'clean failed' },
    });
    await same(...restored);
  });
  it('create_configuration creates volumes', async () => {
    const found = await same(put('/states/raid', wanted), clean('raid.create_configuration'));
    expect(found).toMatchObject({ node: { provision_state: 'manageable', last_error: null } });
    expect((found['machine'] as { volumes: object[] }).volumes).toHaveLength(3);
  });
  it('delete_configuration deletes all volumes', async () => {
    const found = await same(clean('raid.delete_configuration'));
    expect(found).toMatchObject({ node: { provision_state: 'manageable', last_error: null }, machine: { volumes: [] } });
  });
});

describe('firmware', () => {
  it('firmware.update updates BIOS and BMC', async () => {
    const update = ['bios', 'bmc'].map((component) => ({ component, url: `${filesUrl}/${component}.bin` }));
    const found = await same(clean('firmware.update', { settings: update }));
    expect(found).toMatchObject({
      node: { provision_state: 'manageable', last_error: null },
      machine: { versions: { bios: '2.1', bmc: '3.0' } },
    });
  });
  it('firmware.update updates a network card', async () => {
    const { firmware } = (await json(sides[0]!, `/v1/nodes/${NAME}/firmware`)) as { firmware: readonly { component: string }[] };
    const card = firmware.find(({ component: name }) => name.startsWith('nic:'))!.component;
    expect(await same(clean('firmware.update', { settings: [{ component: card, url: `${filesUrl}/nic.bin` }] }))).toMatchObject({
      node: { provision_state: 'manageable', last_error: null },
      machine: { versions: { nic: '4.0' } },
      firmware: expect.arrayContaining([expect.objectContaining({ component: card, current_version: '4.0' })]) as unknown,
    });
  });
  it('management.update_firmware updates the BIOS', async () => {
    const url = `${filesUrl}/bios-next.bin`;
    const checksum = createHash('sha256').update(FILES['/bios-next.bin']!).digest('hex');
    expect(await same(clean('management.update_firmware', { firmware_images: [{ url, checksum }] }))).toMatchObject({
      node: { provision_state: 'manageable', last_error: null },
      machine: { versions: { bios: '2.2' } },
    });
  });
  it('firmware.update fails for an invalid file', async () => {
    await same(clean('firmware.update', { settings: [{ component: 'bios', url: `${filesUrl}/broken.bin` }] }));
    await same(...restored);
  });
});

it('both servers attach and detach virtual media', async () => {
  const medium = { device_type: 'cdrom', image_url: `${filesUrl}/tool.iso`, image_download_source: 'http' };
  expect(await same(() => ['POST', `/${NAME}/vmedia`, medium])).toMatchObject({ machine: { media: { Cd: { writeProtected: true } } } });
  expect(await same(() => ['DELETE', `/${NAME}/vmedia`])).toMatchObject({ machine: { media: { Cd: undefined } } });
});

it.each([
  ['/states/secure_boot', { target: true }, { node: { secure_boot: true } }],
  ['/states/secure_boot', { target: false }, { node: { secure_boot: false } }],
  ['/states/boot_mode', { target: 'bios' }, { node: { boot_mode: 'bios' } }],
  ['/states/boot_mode', { target: 'uefi' }, { node: { boot_mode: 'uefi' } }],
  ['/management/boot_device', { boot_device: 'cdrom', persistent: false }, { boot: { device: 'cdrom', persistent: false } }],
  ['/management/boot_device', { boot_device: 'disk', persistent: true }, { boot: { device: 'disk', persistent: true } }],
])('PUT …%s with %j has the same effect on both servers', async (path, body, becomes) => {
  expect(await same(put(path, body))).toMatchObject(becomes);
});

it('both servers delete the keys of secure boot, and reset them to the factory’s', async () => {
  expect(await same(clean('management.clear_secure_boot_keys'))).toMatchObject({
    node: { provision_state: 'manageable' },
    machine: { secureBoot: { keys: { PK: [], KEK: [], db: [], dbx: [] } } },
  });
  expect(await same(clean('management.reset_secure_boot_keys_to_default'))).toMatchObject({
    node: { provision_state: 'manageable' },
    machine: { secureBoot: { keys: {} } },
  });
});

it('both servers create, show and delete event subscriptions, with arguments in the body of each method', async () => {
  const call =
    (method: string, name: string, body?: unknown): Call =>
    () => [method, `/${NAME}/vendor_passthru/${name}`, body];
  const { answers } = (await same(
    call('POST', 'create_subscription', { Destination: 'https://192.0.2.9/events', Context: 'c', other: 1 }),
    call('GET', 'get_all_subscriptions'),
    call('GET', 'get_subscription', { id: '1' }),
    call('DELETE', 'delete_subscription', { id: '1' }),
    call('DELETE', 'delete_subscription', {}),
    call('POST', 'create_subscription', { Destination: 'nowhere' }),
    call('POST', 'create_subscription', { Destination: 'https://192.0.2.9/events', Context: 5 }),
    call('POST', 'nosuch', {}),
  )) as { answers: { status: number }[] };
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400, 400, 400, 400]);
});

it('both servers show and set indicators', async () => {
  const path = `/v1/nodes/${NAME}/management/indicators`;
  const list = async (side: Side): Promise<readonly JsonObject[]> => {
    const { indicators } = (await json(side, path)) as { indicators: readonly JsonObject[] };
    return indicators.map((indicator) => ({ ...indicator, links: null }));
  };
  const [theirs, ours] = await Promise.all(sides.map(list));
  expect(ours).toEqual(theirs);
  expect(ours!.map(({ component: kind }) => kind)).toEqual(expect.arrayContaining(['chassis', 'system', 'disk']));
  for (const kind of ['chassis', 'system', 'disk']) {
    const { name } = ours!.find(({ component: our }) => our === kind) as { name: string };
    await same(put(`/management/indicators/${name}`, { state: 'blinking' }));
    const states = await Promise.all(sides.map((side) => json(side, `${path}/${name}`)));
    expect(states).toEqual([{ state: 'blinking' }, { state: 'blinking' }]);
  }
});
