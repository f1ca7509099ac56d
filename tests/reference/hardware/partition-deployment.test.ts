/**
 * A partition image by the real ironic-python-agent, under our server and under the real Ironic, in equal labs: both send it the same commands,
 * the disk gets the same partitions, and the system starts from them.
 */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { consoleEnd, openLab, until, type Lab } from '../../../demo/lab/machines';
import type { JsonObject } from '../../../model/records';
import { buildIpaRamdisk } from '../../lab/support/ipa-ramdisk';
import { buildRamdisk } from '../../lab/support/ramdisk';
import { programs, root } from '../../lab/support/venv';
import { enrol, startServer, type Enrolled, type Server } from '../deploying';
import { inPython } from '../random-cases';

/** Seconds. */
const PATIENCE = 1800;
const REPORT_PORT = 8099;
/** Firmware → the image, and its partitions: MiB, and the type. The second image is no raw one: the agent downloads and converts it. */
const FIRMWARE = {
  bios: {
    file: 'debian.raw',
    partitions: [
      [1, 1024, '83'],
      [1025, 32, '82'],
      [1057, 1, '83'],
      [1058, 1024, '83'],
    ],
  },
  uefi: {
    file: 'debian.qcow2',
    partitions: [
      [1, 550, 'C12A7328-F81F-11D2-BA4B-00A0C93EC93B'],
      [551, 1024, '0FC63DAF-8483-4772-8E79-3D69D8477DE4'],
      [1575, 32, '0657FD6D-A4AB-43C4-84E5-0933C84B4F4F'],
      [1607, 1, '0FC63DAF-8483-4772-8E79-3D69D8477DE4'],
      [1608, 1024, '0FC63DAF-8483-4772-8E79-3D69D8477DE4'],
    ],
  },
} as const;
type Firmware = keyof typeof FIRMWARE;
const SIZES = { root_gb: 1, ephemeral_gb: 1, swap_mb: 32 };

let initrd: string;
const undo: (() => Promise<unknown>)[] = [];
const close = async (): Promise<void> => {
  for (const step of undo.splice(0).reverse()) await step();
};
beforeAll(async () => {
  await buildRamdisk();
  initrd = await buildIpaRamdisk();
}, 1_800_000);
afterEach(close, 120_000);

const reportFile = (lab: Lab): string => join(lab.folder, 'report');
/**
 * A lab with a server, the image, and an available node.
 * @param installs whether the agent may install a boot loader by the image's programs
 */
async function prepare(which: Server, firmware: Firmware, installs: boolean): Promise<[Lab, Enrolled]> {
  const lab = await openLab(`partition-${which}`);
  undo.push(() => lab.close());
  const images = join(lab.folder, 'images');
  mkdirSync(images);
  const { file } = FIRMWARE[firmware];
  const words = [join(__dirname, 'debian-root.sh'), join(images, file), `http://${lab.address}:${REPORT_PORT}/`, 'debian'];
  await promisify(execFile)('bash', words);
  lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), reportFile(lab));
  lab.start('python3', '-m', 'http.server', '--bind', lab.address, '--directory', images, '8088');
  const agent = { enable_bios_bootloader_install: String(installs) };
  const server = await startServer(lab, which, { kernel: `${root}/.cache/ramdisk/vmlinuz`, initrd }, agent);
  undo.push(() => server.stop());
  const instance = {
    image_source: `http://${lab.address}:8088/${file}`,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: readFileSync(join(images, `${file}.sha256`), 'utf8').trim(),
    image_disk_format: file.replace(/.*\./, ''),
    image_type: 'partition',
    ...SIZES,
  };
  const node = await enrol(lab, { name: 'machine', firmware, instance, port: 6240, patience: PATIENCE });
  undo.push(() => node.stop());
  return [lab, node];
}

