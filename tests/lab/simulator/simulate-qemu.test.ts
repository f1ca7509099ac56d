/**
 * `bloomery simulate --qemu 1`: a machine that really boots behind our BMCs, which ipmitool and plain HTTP drive. It boots our own boot
 * sector, from its disk or from a CD, which writes to the serial line.
 */
import { execFile, execFileSync, spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../support/free-port';
import { until } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { startSimulate } from './simulate';
import { root } from '../support/venv';

const run = promisify(execFile);
const PATIENCE = 240;
const DISK = 'THIS IS THE DISK';
const CD = 'THIS IS THE CD';
jest.setTimeout(600_000);

const folder = mkdtempSync(join(tmpdir(), 'bloomery-simulate-qemu-'));
const state = join(folder, 'state');
const undo: (() => Promise<unknown>)[] = [];
let ipmiPort: number;
let redfish: string;
let fleet: ChildProcess;
let cd: string;

function makeImages(): void {
  const object = join(folder, 'sector.o');
  execFileSync('as', ['--32', '-o', object, join(__dirname, 'boot-sector.s')]);
  execFileSync('objcopy', ['-O', 'binary', object, join(folder, 'sector')]);
  const code = readFileSync(join(folder, 'sector'));
  const sector = (text: string): Buffer => {
    const bytes = Buffer.alloc(2048);
    code.copy(bytes);
    bytes.write(`${text}\r\n`, code.length);
    bytes.writeUInt16BE(0x55aa, 510);
    return bytes;
  };
  const disk = Buffer.alloc(1 << 20);
  sector(DISK).copy(disk);
  writeFileSync(join(folder, 'disk.raw'), disk);
  mkdirSync(join(folder, 'cd'));
  writeFileSync(join(folder, 'cd/boot'), sector(CD));
  const words = ['-quiet', '-o', join(folder, 'cd.iso'), '-b', 'boot', '-c', 'catalog', '-no-emul-boot', '-boot-load-size', '4'];
  execFileSync('genisoimage', [...words, join(folder, 'cd')], { stdio: 'ignore' });
}

const simulate = (...more: readonly string[]): Promise<ChildProcess> => {
  const places = ['--ipmi', String(ipmiPort), '--redfish', new URL(redfish).port, '--control', 'no', '--state', state];
  const machine = ['--qemu', '1', '--qemu-firmware', 'bios', '--qemu-memory', '128', '--qemu-disk', '1'];
  return startSimulate(...machine, ...places, ...more);
};
const end = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
};

const environment = { ...process.env, IPMI_PASSWORD: 'password' };
const access = (): readonly string[] => ['-I', 'lanplus', '-H', '127.0.0.1', '-p', String(ipmiPort), '-U', 'admin', '-E', '-C', '17'];
const ipmi = async (...words: readonly string[]): Promise<string> =>
  (await run('ipmitool', [...access(), ...words], { env: environment, timeout: 60_000 })).stdout.trim();

