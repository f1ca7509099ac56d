/**
 * BIOS settings, RAID volumes, firmware and virtual media at a service that we did not write: sushy-tools in front of libvirt, with a
 * machine that need not run.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BiosSetting, FirmwareComponent, Outcome, Step, Task } from '../../../drivers/interfaces';
import { redfishBios } from '../../../drivers/redfish/steps/bios';
import { createRegistryCache } from '../../../drivers/redfish/steps/bios-registry';
import { redfishFirmware } from '../../../drivers/redfish/steps/firmware';
import { redfishRaid } from '../../../drivers/redfish/steps/raid';
import { ejectMedia, insertMedium, redfishMedia } from '../../../drivers/redfish/virtual-media';
import type { JsonObject } from '../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { fakeDeploy } from '../../../drivers/fake/fake';
import { bmcTask } from '../../drivers/bmc-task';
import { startLibvirt, type Libvirt } from '../support/libvirt';
import { openLab, type Lab } from '../../../demo/lab/machines';
import { startSushyTools, type SushyTools } from './sushy-tools';

jest.setTimeout(600_000);
const GIB = 2 ** 30;
let lab: Lab;
let libvirt: Libvirt;
let emulator: SushyTools;
let pool: RedfishPool;
let system: string;

beforeAll(async () => {
  lab = await openLab('bloomery-settings');
  libvirt = await startLibvirt({ ...lab, port: 8000 });
  const machine = await lab.machine({ name: 'anvil', firmware: 'bios', memoryMiB: 128, cpus: 1, diskGiB: 1 });
  await libvirt.define({ ...machine, disk: machine.diskFile, console: machine.consoleFile });
  // With several systems, the emulator must be told for which one an update is; otherwise it refuses the update.
  const other = await lab.machine({ name: 'hammer', firmware: 'bios', memoryMiB: 128, cpus: 1, diskGiB: 1 });
  await libvirt.define({ ...other, disk: other.diskFile, console: other.consoleFile });
  const drives = ['d1', 'd2', 'd3'].map((Id) => ({ Id, Name: Id, CapacityBytes: 900 * GIB, Protocol: 'SAS' }));
  const controller = { Id: '1', Name: 'RAID', StorageControllers: [{ MemberId: '0', Name: 'HBA', SpeedGbps: 12 }] };
  emulator = await startSushyTools(join(lab.folder, 'emulator'), {
    LIBVIRT_URI: `"${libvirt.uri}"`,
    STORAGE: JSON.stringify({ [machine.uuid]: [{ ...controller, Drives: drives.map(({ Id }) => Id) }] }),
    DRIVES: `{("${machine.uuid}", "1"): ${JSON.stringify(drives)}}`,
    VOLUMES: `{("${machine.uuid}", "1"): []}`,
  });
  pool = createRedfishPool();
  system = `/redfish/v1/Systems/${machine.uuid}`;
});
afterAll(async () => {
  await pool?.close();
  await emulator?.stop();
  await libvirt?.stop();
  await lab?.close();
});

/** The task has a power interface of its own, because the emulator applies settings at once, without a restart. */
function openTask(more: object = {}) {
  const made = bmcTask({
    node: {
      driver: 'redfish',
      provision_state: 'cleaning',
      driver_info: { redfish_address: emulator.url, redfish_system_id: system },
      ...more,
    },
    driver: { deploy: fakeDeploy, bios: redfishBios, raid: redfishRaid, firmware: redfishFirmware },
    options: { 'redfish.connection_attempts': 1, 'redfish.firmware_update_required_successes': 1 },
    connections: { redfish: pool, biosRegistries: createRegistryCache() },
  });
  const kept: BiosSetting[] = [];
  const firmware: FirmwareComponent[] = [];
  const task = Object.create(made.task, {
    saveFirmwareComponents: { value: async (found: readonly FirmwareComponent[]) => void firmware.splice(0, firmware.length, ...found) },
    saveBiosSettings: { value: async (settings: readonly BiosSetting[]) => void kept.splice(0, kept.length, ...settings) },
  }) as Task;
  return { ...made, task, firmware, kept: () => Object.fromEntries(kept.map(({ name, value }) => [name, value])), settings: kept };
}
const step = (steps: readonly Step[] | undefined, name: string): Step => steps!.find((candidate) => candidate.step === name)!;
/** The outcome of the step, and the outcome of its poll if it waits. */
async function outcomesOf(task: Task, value: Step, args: JsonObject = {}): Promise<readonly Outcome['kind'][]> {
  const { kind } = await value.run(task, args);
  return kind === 'wait' ? [kind, (await value.poll!(task, {})).kind] : [kind];
}

