import { fakeDeploy } from '../../../../drivers/fake/fake';
import type { Outcome, Task } from '../../../../drivers/interfaces';
import { planVolumes, type RequestedDisk, type Drive } from '../../../../drivers/redfish/steps/raid-plan';
import { redfishRaid } from '../../../../drivers/redfish/steps/raid';
import { createRedfishPool, type RedfishPool } from '../../../../wire/redfish';
import { SYSTEM, redfishService, type RedfishService } from '../../../wire/redfish/service';
import { bmcTask } from '../../bmc-task';

const GIB = 2 ** 30;
const drive = (id: string, gib: number, more: Partial<Drive> = {}): Drive => ({
  path: `/d/${id}`,
  id,
  controller: 'C',
  mediaType: 'HDD',
  protocol: 'SAS',
  bytes: gib * GIB,
  ...more,
});
const four = ['a', 'b', 'c', 'd'].map((id) => drive(id, 100));
const disk = (raid_level: string, size_gb: number | 'MAX', more: Partial<RequestedDisk> = {}): RequestedDisk => ({
  raid_level,
  size_gb,
  ...more,
});
const chosen = (disks: readonly RequestedDisk[], drives: readonly Drive[]): readonly string[] =>
  planVolumes(disks, drives).map(({ request: { raid_level: level }, drives: on, bytes }) => {
    const size = bytes === 'MAX' ? 'MAX' : bytes / GIB;
    return `${level} ${size} on ${on.map(({ id }) => id).join('')}`;
  });

describe('planVolumes', () => {
  it.each<[string, readonly RequestedDisk[], readonly Drive[], readonly string[]]>([
    ['the fewest drives', [disk('5', 150)], four, ['5 150 on abc']],
    ['as many drives as the size needs', [disk('5', 250)], four, ['5 250 on abcd']],
    ['number_of_physical_disks drives', [disk('0', 10, { number_of_physical_disks: 3 })], four, ['0 10 on abc']],
    ['pairs of drives for RAID 1+0', [disk('1+0', 150)], four, ['1+0 150 on abcd']],
    ['different drives for each volume', [disk('1', 10), disk('1', 20)], four, ['1 20 on cd', '1 10 on ab']],
    [
      'the same drives for two volumes that may share them',
      ['1', '1'].map((level) => disk(level, 10, { share_physical_disks: true })),
      four.slice(0, 2),
      ['1 10 on ab', '1 10 on ab'],
    ],
    [
      'drives of the requested disk_type',
      [disk('0', 10, { disk_type: 'ssd' })],
      [...four, drive('s', 50, { mediaType: 'SSD' })],
      ['0 10 on s'],
    ],
    ['the named drives', [disk('1', 'MAX', { controller: 'C', physical_disks: ['c', 'd'] })], four, ['1 MAX on cd']],
    ['drives of a kind that has enough of them', [disk('1+0', 10)], [drive('x', 50), ...four], ['1+0 10 on abcd']],
  ])('selects %s', (_, asked, drives, expected) => {
    expect(chosen(asked, drives)).toEqual(expected);
  });
  it.each<[string, readonly RequestedDisk[], RegExp]>([
    ['too large', [disk('0', 500)], /failed to find matching physical disks for all logical disks$/],
    ['of an unsupported RAID level', [disk('JBOD', 1)], /RAID level JBOD is not supported by the driver/],
    ['on drives that do not exist', [disk('0', 1, { controller: 'C', physical_disks: ['z'] })], /number of physical disks provided \(0\)/],
    [
      'on too few drives',
      [disk('1', 1, { controller: 'C', physical_disks: ['a'] })],
      /\(1\) is too few for the required number of overhead drives \(1\)$/,
    ],
  ])('rejects a volume that is %s', (_, asked, message) => {
    expect(() => planVolumes(asked, four)).toThrow(message);
  });
});

