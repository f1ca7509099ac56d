/**
 * The life of a node on machines that boot in QEMU, behind the Redfish services of makers: `bloomery simulate --qemu N --personality …`, in
 * its own process. Enrol, inspect, clean and deploy in one boot of the ramdisk, boot the image, undeploy.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Inventory, JsonObject } from '../../../model/records';
import { consoleEnd, openLab, until, type Lab } from '../../../demo/lab/machines';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import type { PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { ownCertificate } from '../../../wire/http/certificate';
import { bootOf } from '../../support/pages/maker-lives';
import { call } from '../inspection/inspect-machine';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';

const HOST = '10.77.0.1';
const REPORT_PORT = 8099;
/** The agent takes no smaller disk than 4 GiB. */
const DISK_GIB = 5;
/** Seconds for a step of a life. A boot takes a minute alone, and longer beside other work. */
const PATIENCE = 900;
/** Machines that live at once. */
const TOGETHER = 2;

interface Machine {
  readonly name: string;
  readonly macs: readonly string[];
  readonly redfish: { readonly address: string; readonly systemId: string; readonly username: string; readonly password: string };
}
let lab: Lab;
let server: RunningServer;
let machines: readonly Machine[];
let sha256: string;
let said = '';
const undo: (() => Promise<unknown>)[] = [];

/** The fleet's lines of JSON on one of its outputs. */
const linesOf = (text: string): readonly JsonObject[] =>
  text.split('\n').flatMap((line) => (/^\{.*\}$/.test(line) ? [JSON.parse(line) as JsonObject] : []));

/** The machines, one for each personality, in a process of their own. */
async function startMachines(personalities: readonly PersonalityName[]): Promise<readonly Machine[]> {
  const count = String(personalities.length);
  const hardware = ['--qemu', count, '--qemu-bridge', lab.bridge, '--qemu-firmware', 'bios', '--qemu-memory', '768'];
  const places = [
    '--bmcs',
    'redfish',
    '--host',
    HOST,
    '--redfish',
    `${HOST}:20000`,
    '--control',
    'no',
    '--state',
    join(lab.folder, 'fleet'),
  ];
  const words = ['simulate', ...hardware, '--qemu-disk', String(DISK_GIB), ...places, '--personality', personalities.join(','), '--json'];
  const fleet = lab.start(process.execPath, join(root, 'bin/bloomery'), ...words);
  let printed = '';
  fleet.stdout!.on('data', (data: Buffer) => (printed += data.toString()));
  fleet.stderr!.on('data', (data: Buffer) => (said += data.toString()));
  await until(
    240,
    () => `the machines to be ready: ${said}`,
    () => {
      if (fleet.exitCode !== null) throw new Error(`bloomery simulate ended: ${said}`);
      return said.includes('machines ready');
    },
  );
  return linesOf(printed).filter((line) => line['redfish'] !== undefined) as unknown as readonly Machine[];
}

async function open(network: string, personalities: readonly PersonalityName[]): Promise<void> {
  await buildRamdisk();
  lab = await openLab(network);
  undo.push(() => lab.close());
  const file = (name: string): string => join(lab.folder, name);
  const images = file('server/state/httpboot');
  mkdirSync(images, { recursive: true });
  const image = [join(root, 'demo/lab/image.sh'), join(images, 'lab.raw'), `http://${HOST}:${REPORT_PORT}/`, 'lab'];
  await promisify(execFile)('bash', image, { timeout: 300_000 });
  sha256 = readFileSync(join(images, 'lab.raw.sha256'), 'utf8').trim();
  lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), HOST, String(REPORT_PORT), file('report'));
  // Some makers' BMCs take media by https only.
  const { certificate, privateKey } = ownCertificate(HOST, 'boot', Date.now(), randomBytes);
  writeFileSync(file('boot.crt'), certificate);
  writeFileSync(file('boot.key'), privateKey, { mode: 0o600 });
  const sections = bootingSections(lab);
  server = await startServerProcess(
    file('server'),
    {
      ...sections,
      DEFAULT: {
        ...sections['DEFAULT'],
        enabled_hardware_types: 'redfish,idrac',
        enabled_boot_interfaces: 'ipxe,redfish-virtual-media,idrac-redfish-virtual-media',
      },
      boot: { ...sections['boot'], https_port: 8443, cert_file: file('boot.crt'), key_file: file('boot.key') },
    },
    lab.namespace,
  );
  undo.push(() => server.stop());
  machines = await startMachines(personalities);
}

