/**
 * The network interface ironic-networking with a switch that we did not write: Open vSwitch, driven by networking-generic-switch. A machine
 * in QEMU has another VLAN for its inspection, cleaning, deployment and instance; each VLAN has its own network.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { startLibvirt, type Libvirt } from '../support/libvirt';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { startOpenVSwitch, type OpenVSwitch } from '../support/open-vswitch';
import { buildRamdisk } from '../support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { prepareSwitchLogin, SSH_PORT, type SwitchLogin } from '../support/switch-login';
import { programs } from '../support/venv';

const run = promisify(execFile);
/** Seconds. A boot takes a minute alone, and longer beside other work. */
const PATIENCE = 1200;
const BRIDGE = 'ovs0';
const PORT = 'tapsw0';
const SWITCH = '02:00:00:00:00:aa';
const VLANS = { idle: 10, inspection: 11, cleaning: 12, provisioning: 13, tenant: 14 } as const;
const TENANT = '10.79.0.1';
const API = 'http://10.77.0.1:6385';

let lab: Lab;
let ovs: OpenVSwitch;
let login: SwitchLogin;
let libvirt: Libvirt | undefined;
let server: RunningServer | undefined;
const report = (): string => join(lab.folder, 'report');

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', ip: 'iproute2', curl: 'curl', dnsmasq: 'dnsmasq-base' });
  needs({ 'ovs-vsctl': 'openvswitch-switch', sshd: 'openssh-server', libvirtd: 'libvirt-daemon-system' });
  await buildRamdisk();
  const python = join(await programs('switches', ['networking-generic-switch==10.2.0']), 'python');
  lab = await openLab('bloomery-switch');
  ovs = await startOpenVSwitch(lab, BRIDGE);
  login = await prepareSwitchLogin(lab, { switchFolder: join(lab.folder, 'openvswitch') });
  // The server's bridge has a port in the VLAN of each ramdisk, and none in those of instances and idle machines.
  for (const name of ['inspection', 'cleaning', 'provisioning'] as const) {
    await ovs.host(`host${VLANS[name]}`, VLANS[name], []);
    await lab.exec('ip', 'link', 'set', `host${VLANS[name]}`, 'master', lab.bridge);
  }
  await ovs.host('tenant', VLANS.tenant, [`${TENANT}/24`]);
  lab.start(
    'dnsmasq',
    '-d',
    '-C',
    '/dev/null',
    '-p',
    '0',
    '-i',
    'tenant',
    '-z',
    '-F',
    '10.79.0.10,10.79.0.20',
    '--no-ping',
    '-l',
    join(lab.folder, 'leases'),
  );
  lab.start(process.execPath, join(__dirname, '../../../demo/lab/report-server.mjs'), TENANT, '8099', report());
  await ovs.tap(PORT);
  await ovs.control('add-port', BRIDGE, PORT, `tag=${VLANS.idle}`);

  const images = join(lab.folder, 'server/state/httpboot');
  mkdirSync(images, { recursive: true });
  await run('bash', [join(__dirname, '../../../demo/lab/image.sh'), join(images, 'lab.raw'), `http://${TENANT}:8099/`, 'lab'], {
    timeout: 300_000,
  });
  libvirt = await startLibvirt({ ...lab, port: 8000 });
  const file = join(lab.folder, 'switches.conf');
  const lines = [
    '[switch:lab]',
    'driver_type = generic-switch',
    'device_type = netmiko_ovs_linux',
    'address = 127.0.0.1',
    `port = ${SSH_PORT}`,
    'username = root',
    `key_file = ${login.key}`,
    `mac_address = ${SWITCH}`,
    'ngs_ssh_connect_timeout = 5',
    'allowed_vlans = 10-14',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const sections = bootingSections(lab);
  server = await startServerProcess(
    join(lab.folder, 'server'),
    {
      ...sections,
      DEFAULT: { ...sections['DEFAULT'], enabled_network_interfaces: 'ironic-networking,noop' },
      ironic_networking: {
        enabled_switch_drivers: 'generic-switch',
        generic_switch_python: python,
        switch_config_file: file,
        ...Object.fromEntries(
          (['idle', 'inspection', 'cleaning', 'provisioning'] as const).map((name) => [
            `${name}_network`,
            `access/native_vlan=${VLANS[name]}`,
          ]),
        ),
      },
    },
    lab.namespace,
  );
}, 2_400_000);
afterAll(async () => {
  await libvirt?.stop();
  await server?.stop();
  await lab?.close();
});

async function call(method: string, path: string, body?: unknown): Promise<JsonObject> {
  const headers = ['-H', 'X-OpenStack-Ironic-API-Version: 1.109', '-H', 'content-type: application/json'];
  const data = body === undefined ? [] : ['--data', JSON.stringify(body)];
  const answer = await lab.exec('curl', '-sS', '-w', '\n%{http_code}', '-X', method, ...headers, ...data, `${API}/v1${path}`);
  const end = answer.lastIndexOf('\n');
  if (Number(answer.slice(end + 1)) >= 400) throw new Error(`${method} ${path}: ${answer}`);
  return (end === 0 ? {} : JSON.parse(answer.slice(0, end))) as JsonObject;
}
const vlan = async (): Promise<number> => Number((await ovs.control('get', 'port', PORT, 'tag')).trim());