describe('BIOS', () => {
  const settings = [
    { name: 'BootMode', value: 'Bios' },
    { name: 'EmbeddedSata', value: 'Ahci' },
  ];
  const [apply, reset] = ['apply_configuration', 'factory_reset'].map((name) => step(redfishBios.steps, name)) as [Step, Step];
  it('apply_configuration changes settings, and changes nothing when they are already set', async () => {
    const { task, kept, events, settings: all } = openTask();
    expect(await outcomesOf(task, apply, { settings })).toEqual(['wait', 'done']);
    expect(all).toContainEqual(
      expect.objectContaining({ name: 'NumCores', value: '10', attribute_type: 'Integer', lower_bound: 10, read_only: true }),
    );
    expect(kept()).toMatchObject({ BootMode: 'Bios', EmbeddedSata: 'Ahci', NicBoot1: 'NetworkBoot', QuietBoot: 'true' });
    expect(await outcomesOf(task, apply, { settings })).toEqual(['done']);
    expect(events).toEqual(['power: rebooting']);
  });
  it('apply_configuration refuses values that the registry does not allow', async () => {
    const refused = apply.run(openTask().task, {
      settings: [
        { name: 'EmbeddedSata', value: 'Warp' },
        { name: 'NumCores', value: '12' },
      ],
    });
    await expect(refused).rejects.toThrow(/invalid value for setting\(s\): EmbeddedSata, NumCores/);
  });
  it('factory_reset restores the default settings', async () => {
    const { task, kept } = openTask();
    expect(await outcomesOf(task, reset)).toEqual(['wait', 'done']);
    expect(kept()).toMatchObject({ BootMode: 'Uefi', EmbeddedSata: 'Raid' });
  });
});

describe('RAID', () => {
  /** The volumes that the emulator shows. */
  const volumes = async (): Promise<unknown[]> => {
    const path = `${emulator.url}${system}/Storage/1/Volumes`;
    const { Members: members } = (await (await fetch(path)).json()) as { Members: readonly { '@odata.id': string }[] };
    return Promise.all(members.map(async (member) => (await fetch(`${emulator.url}${member['@odata.id']}`)).json()));
  };
  it('create_configuration creates a volume, which raid_config omits because the emulator does not show its RAID level', async () => {
    const asked = { logical_disks: [{ size_gb: 1, raid_level: '1', volume_name: 'data' }] };
    const { task, node } = openTask({ target_raid_config: asked });
    expect(await outcomesOf(task, step(redfishRaid.steps, 'create_configuration'))).toEqual(['done']);
    expect(node().raid_config).toMatchObject({ logical_disks: [] });
    expect(await volumes()).toEqual([expect.objectContaining({ Name: 'data', CapacityBytes: GIB })]);
  });
  it('delete_configuration ends at once when no volume has a RAID level, and deletes none', async () => {
    const { task } = openTask();
    const before = await volumes();
    expect(await outcomesOf(task, step(redfishRaid.steps, 'delete_configuration'))).toEqual(['done']);
    expect(before).toHaveLength(1);
    expect(await volumes()).toEqual(before);
  });
});

