/** Firmware by a Redfish service: arguments of the steps, the update of each kind of component, and failing BMCs. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Outcome, Step } from '../../../../drivers/interfaces';
import { redfishManagement } from '../../../../drivers/redfish/steps/management';
import { redfishFirmware } from '../../../../drivers/redfish/steps/firmware';
import { versionsDigest } from '../../../../drivers/redfish/steps/update';
import { firmwareImages, firmwareSettings } from '../../../../drivers/redfish/steps/firmware-settings';
import type { JsonObject } from '../../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../../wire/redfish';
import { NODE_UUID } from '../../../support/task';
import { SYSTEM, redfishError, redfishService, type RedfishService } from '../../../wire/redfish/service';
import { bmcTask } from '../../bmc-task';

const MANAGER = '/redfish/v1/Managers/BMC';
const CHASSIS = '/redfish/v1/Chassis/1';
const ADAPTER = `${CHASSIS}/NetworkAdapters/1`;
const UPDATE = '/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate';
const MONITOR = '/redfish/v1/TaskService/TaskMonitors/7';
const FILE = 'http://files.example/bios.bin';
const link = (path: string): JsonObject => ({ '@odata.id': path });

let service: RedfishService;
let pool: RedfishPool;
let folder: string;
/** The update's task as the service shows it; undefined: the service does not know it (404). */
let taskState: JsonObject | undefined;
/** The service does not answer. */
let away: boolean;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  folder = await mkdtemp(join(tmpdir(), 'bloomery-firmware-'));
  taskState = { TaskState: 'New' };
  away = false;
  const { resources } = service;
  Object.assign(resources['/redfish/v1/'] as object, { UpdateService: link('/redfish/v1/UpdateService') });
  Object.assign(resources[SYSTEM] as object, { BiosVersion: '1.0', Links: { ManagedBy: [link(MANAGER)], Chassis: [link(CHASSIS)] } });
  Object.assign(resources, {
    '/redfish/v1/UpdateService': { Actions: { '#UpdateService.SimpleUpdate': { target: UPDATE } } },
    [MANAGER]: { FirmwareVersion: '5.0', Model: 'BMC 9' },
    [CHASSIS]: { NetworkAdapters: link(`${CHASSIS}/NetworkAdapters`) },
    [`${CHASSIS}/NetworkAdapters`]: { Members: [link(ADAPTER)] },
    [ADAPTER]: { Id: '1', SerialNumber: 'S1', Manufacturer: 'M', Model: 'N', Controllers: [{ FirmwarePackageVersion: '7.1' }] },
  });
  service.reply = ({ method, path }) => {
    if (away) return { status: 503, body: redfishError('starting') };
    if (method === 'POST' && path === UPDATE) return { status: 202, headers: { location: MONITOR } };
    if (path !== MONITOR) return undefined;
    return taskState === undefined ? { status: 404 } : { status: 202, body: { '@odata.type': '#Task.v1_4_3.Task', ...taskState } };
  };
});
afterEach(async () => {
  await pool.close();
  await service.close();
  await rm(folder, { recursive: true });
});

const bench = (given: { readonly internal?: JsonObject; readonly info?: JsonObject; readonly options?: object } = {}) =>
  bmcTask({
    node: {
      driver: 'redfish',
      provision_state: 'cleaning',
      clean_step: { step: 'update', interface: 'firmware', priority: 0 },
      driver_info: { redfish_address: service.url, redfish_system_id: SYSTEM, ...given.info },
      driver_internal_info: given.internal ?? {},
    },
    driver: { firmware: redfishFirmware },
    options: { 'redfish.connection_attempts': 1, 'conductor.file_url_allowed_paths': [folder], ...given.options },
    connections: { redfish: pool },
  });
type Bench = ReturnType<typeof bench>;
const step = (redfishFirmware.steps as readonly Step[])[0]!;
const update = async ({ task }: Bench, ...settings: readonly JsonObject[]): Promise<Outcome> =>
  step.run(task, { settings: settings.map((setting) => ({ url: FILE, ...setting })) });