async function patch(path: string, body: object, method: 'PATCH' | 'POST' = 'PATCH'): Promise<void> {
  const answer = await fetch(`${redfish}/redfish/v1${path}`, {
    method,
    headers: { authorization: `Basic ${Buffer.from('admin:password').toString('base64')}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}
const bootOnce = (target: string, mode: string): Promise<void> =>
  patch('/Systems/sim-0', {
    Boot: { BootSourceOverrideTarget: target, BootSourceOverrideEnabled: 'Once', BootSourceOverrideMode: mode },
  });
const reset = (type: string): Promise<void> => patch('/Systems/sim-0/Actions/ComputerSystem.Reset', { ResetType: type }, 'POST');

/** ipmitool's console. `waitFor` waits until its output since the last call contains the part. */
interface Console {
  waitFor(part: string): Promise<void>;
  type(text: string): void;
}
function openConsole(): Console {
  // ipmitool needs a terminal.
  const command = `ipmitool ${access().join(' ')} sol activate`;
  const terminal: ChildProcessWithoutNullStreams = spawn('script', ['-qfc', command, '/dev/null'], { env: environment });
  undo.push(async () => {
    if (terminal.exitCode === null && terminal.signalCode === null) await end(terminal, 'SIGKILL');
  });
  let text = '';
  terminal.stdout.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
  return {
    waitFor: async (part) => {
      await until(
        PATIENCE,
        () => `${part} on the console\n${text.slice(-2000)}`,
        () => text.includes(part),
      );
      text = text.slice(text.indexOf(part) + part.length);
    },
    type: (keys) => void terminal.stdin.write(keys),
  };
}
/** Processes of QEMU that have this test's disk. */
const machines = (): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
      return words.startsWith('qemu-system') && words.includes(state);
    } catch {
      return false;
    }
  });

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', ipmitool: 'ipmitool', script: 'bsdutils' });
  needs({ as: 'binutils', objcopy: 'binutils', genisoimage: 'genisoimage' });
  makeImages();
  const files = createServer((request, response) => {
    const bytes = readFileSync(join(folder, 'cd.iso'));
    response.writeHead(200, { 'content-length': bytes.length }).end(request.method === 'HEAD' ? '' : bytes);
  }).listen(0, '127.0.0.1');
  await once(files, 'listening');
  cd = `http://127.0.0.1:${(files.address() as AddressInfo).port}/cd.iso`;
  undo.push(async () => {
    files.closeAllConnections();
    await new Promise((closed) => files.close(closed));
  });
  ipmiPort = await freePort();
  redfish = `http://127.0.0.1:${await freePort()}`;
  fleet = await simulate();
  undo.push(async () => {
    if (fleet.exitCode === null && fleet.signalCode === null) await end(fleet, 'SIGTERM');
  });
  await run('qemu-img', ['convert', '-O', 'qcow2', join(folder, 'disk.raw'), join(state, 'sim-0/vda.qcow2')]);
});
afterAll(async () => {
  for (const step of undo.reverse()) await step();
  rmSync(folder, { recursive: true, force: true });
});

it('a machine in QEMU obeys IPMI and Redfish: power, boot device, boot mode, virtual media and console', async () => {
  expect(await ipmi('power', 'status')).toBe('Chassis Power is off');
  const line = openConsole();
  await line.waitFor('operational');

  await ipmi('chassis', 'bootdev', 'disk', 'options=persistent');
  await ipmi('power', 'on');
  await line.waitFor(DISK);
  expect(await ipmi('power', 'status')).toBe('Chassis Power is on');
  line.type('hello');
  await line.waitFor('hello');

  // A restart by the machine itself keeps the persistent boot setting.
  line.type('r');
  await line.waitFor(DISK);

  // A one-time boot setting ends with the next boot, also when the machine restarts itself.
  await patch('/Systems/sim-0/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia', { Image: cd }, 'POST');
  await bootOnce('Cd', 'Legacy');
  await reset('ForceRestart');
  await line.waitFor(CD);
  line.type('r');
  await line.waitFor(DISK);

  await bootOnce('Hdd', 'UEFI');
  await reset('ForceRestart');
  await line.waitFor('BdsDxe');

  await bootOnce('Hdd', 'Legacy');
  await ipmi('power', 'cycle');
  await line.waitFor(DISK);
  line.type('q');
  await until(
    PATIENCE,
    () => 'the machine, which switched itself off, to be off',
    async () => (await ipmi('power', 'status')) === 'Chassis Power is off',
  );
});

it('a new simulator continues with the state of a killed one, and replaces its QEMU process', async () => {
  await bootOnce('Hdd', 'Legacy');
  await reset('On');
  // The file is written half a second after a change: it may still have the state of an earlier boot.
  await until(
    PATIENCE,
    () => 'the state of a machine that is on',
    () => /"boot":\{[^}]*"mode":"bios"\},"on":\{/.test(readFileSync(join(state, 'sim-0.json'), 'utf8')),
  );
  const [before] = machines();
  await end(fleet, 'SIGKILL');
  expect(machines()).toEqual([before]);
  fleet = await simulate();
  expect(machines()).toHaveLength(1);
  expect(machines()).not.toEqual([before]);
  expect(await ipmi('power', 'status')).toBe('Chassis Power is on');
  const line = openConsole();
  await line.waitFor('operational');
  await ipmi('power', 'reset');
  await line.waitFor(DISK);
});

it('the simulator ends its machines on SIGTERM, and names a missing bridge or program', async () => {
  await end(fleet, 'SIGTERM');
  expect(fleet.exitCode).toBe(0);
  expect(machines()).toEqual([]);
  await expect(simulate('--qemu-bridge', 'no-such-br')).rejects.toThrow(/there is no bridge no-such-br/);
  const words = ['bin/bloomery', 'simulate', '--qemu', '1', '--control', 'no'];
  const failed = run(process.execPath, words, { cwd: root, env: { PATH: '/nowhere' } });
  await expect(failed).rejects.toThrow(/qemu-system-x86_64 is not installed: it is in the Debian package qemu-system-x86/);
});