describe('steps', () => {
  const STORAGE = `${SYSTEM}/Storage/S`;
  const VOLUMES = `${STORAGE}/Volumes`;
  const link = (path: string): object => ({ '@odata.id': path });
  let service: RedfishService;
  let pool: RedfishPool;
  /** Monitor → its answer; undefined: the operation is over at the first request. */
  let tasks: Record<string, { status: number; body: object }>;
  let times: readonly string[];
  beforeEach(async () => {
    service = await redfishService();
    pool = createRedfishPool();
    tasks = {};
    times = ['OnReset'];
    const members: object[] = [];
    (service.resources[SYSTEM] as Record<string, unknown>)['Storage'] = link(`${SYSTEM}/Storage`);
    Object.assign(service.resources, {
      [`${SYSTEM}/Storage`]: { Members: [link(STORAGE)] },
      [STORAGE]: { Id: 'S', Drives: ['a', 'b'].map((id) => link(`/d/${id}`)), Volumes: link(VOLUMES), StorageControllers: [{}] },
    });
    for (const id of ['a', 'b']) service.resources[`/d/${id}`] = { Id: id, MediaType: 'HDD', Protocol: 'SAS', CapacityBytes: 100 * GIB };
    service.reply = ({ method, path, body }) => {
      if (method === 'GET' && path === VOLUMES)
        return { status: 200, body: { Members: members, '@Redfish.OperationApplyTimeSupport': { SupportedValues: times } } };
      if (path in tasks) return tasks[path];
      if (method === 'DELETE')
        members.splice(0, members.length, ...members.filter((member) => (member as { '@odata.id': string })['@odata.id'] !== path));
      else if (method === 'POST' && path === VOLUMES) {
        const made = `${VOLUMES}/${members.length + 1}`;
        members.push(link(made));
        service.resources[made] = { Id: made.slice(-1), ...(body as object) };
      } else return undefined;
      const monitor = `/tasks/${service.asked.length}`;
      tasks[monitor] = { status: 202, body: { TaskState: 'Running' } };
      return times.length > 0 ? { status: 202, headers: { location: monitor } } : { status: 204 };
    };
  });
  afterEach(async () => {
    await pool.close();
    await service.close();
  });
  const bench = (asked: readonly RequestedDisk[] = [disk('1', 10, { volume_name: 'root', is_root_volume: true })]) =>
    bmcTask({
      node: {
        driver: 'redfish',
        provision_state: 'cleaning',
        driver_info: { redfish_address: service.url },
        ...(asked.length > 0 ? { target_raid_config: { logical_disks: asked } } : {}),
      },
      driver: { raid: redfishRaid, deploy: fakeDeploy },
      options: { 'redfish.connection_attempts': 1 },
      connections: { redfish: pool },
    });
  const stepOf = (name: string) => redfishRaid.steps!.find(({ step }) => step === `${name}_configuration`)!;
  const run = (task: Task, name: string, args = {}): Promise<Outcome> => stepOf(name).run(task, args);
  const poll = (task: Task): Promise<Outcome> => stepOf('create').poll!(task, {});
  const sent = (): readonly string[] =>
    service.asked.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`);
  const end = (state: string): void => {
    for (const name of Object.keys(tasks)) tasks[name] = { status: 200, body: { TaskState: state, Messages: [{ Message: 'why' }] } };
  };

  it('create a volume at a reboot, poll its task, and store raid_config', async () => {
    const { task, node, events } = bench();
    expect(await run(task, 'create')).toEqual({ kind: 'wait', pollEvery: 60 });
    expect(service.asked.find(({ method }) => method === 'POST')!.body).toEqual({
      RAIDType: 'RAID1',
      CapacityBytes: 10 * GIB,
      Name: 'root',
      '@Redfish.OperationApplyTime': 'OnReset',
      Links: { Drives: [link('/d/a'), link('/d/b')] },
    });
    expect(events).toEqual(['power: rebooting']);
    expect(await poll(task)).toMatchObject({ kind: 'wait', quiet: true });
    end('Completed');
    expect(await poll(task)).toEqual({ kind: 'done' });
    expect(node().raid_config).toMatchObject({ logical_disks: [{ id: '1', name: 'root', controller: 'S', size_gb: 10, raid_level: '1' }] });
    expect(node().driver_internal_info).not.toHaveProperty('raid_configs');
  });
  it.each<[string, readonly string[], Outcome, readonly string[]]>([
    ['poll a task with apply time Immediate, without a reboot', ['Immediate', 'OnReset'], { kind: 'wait', pollEvery: 5 }, []],
    ['complete at once without a task', [], { kind: 'done' }, []],
  ])('create a volume: %s', async (_, offered, outcome, expected) => {
    times = offered;
    const { task, events } = bench();
    expect(await run(task, 'create')).toMatchObject(outcome);
    expect(events).toEqual(expected);
  });
  it('fail with the message of a failed task', async () => {
    const { task, node } = bench();
    await run(task, 'create');
    end('Exception');
    expect(await poll(task)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('ended as Exception: why') as unknown });
    expect(node().driver_internal_info).not.toHaveProperty('raid_configs');
  });
  it('create volumes of a controller one after the other, with a reboot each', async () => {
    const { task, events } = bench(['0', '0'].map((level) => disk(level, 10)));
    await run(task, 'create');
    expect(sent()).toHaveLength(1);
    end('Completed');
    expect(await poll(task)).toMatchObject({ kind: 'wait' });
    expect([sent().length, events.length]).toEqual([2, 2]);
    end('Completed');
    expect(await poll(task)).toEqual({ kind: 'done' });
  });
  it('delete existing volumes first with delete_existing', async () => {
    const { task, node } = bench();
    await run(task, 'create');
    end('Completed');
    await poll(task);
    await run(task, 'create', { delete_existing: true });
    expect(sent().at(-1)).toBe(`DELETE ${VOLUMES}/1`);
    end('Completed');
    await poll(task);
    expect(sent().at(-1)).toBe(`POST ${VOLUMES}`);
    end('Completed');
    expect(await poll(task)).toEqual({ kind: 'done' });
    expect(node().raid_config['logical_disks']).toHaveLength(1);
  });
  it.each([
    [404, { kind: 'done' }],
    [403, { kind: 'failed' }],
  ])('delete a volume, which is answered with %i', async (status, outcome) => {
    const { task } = bench();
    await run(task, 'create');
    end('Completed');
    await poll(task);
    const { reply } = service;
    service.reply = (request, ...more) => {
      if (request.method !== 'DELETE') return reply(request, ...more);
      if (status === 404) reply(request, ...more);
      return { status, body: {} };
    };
    const ended = run(task, 'delete').catch(() => ({ kind: 'failed' }));
    expect(await ended).toMatchObject(outcome);
    expect(sent().filter((candidate) => candidate.startsWith('DELETE'))).toEqual([`DELETE ${VOLUMES}/1`]);
  });
  it('use no drive of an existing volume, and no hot spare', async () => {
    const { task } = bench();
    await run(task, 'create');
    end('Completed');
    await poll(task);
    await expect(run(task, 'create')).rejects.toThrow('failed to find matching physical disks for all logical disks');
    const named = disk('1', 10, { controller: 'S', physical_disks: ['a', 'b'] });
    await expect(run(bench([named]).task, 'create')).rejects.toThrow('The physical disk space (0 bytes) is not enough');
    expect(sent()).toHaveLength(1);
    // The volume names its drives, or the drives their volume.
    const volume = service.resources[`${VOLUMES}/1`] as Record<string, unknown>;
    delete volume['Links'];
    for (const id of ['a', 'b']) Object.assign(service.resources[`/d/${id}`] as object, { Links: { Volumes: [link(`${VOLUMES}/1/`)] } });
    await expect(run(task, 'create')).rejects.toThrow('failed to find matching physical disks');
    // A drive that is shown as a volume is free.
    delete volume['RAIDType'];
    expect(await run(task, 'create')).toMatchObject({ kind: 'wait' });
  });
  it('use no hot spare', async () => {
    Object.assign(service.resources['/d/b'] as object, { Status: { State: 'StandbySpare' } });
    await expect(run(bench().task, 'create')).rejects.toThrow('failed to find matching physical disks');
  });
  it('follow the volumes where the service names no task', async () => {
    const { task, node, events } = bench();
    const { reply } = service;
    let late: (() => void) | undefined;
    service.reply = (asked, response) => {
      if (asked.method !== 'POST' && asked.method !== 'DELETE') return reply(asked, response);
      late = () => void reply(asked, response);
      return { status: 202 };
    };
    expect(await run(task, 'create')).toMatchObject({ kind: 'wait' });
    expect(events).toEqual(['power: rebooting']);
    expect(await poll(task)).toMatchObject({ kind: 'wait', quiet: true });
    late!();
    expect(await poll(task)).toEqual({ kind: 'done' });
    expect(node().raid_config['logical_disks']).toHaveLength(1);
    expect(await run(task, 'delete')).toMatchObject({ kind: 'wait' });
    expect(await poll(task)).toMatchObject({ kind: 'wait', quiet: true });
    late!();
    expect(await poll(task)).toEqual({ kind: 'done' });
    expect(node().raid_config['logical_disks']).toEqual([]);
  });
  it.each<[string, Outcome['kind']]>([
    ['Completed', 'done'],
    ['CompletedWithErrors', 'failed'],
    ['Failed', 'failed'],
    ['Scheduled', 'wait'],
  ])('follow the job of a task that is gone: %s', async (state, kind) => {
    const { task } = bench();
    const { reply } = service;
    service.reply = (asked, response) => {
      if (asked.method === 'POST') {
        reply(asked, response);
        return { status: 202, headers: { location: '/redfish/v1/TaskService/Tasks/JID_123' } };
      }
      return asked.path.endsWith('/Oem/Dell/Jobs/JID_123')
        ? { status: 200, body: { JobState: state, Message: 'why' } }
        : reply(asked, response);
    };
    await run(task, 'create');
    expect((await poll(task)).kind).toBe(kind);
  });
  it('wait for a volume that is shown later than its task ends, and fail if it never is', async () => {
    const { task, node } = bench();
    const { reply } = service;
    let late: (() => void) | undefined;
    service.reply = (asked, response) => {
      if (asked.method !== 'POST') return reply(asked, response);
      late = () => void reply(asked, response);
      return { status: 204 };
    };
    expect(await run(task, 'create')).toMatchObject({ kind: 'wait', quiet: true });
    late!();
    expect(await poll(task)).toEqual({ kind: 'done' });
    expect(node().raid_config['logical_disks']).toHaveLength(1);
    service.reply = (asked, response) => (asked.method === 'DELETE' ? { status: 204 } : reply(asked, response));
    expect(await run(task, 'delete')).toMatchObject({ kind: 'wait' });
    await task.clock.sleep(601_000);
    expect(await poll(task)).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining(`the deletion of ${VOLUMES}/1 is accepted, not kept by the service`) as string,
    });
    expect(node().driver_internal_info['raid_configs']).toBeUndefined();
  });
  it('create no volume twice after a restart of the conductor', async () => {
    const { task, node } = bench();
    await run(task, 'create');
    const { raid_configs: work } = node().driver_internal_info as { readonly raid_configs: { readonly pending: object } };
    // As after a crash between the accepted order and the note of its monitor.
    const [order] = service.asked.filter(({ method }) => method === 'POST').map(({ method, path, body }) => ({ method, path, body }));
    await task.saveInternal({ raid_configs: { ...work, pending: { S: [order] }, task_monitor_uri: [], rebooted: false } });
    expect(await run(task, 'create')).toEqual({ kind: 'done' });
    expect(sent()).toHaveLength(1);
  });
  it('wait while the service is unavailable', async () => {
    const { task } = bench();
    await run(task, 'create');
    service.reply = () => ({ status: 503 });
    expect(await poll(task)).toMatchObject({ kind: 'wait', quiet: true });
  });
  it.each<[string, readonly RequestedDisk[], RegExp]>([
    ['no target_raid_config', [], /has no target RAID configuration\.$/],
    ['software RAID', [disk('1', 10, { controller: 'software' })], /set the raid_interface of node .* to agent$/],
    ['size MAX without physical_disks', [disk('1', 'MAX')], /'physical_disks' is missing from logical_disk while 'size_gb'='MAX'/],
    ['SCSI', [disk('1', 1, { interface_type: 'scsi' })], /^interface type `scsi` not supported by Redfish RAID$/],
  ])('reject %s before the first request', async (_, asked, message) => {
    await expect(run(bench(asked).task, 'create')).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(message) as unknown,
    });
    expect(service.asked).toEqual([]);
  });
});
