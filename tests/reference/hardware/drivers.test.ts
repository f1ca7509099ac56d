/** What the drivers answer about a node's settings, beside the real Ironic's answer about the same node. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Options } from '../../../config/options';
import { freePort } from '../../support/free-port';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { offeredSteps } from '../../../conductor/steps/steps';
import { createHardware } from '../../../conductor/hardware/create-hardware';
import { loadOptions } from '../../../config/load';
import { HARDWARE_TYPES, INTERFACES } from '../../../drivers/index';
import type { Driver, Interface } from '../../../drivers/interfaces';
import { reasonOf } from '../../../model/errors';
import { silentLog } from '../../../model/log';
import { INTERFACE_KINDS, type InterfaceKind, type JsonObject, type NodeRecord } from '../../../model/records';
import { ENABLED, startRealIronic, type RealIronic } from '../../lab/inspection/real-ironic';
import { programs } from '../../lab/support/venv';
import { portRecord, testTask } from '../../support/task';
import { timeoutSignal } from '../../../wire/timeout-signal';

let folder: string;
let ironic: RealIronic;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reference-drivers-'));
  ironic = await startRealIronic(folder, '127.0.0.1', await freePort(), {
    inspector: { require_managed_boot: 'true' },
    deploy: { http_url: 'http://10.0.0.1:8080', http_root: join(folder, 'http') },
  });
}, 600_000);
afterAll(async () => {
  await ironic?.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

async function call(method: string, path: string, body?: unknown): Promise<JsonObject> {
  const answer = await fetch(`${ironic.url}${path}`, {
    method,
    headers: { 'X-OpenStack-Ironic-API-Version': '1.104', 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as JsonObject);
}

type Fields = { readonly [Key in `${InterfaceKind}_interface`]?: string };
interface Case {
  readonly driver?: string;
  readonly interfaces: Fields;
  readonly node?: Partial<NodeRecord>;
  readonly port?: false;
  /** Kinds that are compared. */
  readonly kinds: readonly InterfaceKind[];
}
const deploying: Fields = { deploy_interface: 'direct', boot_interface: 'ipxe', management_interface: 'noop' };
const ramdisk = { deploy_kernel: 'http://10.0.0.9/kernel', deploy_ramdisk: 'http://10.0.0.9/ramdisk' };
const image = { image_source: 'http://10.0.0.9/disk.img', image_checksum: 'd41d8cd98f00b204e9800998ecf8427e' };
const both: readonly InterfaceKind[] = ['boot', 'deploy'];
const direct = (node: Partial<NodeRecord>): Case => ({ interfaces: deploying, node: { driver_info: ramdisk, ...node }, kinds: both });
const inspecting: Fields = { inspect_interface: 'agent', boot_interface: 'ipxe' };

const custom = (node: Partial<NodeRecord>): Case => ({
  interfaces: { ...deploying, deploy_interface: 'custom-agent' },
  node: { driver_info: ramdisk, ...node },
  kinds: both,
});
const own = { kernel: 'http://10.0.0.9/own-kernel', ramdisk: 'http://10.0.0.9/own-ramdisk' };
const inMemory = (node: Partial<NodeRecord>, boot = 'ipxe'): Case => ({
  interfaces: { ...deploying, deploy_interface: 'ramdisk', boot_interface: boot },
  node: { driver_info: ramdisk, ...node },
  kinds: both,
});
const rescuing = (node: Partial<NodeRecord>, boot = 'ipxe'): Case => ({
  interfaces: { rescue_interface: 'agent', boot_interface: boot },
  node: {
    driver_info: { ...ramdisk, rescue_kernel: 'http://10.0.0.9/k', rescue_ramdisk: 'http://10.0.0.9/r' },
    instance_info: { rescue_password: 'secret' },
    ...node,
  },
  kinds: ['rescue'],
});

const agentPowered = (node: Partial<NodeRecord>): Case => ({
  driver: 'manual-management',
  interfaces: { power_interface: 'agent' },
  node: { driver_info: { fast_track: true }, ...node },
  kinds: ['power'],
});

