import { fakeDeploy } from '../../../drivers/fake/fake';
import { idracManagement } from '../../../drivers/idrac/management';
import { versionsDigest } from '../../../drivers/redfish/steps/update';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { redfishService, type RedfishService } from '../../wire/redfish/service';
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
const bench = () =>
  bmcTask({
    node: { driver: 'idrac', provision_state: 'cleaning', driver_info: { redfish_address: service.url } },
    driver: { management: idracManagement, deploy: fakeDeploy },
    options: { 'redfish.connection_attempts': 1, 'redfish.connection_retry_interval': 0 },
    connections: { redfish: pool },
  });
const clear = () => idracManagement.steps!.find(({ step }) => step === 'clear_job_queue')!.run(bench().task, {});
const ATTRIBUTES = `${MANAGER}/Oem/Dell/DellAttributes/iDRAC.Embedded.1`;

describe('a step that the iDRAC refuses', () => {
  beforeEach(() => {
    dell.answers.clear = [refusal('SYS520')];
  });
  it('names the lockdown mode', async () => {
    service.resources[ATTRIBUTES] = { Attributes: { 'Lockdown.1.SystemLockdown': 'Enabled' } };
    await expect(clear()).rejects.toThrow(
      /refused with SYS520.*\(the iDRAC is in lockdown mode, Lockdown\.1\.SystemLockdown: it takes changes of the configuration after that is Disabled\)$/s,
    );
  });
  it.each([
    ['is not locked', { Attributes: { 'Lockdown.1.SystemLockdown': 'Disabled' } }],
    ['shows no attributes', undefined],
  ])('keeps its own words if the iDRAC %s', async (_, attributes) => {
    if (attributes) service.resources[ATTRIBUTES] = attributes;
    else delete service.resources[ATTRIBUTES];
    await expect(clear()).rejects.toThrow(/^(?!.*lockdown).*refused with SYS520/s);
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
