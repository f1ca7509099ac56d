import type { Outcome } from '../../../drivers/interfaces';
import { idracManagement } from '../../../drivers/idrac/management';
import { fakeDeploy } from '../../../drivers/fake/fake';
import type { NodeRecord } from '../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { NODE_UUID, type TestTask } from '../../support/task';
import { SYSTEM, redfishService, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';
import { MANAGER, dellService, refusal, type DellService } from './dell-service';

let service: RedfishService;
let pool: RedfishPool;
let dell: DellService;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  dell = dellService(service);
});
afterEach(async () => {
  await pool.close();
  await service.close();
});
const bench = (node: Partial<NodeRecord> = {}): TestTask & { readonly slept: readonly number[] } =>
  bmcTask({
    node: { driver: 'idrac', provision_state: 'cleaning', driver_info: { redfish_address: service.url }, ...node },
    driver: { management: idracManagement, deploy: fakeDeploy },
    options: { 'redfish.connection_attempts': 1, 'redfish.connection_retry_interval': 0 },
    connections: { redfish: pool },
  });
const run = (name: string, { task }: TestTask = bench()): Promise<Outcome> =>
  idracManagement.steps!.find(({ step }) => step === name)!.run(task, {});
/** From its reset on, the iDRAC breaks connections off for so many pauses of the step. */
function goesAway({ slept }: { readonly slept: readonly number[] }, pauses: number): void {
  dell.other = ({ path }, response) => {
    if (path !== '/redfish/v1/' || dell.asked('reset').length === 0 || slept.length > pauses) return undefined;
    response.destroy();
    return 'hang';
  };
}

it('clear_job_queue deletes all jobs', async () => {
  expect(await run('clear_job_queue')).toEqual({ kind: 'done' });
  expect(dell.asked('clear')).toEqual([{ JobID: 'JID_CLEARALL' }]);
});
it('a step fails with the errors of all managers, as in Ironic, but not while the node becomes manageable', async () => {
  delete (service.resources[MANAGER] as { Links: { Oem: { Dell: Record<string, unknown> } } }).Links.Oem.Dell['DellJobService'];
  await expect(run('clear_job_queue')).rejects.toMatchObject({
    name: 'DriverOperationError',
    message:
      `Redfish exception occurred. Error: In system ${SYSTEM} for node ${NODE_UUID} all managers failed: clear job queue. Errors: ` +
      `['Manager iDRAC.Embedded.1: The attribute Links/Oem/Dell/DellJobService is missing from the resource ${MANAGER}']`,
  });
  expect(await run('clear_job_queue', bench({ provision_state: 'verifying' }))).toEqual({ kind: 'done' });
});
it('a system without managers is named', async () => {
  (service.resources[SYSTEM] as Record<string, unknown>)['Links'] = {};
  service.resources['/redfish/v1/'] = { Systems: { '@odata.id': '/redfish/v1/Systems' } };
  await expect(run('clear_job_queue')).rejects.toThrow(`Redfish exception occurred. Error: System ${SYSTEM} has no managers`);
});

describe('reset_idrac', () => {
  const NOT_READY = { status: 200, body: { LCStatus: 'InUse', RTStatus: 'Ready' } };
  it('waits until the iDRAC is gone, back, and ready', async () => {
    const tested = bench();
    goesAway(tested, 2);
    dell.answers.ready!.unshift(NOT_READY, { status: 503, body: {} });
    expect(await run('reset_idrac', tested)).toEqual({ kind: 'done' });
    expect(dell.asked('reset')).toEqual([{ Force: 'Graceful' }]);
    expect(dell.asked('ready')).toHaveLength(3);
    // Two probes until it counts as gone, three until it counts as back, and two until it is ready.
    expect(tested.slept).toEqual([10_000, 10_000, 10_000, 10_000, 10_000, 60_000, 10_000, 10_000]);
  });
  it('fails if the iDRAC never goes away', async () => {
    await expect(run('reset_idrac')).rejects.toThrow(/all managers failed: reset iDRAC\. .* did not become not reachable after its reset/);
  });
  it.each([
    ['is away', 2, [10_000, 10_000, 10_000, 10_000, 60_000]],
    ['is back already', 0, [...Array.from({ length: 24 }, () => 10_000), 10_000, 10_000, 60_000].slice(1)],
  ])('goes on with a reset that another conductor asked for, while the iDRAC %s', async (_, pauses, slept) => {
    const tested = bench({ driver_internal_info: { idrac_reset: true } });
    dell.other = ({ path }, response) => {
      if (path !== '/redfish/v1/' || tested.slept.length >= pauses) return undefined;
      response.destroy();
      return 'hang';
    };
    expect(await run('reset_idrac', tested)).toEqual({ kind: 'done' });
    expect(dell.asked('reset')).toEqual([]);
    expect(tested.slept).toEqual(slept);
    expect(tested.node().driver_internal_info).not.toHaveProperty('idrac_reset');
  });
  it('known_good_state clears the jobs too, after the reset', async () => {
    const ended = await run('known_good_state', bench({ provision_state: 'verifying' }));
    expect([ended, dell.asked('clear')]).toEqual([{ kind: 'done' }, [{ JobID: 'JID_CLEARALL' }]]);
    const order = service.asked.filter(({ method }) => method === 'POST').map(({ path }) => path.split('.').at(-1));
    expect(order).toEqual(['iDRACReset', 'DeleteJobQueue']);
  });
});

