/**
 * Beside DHCP servers that we did not write (ISC's dhcpd, then Kea, without any boot option), ours gives the boot part: to machines in QEMU
 * on the same network, and through ISC's relay. Then ours gives the addresses too, through the same relay. Root.
 */
import { execFile, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ServedBoot } from '../../../model/records';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { addNamespace, removeNamespace } from '../../../demo/lab/namespace';
import { needs } from '../support/needs';
import { bootedFiles, REACHED, startBootServer } from './booted';

const run = promisify(execFile);
/** Seconds; alone it takes 20 to 60. */
const PATIENCE = 900;
const DHCPD = '10.77.0.2';
const RELAY = { near: '10.77.0.3', far: '10.78.0.1', own: '10.79.0.3' } as const;
/** Where no other server is. */
const OWN = '10.79.0.1';
/** The network of the servers, with a machine of each firmware, and one behind the relay. */
let near: Lab;
let far: Lab;
let others: string;
let relay: string;
let dhcrelay: ChildProcess;
let boots: readonly ServedBoot[];
let log = '';
let dhcpd = '';
let kea = '';
let dhcpdProcess: ChildProcess;
const machines = new Map<string, LabMachine>();

/** Connects a namespace to the bridge of a lab. */
async function connect(lab: Lab, namespace: string, device: string, address: string): Promise<void> {
  for (const command of [
    `-n ${lab.namespace} link add ${device} type veth peer name ${device} netns ${namespace}`,
    `-n ${lab.namespace} link set ${device} master ${lab.bridge} up`,
    `-n ${namespace} addr add ${address}/24 dev ${device}`,
    `-n ${namespace} link set ${device} up`,
  ])
    await run('ip', command.split(' '));
}
/** ISC's dhcpd: addresses, and nothing that a machine could boot. */
function startDhcpd(): ChildProcess {
  const configuration = join(near.folder, 'dhcpd.conf');
  writeFileSync(
    configuration,
    `default-lease-time 600; authoritative;
     subnet 10.77.0.0 netmask 255.255.255.0 { range 10.77.0.100 10.77.0.150; option routers ${RELAY.near}; }
     subnet 10.78.0.0 netmask 255.255.255.0 { range 10.78.0.100 10.78.0.150; option routers ${RELAY.far}; }\n`,
  );
  writeFileSync(join(near.folder, 'leases'), '');
  const words = ['-4', '-d', '-cf', configuration, '-lf', join(near.folder, 'leases'), '--no-pid', 'other0'];
  const child = near.start('nsenter', `--net=/run/netns/${others}`, 'dhcpd', ...words);
  child.stderr!.on('data', (data: Buffer) => (dhcpd += data.toString()));
  return child;
}
/** Kea in its place, with other addresses. */
function startKea(): void {
  const subnets = [RELAY.near, RELAY.far].map((router, index) => {
    const prefix = router.replace(/\.\d+$/, '');
    return {
      id: index + 1,
      subnet: `${prefix}.0/24`,
      pools: [{ pool: `${prefix}.60 - ${prefix}.90` }],
      'option-data': [{ name: 'routers', data: router }],
    };
  });
  const Dhcp4 = {
    'interfaces-config': { interfaces: ['other0'], 'dhcp-socket-type': 'raw' },
    'lease-database': { type: 'memfile', persist: false },
    authoritative: true,
    subnet4: subnets,
    loggers: [{ name: 'kea-dhcp4', severity: 'INFO', output_options: [{ output: 'stdout', flush: true }] }],
  };
  const configuration = join(near.folder, 'kea.conf');
  writeFileSync(configuration, JSON.stringify({ Dhcp4 }));
  const folders = ['PIDFILE', 'LOCKFILE'].map((what) => `KEA_${what}_DIR=${near.folder}`);
  const child = near.start('nsenter', `--net=/run/netns/${others}`, 'env', ...folders, 'kea-dhcp4', '-c', configuration);
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (data: Buffer) => (kea += data.toString()));
}

/** ISC's relay, between the network behind it and `upper`. */
const startRelay = (upper: string, ...servers: readonly string[]): ChildProcess =>
  near.start('nsenter', `--net=/run/netns/${relay}`, 'dhcrelay', '-4', '-d', '--no-pid', '-id', 'down0', '-iu', upper, ...servers);

beforeAll(async () => {
  needs({
    ip: 'iproute2',
    dhcpd: 'isc-dhcp-server',
    dhcrelay: 'isc-dhcp-relay',
    'kea-dhcp4': 'kea-dhcp4-server',
    'qemu-system-x86_64': 'qemu-system-x86',
    'qemu-img': 'qemu-utils',
    cpio: 'cpio',
  });
  near = await openLab('bloomery-proxy');
  far = await openLab('bloomery-proxy-far');
  others = await addNamespace('bloomery-proxy-dhcpd');
  relay = await addNamespace('bloomery-proxy-relay');
  await far.exec('ip', 'addr', 'del', `${far.address}/24`, 'dev', far.bridge);
  await connect(near, others, 'other0', DHCPD);
  await connect(near, relay, 'up0', RELAY.near);
  await connect(far, relay, 'down0', RELAY.far);
  await run('ip', ['netns', 'exec', relay, 'busybox', 'sysctl', '-w', 'net.ipv4.ip_forward=1']);
  for (const namespace of [near.namespace, others]) await run('ip', ['-n', namespace, 'route', 'add', '10.78.0.0/24', 'via', RELAY.near]);
  dhcpdProcess = startDhcpd();
  const servers = [near.address, DHCPD];
  dhcrelay = startRelay('up0', ...servers);
  await until(
    60,
    () => `dhcpd: ${dhcpd}`,
    () => dhcpd.includes('Sending on'),
  );
  const hardware = { memoryMiB: 512, cpus: 1, diskGiB: 1 };
  for (const [lab, firmware] of [
    [near, 'bios'],
    [near, 'uefi'],
    [near, 'uefi-http'],
    [far, 'bios'],
    [far, 'uefi'],
  ] as const) {
    const machine = await lab.machine({ name: firmware, firmware, ...hardware });
    machine.setBoot({ device: 'pxe', persistent: true, mode: null });
    machines.set(`${lab === near ? 'near' : 'far'} ${firmware}`, machine);
  }
  const folder = join(near.folder, 'served');
  mkdirSync(folder);
  const files = await bootedFiles(near.folder);
  boots = [...machines.values()].map(({ uuid, macs }): ServedBoot => ({
    node_uuid: uuid,
    token: uuid.replaceAll('-', ''),
    macs,
    method: 'ipxe',
    purpose: 'ramdisk',
    kernel_args: 'console=ttyS0 tsc=unstable',
    files,
  }));
  const subnets = ['10.77.0.0/24 proxy=true', '10.78.0.0/24 proxy=true'];
  await startBootServer(near, { address: near.address, interface: near.bridge, folder, boots, subnets }, (text) => (log += text));
}, 400_000);
afterAll(async () => {
  await far.close();
  await near.close();
  await removeNamespace(others);
  await removeNamespace(relay);
}, 60_000);