/** Polls the step when it is due, as the conductor does, until it has ended. Returns its outcome, and the times of the polls in seconds. */
async function end(
  { task }: Bench,
  before: (look: number) => void = () => {},
  asks: Step = step,
): Promise<{ readonly outcome: Outcome; readonly at: number[] }> {
  const started = task.clock.now();
  const at: number[] = [];
  let pause = 60;
  for (let asked = 1; asked <= 200; asked++) {
    await task.clock.sleep(pause * 1000);
    at.push((task.clock.now() - started) / 1000);
    before(asked);
    const outcome = await asks.poll!(task, {});
    if (outcome.kind !== 'wait') return { outcome, at };
    pause = outcome.pollEvery!;
  }
  throw new Error('it does not end');
}
const running = (state: string): void => void (taskState = { TaskState: state, TaskStatus: 'OK' });
const reboots = ({ events }: Bench): number => events.filter((event) => event === 'power: rebooting').length;
const kept = ({ node }: Bench): unknown => node().driver_internal_info['redfish_fw_updates'];

it.each(['nil', 'N/A', 'null', 'Unknown', ' ', ''])('an adapter with the version %j has none', async (version) => {
  service.resources[ADAPTER] = { Id: '1', SerialNumber: 'S1', Controllers: [{ FirmwarePackageVersion: version }] };
  Object.assign(service.resources[MANAGER] as object, { FirmwareVersion: version });
  expect((await redfishFirmware.components!(bench().task)).map(({ component }) => component)).toEqual(['bios']);
});

it('reports the percentage of a running task that has one', async () => {
  const one = bench();
  await update(one, { component: 'bmc', wait: 1 });
  const reported: unknown[] = [];
  const task = Object.assign(one.task, { reportProgress: async (...progress: readonly unknown[]) => void reported.push(progress) });
  taskState = { TaskState: 'Running', TaskStatus: 'OK', PercentComplete: 40 };
  await step.poll!(task, {});
  running('Running');
  await step.poll!(task, {});
  expect(reported).toEqual([['clean', { interface: 'firmware', step: 'update', priority: 0 }, 40]]);
});

describe('validation of arguments, with the messages of Ironic 39', () => {
  it.each<[unknown, string]>([
    [[], '[] should be non-empty'],
    [{}, "{} is not of type 'array'"],
    ['x', "'x' is not of type 'array'"],
    [null, "None is not of type 'array'"],
    [[1], "1 is not of type 'object'"],
    [[{}], "'component' is a required property"],
    [[{ component: 'bios' }], "'url' is a required property"],
    [[{ component: 'cpu', url: 'u' }], "'cpu' is not valid under any of the given schemas"],
    [[{ component: 'nic', url: 'u' }], "'nic' is not valid under any of the given schemas"],
    [[{ component: 5, url: 'u' }], "5 is not of type 'string'"],
    [[{ component: 'bios', url: '' }], "'' should be non-empty"],
    [[{ component: 'bios', url: 'u', wait: 0 }], '0 is less than the minimum of 1'],
    [[{ component: 'bios', url: 'u', wait: '5' }], "'5' is not of type 'integer'"],
    [[{ component: 'bios', url: 'u', wait: true }], "True is not of type 'integer'"],
    [[{ component: 'bios', url: 'u', wait: 1.5 }], "1.5 is not of type 'integer'"],
    [[{ component: 'bios', url: 'u', x: 1 }], "Additional properties are not allowed ('x' was unexpected)"],
    [[{ component: 'bios', url: 'u', x: 1, y: 2 }], "Additional properties are not allowed ('x', 'y' were unexpected)"],
    [[{ component: 'z', url: '', wait: 0, q: 1 }], "Additional properties are not allowed ('q' was unexpected)"],
    [[{ component: 'z', url: '', wait: 0 }], '0 is less than the minimum of 1'],
    [[{ component: 'bios' }, { x: 1 }], "'component' is a required property"],
    [
      [
        { component: 'bios', url: 'u' },
        { component: 'z', url: '' },
      ],
      "'' should be non-empty",
    ],
    [
      [
        { component: 'bios', url: 'u', wait: 0 },
        { component: 'bios', url: 5 },
      ],
      "5 is not of type 'string'",
    ],
    [[{ component: 'bios', url: 'u' }, []], "[] is not of type 'object'"],
  ])('firmware.update rejects %j', (settings, words) => {
    expect(() => firmwareSettings(settings)).toThrow(
      new RegExp(`^Invalid firmware update .*\\. Errors: ${words.replace(/[[\](){}.]/g, '\\$&')}$`),
    );
  });
  it.each<[unknown, string | undefined]>([
    [[], undefined],
    [[{ url: 'u', checksum: 'c', wait: 5, source: 'local' }], undefined],
    [[{}], "'url' is a required property"],
    [[{ url: 'u' }], "'checksum' is a required property"],
    [[{ url: 'u', checksum: '' }], "'' should be non-empty"],
    [[{ url: 'u', checksum: 5 }], "5 is not of type 'string'"],
    [[{ url: 'u', checksum: 's', source: 'ftp' }], "'ftp' is not one of \\['http', 'local', 'swift'\\]"],
    [[{ url: 'u', checksum: 's', source: 5 }], "5 is not of type 'string'"],
    [[{ url: 'u', checksum: 's', z: 5 }], "Additional properties are not allowed \\('z' was unexpected\\)"],
  ])('management.update_firmware checks %j', (images, words) => {
    if (words === undefined) expect(firmwareImages(images)).toBe(images);
    else expect(() => firmwareImages(images)).toThrow(new RegExp(`Errors: ${words}$`));
  });
});

