/**
 * A deployment by our server and agent beside one by the real Ironic and ironic-python-agent, on equal machines of QEMU: what takes the time.
 * Prints a table of the seconds between what is seen from outside: requests, power, the serial console, the report of the deployed system.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, createReadStream, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { buildIpaRamdisk } from '../../lab/support/ipa-ramdisk';
import { buildRamdisk } from '../../lab/support/ramdisk';
import { root } from '../../lab/support/venv';
import { enrol, startServer, type Server } from '../deploying';

const run = promisify(execFile);
const REPORT_PORT = 8099;
/** Seconds. */
const PATIENCE = 1500;
const ROUNDS = Number(process.env['SPEED_ROUNDS'] ?? 1);
/** Of the image, behind what boots. */
const NOISE_MIB = Number(process.env['SPEED_MIB'] ?? 128);
const KERNEL_FILE = `${root}/.cache/ramdisk/vmlinuz`;

/** What is seen, in this order, and who needs the time before it. */
const MARKS = [
  ['power on', 'server'],
  ['the kernel of the ramdisk starts', 'firmware, network boot'],
  ['the agent starts', 'kernel, disks, network'],
  ['lookup', 'agent'],
  ['first command', 'server and agent'],
  ['image is being written', 'server and agent'],
  ['image is written', 'disk, network'],
  ['the agent leaves', 'server and agent'],
  // Both agents write the disk's cache first.
  ['power off', 'disk, shutdown'],
  ['power on again', 'server'],
  ['the deployed system starts', 'firmware'],
  ['the deployed system reports', 'deployed system'],
] as const;
type Mark = (typeof MARKS)[number][0];
type Marks = Partial<Record<Mark, number>>;
/** Marks of the serial console, of both agents. */
const CONSOLE: readonly (readonly [Mark, RegExp])[] = [
  ['the kernel of the ramdisk starts', /Linux version/],
  ['the agent starts', /Agent started|ramdisk: the agent starts/],
  ['lookup', /Lookup succeeded/],
  ['first command', /Executing command/],
  ['image is being written', /Executing command deploy\.execute_deploy_step|Attempting to download image/],
  ['image is written', /Image \S+ (?:successfully )?(?:streamed onto|written to) device/i],
  ['the agent leaves', /Executing command:? standby\.(?:sync|power_off|run_image)/],
];

let lab: Lab;
const undo: (() => Promise<unknown>)[] = [];
const image = (): string => join(lab.folder, 'images/lab.raw');
const reportFile = (): string => join(lab.folder, 'report');
let checksum: string;

async function open(name: string): Promise<void> {
  lab = await openLab(name);
  undo.push(() => lab.close());
  mkdirSync(join(lab.folder, 'images'));
  await run('bash', [join(root, 'demo/lab/image.sh'), image(), `http://10.77.0.1:${REPORT_PORT}/`, 'lab']);
  for (let written = 0, noise = Buffer.alloc(2 ** 20); written < NOISE_MIB; written++) {
    noise = Buffer.concat(Array.from({ length: 2 ** 15 }, (_, index) => createHash('sha256').update(`${written} ${index}`).digest()));
    appendFileSync(image(), noise);
  }
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(image())) hash.update(chunk as Buffer);
  checksum = hash.digest('hex');
  lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), reportFile());
  lab.start('python3', '-m', 'http.server', '--bind', lab.address, '--directory', join(lab.folder, 'images'), '8088');
}
async function close(): Promise<void> {
  for (const step of undo.splice(0).reverse()) await step();
}
afterEach(close, 120_000);

const RAMDISKS: Readonly<Record<Server, () => Promise<string>>> = {
  ours: async () => join(root, '.cache/ramdisk/initrd'),
  real: buildIpaRamdisk,
};

