/** The Redfish driver at a service that we did not write: sushy-tools' emulator with its fake machines, over TLS with a password. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { recordingOf } from '../../../commands/probe/record';
import { probeRedfish } from '../../../commands/probe/run-probe';
import { walkService } from '../../../commands/probe/walk';
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { redfishPower } from '../../../drivers/redfish/power';
import type { Task } from '../../../drivers/interfaces';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { ownCertificate } from '../../../wire/http/certificate';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { bmcTask } from '../../drivers/bmc-task';
import { needs } from '../support/needs';
import { programs } from '../support/venv';
import { setPower } from '../../support/power';

const run = promisify(execFile);
// A first run makes a virtual environment.
jest.setTimeout(600_000);

const UUIDS = ['86ff2e5e-0000-4000-8000-000000000001', '86ff2e5e-0000-4000-8000-000000000002'] as const;
const systemId = (uuid: string): string => `/redfish/v1/Systems/${uuid}`;
const folder = mkdtempSync(join(tmpdir(), 'bloomery-redfish-'));
const certificate = join(folder, 'cert.pem');
let folderOfPrograms: string;
let pool: RedfishPool;
const emulators: { readonly child: ChildProcess; readonly log: string }[] = [];

/** Starts an emulator with these machines, all of them off. @returns its address */
async function emulator(uuids: readonly string[]): Promise<string> {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  await new Promise((done) => holder.close(done));
  const name = join(folder, `emulator-${port}`);
  const systems = uuids.map((uuid, i) => `{'uuid': '${uuid}', 'name': 'fake-${i}', 'power_state': 'Off', 'nics': []}`);
  writeFileSync(
    `${name}.conf`,
    [
      'SUSHY_EMULATOR_LISTEN_IP = "127.0.0.1"',
      `SUSHY_EMULATOR_LISTEN_PORT = ${port}`,
      'SUSHY_EMULATOR_FAKE_DRIVER = True',
      `SUSHY_EMULATOR_STATE_DIR = "${name}"`,
      `SUSHY_EMULATOR_FAKE_SYSTEMS = [${systems.join(', ')}]`,
      `SUSHY_EMULATOR_AUTH_FILE = "${join(folder, 'htpasswd')}"`,
      `SUSHY_EMULATOR_SSL_CERT = "${certificate}"`,
      `SUSHY_EMULATOR_SSL_KEY = "${join(folder, 'key.pem')}"`,
      '',
    ].join('\n'),
  );
  const words = [
    '-c',
    `mkdir -p ${name}; exec "$0" --fake --config ${name}.conf > ${name}.log 2>&1`,
    join(folderOfPrograms, 'sushy-emulator'),
  ];
  const child = spawn('sh', words, { stdio: 'ignore' });
  emulators.push({ child, log: `${name}.log` });
  const address = `https://127.0.0.1:${port}`;
  const probe = createRedfishPool();
  const end = Date.now() + 240_000;
  try {
    for (;;) {
      const target = { address, authType: 'basic', verifyCa: false, username: 'admin', password: 'secret' } as const;
      const answer = await probe.request(target, 'GET', '/redfish/v1/Systems', { timeoutMs: 2000 }).catch(() => undefined);
      if (answer) return address;
      if (Date.now() > end || child.exitCode !== null)
        throw new Error(`sushy-emulator does not answer\n${readFileSync(`${name}.log`, 'utf8')}`);
      await delay(100);
    }
  } finally {
    await probe.close();
  }
}

beforeAll(async () => {
  needs({ python3: 'python3-venv' });
  folderOfPrograms = await programs('sushy', ['sushy-tools==2.2.0'], true);
  const made = ownCertificate('127.0.0.1', 'bmc', Date.now(), randomBytes);
  writeFileSync(certificate, made.certificate);
  writeFileSync(join(folder, 'key.pem'), made.privateKey);
  const script = 'import bcrypt; print("admin:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(5)).decode())';
  writeFileSync(join(folder, 'htpasswd'), (await run(join(folderOfPrograms, 'python'), ['-c', script])).stdout);
  pool = createRedfishPool();
});
afterAll(async () => {
  await pool?.close();
  for (const { child } of emulators) {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
    child.kill('SIGKILL');
    await ended;
  }
  rmSync(folder, { recursive: true });
});

const taskAt = (address: string, info: JsonObject = {}): Task =>
  bmcTask({
    node: {
      driver: 'redfish',
      driver_info: {
        redfish_address: address,
        redfish_username: 'admin',
        redfish_password: 'secret',
        redfish_verify_ca: certificate,
        ...info,
      },
    },
    driver: { power: redfishPower, management: redfishManagement },
    options: { 'redfish.connection_attempts': 1 },
    connections: { redfish: pool },
  }).task;
/** The emulator's fake machines need a moment to change their power. */
async function reaches(task: Task, state: 'power on' | 'power off'): Promise<void> {
  const end = Date.now() + 240_000;
  while ((await redfishPower.get(task)) !== state) {
    if (Date.now() > end) throw new Error(`not ${state} in time`);
    await delay(100);
  }
}

