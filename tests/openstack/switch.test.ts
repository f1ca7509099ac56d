/**
 * A server of Nova on a machine that really boots (QEMU), behind a switch that we did not write (Open vSwitch): Neutron moves the machine's
 * switch port from network to network, and its traffic shows that it left the one before. It runs when it is named. Root.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startLibvirt, type Libvirt } from '../lab/support/libvirt';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../demo/lab/machines';
import { needs } from '../lab/support/needs';
import { startOpenVSwitch, type OpenVSwitch } from '../lab/support/open-vswitch';
import { buildRamdisk } from '../lab/support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer } from '../../demo/lab/server';
import { prepareSwitchLogin, SSH_PORT } from '../lab/support/switch-login';
import { freePort } from '../support/free-port';
import { startCloud, VLANS, type Cloud } from './services/cloud';
import { enroll, makeFlavor, noAllocationsLeft, noServersLeft, serverReaches, show, stateOf, waitFor } from './services/compute';
import { startNova, type RealNova } from './services/nova';
import { callerOf } from './services/service';

const run = promisify(execFile);
/** Seconds. A boot takes a minute alone, and longer beside other work. */
const PATIENCE = 1800;
const BRIDGE = 'ovs0';
const PORT = 'tapsw0';
/** The switch as Neutron knows it. */
const LINK = { switch_id: '02:00:00:00:00:aa', switch_info: 'ovs', port_id: PORT };
/** The VLAN of a port outside all networks. */
const IDLE = 10;
const GATEWAY = '10.60.101.1';
const FLAVOR = 'qemu';
const TRAIT = 'CUSTOM_QEMU';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-switch-'));
const tunnels: ChildProcess[] = [];
let lab: Lab;
let ovs: OpenVSwitch;
let cloud: Cloud;
let libvirt: Libvirt | undefined;
let server: RunningServer | undefined;
let nova: RealNova | undefined;
let machine: LabMachine;
let api: ReturnType<typeof callerOf>;
let node: string;
const report = (): string => join(lab.folder, 'report');