/** Sends a verb, and waits for the state. @returns the node, and the VLANs that its port had meanwhile, in order */
async function reach(machine: LabMachine, state: string, request: JsonObject): Promise<{ node: JsonObject; vlans: readonly number[] }> {
  const path = `/nodes/${machine.name}`;
  const vlans = [await vlan()];
  await call('PUT', `${path}/states/provision`, request);
  let node: JsonObject = {};
  const describe = (): string =>
    `${machine.name} to be ${state}: ${JSON.stringify(node)}\n--- console\n${consoleEnd(machine)}\n--- server\n${readFileSync(server!.log, 'utf8').slice(-3000)}`;
  await until(PATIENCE, describe, async () => {
    node = await call('GET', path);
    // While the switch moves the port, the port has no VLAN.
    const now = await vlan();
    if (now > 0 && now !== vlans.at(-1)) vlans.push(now);
    const reached = String(node['provision_state']);
    if (reached === state && (node['target_provision_state'] === null || state.endsWith('failed'))) return true;
    if (reached !== state && /failed$|^error$/.test(reached)) throw new Error(describe());
    await delay(300);
    return false;
  });
  return { node, vlans };
}

it(
  "a machine's switch port changes its VLAN with the node's state, and inspection fails while the switch is unreachable",
  async () => {
    const machine = await lab.machine({ name: 'moved', firmware: 'bios', memoryMiB: 768, cpus: 2, diskGiB: 5 });
    await libvirt!.define({ ...machine, taps: [{ mac: machine.mac, name: PORT }], disk: machine.diskFile, console: machine.consoleFile });
    const { uuid } = await call('POST', '/nodes', {
      name: machine.name,
      driver: 'redfish',
      boot_interface: 'ipxe',
      network_interface: 'ironic-networking',
      properties: { capabilities: 'boot_mode:bios' },
      driver_info: { redfish_address: libvirt!.redfish, redfish_system_id: `/redfish/v1/Systems/${machine.uuid}` },
    });
    await call('POST', '/ports', {
      node_uuid: uuid,
      address: machine.mac,
      local_link_connection: { switch_id: SWITCH.toUpperCase(), port_id: PORT, switch_info: 'lab' },
    });
    await reach(machine, 'manageable', { target: 'manage' });

    // Nothing listens at the switch's address.
    const { node } = await reach(machine, 'inspect failed', { target: 'inspect' });
    expect(node['last_error']).toMatch(
      /Failed to configure inspection network for port .*: Failed to configure network port: Failed to connect/,
    );
    await login.start();

    expect((await reach(machine, 'manageable', { target: 'inspect' })).vlans).toEqual([VLANS.idle, VLANS.inspection, VLANS.idle]);
    expect((await reach(machine, 'available', { target: 'provide' })).vlans).toEqual([VLANS.idle, VLANS.cleaning, VLANS.idle]);
    const [port] = (await call('GET', `/ports?node=${String(uuid)}`))['ports'] as readonly JsonObject[];
    const switchport = { mode: 'access', native_vlan: VLANS.tenant };
    await call('PATCH', `/ports/${String(port!['uuid'])}`, [{ op: 'add', path: '/extra', value: { switchport } }]);
    const sha256 = readFileSync(join(lab.folder, 'server/state/httpboot/lab.raw.sha256'), 'utf8').trim();
    const instance = {
      image_source: 'http://10.77.0.1:8080/lab.raw',
      image_os_hash_algo: 'sha256',
      image_os_hash_value: sha256,
      image_disk_format: 'raw',
    };
    await call('PATCH', `/nodes/${machine.name}`, [{ op: 'replace', path: '/instance_info', value: instance }]);
    const deployed = await reach(machine, 'active', { target: 'active' });
    expect(deployed.vlans.filter((candidate) => candidate !== VLANS.idle)).toEqual([VLANS.provisioning, VLANS.tenant]);
    // The deployed system has an address from the tenant's network only.
    await until(
      PATIENCE,
      () => `a report\n${consoleEnd(machine)}`,
      () => existsSync(report()),
    );
    expect(readFileSync(report(), 'utf8')).toContain(`macs=${machine.mac}`);
    expect(readFileSync(join(lab.folder, 'leases'), 'utf8')).toContain(machine.mac);

    expect((await reach(machine, 'available', { target: 'deleted' })).vlans).toEqual([
      VLANS.tenant,
      VLANS.idle,
      VLANS.cleaning,
      VLANS.idle,
    ]);
    process.stderr.write(`switches: ${login.logins()} login(s)\n`);
    expect(login.logins()).toBe(1);
  },
  6 * PATIENCE * 1000,
);
