/**
 * One server, machines of two architectures in QEMU: x86_64 with a BIOS and with UEFI, and aarch64 with UEFI. Each is discovered with the
 * ramdisk of its architecture, deployed, and starts from its disk. Then the node of one of them claims another architecture.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { root } from '../../../demo/lab/root';
import { bootingSections, startServerProcess, type RunningServer, type Sections } from '../../../demo/lab/server';
import { call } from '../inspection/inspect-machine';
import { needs } from '../support/needs';
import { buildRamdisk } from '../support/ramdisk';

const run = promisify(execFile);
/** Seconds. Alone, an aarch64 machine takes one minute from power on to its report, and another one from its disk. */
const PATIENCE = 1500;
const REPORT_PORT = 8099;
const LOADERS = {
  'undionly.kpxe': '/usr/lib/ipxe/undionly.kpxe',
  'snponly.efi': '/usr/lib/ipxe/snponly.efi',
  // Debian 12 has none (support/ipxe-arm64.sh).
  'ipxe-arm64.efi': join(root, '.cache/ipxe-arm64/ipxe-arm64.efi'),
};
const CASES = [
  { name: 'bios', architecture: 'x86_64', firmware: 'bios' },
  { name: 'uefi', architecture: 'x86_64', firmware: 'uefi' },
  { name: 'arm', architecture: 'aarch64', firmware: 'uefi' },
] as const;

/** Name → the environment of demo/lab/image.sh. */
const IMAGES = {
  x86_64: { ARCH: 'x86_64', PARTITION: undefined },
  aarch64: { ARCH: 'aarch64', PARTITION: undefined },
  // A root file system with Debian's package of GRUB.
  'aarch64-root': { ARCH: 'aarch64', PARTITION: 'packaged' },
} as const;

let lab: Lab;
let server: RunningServer;
let images: string;
let bmcPort = 6230;
const machines = new Map<string, LabMachine>();
const undo: (() => Promise<unknown>)[] = [];

const ramdisksOf = (file: string): string =>
  `x86_64:file://${root}/.cache/ramdisk/${file},aarch64:file://${root}/.cache/ramdisk-aarch64/${file}`;
/** There is no ramdisk for all machines. Linux uses those of the consoles that the machine has. */
function sections(): Sections {
  const { conductor = {}, pxe = {}, ...others } = bootingSections(lab);
  const { deploy_kernel: _kernel, deploy_ramdisk: _ramdisk, ...common } = conductor;
  return {
    ...others,
    conductor: {
      ...common,
      deploy_kernel_by_arch: ramdisksOf('vmlinuz'),
      deploy_ramdisk_by_arch: ramdisksOf('initrd'),
      automated_clean: 'False',
    },
    deploy: { fast_track: 'True' },
    pxe: {
      kernel_append_params: `console=ttyAMA0 ${String(pxe['kernel_append_params'])}`,
      ipxe_bootfile_name_by_arch: 'aarch64:ipxe-arm64.efi',
      loader_file_paths: Object.entries(LOADERS)
        .map(([name, path]) => `${name}:${path}`)
        .join(','),
    },
    auto_discovery: { enabled: 'True', driver: 'ipmi' },
    inspector: { add_ports: 'all' },
  };
}

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-system-aarch64': 'qemu-system-arm', ipmi_sim: 'openipmi', curl: 'curl' });
  await buildRamdisk();
  await buildRamdisk({ architecture: 'aarch64' });
  await run('bash', [join(root, 'tests/lab/support/ipxe-arm64.sh')]);
  lab = await openLab('lab-architectures');
  undo.push(() => lab.close());
  images = join(lab.folder, 'server/state/httpboot');
  mkdirSync(images, { recursive: true });
  for (const [name, { ARCH, PARTITION }] of Object.entries(IMAGES)) {
    const words = [join(root, 'demo/lab/image.sh'), join(images, `${name}.raw`), `http://${lab.address}:${REPORT_PORT}/`, name];
    await run('bash', words, { env: { ...process.env, ARCH, PARTITION } });
  }
  lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), join(lab.folder, 'report'));
  server = await startServerProcess(join(lab.folder, 'server'), sections(), lab.namespace);
  undo.push(() => server.stop());
  for (const { name, architecture, firmware } of CASES)
    machines.set(name, await lab.machine({ name, architecture, firmware, memoryMiB: 1024, cpus: 1, diskGiB: 5 }));
}, 3_000_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
}, 120_000);

const waitFor = (what: string, machine: LabMachine, condition: () => boolean | Promise<boolean>): Promise<void> =>
  until(PATIENCE, () => `${what}\n--- ${machine.name}\n${consoleEnd(machine)}\n--- server\n${server.logEnd()}`, condition);
