import { fakeDeploy } from '../../../drivers/fake/fake';
import { idracRaid } from '../../../drivers/idrac/raid';
import type { Outcome, Task } from '../../../drivers/interfaces';
import { redfishPower } from '../../../drivers/redfish/power';
import type { NodeRecord } from '../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import type { TestTask } from '../../support/task';
import { SYSTEM, redfishError, redfishService, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';
import { dellService, refusal, taskPath, type DellService } from './dell-service';

const GIB = 2 ** 30;
const link = (path: string): object => ({ '@odata.id': path });
const RAID = `${SYSTEM}/Storage/RAID.1`;
const VOLUMES = `${RAID}/Volumes`;
const CONTROLLER = `${RAID}/Controllers/RAID.1`;
let service: RedfishService;
let pool: RedfishPool;
let dell: DellService;
/** Paths of the volumes. */
let volumes: string[];
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  dell = dellService(service);
  volumes = [];
  (service.resources[SYSTEM] as Record<string, unknown>)['Storage'] = link(`${SYSTEM}/Storage`);
  Object.assign(service.resources, {
    [`${SYSTEM}/Storage`]: { Members: ['RAID.1', 'BOSS.1'].map((id) => link(`${SYSTEM}/Storage/${id}`)) },
    [RAID]: {
      Id: 'RAID.1',
      Drives: ['a', 'b'].map((id) => link(`/d/${id}`)),
      Volumes: link(VOLUMES),
      Controllers: link(`${RAID}/Controllers`),
    },
    [`${RAID}/Controllers`]: { Members: [link(CONTROLLER)] },
    [CONTROLLER]: {
      Name: 'PERC H740P',
      SupportedRAIDTypes: ['RAID0', 'RAID1'],
      '@Redfish.Settings': { SettingsObject: link(`${CONTROLLER}/Settings`) },
    },
    [`${CONTROLLER}/Settings`]: {},
    [`${SYSTEM}/Storage/BOSS.1`]: { Id: 'BOSS.1', StorageControllers: [{ Name: 'BOSS-S1', SupportedRAIDTypes: ['RAID1'] }], Drives: [] },
  });
  for (const id of ['a', 'b']) service.resources[`/d/${id}`] = { Id: id, MediaType: 'HDD', Protocol: 'SAS', CapacityBytes: 100 * GIB };
  dell.answers.foreign = [refusal('STOR018')];
  dell.other = ({ method, path, body }) => {
    if (path === VOLUMES && method === 'GET') return { status: 200, body: { Members: volumes.map(link) } };
    if (method === 'DELETE') {
      volumes = volumes.filter((candidate) => candidate !== path);
      return { status: 204 };
    }
    if (method === 'PATCH' && path === `${CONTROLLER}/Settings`) return { status: 202, headers: { location: taskPath('JID_3') } };
    if (method !== 'POST' || path !== VOLUMES) return undefined;
    const made = `${VOLUMES}/V${volumes.length}`;
    volumes.push(made);
    service.resources[made] = { Id: made.slice(-2), ...(body as object) };
    return { status: 204 };
  };
});
afterEach(async () => {
  await pool.close();
  await service.close();
});
const bench = (node: Partial<NodeRecord> = {}, disk: object = {}): TestTask & { readonly slept: readonly number[] } =>
  bmcTask({
    node: {
      driver: 'idrac',
      provision_state: 'cleaning',
      driver_info: { redfish_address: service.url },
      target_raid_config: { logical_disks: [{ size_gb: 80, raid_level: '1', ...disk }] },
      ...node,
    },
    driver: { raid: idracRaid, deploy: fakeDeploy, power: redfishPower },
    options: { 'redfish.connection_attempts': 1, 'drac.raid_job_timeout': 300 },
    connections: { redfish: pool },
  });
const stepOf = (name: string) => idracRaid.steps!.find(({ step }) => step === `${name}_configuration`)!;
const run = (task: Task, name: 'create' | 'delete', args = {}): Promise<Outcome> => stepOf(name).run(task, args);
const created = (): readonly unknown[] =>
  service.asked.filter(({ method, path }) => method === 'POST' && path === VOLUMES).map(({ body }) => body);