/** Enrols a machine, deploys it, and notes when what was seen. */
async function deploy(name: string, port: number): Promise<Marks> {
  const instance = {
    image_source: 'http://10.77.0.1:8088/lab.raw',
    image_os_hash_algo: 'sha256',
    image_os_hash_value: checksum,
    image_disk_format: 'raw',
  };
  const node = await enrol(lab, { name, firmware: 'bios', instance, port, patience: PATIENCE });
  undo.push(() => node.stop());
  rmSync(reportFile(), { force: true });
  const begun = Date.now();
  const marks: Marks = {};
  const note = (what: Mark): unknown => (marks[what] ??= (Date.now() - begun) / 1000);
  await node.order('active');
  let looked = 0;
  await until(PATIENCE, node.describe, async () => {
    look(node.machine, marks, note);
    if (existsSync(reportFile()) && statSync(reportFile()).size > 0) note('the deployed system reports');
    // Fails with the state's reason.
    if (Date.now() - looked > 10_000) {
      await node.isNow('active');
      looked = Date.now();
    }
    return marks['the deployed system reports'] !== undefined;
  });
  await node.reach('active');
  return marks;
}
function look(machine: LabMachine, marks: Marks, note: (what: Mark) => unknown): void {
  const isOn = machine.isOn();
  if (isOn) note('power on');
  if (!isOn && marks['first command'] !== undefined) note('power off');
  if (isOn && marks['power off'] !== undefined) note('power on again');
  const said = existsSync(machine.consoleFile) ? readFileSync(machine.consoleFile, 'latin1') : '';
  if (marks['power on again'] !== undefined) {
    if (said.includes('image: started')) note('the deployed system starts');
  } else for (const [mark, pattern] of CONSOLE) if (pattern.test(said)) note(mark);
}

const median = (numbers: readonly number[]): number => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]!;
const NAMES: readonly Mark[] = MARKS.map(([name]) => name);
/** Seconds before each mark, since the one before it that was seen. */
function spans(marks: Marks): Readonly<Record<string, number>> {
  let last = 0;
  return Object.fromEntries(
    NAMES.filter((name) => marks[name] !== undefined).map((name) => {
      const span = marks[name]! - last;
      last = marks[name]!;
      return [name, span];
    }),
  );
}

it(
  'both servers deploy the machine, and what is left for ours is little',
  async () => {
    await buildRamdisk();
    const seen: Record<Server, Readonly<Record<string, number>>[]> = { ours: [], real: [] };
    for (let round = 0; round < ROUNDS; round++) {
      for (const which of ['ours', 'real'] as const) {
        await open(`speed-${which}`);
        const server = await startServer(lab, which, { kernel: KERNEL_FILE, initrd: await RAMDISKS[which]() });
        undo.push(() => server.stop());
        const marks = await deploy(`${which}-${round}`, 6240);
        process.stderr.write(`${which}: ${JSON.stringify(marks)}\n`);
        seen[which].push(spans(marks));
        await close();
      }
    }
    const of = (which: Server, name: string): number => median(seen[which].map((row) => row[name] ?? 0));
    const total = (which: Server): number => NAMES.reduce((sum, name) => sum + of(which, name), 0);
    const rows = MARKS.map(([name, by]) => `| ${name} | ${by} | ${of('ours', name).toFixed(1)} | ${of('real', name).toFixed(1)} |`);
    const left = (which: Server): number =>
      MARKS.filter(([, by]) => by.includes('server')).reduce((sum, [name]) => sum + of(which, name), 0);
    process.stderr.write(
      [
        '| until | needed by | ours, s | real, s |',
        ...rows,
        `| total | | ${total('ours').toFixed(1)} | ${total('real').toFixed(1)} |`,
        `| server, and server and agent | | ${left('ours').toFixed(1)} | ${left('real').toFixed(1)} |`,
        '',
      ].join('\n'),
    );
    expect(left('ours')).toBeLessThan(left('real'));
  },
  2 * ROUNDS * 4 * PATIENCE * 1000,
);