describe('bios', () => {
  it('is staged, then the machine reboots once, then the step waits for the task', async () => {
    const made = bench();
    expect(await update(made, { component: 'bios' })).toEqual({ kind: 'wait', pollEvery: 60 });
    expect(service.asked.find(({ path }) => path === UPDATE)?.body).toEqual({ ImageURI: FILE, TransferProtocol: 'HTTP' });
    expect(kept(made)).toEqual([expect.objectContaining({ component: 'bios', url: FILE, task_monitor: MONITOR })]);
    const states = ['New', 'Starting', 'Running', 'Running', 'Completed'];
    const { outcome, at } = await end(made, (asked) => running(states[Math.min(asked, states.length) - 1]!));
    expect(outcome).toEqual({ kind: 'done' });
    // Three good answers in a row, 30 s apart, after the task.
    expect(at).toEqual([60, 120, 180, 240, 300, 330, 360]);
    expect(reboots(made)).toBe(1);
    expect(made.events.at(-1)).toBe('firmware: bios=1.0, bmc=5.0, nic:S1=7.1');
    expect(made.node().driver_internal_info).toEqual({});
  });
  it('is applied by a reboot if the task had completed before the first poll', async () => {
    const made = bench();
    await update(made, { component: 'bios' });
    running('Completed');
    expect((await end(made)).outcome).toEqual({ kind: 'done' });
    expect(reboots(made)).toBe(1);
  });
  const newVersion = (): void => void Object.assign(service.resources[SYSTEM] as object, { BiosVersion: '1.1' });
  const forgotten = {
    kind: 'failed',
    reason: expect.stringMatching(/Error: the service has forgotten the task of the update, and shows no new version$/) as unknown,
  };
  it('is applied by a reboot and succeeds if its task no longer exists, but its version is another one', async () => {
    const made = bench();
    await update(made, { component: 'bios' });
    taskState = undefined;
    expect((await end(made, (look) => (look === 5 ? newVersion() : undefined))).outcome).toEqual({ kind: 'done' });
    expect(reboots(made)).toBe(1);
  });
  it('fails if its task no longer exists, and its version remains', async () => {
    const made = bench();
    await update(made, { component: 'bios' });
    taskState = undefined;
    expect((await end(made)).outcome).toEqual(forgotten);
    expect(kept(made)).toBeUndefined();
  });
  it('succeeds if its task no longer exists, and the service shows no versions', async () => {
    const made = bench();
    delete (service.resources[SYSTEM] as Record<string, unknown>)['BiosVersion'];
    delete (service.resources[MANAGER] as Record<string, unknown>)['FirmwareVersion'];
    await update(made, { component: 'bios' });
    taskState = undefined;
    expect((await end(made)).outcome).toEqual({ kind: 'done' });
  });
  it('is judged by its version if the service names no task', async () => {
    const { reply } = service;
    service.reply = (asked, response) => (asked.method === 'POST' && asked.path === UPDATE ? { status: 202 } : reply(asked, response));
    const made = bench();
    await update(made, { component: 'bios' });
    const { outcome, at } = await end(made, (look) => (look === 8 ? newVersion() : undefined));
    expect([outcome, reboots(made)]).toEqual([{ kind: 'done' }, 1]);
    // The download, which nothing shows, gets its time before the reboot.
    expect(at.length).toBeGreaterThan(6);
    const other = bench();
    await update(other, { component: 'bios' });
    expect((await end(other)).outcome).toEqual(forgotten);
  });
  it('waits for the requested time after the task', async () => {
    const made = bench();
    await update(made, { component: 'bios', wait: 100 });
    running('Completed');
    expect((await end(made)).at).toEqual([60, 120, 220, 250, 280]);
  });
  it('waits for a heartbeat of the agent after the reboot', async () => {
    const made = bench({ internal: { agent_url: 'https://a' } });
    await update(made, { component: 'bios' });
    running('Completed');
    await made.task.saveInternal({ agent_url: undefined });
    const { at } = await end(made, (asked) => asked === 8 && void made.task.saveInternal({ agent_url: 'https://b' }));
    expect(at).toHaveLength(8);
  });
});

