import { idracBios } from '../../../drivers/idrac/bios';
import { fakeDeploy } from '../../../drivers/fake/fake';
import type { Outcome } from '../../../drivers/interfaces';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { SYSTEM, redfishService, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';
import { MANAGER, dellService, refusal, taskPath, type DellService } from './dell-service';

const link = (path: string): object => ({ '@odata.id': path });
const BIOS = `${SYSTEM}/Bios`;
const JOBS = `${MANAGER}/Oem/Dell/Jobs`;
let service: RedfishService;
let pool: RedfishPool;
let dell: DellService;
let refused: string | undefined;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  dell = dellService(service);
  refused = 'SYS011';
  Object.assign(service.resources[SYSTEM] as object, { Manufacturer: 'Dell Inc.', Bios: link(BIOS) });
  Object.assign((service.resources[MANAGER] as { Links: { Oem: { Dell: object } } }).Links.Oem.Dell, { Jobs: link(JOBS) });
  Object.assign(service.resources, {
    [BIOS]: { Attributes: { Quiet: 'Off' }, '@Redfish.Settings': { SettingsObject: link(`${BIOS}/Settings`) } },
    [`${BIOS}/Settings`]: { Attributes: {} },
    [JOBS]: {
      Members: [
        { ...link(`${JOBS}/JID_1`), Id: 'JID_1', JobType: 'BIOSConfiguration', JobState: 'Completed' },
        { ...link(`${JOBS}/JID_2`), Id: 'JID_2', JobType: 'RAIDConfiguration', JobState: 'Scheduled' },
        { ...link(`${JOBS}/JID_3`), Id: 'JID_3', JobType: 'BIOSConfiguration', JobState: 'Scheduled' },
      ],
    },
  });
  dell.other = ({ method, path }) => {
    if (method !== 'PATCH' || path !== `${BIOS}/Settings`) return undefined;
    if (refused === 'SYS011' && dell.asked('clear').length > 0) refused = undefined;
    return refused === undefined ? { status: 200, body: {} } : refusal(refused);
  };
});
afterEach(async () => {
  await pool.close();
  await service.close();
});
const step = idracBios.steps!.find(({ step: name }) => name === 'apply_configuration')!;
const made = (): ReturnType<typeof bmcTask> =>
  bmcTask({
    node: { driver: 'idrac', provision_state: 'cleaning', driver_info: { redfish_address: service.url } },
    driver: { bios: idracBios, deploy: fakeDeploy },
    options: { 'redfish.connection_attempts': 1 },
    connections: { redfish: pool },
  });
const apply = ({ task } = made()): Promise<Outcome> => step.run(task, { settings: [{ name: 'Quiet', value: 'On' }] });

it('an older job with BIOS settings that waits is deleted, and no other job', async () => {
  expect(await apply()).toMatchObject({ kind: 'wait' });
  expect(dell.asked('clear')).toEqual([{ JobID: 'JID_3' }]);
  expect(service.asked.filter(({ method }) => method === 'PATCH')).toHaveLength(2);
});
it.each([
  ['another refusal', 'SYS428', undefined],
  ['a queue without such a job', 'SYS011', { Members: [] }],
])('%s fails the step', async (_, message, jobs) => {
  refused = message;
  if (jobs) service.resources[JOBS] = jobs;
  await expect(apply()).rejects.toThrow(`refused with ${message}`);
  expect(dell.asked('clear')).toEqual([]);
});
it('settings that are called read-only for a moment are sent once more', async () => {
  let refusals = 1;
  dell.other = ({ method }) =>
    method !== 'PATCH' ? undefined : refusals-- > 0 ? refusal('PropertyNotWritable') : { status: 200, body: {} };
  expect(await apply()).toMatchObject({ kind: 'wait' });
  refusals = 2;
  await expect(apply()).rejects.toThrow('refused with PropertyNotWritable');
  expect(dell.asked('clear')).toEqual([]);
});
it.each<[string, object, Outcome['kind']]>([
  ['is scheduled', { TaskState: 'Pending', Oem: { Dell: { MessageId: 'JCP001' } } }, 'wait'],
  ['has failed', { TaskState: 'Exception', Messages: [{ Message: 'why' }] }, 'failed'],
  ['never begins (PR30)', { TaskState: 'Pending', Oem: { Dell: { MessageId: 'PR30', Message: 'initialization failure' } } }, 'failed'],
])('the job of the settings that %s', async (_, body, kind) => {
  refused = undefined;
  const { other } = dell;
  dell.other = (asked, ...more) => {
    const answer = other(asked, ...more);
    return asked.method === 'PATCH' && answer !== 'hang' ? { ...answer, status: 202, headers: { location: taskPath('JID_7') } } : answer;
  };
  service.resources[taskPath('JID_7')] = body;
  Object.assign(service.resources[SYSTEM] as object, { BootProgress: { LastState: 'OSRunning' } });
  const tested = made();
  expect(await apply(tested)).toMatchObject({ kind: 'wait' });
  expect(await step.poll!(tested.task, {})).toMatchObject({ kind });
});