describe('create_configuration', () => {
  it('waits until the controllers accept changes without a restart', async () => {
    dell.answers.ready = [
      { status: 200, body: { LCStatus: 'Ready', RTStatus: 'NotReady' } },
      { status: 200, body: { LCStatus: 'Ready', RTStatus: 'Ready' } },
    ];
    const { task, slept } = bench();
    expect(await run(task, 'create')).toEqual({ kind: 'done' });
    expect([slept, created()]).toEqual([[10_000], [expect.objectContaining({ RAIDType: 'RAID1', CapacityBytes: 80 * GIB })]]);
  });
  it('goes on if they never do', async () => {
    dell.answers.ready = [{ status: 200, body: { LCStatus: 'Ready', RTStatus: 'NotReady' } }];
    const { task, slept } = bench();
    expect(await run(task, 'create')).toEqual({ kind: 'done' });
    expect(slept).toHaveLength(29);
  });
  it('switches a machine on that is cleaned without the ramdisk', async () => {
    (service.resources[SYSTEM] as Record<string, unknown>)['PowerState'] = 'Off';
    const { task, events } = bench({ driver_internal_info: { cleaning_disable_ramdisk: true } });
    await run(task, 'create');
    expect(events).toEqual(['power: power on']);
    expect(stepOf('create').requiresRamdisk).toBe(false);
  });
  it('makes drives outside of RAID usable, and a volume no larger than they are then', async () => {
    service.resources[`${VOLUMES}/raw-a`] = { VolumeType: 'RawDevice' };
    service.resources[`${VOLUMES}/raw-b`] = { RAIDType: null };
    for (const id of ['a', 'b'])
      Object.assign(service.resources[`/d/${id}`] as object, { Links: { Volumes: [link(`${VOLUMES}/raw-${id}`)] } });
    dell.answers.convert = [{ status: 202, headers: { location: '/redfish/v1/Managers/iDRAC.Embedded.1/Jobs/JID_9' } }];
    service.resources[taskPath('JID_9')] = { TaskState: 'Completed' };
    const { other } = dell;
    dell.other = (asked, ...more) => {
      if (asked.path === taskPath('JID_9'))
        for (const id of ['a', 'b']) Object.assign(service.resources[`/d/${id}`] as object, { CapacityBytes: 60 * GIB });
      return other(asked, ...more);
    };
    expect(await run(bench().task, 'create')).toEqual({ kind: 'done' });
    expect(dell.asked('convert')).toEqual([{ PDArray: ['a', 'b'] }]);
    expect(created()).toEqual([expect.objectContaining({ CapacityBytes: 60 * GIB })]);
  });
  it('fails with the job that should make drives usable', async () => {
    service.resources[`${VOLUMES}/raw-a`] = { VolumeType: 'RawDevice' };
    Object.assign(service.resources['/d/a'] as object, { Links: { Volumes: [link(`${VOLUMES}/raw-a`)] } });
    dell.answers.convert = [{ status: 202, headers: { location: taskPath('JID_9') } }];
    service.resources[taskPath('JID_9')] = { TaskState: 'Exception', Messages: [{ Message: 'no' }] };
    await expect(run(bench().task, 'create')).rejects.toThrow(/ended as Exception: no/);
    expect(created()).toEqual([]);
  });
  it('shortens a name that the controller does not accept', async () => {
    const { other } = dell;
    dell.other = (asked, ...more) => {
      const { Name: name = '' } = (asked.body ?? {}) as { readonly Name?: string };
      return name.length > 15 ? { status: 400, body: redfishError('the name is too long') } : other(asked, ...more);
    };
    expect(await run(bench({}, { volume_name: 'the volume of the system' }).task, 'create')).toEqual({ kind: 'done' });
    expect(created().at(-1)).toMatchObject({ Name: 'the volume of t' });
  });
});

describe('delete_configuration', () => {
  const existing = (): void => {
    volumes = [`${VOLUMES}/V0`];
    service.resources[volumes[0]!] = { Id: 'V0', RAIDType: 'RAID1', CapacityBytes: GIB };
  };
  it('asks each RAID controller but BOSS to clear foreign configurations', async () => {
    existing();
    expect(await run(bench().task, 'delete')).toEqual({ kind: 'done' });
    expect([volumes, dell.asked('foreign')]).toEqual([[], [{ TargetFQDD: 'RAID.1' }]]);
  });
  it('waits for the job that clears one, which may not be found at first', async () => {
    existing();
    dell.answers.foreign = [{ status: 202, headers: { location: taskPath('JID_2') } }];
    const { task, node } = bench();
    expect(await run(task, 'delete')).toMatchObject({ kind: 'wait' });
    service.resources[taskPath('JID_2')] = { TaskState: 'Completed' };
    expect(await stepOf('delete').poll!(task, {})).toEqual({ kind: 'done' });
    expect(node().driver_internal_info).not.toHaveProperty('raid_configs');
  });
  it('fails with that job', async () => {
    existing();
    dell.answers.foreign = [{ status: 202, headers: { location: taskPath('JID_2') } }];
    service.resources[taskPath('JID_2')] = { TaskState: 'Exception', Messages: [{ Message: 'why' }] };
    expect(await run(bench().task, 'delete')).toMatchObject({ kind: 'failed', reason: expect.stringContaining('why') as unknown });
  });
  it('does not restart a machine that the iDRAC restarts for the job', async () => {
    existing();
    dell.answers.foreign = [{ status: 202, headers: { location: taskPath('JID_2') } }];
    service.resources[taskPath('JID_2')] = { TaskState: 'Running', Oem: { Dell: { JobType: 'RAIDConfiguration' } } };
    const { task, events } = bench();
    expect(await run(task, 'delete')).toMatchObject({ kind: 'wait', pollEvery: 60 });
    expect(events).toEqual([]);
  });
  it.each(['HBA', 'EnhancedHBA'])('makes a controller in the mode %s one for RAID, by a restart', async (mode) => {
    Object.assign(service.resources[CONTROLLER] as object, { Oem: { Dell: { DellStorageController: { ControllerMode: mode } } } });
    service.resources[taskPath('JID_3')] = { TaskState: 'Running' };
    const { task, events } = bench();
    expect(await run(task, 'delete')).toMatchObject({ kind: 'wait' });
    expect(service.asked.find(({ method }) => method === 'PATCH')).toMatchObject({
      path: `${CONTROLLER}/Settings`,
      body: {
        Oem: { Dell: { DellStorageController: { ControllerMode: 'RAID' } } },
        '@Redfish.SettingsApplyTime': { ApplyTime: 'OnReset' },
      },
    });
    expect(events).toEqual(['power: rebooting']);
    service.resources[taskPath('JID_3')] = { TaskState: 'Completed' };
    expect(await stepOf('delete').poll!(task, {})).toEqual({ kind: 'done' });
  });
  it('comes before a creation with delete_existing, with all that follows it', async () => {
    existing();
    expect(await run(bench().task, 'create', { delete_existing: true })).toEqual({ kind: 'done' });
    const order = service.asked
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path }) => `${method} ${path.split(/[/.]/).at(-1)!}`);
    expect(order).toEqual(['POST GetRemoteServicesAPIStatus', 'DELETE V0', 'POST ClearForeignConfig', 'POST Volumes']);
  });
});