const bmc = { ipmi_address: '192.0.2.7' };
/** `driver_info` of nodes of the type ipmi, besides the BMC's address. */
const IPMI: Readonly<Record<string, JsonObject>> = {
  'only an address': {},
  'no address': { ipmi_address: null },
  'an empty address': { ipmi_address: '' },
  'a host name as address': { ipmi_address: 'bmc.example.org' },
  'an IPv6 address': { ipmi_address: '2001:db8::7' },
  'a user': { ipmi_username: 'admin', ipmi_password: 'secret' },
  'a password without a user': { ipmi_password: 'secret' },
  'an empty password': { ipmi_username: 'admin', ipmi_password: '' },
  ...Object.fromEntries(
    [623, '6230', 1, 65535, 0, 65536, '0', '-1', -1, 'abc', '', null, 1.5, true].map((port) => [
      `port ${JSON.stringify(port)}`,
      { ipmi_port: port },
    ]),
  ),
  ...Object.fromEntries(
    [3, '3', 17, '17', 0, 1, 2, 8, 12, '12', 15, 18, 99, -1, '', 'three', null, ' 3'].map((suite) => [
      `cipher suite ${JSON.stringify(suite)}`,
      { ipmi_cipher_suite: suite },
    ]),
  ),
  'a cipher suite, IPMI 1.5': { ipmi_cipher_suite: 3, ipmi_protocol_version: '1.5' },
  ...Object.fromEntries(
    // For us, the JSON number 2.0 is the number 2.
    ['2.0', '1.5', '3.0', '', 2.5, null, ' 2.0'].map((version) => [
      `protocol version ${JSON.stringify(version)}`,
      { ipmi_protocol_version: version },
    ]),
  ),
  ...Object.fromEntries(
    ['CALLBACK', 'USER', 'OPERATOR', 'ADMINISTRATOR', 'operator', 'OEM', '', null, 4].map((level) => [
      `privilege level ${JSON.stringify(level)}`,
      { ipmi_priv_level: level },
    ]),
  ),
  ...Object.fromEntries(
    ['0123456789012345678901234567890123456789', '01', 'xyz', '', null, '0123456789abcdef0123456789ABCDEF01234567'].map((key) => [
      `key ${JSON.stringify(key)}`,
      { ipmi_hex_kg_key: key },
    ]),
  ),
  'a key, IPMI 1.5': { ipmi_hex_kg_key: '0123456789012345678901234567890123456789', ipmi_protocol_version: '1.5' },
  ...Object.fromEntries(
    ['no', 'single', 'dual', 'triple', '', null, 'Single'].map((bridging) => [
      `bridging ${JSON.stringify(bridging)}, no addresses`,
      { ipmi_bridging: bridging },
    ]),
  ),
  'single bridging': { ipmi_bridging: 'single', ipmi_target_channel: '7', ipmi_target_address: '0x72' },
  'single bridging, no channel': { ipmi_bridging: 'single', ipmi_target_address: '0x72' },
  'single bridging, no target': { ipmi_bridging: 'single', ipmi_target_channel: '7' },
  'single bridging, local': { ipmi_bridging: 'single', ipmi_local_address: '0x20', ipmi_target_channel: '7', ipmi_target_address: '0x72' },
  'single bridging with a transit channel and address': {
    ipmi_bridging: 'single',
    ipmi_target_channel: '7',
    ipmi_target_address: '0x72',
    ipmi_transit_channel: '0',
    ipmi_transit_address: '0x82',
  },
  'dual bridging': {
    ipmi_bridging: 'dual',
    ipmi_target_channel: '7',
    ipmi_target_address: '0x72',
    ipmi_transit_channel: '0',
    ipmi_transit_address: '0x82',
  },
  'dual bridging, no transit channel and address': { ipmi_bridging: 'dual', ipmi_target_channel: '7', ipmi_target_address: '0x72' },
  'dual bridging, no transit address': {
    ipmi_bridging: 'dual',
    ipmi_target_channel: '7',
    ipmi_target_address: '0x72',
    ipmi_transit_channel: '0',
  },
  'addresses without bridging': { ipmi_target_channel: '7', ipmi_target_address: '0x72' },
  'valid booleans': { ipmi_force_boot_device: 'true', ipmi_disable_boot_timeout: 'false' },
  'invalid booleans': { ipmi_force_boot_device: 'perhaps', ipmi_disable_boot_timeout: 'perhaps' },
};
/** `driver_info` of nodes of the type idrac. */
const IDRAC: Readonly<Record<string, JsonObject>> = {
  'an address': { redfish_address: 'https://192.0.2.7' },
  'no address': {},
  'an address of the times of WS-Man': { drac_address: '192.0.2.7', drac_username: 'root', drac_password: 'calvin' },
  'a password': { redfish_address: 'https://192.0.2.7', redfish_username: 'root', redfish_password: 'calvin' },
  'an unknown kind of login': { redfish_address: 'https://192.0.2.7', redfish_auth_type: 'digest' },
};
const idracCases = Object.fromEntries(
  Object.entries(IDRAC).map(([name, info]): [string, Case] => [
    `iDRAC: ${name}`,
    { driver: 'idrac', interfaces: {}, node: { driver_info: info }, kinds: ['power', 'management', 'bios', 'inspect'] },
  ]),
);
const ipmiCases = Object.fromEntries(
  Object.entries(IPMI).map(([name, info]): [string, Case] => [
    `IPMI: ${name}`,
    { driver: 'ipmi', interfaces: {}, node: { driver_info: { ...bmc, ...info } }, kinds: ['power', 'management'] },
  ]),
);