it.each([
  ['near', 'bios', /\/ipxe\//],
  ['near', 'uefi', /TFTP: sent[^\n]*snponly\.efi/],
  ['near', 'uefi-http', /HTTP boot: sent[^\n]*snponly\.efi/],
  ['far', 'bios', /\/ipxe\//],
  ['far', 'uefi', /TFTP: sent[^\n]*snponly\.efi/],
] as const)(
  'a %s machine with %s firmware gets its address from dhcpd and boots what ours names',
  async (where, firmware, asked) => {
    const machine = machines.get(`${where} ${firmware}`)!;
    const [before, leased] = [log.length, dhcpd.length];
    await machine.act('on');
    await until(
      PATIENCE,
      () => `the ramdisk\n${log.slice(before)}\n${dhcpd.slice(leased)}\n${consoleEnd(machine)}`,
      () => REACHED.test(consoleEnd(machine)),
    );
    await machine.act('off');
    expect(dhcpd.slice(leased)).toContain(`to ${machine.mac}`);
    expect(log.slice(before)).toMatch(asked);
    // Our answers have no address.
    const answers = [...log.slice(before).matchAll(/"message":"DHCP: answered"[^\n]*"address":"([\d.]+)"/g)].map(([, address]) => address);
    expect([...new Set(answers)]).toEqual(['0.0.0.0']);
  },
  (PATIENCE + 20) * 1000,
);

it(
  'so do machines beside Kea, near and behind the relay',
  async () => {
    const ended = once(dhcpdProcess, 'exit');
    dhcpdProcess.kill();
    await ended;
    startKea();
    await until(
      60,
      () => `Kea: ${kea}`,
      () => kea.includes('DHCP4_STARTED'),
    );
    const before = log.length;
    const used = ['near bios', 'far uefi'].map((name) => machines.get(name)!);
    for (const machine of used) {
      writeFileSync(machine.consoleFile, '');
      await machine.act('on');
    }
    await until(
      PATIENCE,
      () => `the ramdisks\n${log.slice(before)}\n${kea}\n${used.map(consoleEnd).join('\n')}`,
      () => used.every((machine) => REACHED.test(consoleEnd(machine))),
    );
    for (const [index, machine] of used.entries()) {
      await machine.act('off');
      expect(kea).toMatch(new RegExp(`DHCP4_LEASE_ALLOC .*${machine.mac}.* lease 10\\.7${7 + index}\\.0\\.[6-9]\\d `));
    }
    const answers = [...log.slice(before).matchAll(/"message":"DHCP: answered"[^\n]*"address":"([\d.]+)"/g)].map(([, address]) => address);
    expect([...new Set(answers)]).toEqual(['0.0.0.0']);
  },
  (PATIENCE + 80) * 1000,
);

it(
  "a machine behind ISC's relay gets its address from ours too",
  async () => {
    const ended = once(dhcrelay, 'exit');
    dhcrelay.kill();
    await ended;
    for (const command of [
      `-n ${near.namespace} link add own0 type veth peer name up1 netns ${relay}`,
      `-n ${near.namespace} addr add ${OWN}/24 dev own0`,
      `-n ${near.namespace} link set own0 up`,
      `-n ${relay} addr add ${RELAY.own}/24 dev up1`,
      `-n ${relay} link set up1 up`,
      `-n ${near.namespace} route replace 10.78.0.0/24 via ${RELAY.own}`,
    ])
      await run('ip', command.split(' '));
    let said = '';
    const folder = join(near.folder, 'own');
    mkdirSync(folder);
    const subnets = ['10.78.0.0/24 range=10.78.0.160-10.78.0.190 gateway=10.78.0.1'];
    await startBootServer(near, { address: OWN, interface: 'own0', folder, boots, subnets }, (text) => (said += text));
    startRelay('up1', OWN);
    const machine = machines.get('far bios')!;
    const leased = kea.length;
    writeFileSync(machine.consoleFile, '');
    await machine.act('on');
    await until(
      PATIENCE,
      () => `the ramdisk\n${said}\n${consoleEnd(machine)}`,
      () => REACHED.test(consoleEnd(machine)),
    );
    await machine.act('off');
    expect(said).toMatch(/"message":"DHCP: answered"[^\n]*"answer":5,"address":"10\.78\.0\.1[6-9]\d"/);
    expect(kea.slice(leased)).not.toContain(machine.mac);
  },
  (PATIENCE + 60) * 1000,
);