describe('bmc', () => {
  const version = (text: string): void =>
    void ((service.resources[MANAGER] as JsonObject & { FirmwareVersion: string }).FirmwareVersion = text);
  it.each<[string, JsonObject, string, number, number, number]>([
    ['300 s, when its version has changed before', {}, '6.0', 60, 300, 0],
    ['the wait of its setting, when its version has changed before', { wait: 120 }, '6.0', 60, 120, 0],
    ['a check 30 s after that wait, when its version changes in between', { wait: 120 }, '6.0', 125, 150, 0],
    ['300 s, when its version stays the same', { wait: 120 }, '5.0', 0, 300, 0],
    ['300 s and a reboot, when its version cannot be read', { wait: 120 }, '', 60, 300, 1],
  ])('completes after %s', async (_, setting, changed, at, seconds, starts) => {
    const made = bench();
    const started = made.task.clock.now();
    await update(made, { component: 'bmc', ...setting });
    const polls = await end(made, (asked) => {
      running(asked === 1 ? 'Running' : 'Completed');
      if (made.task.clock.now() - started >= at * 1000) version(changed);
    });
    expect(polls.outcome).toEqual({ kind: 'done' });
    // The first of three checks whether the BMC is available is at once, the others each 30 s later.
    expect(polls.at.at(-1)).toBe(seconds + 60);
    expect(reboots(made)).toBe(starts);
  });
  it('reboots the machine if the BMC does not come back, and fails after the timeout', async () => {
    const made = bench();
    await update(made, { component: 'bmc' });
    const { outcome, at } = await end(made, () => void (away = true));
    expect(outcome).toMatchObject({ kind: 'failed' });
    expect((outcome as { reason: string }).reason).toMatch(
      new RegExp(
        `^Redfish exception occurred. Error: BMC resources failed to stabilize within 480 seconds for node ${NODE_UUID}, last error: .*503`,
      ),
    );
    expect(at.at(-1)).toBe(780);
    expect(reboots(made)).toBe(1);
    expect(kept(made)).toBeUndefined();
  });
  it.each<[JsonObject, JsonObject, object, number]>([
    [{ wait: 20 }, {}, {}, 20],
    [{}, { firmware_update_unresponsive_bmc_wait: 40 }, {}, 40],
    [{}, {}, { 'redfish.firmware_update_wait_unresponsive_bmc': 50 }, 50],
  ])('with %j, driver_info %j and options %j, waits %d s before it checks the version', async (setting, info, options, seconds) => {
    const made = bench({ info, options });
    await update(made, { component: 'bmc', ...setting });
    running('Completed');
    version('6.0');
    const first = await step.poll!(made.task, {});
    expect(first).toEqual({ kind: 'wait', pollEvery: seconds });
    await made.task.clock.sleep(seconds * 1000);
    await step.poll!(made.task, {});
    expect(kept(made)).toEqual([expect.objectContaining({ phase: 'settle', good: 1 })]);
  });
  it('reboots the machine before the next update', async () => {
    const made = bench();
    await update(made, { component: 'bmc', wait: 30 }, { component: 'bios', url: 'https://files.example/b' });
    version('6.0');
    running('Completed');
    expect((await end(made)).outcome).toEqual({ kind: 'done' });
    expect(reboots(made)).toBe(2);
    expect(service.asked.filter(({ path }) => path === UPDATE).map(({ body }) => body)).toEqual([
      { ImageURI: FILE, TransferProtocol: 'HTTP' },
      { ImageURI: 'https://files.example/b', TransferProtocol: 'HTTPS' },
    ]);
  });
});