const CASES: Readonly<Record<string, Case>> = {
  ...ipmiCases,
  ...idracCases,
  'IPMI of Intel': { driver: 'intel-ipmi', interfaces: {}, node: { driver_info: bmc }, kinds: ['power', 'management'] },
  'all fake': { interfaces: {}, kinds: INTERFACE_KINDS.filter((kind) => kind !== 'vendor') },
  'interfaces no-…': {
    interfaces: {
      bios_interface: 'no-bios',
      console_interface: 'no-console',
      firmware_interface: 'no-firmware',
      inspect_interface: 'no-inspect',
      raid_interface: 'no-raid',
      rescue_interface: 'no-rescue',
    },
    kinds: ['bios', 'console', 'firmware', 'inspect', 'raid', 'rescue'],
  },
  'no port': { interfaces: deploying, node: { driver_info: ramdisk, instance_info: image }, port: false, kinds: both },
  'no ramdisk': { interfaces: deploying, node: { instance_info: image }, kinds: both },
  'a kernel without a ramdisk': { interfaces: deploying, node: { driver_info: { deploy_kernel: 'http://10.0.0.9/kernel' } }, kinds: both },
  'no image': direct({}),
  'a complete deployment': direct({ instance_info: image }),
  'a hash with its algorithm': direct({
    instance_info: { image_source: 'http://10.0.0.9/x', image_os_hash_algo: 'sha256', image_os_hash_value: 'a'.repeat(64) },
  }),
  'no checksum': direct({ instance_info: { image_source: 'http://10.0.0.9/x' } }),
  'a hash without its algorithm': direct({ instance_info: { ...image, image_os_hash_value: 'a'.repeat(64) } }),
  'an algorithm without its hash': direct({ instance_info: { ...image, image_os_hash_algo: 'sha256' } }),
  'an image and an ISO': direct({ instance_info: { ...image, boot_iso: 'http://10.0.0.9/x.iso' } }),
  'an invalid capability of the machine': direct({ instance_info: image, properties: { capabilities: 'boot_mode:efi,x:y' } }),
  'an invalid capability of the instance': direct({ instance_info: { ...image, capabilities: { disk_label: 'bsd' } } }),
  'capabilities of the instance that are not an object': direct({ instance_info: { ...image, capabilities: 'boot_mode:uefi' } }),
  'an unknown root device hint': direct({ instance_info: image, properties: { root_device: { colour: 'red' } } }),
  'an invalid root device hint of the instance': direct({ instance_info: { ...image, root_device: { size: 'big' } } }),
  'invalid proxies': direct({
    instance_info: image,
    driver_info: { ...ramdisk, image_http_proxy: 'ftp://p', image_https_proxy: 'socks5://q' },
  }),
  proxies: direct({
    instance_info: image,
    driver_info: { ...ramdisk, image_http_proxy: '10.0.0.9:3128', image_https_proxy: 'p', image_no_proxy: '.a.b,10.0.0.1:80, c' },
  }),
  'a proxy with a port': direct({ instance_info: image, driver_info: { ...ramdisk, image_http_proxy: 'p:3128' } }),
  'an invalid image_no_proxy': direct({ instance_info: image, driver_info: { ...ramdisk, image_no_proxy: '.*.a' } }),
  'an invalid download source': direct({ instance_info: image, driver_info: { ...ramdisk, image_download_source: 'post' } }),
  inspection: { interfaces: inspecting, node: { driver_info: ramdisk }, kinds: ['inspect'] },
  'inspection without a ramdisk': { interfaces: inspecting, kinds: ['inspect'] },
  'inspection with a fake boot interface': { interfaces: { inspect_interface: 'agent' }, kinds: ['inspect'] },
  'the boot interface http-ipxe': { interfaces: { ...deploying, boot_interface: 'http-ipxe' }, kinds: both },

  'pxe without a port': { interfaces: { ...deploying, boot_interface: 'pxe' }, node: { driver_info: ramdisk }, port: false, kinds: both },
  'pxe without a ramdisk': { interfaces: { ...deploying, boot_interface: 'pxe' }, node: { instance_info: image }, kinds: both },
  pxe: { interfaces: { ...deploying, boot_interface: 'pxe' }, node: { driver_info: ramdisk, instance_info: image }, kinds: both },
  'in memory, by pxe': inMemory({ instance_info: own }, 'pxe'),

  'the deploy interface noop': { interfaces: { deploy_interface: 'noop' }, driver: 'manual-management', kinds: ['deploy'] },
  'a custom agent': custom({}),
  'a custom agent without a ramdisk': custom({ driver_info: {} }),
  'a custom agent with an unknown root device hint': custom({ properties: { root_device: { colour: 'red' } } }),
  'a custom agent with an invalid capability': custom({ properties: { capabilities: 'boot_mode:efi' } }),

  'in memory: no kernel, ramdisk or ISO image': inMemory({}),
  'in memory: kernel and ramdisk': inMemory({ instance_info: own }),
  'in memory: a kernel without a ramdisk': inMemory({ instance_info: { kernel: own.kernel } }),
  'in memory: an ISO image': inMemory({ instance_info: { boot_iso: 'http://10.0.0.9/x.iso' } }),
  'in memory: an ISO image with an unknown URL scheme': inMemory({ instance_info: { boot_iso: 'ftp://10.0.0.9/x.iso' } }),
  'in memory: an ISO image and an image': inMemory({ instance_info: { boot_iso: 'http://10.0.0.9/x.iso', ...image } }),
  'in memory: an invalid capability': inMemory({ instance_info: own, properties: { capabilities: 'boot_mode:efi' } }),
  'in memory: no ramdisk of the agent': inMemory({ instance_info: own, driver_info: {} }),
  'in memory: no ramdisk of the agent, without automated cleaning': inMemory({
    instance_info: own,
    driver_info: {},
    automated_clean: false,
  }),
  'in memory, with an unsuitable boot interface': inMemory({ instance_info: own }, 'fake'),

  rescue: rescuing({}),
  'rescue without a password': rescuing({ instance_info: {} }),
  'rescue with an empty password': rescuing({ instance_info: { rescue_password: ' ' } }),
  'rescue without a rescue ramdisk': rescuing({ driver_info: ramdisk }),
  'rescue without any ramdisk': rescuing({ driver_info: {} }),
  'rescue with a kernel, but without a rescue ramdisk': rescuing({ driver_info: { ...ramdisk, rescue_kernel: 'http://10.0.0.9/k' } }),
  'rescue with an unsuitable boot interface': rescuing({}, 'fake'),
  'power by the agent': agentPowered({}),
  'power by the agent without fast_track': agentPowered({ driver_info: {} }),
  'power by the agent with fast_track = off': agentPowered({ driver_info: { fast_track: 'off' } }),
  'power by the agent with an invalid fast_track': agentPowered({ driver_info: { fast_track: 'perhaps' } }),
  'RAID by the agent': { interfaces: { raid_interface: 'agent' }, kinds: ['raid'] },
};