/** The node of the machine with this address; undefined: there is none yet. */
async function nodeOf(machine: LabMachine): Promise<JsonObject | undefined> {
  const { ports } = (await call(lab, 'GET', `/ports?address=${machine.mac}&detail=true`)) as { readonly ports: readonly JsonObject[] };
  return ports[0] && call(lab, 'GET', `/nodes/${String(ports[0]['node_uuid'])}`);
}
async function reach(machine: LabMachine, state: string): Promise<void> {
  await waitFor(`${machine.name} to be ${state}`, machine, async () => {
    const node = await nodeOf(machine);
    const now = String(node?.['provision_state']);
    if (now.endsWith('failed')) throw new Error(`${now}: ${String(node!['last_error'])}\n${consoleEnd(machine)}\n${server.logEnd()}`);
    if (now === state && node?.['reservation'] === null) return true;
    // Each query starts a process.
    await delay(900);
    return false;
  });
}
const patch = (uuid: string, values: JsonObject): Promise<JsonObject> =>
  call(
    lab,
    'PATCH',
    `/nodes/${uuid}`,
    Object.entries(values).map(([path, value]) => ({ op: 'add', path, value })),
  );
const order = (uuid: string, target: string): Promise<JsonObject> => call(lab, 'PUT', `/nodes/${uuid}/states/provision`, { target });
const instanceOf = (image: keyof typeof IMAGES): JsonObject => ({
  image_source: `http://${lab.address}:8080/${image}.raw`,
  image_checksum: readFileSync(join(images, `${image}.raw.sha256`), 'utf8').trim(),
  image_disk_format: 'raw',
});
const reportFile = (): string => join(lab.folder, 'report');
/** Waits for the report of the deployed system. Power off is the server's: it would switch on a machine that went off by itself. */
async function reported(machine: LabMachine, image: keyof typeof IMAGES): Promise<void> {
  const firmware = machine.firmware.replace(/-.*/, '');
  const wanted = new RegExp(`^image=${image}\\nmacs=${machine.mac} ?\\nfirmware=${firmware}\\n`);
  await waitFor('its system to report', machine, () => existsSync(reportFile()) && wanted.test(readFileSync(reportFile(), 'utf8')));
  process.stderr.write(`${machine.name}: deployed, ${machine.cpuSeconds().toFixed(1)} s of CPU from its disk\n`);
  const { uuid } = (await nodeOf(machine))!;
  await call(lab, 'PUT', `/nodes/${String(uuid)}/states/power`, { target: 'power off' });
  await waitFor('it to be off', machine, async () => (await nodeOf(machine))?.['power_state'] === 'power off');
}

it(
  'each unknown machine boots the ramdisk of its architecture, and is enrolled with it',
  async () => {
    await Promise.all(
      CASES.map(async ({ name, architecture }) => {
        const machine = machines.get(name)!;
        machine.setBoot({ device: 'pxe', persistent: true, mode: null });
        const started = Date.now();
        await machine.act('on');
        await reach(machine, 'enroll');
        process.stderr.write(
          `${name}: discovered ${((Date.now() - started) / 1000).toFixed(1)} s after power on, ${machine.cpuSeconds().toFixed(1)} s of CPU\n`,
        );
        expect(await nodeOf(machine)).toMatchObject({ last_error: null, properties: { cpu_arch: architecture } });
      }),
    );
  },
  (PATIENCE + 60) * 1000,
);

it.each(CASES)(
  'the $architecture machine with $firmware is deployed by its agent, and its system starts from the disk',
  async ({ name, architecture, firmware }) => {
    const machine = machines.get(name)!;
    const bmc = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port: bmcPort++, folder: lab.folder });
    undo.push(() => bmc.stop());
    const uuid = String((await nodeOf(machine))!['uuid']);
    rmSync(reportFile(), { force: true });
    await patch(uuid, {
      '/driver_info': { ipmi_address: bmc.address, ipmi_port: bmc.port, ipmi_username: bmc.username, ipmi_password: bmc.password },
      '/instance_info': instanceOf(architecture),
      '/properties/capabilities': `boot_mode:${firmware}`,
    });
    for (const [target, state] of [
      ['manage', 'manageable'],
      ['provide', 'available'],
      ['active', 'active'],
    ] as const) {
      await order(uuid, target);
      await reach(machine, state);
    }
    await reported(machine, architecture);
  },
  (4 * PATIENCE + 60) * 1000,
);

it(
  'the aarch64 machine is rebuilt with a root file system, which its GRUB starts',
  async () => {
    const machine = machines.get('arm')!;
    const uuid = String((await nodeOf(machine))!['uuid']);
    rmSync(reportFile(), { force: true });
    await patch(uuid, { '/instance_info': { ...instanceOf('aarch64-root'), image_type: 'partition', root_gb: 1 } });
    await order(uuid, 'rebuild');
    await reach(machine, 'active');
    await reported(machine, 'aarch64-root');
  },
  (4 * PATIENCE + 60) * 1000,
);

it(
  'a machine of another architecture than its node boots nothing: its console and the log say why',
  async () => {
    const machine = machines.get('bios')!;
    const uuid = String((await nodeOf(machine))!['uuid']);
    await order(uuid, 'deleted');
    await reach(machine, 'available');
    await order(uuid, 'manage');
    await reach(machine, 'manageable');
    await patch(uuid, { '/properties/cpu_arch': 'aarch64' });
    await order(uuid, 'inspect');
    // A line of the console has 80 characters.
    const said = `the node ${uuid} has cpu_arch aarch64`;
    await waitFor('the console to say it', machine, () => readFileSync(machine.consoleFile, 'latin1').includes(`Bloomery: ${said}`));
    expect(readFileSync(server.log, 'utf8')).toContain(`${said}, but this machine is x86_64`);
  },
  (4 * PATIENCE + 60) * 1000,
);