describe('the Redfish driver, with one machine in the service,', () => {
  let address: string;
  beforeAll(async () => {
    address = await emulator(UUIDS.slice(0, 1));
  });
  it('finds the system without redfish_system_id, and switches it on and off', async () => {
    const task = taskAt(address);
    expect(await redfishPower.get(task)).toBe('power off');
    await setPower(redfishPower, task, 'power on');
    await reaches(task, 'power on');
    await setPower(redfishPower, task, 'power off');
    await reaches(task, 'power off');
  });
  it.each([
    ['pxe', true],
    ['disk', true],
    ['cdrom', false],
    ['pxe', false],
  ] as const)('sets the boot device %s, persistent %s', async (device, persistent) => {
    const task = taskAt(address);
    await redfishManagement.setBootDevice(task, device, persistent);
    // The emulator accepts Once, but shows Continuous.
    expect(await redfishManagement.getBootDevice(task)).toEqual({ device, persistent: true });
  });
  it('is probed and recorded without a change, and its recording tells nothing of it', async () => {
    const target = { address, username: 'admin', password: 'secret', authType: 'auto', verifyCa: certificate } as const;
    const signal = new AbortController().signal;
    const about = { signal, now: () => Date.now(), log: silentLog, progress: () => {} };
    const before = await redfishManagement.getBootDevice(taskAt(address));
    const { report, service } = await probeRedfish(pool, target, undefined, about);
    const results = Object.fromEntries(report.findings.map(({ check, result }) => [check, result]));
    expect(results).toMatchObject({ login: 'ok', system: 'ok', power: 'ok', 'network boot': 'ok', 'virtual media': 'ok' });
    const walked = await walkService(service!, signal, () => {});
    expect(await redfishManagement.getBootDevice(taskAt(address))).toEqual(before);
    const recording = recordingOf(walked, { target, program: '1', recorded: new Date().toISOString(), key: randomBytes(32) });
    expect(recording.resources).toBeGreaterThan(10);
    expect(recording.text).not.toMatch(/86ff2e5e|127\.0\.0\.1:\d|secret/i);
  });
  it('tries a wrong password once', async () => {
    const target = { address, username: 'admin', password: 'wrong-password', authType: 'auto', verifyCa: certificate } as const;
    const about = { signal: new AbortController().signal, now: () => Date.now(), log: silentLog, progress: () => {} };
    const { report } = await probeRedfish(pool, target, undefined, about);
    expect(report.findings).toMatchObject([{ check: 'login', result: 'wrong' }]);
  });
  it('refuses the unsupported boot device bios', async () => {
    await expect(redfishManagement.setBootDevice(taskAt(address), 'bios', false)).rejects.toMatchObject({ status: 500 });
  });
  it('changes the boot mode', async () => {
    const task = taskAt(address);
    for (const mode of ['bios', 'uefi'] as const) {
      await redfishManagement.bootMode!.set(task, mode);
      expect(await redfishManagement.bootMode!.get(task)).toBe(mode);
    }
  });
  it('reads power and boot mode in one request, detects the vendor, and reads secure boot', async () => {
    const task = taskAt(address);
    expect(await redfishPower.getStatus!(task)).toMatchObject({ power: 'power off', bootMode: 'uefi' });
    expect(await redfishManagement.detectVendor!(task)).not.toBe('');
    expect(await redfishManagement.secureBoot!.get(task)).toBe(false);
  });
  it('sets the indicators of the chassis and the system', async () => {
    const task = taskAt(address);
    const indicators = redfishManagement.indicators!;
    const supported = Object.entries(await indicators.supported(task));
    expect(supported.map(([component, lamps]) => [component, Object.keys(lamps).length])).toEqual([
      ['chassis', 1],
      ['system', 1],
    ]);
    for (const [component, lamps] of supported)
      for (const lamp of Object.keys(lamps)) {
        await indicators.set!(task, component, lamp, 'blinking');
        expect(await indicators.get(task, component, lamp)).toBe('blinking');
      }
  });
  it.each([
    [{ redfish_password: 'wrong' }, /returned code 401/],
    [{ redfish_password: 'wrong', redfish_auth_type: 'basic' }, /returned code 401/],
    [{ redfish_auth_type: 'session' }, /SessionService\/Sessions returned code|returned code 401/],
    [{ redfish_verify_ca: true }, /self-signed/],
    [{ redfish_system_id: systemId(UUIDS[1]) }, /not found/],
    [{ redfish_address: 'https://127.0.0.1:1' }, /^Redfish connection failed for node /],
  ])('fails for %j with a message that names the reason', async (info, message) => {
    await expect(redfishPower.get(taskAt(address, info))).rejects.toMatchObject({
      status: 500,
      message: expect.stringMatching(message) as unknown,
    });
  });
});

it('the Redfish driver reads the sensors of a chassis, which writes their values as text', async () => {
  const found = (await redfishManagement.sensors!(taskAt(await emulator(UUIDS.slice(0, 1))))) as Readonly<Record<string, JsonObject>>;
  expect(Object.keys(found)).toEqual(['Extra', 'Fan', 'Temperature', 'Power', 'Drive']);
  const well = { state: 'Enabled', health: 'OK' };
  const [fan, backup] = Object.values(found['Fan']!);
  expect([fan, backup]).toEqual([
    expect.objectContaining({
      identity: '0',
      reading: 2100,
      reading_units: 'RPM',
      max_reading_range: 5000,
      physical_context: 'Backplane',
      ...well,
    }),
    expect.objectContaining({ identity: '1', reading: 2050, ...well }),
  ]);
  expect(Object.values(found['Temperature']!)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        identity: '0',
        reading_celsius: 41,
        sensor_number: 0,
        max_reading_range_temp: 60,
        physical_context: 'CPU',
        ...well,
      }),
    ]),
  );
});

it('with two machines, the Redfish driver uses the system of redfish_system_id, and fails without it', async () => {
  const address = await emulator(UUIDS);
  const [first, second] = UUIDS.map((uuid) => taskAt(address, { redfish_system_id: systemId(uuid) })) as [Task, Task];
  await setPower(redfishPower, second, 'power on');
  await reaches(second, 'power on');
  expect(await redfishPower.get(first)).toBe('power off');
  await expect(redfishPower.get(taskAt(address))).rejects.toMatchObject({
    message: 'Failed at determining default for "ComputerSystem": System count is not exactly one',
  });
});