const portOf = (url: string): number => Number(new URL(url).port);
const ready = async (child: ChildProcess): Promise<void> => void (await Promise.race([once(child.stdout!, 'data'), once(child, 'exit')]));
/** Connections cross the border of the network namespace by a Unix socket. */
async function tunnel(direction: 'in' | 'out', from: string, to: string): Promise<void> {
  const program = join(__dirname, 'services/tunnel.mjs');
  const socket = join(folder, `${direction}-${from.replace(/.*:/, '')}`);
  const outside = (...words: string[]): ChildProcess => {
    const child = spawn(process.execPath, [program, ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
    tunnels.push(child);
    return child;
  };
  const inside = (...words: string[]): ChildProcess => lab.start(process.execPath, program, ...words);
  const [near, far] = direction === 'in' ? [inside, outside] : [outside, inside];
  await ready(far(socket, to));
  await ready(near(from, socket));
}

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', ip: 'iproute2', dnsmasq: 'dnsmasq-base' });
  needs({ 'ovs-vsctl': 'openvswitch-switch', sshd: 'openssh-server', libvirtd: 'libvirt-daemon-system' });
  await buildRamdisk();
  lab = await openLab('bloomery-nova-switch');
  ovs = await startOpenVSwitch(lab, BRIDGE);
  const login = await prepareSwitchLogin(lab, { switchFolder: join(lab.folder, 'openvswitch') });
  await login.start();
  // The server's bridge has a port in the VLAN of each ramdisk, and none in the tenant's and that of idle machines.
  for (const name of ['cleaning', 'provisioning'] as const) {
    await ovs.host(`host${VLANS[name]}`, VLANS[name], []);
    await lab.exec('ip', 'link', 'set', `host${VLANS[name]}`, 'master', lab.bridge);
  }
  await ovs.host('tenant', VLANS.private, [`${GATEWAY}/24`]);
  const leases = ['-F', '10.60.101.200,10.60.101.250', '--no-ping', '-l', join(lab.folder, 'leases')];
  lab.start('dnsmasq', '-d', '-C', '/dev/null', '-p', '0', '-i', 'tenant', '-z', ...leases);
  lab.start(process.execPath, join(__dirname, '../../demo/lab/report-server.mjs'), GATEWAY, '8099', report());
  await ovs.tap(PORT);
  await ovs.control('add-port', BRIDGE, PORT, `tag=${IDLE}`);

  const sshPort = await freePort();
  await tunnel('out', `127.0.0.1:${sshPort}`, `127.0.0.1:${SSH_PORT}`);
  cloud = await startCloud(folder, {
    [LINK.switch_info]: {
      device_type: 'netmiko_ovs_linux',
      ngs_mac_address: LINK.switch_id,
      ip: '127.0.0.1',
      port: String(sshPort),
      username: 'root',
      key_file: login.key,
      ngs_port_default_vlan: String(IDLE),
    },
  });
  const apiPort = await freePort();
  const url = `http://127.0.0.1:${apiPort}`;
  await cloud.keystone.identity.service('baremetal', url);
  await tunnel('out', `127.0.0.1:${apiPort}`, `${lab.address}:${apiPort}`);
  for (const item of [cloud.keystone.url, cloud.neutron.url, cloud.glance.url])
    await tunnel('in', `127.0.0.1:${portOf(item)}`, `127.0.0.1:${portOf(item)}`);

  libvirt = await startLibvirt({ ...lab, port: 8000 });
  const sections = bootingSections(lab);
  // Without power events, because Nova has no port yet: Nova's periodic work reads the power of nodes.
  const { nova: _, ...services } = cloud.sections;
  server = await startServerProcess(
    join(lab.folder, 'server'),
    {
      ...sections,
      ...services,
      DEFAULT: { ...sections['DEFAULT'], auth_strategy: 'keystone', enabled_network_interfaces: 'neutron,noop' },
      api: { host_ip: lab.address, port: apiPort },
      // The catalog has the URL from outside the namespace.
      service_catalog: { ...services['service_catalog'], endpoint_override: `http://${lab.address}:${apiPort}` },
    },
    lab.namespace,
  );
  const token = await cloud.systemToken();
  api = callerOf(url, () => token, { 'x-openstack-ironic-api-version': 'latest' });
  machine = await lab.machine({ name: 'moved', firmware: 'bios', memoryMiB: 768, cpus: 2, diskGiB: 5 });
  await libvirt.define({ ...machine, taps: [{ mac: machine.mac, name: PORT }], disk: machine.diskFile, console: machine.consoleFile });
  const fields = {
    driver: 'redfish',
    boot_interface: 'ipxe',
    network_interface: 'neutron',
    properties: { capabilities: 'boot_mode:bios' },
    driver_info: { redfish_address: libvirt.redfish, redfish_system_id: `/redfish/v1/Systems/${machine.uuid}` },
    // The life of the server ends with a cleaning; the node needs none before it.
    automated_clean: false,
  };
  node = await enroll(api, fields, [machine.mac], [TRAIT], () => LINK);
  await api('PATCH', `/v1/nodes/${node}`, [{ op: 'replace', path: '/automated_clean', value: null }]);
  nova = await startNova(join(folder, 'nova'), cloud);
  await makeFlavor(nova, FLAVOR, TRAIT);
  await waitFor('Placement has the node', async () => {
    const { resource_providers: providers } = await nova!.placement('GET', `/resource_providers?uuid=${node}`);
    return (providers as unknown[]).length === 1;
  });
}, 3_600_000);
afterAll(async () => {
  await nova?.close();
  await libvirt?.stop();
  await server?.stop();
  await cloud?.close();
  await lab?.close();
  for (const child of tunnels) child.kill();
  rmSync(folder, { recursive: true, force: true });
}, 300_000);