type Commands = readonly (readonly [name: string, params: JsonObject])[];
/** The log of the agent, which its ramdisk serves (ipa-ramdisk.sh); empty: it does not run now. */
async function logOf(lab: Lab, { driver_internal_info: info }: JsonObject): Promise<string> {
  const { agent_url: url } = info as { readonly agent_url?: string };
  if (url === undefined) return '';
  const log = `http://${new URL(url).hostname}:8099/ironic-python-agent.log`;
  return lab.exec('curl', '-fsS', '--max-time', '60', log).catch(() => '');
}
/** What the agent was told that concerns the image. */
async function commandsIn(text: string): Promise<Commands> {
  const agent = await programs('agent-functions', ['ironic-python-agent==13.0.0']);
  const [all] = await inPython<Commands>(agent, join(__dirname, 'agent-commands.py'), [text], 60_000);
  return all!.flatMap(([name, params]) => {
    if (['standby.get_partition_uuids', 'image.install_bootloader'].includes(name)) return [[name, params] as const];
    const step = params['step'] as JsonObject | undefined;
    // The priority of the step, which this server sends too, means nothing to the agent.
    return step?.['step'] === 'write_image' ? [[name, { ...step, priority: null }] as const] : [];
  });
}
const isUuid = /^(?:[\da-f]{4}-[\da-f]{4}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/i;
/** What differs in each lab: the image is built anew, with other times in it. */
const OF_THE_LAB = ['configdrive', 'os_hash_value'];
const told = (commands: Commands): unknown =>
  JSON.parse(
    JSON.stringify(commands, (key, value: unknown) =>
      typeof value === 'string' && (isUuid.test(value) || OF_THE_LAB.includes(key)) ? '…' : value,
    ),
  );

/** Of sfdisk: start and size in MiB, type. */
function partitionsOn(disk: string): readonly (readonly [number, number, string])[] {
  const { partitiontable: table } = JSON.parse(execFileSync('sfdisk', ['--json', disk], { encoding: 'utf8' })) as {
    partitiontable: { partitions: readonly { start: number; size: number; type: string }[] };
  };
  return table.partitions.map(({ start, size, type }) => [start / 2048, size / 2048, type]);
}

async function deploy(which: Server, firmware: Firmware): Promise<Commands> {
  const [lab, node] = await prepare(which, firmware, true);
  const { machine } = node;
  await node.order('active', { configdrive: { meta_data: { name: 'machine' } } });
  let log = '';
  await until(PATIENCE, node.describe, async () => {
    const now = await logOf(lab, await node.show());
    if (now.length > log.length) log = now;
    return node.isNow('active');
  });
  const commands = await commandsIn(log);
  process.stderr.write(`${which}, ${firmware}: ${JSON.stringify(commands)}\n`);
  await until(
    PATIENCE,
    () => `a report\n${consoleEnd(machine)}`,
    () => existsSync(reportFile(lab)),
  );
  const report = readFileSync(reportFile(lab), 'utf8');
  const { partitions } = FIRMWARE[firmware];
  expect(report).toContain('image=debian\n');
  expect(report).toContain(`firmware=${firmware}\n`);
  expect(report).toContain(`root=/dev/vda${partitions.length}\n`);
  expect(report).toContain(`configdrive=/dev/vda${partitions.length - 1}\n`);
  await machine.act('off');
  const disk = join(lab.folder, 'disk.raw');
  execFileSync('qemu-img', ['convert', '-O', 'raw', machine.diskFile, disk]);
  expect(partitionsOn(disk)).toEqual(partitions);
  return commands;
}

/** What the agent was told in each deployment. */
const deployed = new Map<string, Commands>();
const firmwares = Object.keys(FIRMWARE) as Firmware[];
it.each(firmwares.flatMap((firmware) => (['ours', 'real'] as const).map((which) => [firmware, which] as const)))(
  '%s: the agent deploys a partition image, and its system starts: the server is %s',
  async (firmware, which) => {
    deployed.set(`${firmware} ${which}`, await deploy(which, firmware));
  },
  4 * PATIENCE * 1000,
);

it.each(firmwares)('%s: both servers send the agent the same commands', (firmware) => {
  const [ours, theirs] = (['ours', 'real'] as const).map((which) => deployed.get(`${firmware} ${which}`)!);
  expect(theirs!.map(([name]) => name)).toEqual(['deploy.execute_deploy_step', 'standby.get_partition_uuids', 'image.install_bootloader']);
  expect(told(ours!)).toEqual(told(theirs!));
});

it.each(['real', 'ours'] as const)(
  'without [agent]enable_bios_bootloader_install, the deployment fails: the server is %s',
  async (which) => {
    const [, node] = await prepare(which, 'bios', false);
    await node.order('active');
    await expect(node.reach('active')).rejects.toThrow(
      /Failed to install a bootloader when deploying node \S+: .*Install of legacy BIOS bootloaders disabled by CONF\.enable_bios_bootloader_install/,
    );
  },
  4 * PATIENCE * 1000,
);