describe('boot by HTTP where UefiHttp is not offered', () => {
  const BIOS = `${SYSTEM}/Bios`;
  const OPTIONS = `${SYSTEM}/BootOptions`;
  const set = async (): Promise<void> => {
    const { task } = bench();
    Object.defineProperty(task, 'ports', { value: [{ address: '52:54:00:00:00:01', pxe_enabled: true }] });
    await idracManagement.setBootDevice(task, 'uefihttp', false);
  };
  const machine = (enabled: 'Enabled' | 'Disabled'): void => {
    service.resources[BIOS] = { Attributes: { HttpDev1EnDis: enabled } };
    const members = enabled === 'Enabled' ? [`${OPTIONS}/Boot0004`] : [];
    service.resources[OPTIONS] = { Members: members.map((path) => ({ '@odata.id': path })) };
    service.resources[`${OPTIONS}/Boot0004`] = {
      Id: 'Boot0004',
      BootOptionReference: 'Boot0004',
      DisplayName: 'HTTP Device 1: Integrated NIC 1 Port 1 Partition 1',
      UefiDevicePath: 'PciRoot(0x0)/Pci(0x1,0x0)/MAC(525400000001,0x1)/IPv4(0.0.0.0)/Uri()',
    };
    Object.assign(service.resources[SYSTEM] as object, {
      Bios: { '@odata.id': BIOS },
      Boot: {
        BootSourceOverrideEnabled: 'Disabled',
        'BootSourceOverrideTarget@Redfish.AllowableValues': ['Pxe', 'Hdd', 'UefiBootNext'],
        BootOptions: { '@odata.id': OPTIONS },
      },
    });
  };
  it('uses the option HTTP Device 1, once the BIOS has it', async () => {
    machine('Enabled');
    const patches: unknown[] = [];
    dell.other = ({ method, body }) => {
      if (method !== 'PATCH') return undefined;
      patches.push(body);
      const system = service.resources[SYSTEM] as { Boot: object };
      Object.assign(system.Boot, (body as { Boot: object }).Boot);
      return { status: 204 };
    };
    await set();
    expect(patches).toEqual([
      { Boot: { BootSourceOverrideTarget: 'UefiBootNext', BootNext: 'Boot0004', BootSourceOverrideEnabled: 'Once' } },
    ]);
  });
  it('names the setting that the BIOS needs, and changes nothing', async () => {
    machine('Disabled');
    await expect(set()).rejects.toThrow(/not from UefiHttp.*\(the BIOS setting HttpDev1EnDis is Disabled: .*HttpDev1Interface/s);
    expect(service.asked.filter(({ method }) => method === 'PATCH')).toEqual([]);
  });
});

const ATTRIBUTES = `${MANAGER}/Oem/Dell/DellAttributes/iDRAC.Embedded.1`;
describe('a step that the iDRAC refuses', () => {
  beforeEach(() => {
    dell.answers.clear = [refusal('SYS520')];
  });
  it('names the lockdown mode', async () => {
    service.resources[ATTRIBUTES] = { Attributes: { 'Lockdown.1.SystemLockdown': 'Enabled' } };
    await expect(run('clear_job_queue')).rejects.toThrow(
      /refused with SYS520.*\(the iDRAC is in lockdown mode, Lockdown\.1\.SystemLockdown: it takes changes of the configuration after that is Disabled\)$/s,
    );
  });
  it.each([
    ['is not locked', { Attributes: { 'Lockdown.1.SystemLockdown': 'Disabled' } }],
    ['shows no attributes', undefined],
  ])('keeps its own words if the iDRAC %s', async (_, attributes) => {
    if (attributes) service.resources[ATTRIBUTES] = attributes;
    else delete service.resources[ATTRIBUTES];
    await expect(run('clear_job_queue')).rejects.toThrow(/^(?!.*lockdown).*refused with SYS520/s);
  });
});