describe('nic', () => {
  it.each<[string, readonly string[], number]>([
    ['that runs at once needs a reboot afterwards', ['Running', 'Completed'], 1],
    ['that stays in state Starting needs a reboot to run', ['Starting', 'Starting', 'Starting', 'Completed'], 1],
    ['that runs after its reboot needs another reboot', ['Starting', 'Starting', 'Running', 'Completed'], 2],
    ['that had completed before the first poll needs a reboot', ['Completed'], 1],
  ])('%s', async (_, states, starts) => {
    const made = bench();
    await update(made, { component: 'nic:S1' });
    const { outcome } = await end(made, (asked) => running(states[Math.min(asked, states.length) - 1]!));
    expect(outcome).toEqual({ kind: 'done' });
    expect(reboots(made)).toBe(starts);
  });
});

describe('a failed update', () => {
  it('has the messages of its task as the reason', async () => {
    const made = bench();
    await update(made, { component: 'bios', url: 'http://user:secret@files.example/b' }, { component: 'bmc' });
    taskState = {
      TaskState: 'Exception',
      Messages: [{ Message: 'bad image' }, { Message: 'Unknown error', MessageId: 'Update.1.0.Bad' }, { x: 1 }, 5],
    };
    expect((await end(made)).outcome).toEqual({
      kind: 'failed',
      reason: `Firmware update failed for node ${NODE_UUID}, firmware http://files.example/b. Error: bad image,  Update.1.0.Bad`,
    });
    expect(kept(made)).toBeUndefined();
  });
  it('has the overall timeout as the reason', async () => {
    const made = bench();
    await update(made, { component: 'bios' });
    const { outcome } = await end(made);
    expect(outcome).toEqual({
      kind: 'failed',
      reason: `Firmware update on node ${NODE_UUID} has exceeded the overall timeout of 7200 seconds. Elapsed time: 7200 seconds.`,
    });
  });
  it('is rejected when the service refuses it or has no UpdateService', async () => {
    const made = bench();
    service.reply = ({ method }) => (method === 'POST' ? { status: 400, body: redfishError('no such image') } : undefined);
    await expect(update(made, { component: 'bios' })).rejects.toThrow(/returned code 400.*no such image/);
    expect(made.node().driver_internal_info).toEqual({});
    delete (service.resources['/redfish/v1/'] as { UpdateService?: unknown }).UpdateService;
    await expect(update(made, { component: 'bios' })).rejects.toThrow(/The attribute UpdateService\/@odata.id is missing/);
  });
  it("leaves state that a periodic work discards after the node's failure", async () => {
    const made = bench();
    await update(made, { component: 'bios' });
    const [discard] = redfishFirmware.periodics!;
    expect(discard!.states).toEqual(['clean failed', 'deploy failed', 'service failed']);
    expect(discard!.only!(made.node())).toBe(true);
    await discard!.run!(made.task);
    expect(made.node().driver_internal_info).toEqual({});
    expect(discard!.only!(made.node())).toBe(false);
  });
});