/** Sends a verb, and waits for the state. A failed state ends the wait at once, with the reason and the machine's console. */
async function reach({ name }: Machine, state: string, target: string): Promise<void> {
  await call(lab, 'PUT', `/nodes/${name}/states/provision`, { target });
  let node: JsonObject = {};
  const describe = (): string =>
    `${name} to be ${state}: ${JSON.stringify(node)}\n--- console\n${consoleEnd({ consoleFile: join(lab.folder, 'fleet', name, 'console.log') })}` +
    `\n--- machines\n${said.slice(-2000)}\n--- server\n${server.logEnd()}`;
  await until(PATIENCE, describe, async () => {
    node = await call(lab, 'GET', `/nodes/${name}`);
    const now = String(node['provision_state']);
    if (now !== state && /failed$|^error$|^enroll$/.test(now)) throw new Error(describe());
    if (now === state && node['target_provision_state'] === null) return true;
    // Each query starts a process.
    await delay(900);
    return false;
  });
}
const startsOf = ({ name }: Machine): readonly string[] =>
  linesOf(said)
    .filter((line) => line['machine'] === name && String(line['message']).startsWith('starts '))
    .map(({ message, mode, once }) => `${String(message)}, ${String(mode)}${once === true ? ', once' : ''}`);

/** One life, which ends with the node available and the machine off. @returns how the machine started */
async function live(personality: PersonalityName, machine: Machine): Promise<readonly string[]> {
  const { name, redfish, macs } = machine;
  const { driver, boot, mode } = bootOf(personality);
  const created = await call(lab, 'POST', '/nodes', {
    name,
    driver,
    boot_interface: boot,
    driver_info: {
      redfish_address: redfish.address,
      redfish_system_id: redfish.systemId,
      redfish_username: redfish.username,
      redfish_password: redfish.password,
      fast_track: true,
    },
    properties: { capabilities: `boot_mode:${mode}` },
  });
  await call(lab, 'POST', '/ports', { node_uuid: created['uuid'], address: macs[0] });
  await reach(machine, 'manageable', 'manage');
  await reach(machine, 'manageable', 'inspect');
  const { inventory } = (await call(lab, 'GET', `/nodes/${name}/inventory`)) as unknown as { readonly inventory: Inventory };
  expect(inventory).toMatchObject({
    disks: [{ name: '/dev/vda', size: DISK_GIB * 2 ** 30 }],
    interfaces: [{ mac_address: macs[0] }],
    boot: { current_boot_mode: mode },
  });
  await reach(machine, 'available', 'provide');
  const info = {
    image_source: `http://${HOST}:8080/lab.raw`,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: sha256,
    image_disk_format: 'raw',
  };
  await call(lab, 'PATCH', `/nodes/${name}`, [{ op: 'add', path: '/instance_info', value: info }]);
  await reach(machine, 'active', 'active');
  const report = join(lab.folder, `report-${macs[0]}`);
  await until(
    PATIENCE,
    () => `a report of ${name}: ${startsOf(machine).join('; ')}\n${said.slice(-2000)}`,
    () => existsSync(report),
  );
  expect(readFileSync(report, 'utf8')).toMatch(new RegExp(`^firmware=${mode}$`, 'm'));
  // The ramdisk of the inspection has cleaned the disk, and a second boot of it would show nothing new.
  await call(lab, 'PATCH', `/nodes/${name}`, [{ op: 'add', path: '/automated_clean', value: false }]);
  await reach(machine, 'available', 'deleted');
  expect(await call(lab, 'GET', `/nodes/${name}`)).toMatchObject({ power_state: 'power off', last_error: null });
  return startsOf(machine);
}

interface Lived {
  readonly starts: readonly string[];
  readonly error?: Error;
}
/** Defines the tests of a file: a life for each personality, on machines of its own, two at once. */
export function testMakers(network: string, personalities: readonly PersonalityName[]): void {
  const lives = new Map(
    personalities.map((name) => {
      let resolve!: (lived: Lived) => void;
      const promise = new Promise<Lived>((done) => (resolve = done));
      return [name, { promise, resolve }] as const;
    }),
  );
  beforeAll(async () => {
    await open(network, personalities);
    const queue = personalities.entries();
    const worker = async (): Promise<void> => {
      for (const [index, personality] of queue) {
        const began = Date.now();
        const machine = machines[index]!;
        const ended = await live(personality, machine).then(
          (starts) => ({ starts }),
          (error: unknown) => ({ starts: startsOf(machine), error: error as Error }),
        );
        const seconds = Math.round((Date.now() - began) / 1000);
        const { boot } = bootOf(personality);
        const words = [personality, boot, ended.starts.join('; '), `${seconds} s`, 'error' in ended ? 'failed' : 'passed'];
        process.stderr.write(`| ${words.join(' | ')} |\n`);
        lives.get(personality)!.resolve(ended);
      }
    };
    for (let count = 0; count < TOGETHER; count++) void worker();
  }, 1_200_000);
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  }, 120_000);
  it.each(personalities)(
    '%s: a machine in QEMU is inspected, cleaned, deployed and undeployed, and its image boots',
    async (name) => {
      const { error, starts } = await lives.get(name)!.promise;
      if (error) throw error;
      const { device, mode } = bootOf(name);
      expect(starts[0]).toMatch(new RegExp(`^starts from ${device === 'cdrom' ? 'cdrom with a medium' : 'pxe with no medium'}, ${mode}`));
      expect(starts.at(-1)).toMatch(new RegExp(`^starts from disk with no medium, ${mode}`));
    },
    3 * PATIENCE * 1000,
  );
}