let made = 0;
it.each(Object.entries(CASES))(
  'our interfaces validate a node as the real Ironic does: %s',
  async (_, { driver = 'fake-hardware', interfaces, node = {}, port, kinds }) => {
    const { uuid, ...created } = await call('POST', '/v1/nodes', { driver, ...interfaces, ...node });
    const address = `52:54:00:99:0${Math.floor(made / 100)}:${String(made++ % 100).padStart(2, '0')}`;
    if (port !== false) await call('POST', '/v1/ports', { node_uuid: uuid, address });
    const theirs = await call('GET', `/v1/nodes/${uuid as string}/validate`);

    const names = Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, String(created[`${kind}_interface`])])) as Record<
      InterfaceKind,
      string
    >;
    const named = INTERFACES as Readonly<Record<InterfaceKind, Readonly<Record<string, Interface>>>>;
    const { task } = testTask({
      node: { uuid: uuid as string, driver, ...node },
      ports: port === false ? [] : [portRecord({ address })],
      driver: Object.fromEntries(kinds.concat('boot', 'deploy').map((kind) => [kind, named[kind][names[kind]]])),
    });
    const ours: Record<string, unknown> = {};
    for (const kind of kinds) {
      ours[kind] = await (named[kind][names[kind]]!.validate?.(task) ?? Promise.resolve()).then(
        () => ({ result: true }),
        (error: unknown) => ({ result: false, reason: reasonOf(error) }),
      );
    }
    expect(ours).toEqual(Object.fromEntries(kinds.map((kind) => [kind, theirs[kind]])));
  },
);