describe('invalid responses of the service', () => {
  const nonsense = [
    null,
    5,
    'x',
    [],
    { TaskState: 5 },
    { TaskState: {}, Messages: 5 },
    { '@odata.type': '#Task.v1_0_0.Task', Messages: [null] },
  ];
  it.each(nonsense)('the step keeps waiting with the task body %j', async (body) => {
    const made = bench();
    await update(made, { component: 'bios' });
    service.reply = ({ path }) => (path === MONITOR ? { status: 202, body } : undefined);
    expect(await step.poll!(made.task, {})).toMatchObject({ kind: 'wait' });
  });
  it.each([null, {}, { Members: 5 }, { Members: [5, null, { '@odata.id': 5 }] }, { Members: [link('//elsewhere/x')] }])(
    'components ignores the network adapters %j',
    async (body) => {
      service.resources[`${CHASSIS}/NetworkAdapters`] = body;
      const { task } = bench();
      expect((await redfishFirmware.components!(task)).map(({ component }) => component)).toEqual(['bios', 'bmc']);
    },
  );
  it('components is unsupported without any readable version', async () => {
    Object.assign(service.resources[SYSTEM] as object, { BiosVersion: 5, Links: 'x' });
    await expect(redfishFirmware.components!(bench().task)).rejects.toMatchObject({ name: 'UnsupportedDriverExtension' });
  });
});

describe('source of the firmware file', () => {
  const given = (): unknown => (service.asked.find(({ path }) => path === UPDATE)?.body as JsonObject | undefined)?.['ImageURI'];
  it('a local file is served by the boot service until the update has ended', async () => {
    await writeFile(join(folder, 'a b.bin'), 'firmware');
    const made = bench();
    await update(made, { component: 'bios', url: `file://${folder}/a%20b.bin` });
    expect(given()).toBe(`http://10.0.0.1:8080/boot/${NODE_UUID}/firmware-a_b.bin`);
    expect(made.boots.get(NODE_UUID)?.files).toEqual({ 'firmware-a_b.bin': join(folder, 'a b.bin') });
    running('Completed');
    await end(made);
    expect(made.boots.has(NODE_UUID)).toBe(false);
  });
  it('with firmware_source "local", a URL is served by the boot service beside the files of the ramdisk', async () => {
    const made = bench({ options: { 'redfish.firmware_source': 'local' } });
    const ramdisk = await made.task.boots.put({
      node_uuid: NODE_UUID,
      macs: [],
      method: 'ipxe',
      purpose: 'ramdisk',
      kernel_args: '',
      files: { kernel: '/k' },
    });
    const url = `${service.url}${SYSTEM}`;
    await update(made, { component: 'bios', url });
    expect(made.boots.get(NODE_UUID)).toEqual({ ...ramdisk, files: { kernel: '/k', 'firmware-1': url } });
    running('Completed');
    await end(made);
    expect(made.boots.get(NODE_UUID)).toEqual(ramdisk);
  });
  it.each<[string, object, RegExp]>([
    ['swift://container/file', {}, /cannot be served from Swift/],
    [FILE, { 'redfish.firmware_source': 'swift' }, /cannot be served from Swift/],
    ['ftp://x/y', {}, /^ftp is not supported for ftp:/],
    ['x', {}, /^ is not supported for x\.$/],
    ['file:///etc/passwd', {}, /Security: The path \/etc is not permitted in file URLs/],
    ['file:///srv/x', {}, /Security: Path \/srv\/x is not allowed/],
  ])('%s is rejected', async (url, options, words) => {
    await expect(update(bench({ options }), { component: 'bios', url })).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(words) as string,
    });
  });
});