/** The VLANs in which the machine's port had frames of it, as far as the switch remembers: it forgets them when the port changes. */
async function vlansOfFrames(): Promise<readonly number[]> {
  const socket = readdirSync(join(lab.folder, 'openvswitch')).find((name) => /^ovs-vswitchd\.\d+\.ctl$/.test(name))!;
  // The bridge of the server repeats broadcasts in its other VLANs: those come from another port.
  const number = (await ovs.control('get', 'interface', PORT, 'ofport')).trim();
  const table = await lab.exec('ovs-appctl', '-t', join(lab.folder, 'openvswitch', socket), 'fdb/show', BRIDGE);
  return table.split('\n').flatMap((line) => {
    const [port, vlan, mac] = line.trim().split(/\s+/);
    return port === number && mac === machine.mac ? [Number(vlan)] : [];
  });
}
const tag = async (): Promise<number> => Number((await ovs.control('get', 'port', PORT, 'tag')).trim());

/** Watches until the work ends. @returns the VLANs of the port, and those in which the machine's frames were seen, in order */
async function watch(work: Promise<void>): Promise<{ readonly tags: readonly number[]; readonly heard: readonly number[] }> {
  const [tags, heard] = [[await tag()], [] as number[]];
  let isDone = false;
  const settled = work.finally(() => (isDone = true));
  // Prevents an unhandled rejection: `await settled`, below, throws the failure.
  settled.catch(() => {});
  while (!isDone) {
    const now = await tag();
    // While the switch moves the port, the port has no VLAN.
    if (now > 0 && now !== tags.at(-1)) tags.push(now);
    for (const vlan of await vlansOfFrames()) if (vlan !== heard.at(-1)) heard.push(vlan);
    await delay(300);
  }
  await settled;
  return { tags, heard };
}

it(
  "Neutron moves a server's switch port from the provisioning to the tenant network, and through the cleaning network after its deletion",
  async () => {
    const raw = join(lab.folder, 'server.raw');
    const words = [join(__dirname, '../../demo/lab/image.sh'), raw, `http://${GATEWAY}:8099/`, 'lab'];
    await run('bash', words, { timeout: 300_000 });
    const image = await cloud.glance.image({ name: 'lab', disk_format: 'raw', visibility: 'public' }, readFileSync(raw));
    const { server: made } = (await nova!.call('POST', '/servers', {
      server: { name: 'a server', imageRef: image, flavorRef: FLAVOR, networks: [{ uuid: cloud.networks.private }] },
    })) as { server: { id: string } };
    const created = await watch(serverReaches(nova!, made.id, 'ACTIVE'));
    expect(created.tags.filter((vlan) => vlan !== IDLE)).toEqual([VLANS.provisioning, VLANS.private]);
    expect(created.heard[0]).toBe(VLANS.provisioning);
    expect(await show(api, node)).toMatchObject({ provision_state: 'active', instance_uuid: made.id });

    // The deployed system has an address from the tenant's network, and its frames are in no other VLAN.
    await until(
      PATIENCE,
      () => `a report\n${consoleEnd(machine)}\n--- server\n${server!.logEnd()}`,
      () => existsSync(report()),
    );
    expect(readFileSync(report(), 'utf8')).toContain(`macs=${machine.mac}`);
    expect(readFileSync(join(lab.folder, 'leases'), 'utf8')).toContain(machine.mac);
    expect(await vlansOfFrames()).toEqual([VLANS.private]);
    expect(await cloud.neutron.ports()).toMatchObject([
      { mac_address: machine.mac, status: 'ACTIVE', 'binding:host_id': node, 'binding:profile': { local_link_information: [LINK] } },
    ]);

    await nova!.call('DELETE', `/servers/${made.id}`);
    const deleted = await watch(
      (async () => {
        await noServersLeft(nova!);
        await waitFor('the node is available', async () => (await stateOf(api, node)) === 'available', 500);
      })(),
    );
    expect(deleted.tags.filter((vlan) => vlan !== IDLE)).toEqual([VLANS.private, VLANS.cleaning]);
    expect(deleted.heard.at(-1)).toBe(VLANS.cleaning);
    expect(await tag()).toBe(IDLE);
    expect(await cloud.neutron.ports()).toEqual([]);
    await noAllocationsLeft(nova!, node);
  },
  3 * PATIENCE * 1000,
);
