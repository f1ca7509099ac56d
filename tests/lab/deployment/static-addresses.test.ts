/**
 * Machines in a network without DHCP and without router advertisements: network_data of the node, on virtual media, gives the ramdisk its
 * addresses. Open vSwitch has the VLANs and speaks LACP. Our agent, and ironic-python-agent with glean.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { buildIpaRamdisk } from '../support/ipa-ramdisk';
import { startLibvirt, type Libvirt } from '../support/libvirt';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { startOpenVSwitch, type OpenVSwitch } from '../support/open-vswitch';
import { buildRamdisk } from '../support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { root } from '../support/venv';

const run = promisify(execFile);
/** Seconds. A boot takes a minute alone, or three with ironic-python-agent, and longer beside other work. */
const PATIENCE = 1200;
const BRIDGE = 'ovs0';
const VLAN = 5;
/** The host on the machines' network. The API's address is another one, which machines reach by their route. */
const HOST = { 4: '10.78.0.1', 6: 'fd00:78::1' } as const;
const API = 'http://10.77.0.1:6385';

let lab: Lab;
let ovs: OpenVSwitch;
let libvirt: Libvirt | undefined;
let server: RunningServer | undefined;
let ipa: string;
let family: 4 | 6 | undefined;

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', ip: 'iproute2', curl: 'curl', mmdebstrap: 'mmdebstrap' });
  needs({ 'ovs-vsctl': 'openvswitch-switch', libvirtd: 'libvirt-daemon-system' });
  await buildRamdisk();
  ipa = await buildIpaRamdisk();
  lab = await openLab('bloomery-static');
  ovs = await startOpenVSwitch(lab, BRIDGE);
  await ovs.host('host5', VLAN, [`${HOST[4]}/24`, `${HOST[6]}/64`]);
  const images = join(lab.folder, 'server/state/httpboot');
  mkdirSync(images, { recursive: true });
  await run('bash', [join(__dirname, '../../../demo/lab/image.sh'), join(images, 'lab.raw'), 'http://192.0.2.1/', 'lab'], {
    timeout: 300_000,
  });
  libvirt = await startLibvirt({ ...lab, port: 8000 });
}, 2_400_000);
afterAll(async () => {
  await libvirt?.stop();
  await server?.stop();
  await lab?.close();
});

/** The server for ramdisks with addresses of this family. */
async function serve(wanted: 4 | 6): Promise<void> {
  if (family === wanted) return;
  await server?.stop();
  const sections = bootingSections(lab);
  server = await startServerProcess(
    join(lab.folder, 'server'),
    {
      ...sections,
      dhcp: { dhcp_provider: 'none' },
      // Every address, of both families.
      api: { host_ip: '::' },
      boot: { tftp: 'false', http_host: '::' },
      deploy: wanted === 6 ? { external_callback_url: `http://[${HOST[6]}]:6385` } : {},
    },
    lab.namespace,
  );
  family = wanted;
}

async function call(method: string, path: string, body?: unknown): Promise<JsonObject> {
  const headers = ['-H', 'X-OpenStack-Ironic-API-Version: 1.109', '-H', 'content-type: application/json'];
  const data = body === undefined ? [] : ['--data', JSON.stringify(body)];
  const answer = await lab.exec('curl', '-sS', '-w', '\n%{http_code}', '-X', method, ...headers, ...data, `${API}/v1${path}`);
  const end = answer.lastIndexOf('\n');
  if (Number(answer.slice(end + 1)) >= 400) throw new Error(`${method} ${path}: ${answer}`);
  return (end === 0 ? {} : JSON.parse(answer.slice(0, end))) as JsonObject;
}

/** Sends a verb, and waits for the state. A failed state ends the wait at once, with the reason and the machine's console. */
async function reach(machine: LabMachine, state: string, request: JsonObject): Promise<void> {
  const path = `/nodes/${machine.name}`;
  await call('PUT', `${path}/states/provision`, request);
  let node: JsonObject = {};
  const describe = (): string =>
    `${machine.name} to be ${state}: ${JSON.stringify(node)}\n--- console\n${consoleEnd(machine)}\n--- server\n${readFileSync(server!.log, 'utf8').slice(-3000)}`;
  await until(PATIENCE, describe, async () => {
    node = await call('GET', path);
    const now = String(node['provision_state']);
    if (now === state && node['target_provision_state'] === null) return true;
    if (now !== state && /failed$|^error$/.test(now)) throw new Error(describe());
    await delay(900);
    return false;
  });
}

const route = (network: string, gateway: string) => ({ network, netmask: network, gateway });
const ipv4 = (link: string, address: string) => ({
  id: 'net',
  network_id: 'net',
  type: 'ipv4',
  link,
  ip_address: address,
  netmask: '255.255.255.0',
  routes: [route('0.0.0.0', HOST[4])],
});
const ipv6 = (link: string, address: string) => ({
  id: 'net6',
  network_id: 'net6',
  type: 'ipv6',
  link,
  ip_address: address,
  netmask: 'ffff:ffff:ffff:ffff::',
  routes: [route('::', HOST[6])],
});
const interfaces = (macs: readonly string[]) => macs.map((mac, index) => ({ id: `nic${index}`, type: 'phy', ethernet_mac_address: mac }));
const trunk = ([mac, ...more]: readonly [string, ...string[]]) => [
  ...interfaces([mac, ...more]),
  {
    id: 'bond',
    type: 'bond',
    ethernet_mac_address: mac,
    bond_mode: '802.3ad',
    bond_miimon: 100,
    bond_links: [mac, ...more].map((_mac, index) => `nic${index}`),
  },
  { id: 'vlan', type: 'vlan', vlan_link: 'bond', vlan_id: VLAN, vlan_mac_address: mac },
];