/** Keys of driver_info that Ironic does not have. */
const OWN_KEYS: readonly string[] = ['cleaning_erase', 'deploy_kexec', 'opal_psids', 'resident_kexec'];
/** Without redfish, some of whose interfaces are not implemented here. */
it.each(['fake-hardware', 'ipmi', 'intel-ipmi', 'idrac', 'manual-management'])(
  'the hardware type %s has the same interfaces, default interfaces and driver_info keys as in the real Ironic',
  async (name) => {
    const lists = Object.entries(ENABLED).map(([kind, names]) => [`DEFAULT.enabled_${kind}`, names.split(',')] as const);
    const options = { ...loadOptions([], {}).options, ...Object.fromEntries(lists) } as unknown as Options;
    const { enabled, defaults: chosen } = createHardware(options, HARDWARE_TYPES, INTERFACES, silentLog).enabled[name]!;
    const { drivers } = (await call('GET', '/v1/drivers?detail=true')) as { drivers: readonly JsonObject[] };
    const theirs = drivers.find((driver) => driver['name'] === name)!;
    for (const kind of INTERFACE_KINDS) {
      expect([kind, [...enabled[kind]].sort()]).toEqual([kind, [...(theirs[`enabled_${kind}_interfaces`] as string[])].sort()]);
      expect([kind, chosen[kind]]).toEqual([kind, theirs[`default_${kind}_interface`]]);
    }
    const named = INTERFACES as Readonly<Record<InterfaceKind, Readonly<Record<string, Interface>>>>;
    const keys = INTERFACE_KINDS.flatMap((kind) => Object.keys(named[kind][chosen[kind]!]!.properties ?? {}));
    const known = [...new Set(keys)].filter((key) => !OWN_KEYS.includes(key));
    expect(known.sort()).toEqual(Object.keys(await call('GET', `/v1/drivers/${name}/properties`)).sort());
  },
);

/** Interfaces of makers, and the steps of ours that Ironic does not have. */
const OF_MAKERS: Readonly<Record<string, readonly string[]>> = {
  'bios idrac-redfish': [],
  'inspect idrac-redfish': [],
  'management idrac-redfish': ['configure_network_adapters'],
  'management intel-ipmitool': [],
  'power idrac-redfish': [],
  'raid idrac-redfish': [],
  'vendor idrac-redfish': [],
};
it('the interfaces of makers have the same steps as in the real Ironic, with the same priorities and arguments', async () => {
  const python = join(await programs('ironic', ['ironic==39.0.0']), 'python3');
  const asking = promisify(execFile)(python, [join(__dirname, 'driver-steps.py')], { timeout: 120_000 });
  asking.child.stdin!.end(JSON.stringify(Object.keys(OF_MAKERS)));
  type Shown = { readonly kind: string; readonly step: string };
  const theirs = JSON.parse((await asking).stdout) as Readonly<Record<string, readonly Shown[]>>;
  const sorted = (steps: readonly Shown[]): readonly Shown[] =>
    [...steps].sort((a, b) => `${a.kind} ${a.step}`.localeCompare(`${b.kind} ${b.step}`));
  const named = INTERFACES as Readonly<Record<string, Readonly<Record<string, Interface>>>>;
  for (const [key, additions] of Object.entries(OF_MAKERS)) {
    const [kind, name] = key.split(' ') as [InterfaceKind, string];
    const driver = { [kind]: named[kind]![name] } as unknown as Driver;
    const ours = (['clean', 'deploy', 'verify', 'service'] as const).flatMap((of) =>
      offeredSteps({ ...NO_STEPS, ...driver }, of)
        .filter(({ step }) => !additions.includes(step))
        .map(({ step, priority, argsinfo = null, requires_ramdisk = null, abortable = null }) => ({
          kind: of,
          step,
          priority,
          argsinfo,
          requires_ramdisk,
          abortable,
        })),
    );
    expect([key, sorted(ours)]).toEqual([key, sorted(theirs[key]!)]);
  }
}, 180_000);
const NO_STEPS = Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, {}])) as unknown as Driver;
