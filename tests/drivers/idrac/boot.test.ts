import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fakeDeploy } from '../../../drivers/fake/fake';
import { idracVirtualMediaBoot } from '../../../drivers/idrac/boot';
import { idracManagement } from '../../../drivers/idrac/management';
import { redfishPower } from '../../../drivers/redfish/power';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import type { TestTask } from '../../support/task';
import { SYSTEM, redfishService, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';
import { virtualDrives } from '../virtual-drives';
import { MANAGER, dellService, refusal, taskPath, type DellService } from './dell-service';

let folder: string;
let service: RedfishService;
let pool: RedfishPool;
let dell: DellService;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-idrac-'));
  for (const name of ['kernel', 'ramdisk', 'esp']) writeFileSync(join(folder, name), name);
});
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  const drives = virtualDrives(service);
  drives.put(SYSTEM, { '1': { types: ['CD', 'DVD', 'USBStick'] }, '2': { types: ['CD', 'DVD', 'USBStick'] } });
  drives.work();
  const media = service.reply;
  dell = dellService(service);
  dell.other = media;
});
afterEach(async () => {
  await pool.close();
  await service.close();
});
const at = (name: string): string => `file://${join(folder, name)}`;
const bench = (info: object = {}): TestTask & { readonly slept: readonly number[] } =>
  bmcTask({
    node: {
      driver: 'idrac',
      provision_state: 'cleaning',
      boot_interface: 'idrac-redfish-virtual-media',
      properties: { vendor: 'Dell Inc.' },
      driver_info: {
        redfish_address: service.url,
        deploy_kernel: at('kernel'),
        deploy_ramdisk: at('ramdisk'),
        bootloader: at('esp'),
        ...info,
      },
    },
    driver: { management: idracManagement, deploy: fakeDeploy, power: redfishPower, boot: idracVirtualMediaBoot },
    options: {
      'redfish.connection_attempts': 1,
      'deploy.http_url': 'http://10.0.0.1:8080',
      'deploy.external_callback_url': 'http://10.0.0.1:6385',
      'conductor.file_url_allowed_paths': [folder],
    },
    connections: { redfish: pool },
  });
const prepare = ({ task }: TestTask = bench()): Promise<void> => idracVirtualMediaBoot.prepareRamdisk(task, {});
const imported = (once: string): object => ({
  ShareParameters: { Target: ['ALL'] },
  ImportBuffer:
    `<SystemConfiguration><Component FQDD="iDRAC.Embedded.1"><Attribute Name="ServerBoot.1#BootOnce">${once}</Attribute>` +
    '<Attribute Name="ServerBoot.1#FirstBootDevice">VCD-DVD</Attribute></Component></SystemConfiguration>',
});
const insertions = (): readonly string[] =>
  service.asked.filter(({ path }) => path.endsWith('InsertMedia')).map(({ path }) => path.split('/')[6]!);

it.each(['2.84.84.84', '5.10.50.00', '7.00.00.171', '1.20.25.00'])('accepts an iDRAC with the firmware %s', async (version) => {
  Object.assign(service.resources[MANAGER] as object, { FirmwareVersion: version });
  await idracVirtualMediaBoot.validate!(bench().task);
});
it('inserts the ramdisk into the first slot, and makes the iDRAC boot it once, by its configuration', async () => {
  await prepare();
  expect(insertions()).toEqual(['1']);
  expect(dell.asked('import')).toEqual([imported('Enabled')]);
  // The standard's boot device would be a drive of the machine itself.
  expect(service.asked.filter(({ method, path }) => method === 'PATCH' && path === SYSTEM)).toEqual([]);
});
it('the parameters get the second slot, and the medium in the first one stays', async () => {
  await prepare(bench({ config_via_removable: true }));
  expect(insertions()).toEqual(['1', '2']);
  expect(service.asked.filter(({ path }) => path.endsWith('EjectMedia'))).toEqual([]);
});
it('waits for the job of the import, which is not found at first', async () => {
  dell.answers.import = [{ status: 202, headers: { location: taskPath('JID_17') } }];
  let reads = 0;
  const { other } = dell;
  dell.other = (asked, ...more) => {
    if (asked.path !== taskPath('JID_17')) return other(asked, ...more);
    reads++;
    return reads === 1 ? undefined : { status: 200, body: { TaskState: reads === 2 ? 'Running' : 'Completed' } };
  };
  const tested = bench();
  await prepare(tested);
  expect([reads, tested.slept]).toEqual([3, [5000, 5000]]);
});
it.each([
  ['Exception', /the job .*JID_17 ended as Exception: why/],
  ['Running', /the job .*JID_17 is not over after 600 s/],
])('fails with the job of the import that is %s', async (state, message) => {
  dell.answers.import = [{ status: 202, headers: { location: taskPath('JID_17') } }];
  const { other } = dell;
  dell.other = (asked, ...more) =>
    asked.path === taskPath('JID_17') ? { status: 200, body: { TaskState: state, Messages: [{ Message: 'why' }] } } : other(asked, ...more);
  await expect(prepare()).rejects.toThrow(message);
});
it('tries again while another job runs', async () => {
  dell.answers.import = [refusal('RAC0679'), refusal('RAC0679'), { status: 200, body: {} }];
  const tested = bench();
  await prepare(tested);
  expect(tested.slept).toEqual([15_000, 15_000]);
});
it('restarts the machine for configuration that waits, and leaves its power as it was', async () => {
  (service.resources[SYSTEM] as Record<string, unknown>)['PowerState'] = 'Off';
  dell.answers.import = [refusal('LC068'), refusal('LC068'), { status: 200, body: {} }];
  await prepare();
  const resets = service.asked.filter(({ path }) => path.endsWith('ComputerSystem.Reset')).map(({ body }) => body);
  expect(resets).toEqual([{ ResetType: 'On' }, { ResetType: 'ForceOff' }]);
  expect(dell.asked('import')).toHaveLength(3);
});
it('fails for any other refusal at once', async () => {
  dell.answers.import = [refusal('LC999')];
  await expect(prepare()).rejects.toThrow('all managers failed: set virtual boot device.');
  expect(dell.asked('import')).toHaveLength(1);
});
it.each([
  ['VirtualMedia.1.Attached', 'Detached', '7.00.00.171', 'AutoAttach'],
  ['VirtualConsole.1.PluginType', 'eHTML5', '4.40.10.00', 'HTML5'],
])('changes the attribute %s = %s of %s, which keeps media from the machine', async (name, value, version, becomes) => {
  Object.assign(service.resources[MANAGER] as object, { FirmwareVersion: version });
  const path = `${MANAGER}/Oem/Dell/DellAttributes/iDRAC.Embedded.1`;
  service.resources[path] = { Attributes: { 'VirtualMedia.1.Attached': 'AutoAttach', [name]: value } };
  const { other } = dell;
  dell.other = (asked, ...more) => (asked.method === 'PATCH' && asked.path === path ? { status: 200, body: {} } : other(asked, ...more));
  await prepare();
  expect(service.asked.filter((asked) => asked.method === 'PATCH').map(({ body }) => body)).toEqual([{ Attributes: { [name]: becomes } }]);
});
it('an iDRAC without attributes gets the medium all the same', async () => {
  delete service.resources[`${MANAGER}/Oem/Dell/DellAttributes/iDRAC.Embedded.1`];
  await prepare();
  expect(insertions()).toEqual(['1']);
});