interface Case {
  readonly name: string;
  readonly agent: 'ours' | 'ironic-python-agent';
  readonly family: 4 | 6;
  /** Two interfaces with LACP, and the VLAN's tag. Else one interface, untagged. */
  readonly bonded: boolean;
  readonly address: string;
}
const CASES: readonly Case[] = [
  { name: 'ipv4', agent: 'ours', family: 4, bonded: false, address: '10.78.0.11' },
  { name: 'bond-vlan', agent: 'ours', family: 4, bonded: true, address: '10.78.0.12' },
  { name: 'real-ipv4', agent: 'ironic-python-agent', family: 4, bonded: false, address: '10.78.0.13' },
  { name: 'ipv6', agent: 'ours', family: 6, bonded: false, address: 'fd00:78::11' },
];

/** Two interfaces of the machine at the switch. */
async function connect(machine: LabMachine, bonded: boolean, index: number): Promise<readonly { mac: string; name: string }[]> {
  const taps = [
    { mac: machine.mac, name: `tap${index}a` },
    { mac: `52:54:00:99:00:0${index}`, name: `tap${index}b` },
  ];
  for (const { name } of taps) await ovs.tap(name);
  const [first, second] = taps.map(({ name }) => name) as [string, string];
  if (bonded)
    await ovs.control('add-bond', BRIDGE, `bond${index}`, first, second, 'lacp=active', 'bond_mode=balance-tcp', `trunks=${VLAN}`);
  else {
    await ovs.control('add-port', BRIDGE, first, `tag=${VLAN}`);
    // A VLAN in which nothing answers.
    await ovs.control('add-port', BRIDGE, second, 'tag=6');
  }
  return taps;
}

it.each(CASES.map((row, index) => ({ ...row, index })))(
  '$name: our server inspects and deploys a machine that gets its addresses from network_data',
  async ({ name, agent, family: wanted, bonded, address, index }) => {
    await serve(wanted);
    const began = Date.now();
    const memoryMiB = agent === 'ours' ? 768 : 3072;
    const machine = await lab.machine({ name, firmware: 'bios', memoryMiB, cpus: 2, diskGiB: 5 });
    const taps = await connect(machine, bonded, index);
    await libvirt!.define({ ...machine, taps, disk: machine.diskFile, console: machine.consoleFile });
    const macs = taps.map(({ mac }) => mac) as [string, ...string[]];
    const network = wanted === 4 ? ipv4(bonded ? 'vlan' : 'nic0', address) : ipv6('nic0', address);
    const { uuid } = await call('POST', '/nodes', {
      name,
      driver: 'redfish',
      boot_interface: 'redfish-virtual-media',
      automated_clean: false,
      properties: { capabilities: 'boot_mode:bios' },
      network_data: { links: bonded ? trunk(macs) : interfaces(macs.slice(0, 1)), networks: [network], services: [] },
      driver_info: {
        redfish_address: libvirt!.redfish,
        redfish_system_id: `/redfish/v1/Systems/${machine.uuid}`,
        fast_track: true,
        ...(agent === 'ours' ? {} : { deploy_kernel: `file://${root}/.cache/ramdisk/vmlinuz`, deploy_ramdisk: `file://${ipa}` }),
      },
    });
    await call('POST', '/ports', { node_uuid: uuid, address: machine.mac });
    await reach(machine, 'manageable', { target: 'manage' });
    await reach(machine, 'manageable', { target: 'inspect' });
    const { inventory } = (await call('GET', `/nodes/${name}/inventory`)) as {
      readonly inventory: { readonly interfaces: readonly JsonObject[] };
    };
    const carrier = inventory.interfaces.find((candidate) => candidate[`ipv${wanted}_address`] === address);
    expect(carrier).toMatchObject({
      name: expect.stringMatching(bonded ? /^bond.*\.5$/ : /^e/) as string,
      mac_address: machine.mac,
      has_carrier: true,
    });
    // Interfaces in the bond keep the MAC addresses of their ports.
    expect(inventory.interfaces.map((item) => item['mac_address'])).toEqual(expect.arrayContaining(macs));

    await reach(machine, 'available', { target: 'provide' });
    const source = `http://${wanted === 4 ? '10.77.0.1' : `[${HOST[6]}]`}:8080/lab.raw`;
    const sha256 = readFileSync(join(lab.folder, 'server/state/httpboot/lab.raw.sha256'), 'utf8').trim();
    const instance = { image_source: source, image_os_hash_algo: 'sha256', image_os_hash_value: sha256, image_disk_format: 'raw' };
    await call('PATCH', `/nodes/${name}`, [{ op: 'replace', path: '/instance_info', value: instance }]);
    await reach(machine, 'active', { target: 'active' });
    process.stderr.write(`${name}: active ${((Date.now() - began) / 1000).toFixed(0)} s after its enrolment\n`);
    await until(
      PATIENCE,
      () => `the deployed system to start\n${consoleEnd(machine)}`,
      () => readFileSync(machine.consoleFile, 'latin1').includes('image: started'),
    );
    await call('PUT', `/nodes/${name}/states/power`, { target: 'power off' });
  },
  4 * PATIENCE * 1000,
);