describe('management.update_firmware', () => {
  const images = redfishManagement.steps!.find((candidate) => candidate.step === 'update_firmware')!;
  const CONTENT = 'firmware bios 2.0';
  const sha256 = createHash('sha256').update(CONTENT).digest('hex');
  const updates = ({ node }: Bench): unknown => node().driver_internal_info['firmware_updates'];

  it('installs images in order, with a reboot and the requested wait after each', async () => {
    const one = bench();
    const files = [
      { url: FILE, checksum: 'x', wait: 90 },
      { url: 'http://files.example/2.bin', checksum: 'x' },
    ];
    expect(await images.run(one.task, { firmware_images: files })).toEqual({ kind: 'wait', pollEvery: 60 });
    expect(reboots(one)).toBe(1);
    expect(updates(one)).toMatchObject([{ ...files[0], task_monitor: MONITOR }, files[1]]);
    const { outcome, at } = await end(one, (look) => running(look < 2 ? 'Running' : 'Completed'), images);
    expect(outcome.kind).toBe('done');
    expect(at).toEqual([60, 120, 210, 270]);
    expect(reboots(one)).toBe(2);
    expect(updates(one)).toBeUndefined();
    expect(service.asked.filter(({ method, path }) => method === 'POST' && path === UPDATE).map(({ body }) => body)).toEqual([
      { ImageURI: FILE, TransferProtocol: 'HTTP' },
      { ImageURI: 'http://files.example/2.bin', TransferProtocol: 'HTTP' },
    ]);
  });

  it.each<[boolean, string]>([
    [true, 'done'],
    [false, 'failed'],
  ])('with a task that is gone, and a new version: %s, is %s', async (isNew, kind) => {
    const one = bench();
    await images.run(one.task, { firmware_images: [{ url: FILE, checksum: 'x' }] });
    taskState = undefined;
    if (isNew) Object.assign(service.resources[MANAGER] as object, { FirmwareVersion: '5.1' });
    const { outcome } = await end(one, () => {}, images);
    expect(outcome.kind).toBe(kind);
    expect(updates(one)).toBeUndefined();
  });

  it('serves a local file after the check of its checksum, until the update has ended', async () => {
    await writeFile(join(folder, 'bios.bin'), CONTENT);
    const one = bench();
    const image = { url: `file://${folder}/bios.bin`, checksum: sha256, source: 'local' };
    await images.run(one.task, { firmware_images: [image] });
    expect(Object.keys((await one.task.boots.ofNode(NODE_UUID))!.files)).toEqual(['firmware-bios.bin']);
    running('Completed');
    expect((await end(one, () => {}, images)).outcome.kind).toBe('done');
    expect(await one.task.boots.ofNode(NODE_UUID)).toBeUndefined();
  });

  it.each<[string, JsonObject, RegExp]>([
    ['another checksum', { checksum: 'a'.repeat(64), source: 'local' }, /checksums do not match\. Expected: a{64}, calculated: /],
    ['a checksum of no known length', { checksum: 'a'.repeat(200), source: 'local' }, /Unable to identify checksum/],
    ['object storage', { checksum: 'a', source: 'swift' }, /firmware from Swift is not supported/],
  ])('starts no update for %s', async (_, more, text) => {
    await writeFile(join(folder, 'bios.bin'), CONTENT);
    const one = bench();
    const image = { url: `file://${folder}/bios.bin`, ...more };
    await expect(images.run(one.task, { firmware_images: [image] })).rejects.toThrow(text);
    expect([reboots(one), updates(one), await one.task.boots.ofNode(NODE_UUID)]).toEqual([0, undefined, undefined]);
  });

  it('fails with the message of the task and discards the remaining images', async () => {
    const one = bench();
    await images.run(one.task, { firmware_images: [{ url: FILE, checksum: 'x' }] });
    taskState = { TaskState: 'Exception', TaskStatus: 'Critical', Messages: [{ Message: 'bad image' }] };
    const { outcome } = await end(one, () => {}, images);
    expect(outcome).toEqual({
      kind: 'failed',
      reason: `Firmware update failed for node ${NODE_UUID}, firmware ${FILE}. Error: bad image`,
    });
    expect(updates(one)).toBeUndefined();
  });
});

it('firmware that waits, or that ran before, does not count as a new version', async () => {
  const INVENTORY = '/redfish/v1/UpdateService/FirmwareInventory';
  const rows: Record<string, string> = { 'Installed-0-2.1': '2.1' };
  const show = (): void => {
    for (const [id, version] of Object.entries(rows)) service.resources[`${INVENTORY}/${id}`] = { Id: id, Version: version };
    Object.assign(service.resources['/redfish/v1/'] as object, { UpdateService: { '@odata.id': '/redfish/v1/UpdateService' } });
    service.resources['/redfish/v1/UpdateService'] = { FirmwareInventory: { '@odata.id': INVENTORY } };
    service.resources[INVENTORY] = { Members: Object.keys(rows).map((id) => ({ '@odata.id': `${INVENTORY}/${id}` })) };
  };
  show();
  const before = await versionsDigest(bench().task);
  Object.assign(rows, { 'Available-0-2.2': '2.2', 'Previous-0-2.0': '2.0' });
  show();
  expect(await versionsDigest(bench().task)).toBe(before);
  rows['Installed-0-2.1'] = '2.2';
  show();
  expect(await versionsDigest(bench().task)).not.toBe(before);
});