describe('firmware', () => {
  const update = step(redfishFirmware.steps, 'update');
  const BIOS = { component: 'bios', url: 'http://127.0.0.1:1/bios.exe' };
  it('update installs BIOS firmware with one reboot, and saves its new version', async () => {
    const { task, events, firmware } = openTask();
    const before = await redfishFirmware.components!(task);
    expect((await update.run(task, { settings: [BIOS] })).kind).toBe('wait');
    const ends: string[] = [];
    while (ends.at(-1) !== 'done') {
      ends.push((await update.poll!(task, { settings: [BIOS] })).kind);
      expect(ends.length).toBeLessThan(10);
    }
    expect(events).toEqual(['power: rebooting']);
    const versionIn = (all: readonly FirmwareComponent[]): string | undefined =>
      all.find((candidate) => candidate.component === 'bios')?.current_version;
    expect([versionIn(before), versionIn(firmware)]).toEqual(['1.0.0', '1.1.0']);
  });
});

describe('virtual media', () => {
  const PASSWORD = 'hunter2';
  const wanted = `Basic ${Buffer.from(`smith:${PASSWORD}`).toString('base64')}`;
  const files = createServer(({ headers }, response) => {
    if (headers.authorization === wanted) response.end(Buffer.alloc(4096));
    else response.writeHead(401, { 'www-authenticate': 'Basic realm="images"' }).end();
  });
  let image: string;
  beforeAll(async () => {
    await once(files.listen(0, '127.0.0.1'), 'listening');
    image = `http://127.0.0.1:${(files.address() as AddressInfo).port}/tools.iso`;
  });
  afterAll(async () => {
    files.closeAllConnections();
    await new Promise((closed) => files.close(closed));
  });
  const at = (drive: string): string => `${emulator.url}${system}/VirtualMedia/${drive}`;
  const shown = async (drive = 'Cd'): Promise<JsonObject> => (await (await fetch(at(drive))).json()) as JsonObject;
  /** Whether the machine cannot write to the drive. */
  const isReadOnly = async (device: string): Promise<boolean> => {
    const words = ['-q', '-c', libvirt.uri, 'dumpxml', '--inactive', 'anvil'];
    const { stdout } = await promisify(execFile)('virsh', words, { timeout: 30_000 });
    return stdout
      .split('<disk ')
      .find((disk) => disk.includes(`device='${device}'`))!
      .split('</disk>')[0]!
      .includes('<readonly/>');
  };

  it('insertMedium inserts an image, write-protected, from a server that requires a user name and a password', async () => {
    const { task } = openTask();
    await insertMedium(task, 'CD', image, { credentials: { username: 'smith', password: PASSWORD } });
    expect(await shown()).toMatchObject({ Image: image, Inserted: true, WriteProtected: true, UserName: 'smith' });
    expect(await redfishMedia.get(task)).toContainEqual({ media_types: ['CD', 'DVD'], inserted: true, image });
    expect(await isReadOnly('cdrom')).toBe(true);
    await ejectMedia(task, ['CD']);
    expect(await shown()).toMatchObject({ Inserted: false, UserName: '' });
  });
  it.each([
    ['without credentials', undefined],
    ['with a wrong password', { username: 'smith', password: 'wrong' }],
  ])('insertMedium fails %s for a server that requires a password', async (_, credentials) => {
    const refused = insertMedium(openTask().task, 'CD', image, { credentials });
    await expect(refused).rejects.toThrow(/got error 401 from the server/);
    expect(await shown()).toMatchObject({ Inserted: false });
  });
  it.each([
    ['Cd', 'cdrom', true],
    ['Floppy', 'floppy', false],
  ])('WriteProtected = false makes a floppy disk writable, but not a CD: %s', async (drive, device, readOnly) => {
    const body = JSON.stringify({ Image: image, UserName: 'smith', Password: PASSWORD, WriteProtected: false });
    const target = `${at(drive)}/Actions/VirtualMedia.InsertMedia`;
    const answer = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    expect(await shown(drive)).toMatchObject({ Inserted: true, WriteProtected: false });
    expect(await isReadOnly(device)).toBe(readOnly);
    await ejectMedia(openTask().task);
  });
});
