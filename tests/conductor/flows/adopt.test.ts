/** Adoption touches nothing, and needs nothing that only a later boot of the instance needs. */
import { adopt } from '../../../conductor/flows/adopt';
import { ramdiskDeploy } from '../../../drivers/agent/ramdisk-deploy';
import { ipxeBoot } from '../../../drivers/boot-interfaces/network-boot';
import { fakeDeploy } from '../../../drivers/fake/fake';
import { done, type BootInterface, type Driver } from '../../../drivers/interfaces';
import { noopManagement } from '../../../drivers/noop';
import type { JsonObject } from '../../../model/records';
import { flowTask, type FlowTask } from '../../support/flow-task';

const RAMDISK = { 'conductor.deploy_kernel': 'http://192.0.2.1/k', 'conductor.deploy_ramdisk': 'http://192.0.2.1/r' };
const adopted = async (driver: Partial<Driver>, instance_info: JsonObject = {}): Promise<FlowTask> => {
  const node = {
    provision_state: 'adopting',
    power_state: 'power on',
    instance_info,
    properties: { capabilities: 'boot_mode:uefi' },
  } as const;
  const one = flowTask({ node, driver, options: RAMDISK });
  expect(await adopt.begin(one.task)).toEqual(done);
  return one;
};

it.each<[string, BootInterface, RegExp]>([
  ['a live ISO whose URL is lost', ipxeBoot, /parameters are missing .*Missing are: \['kernel', 'ramdisk'\]/],
  [
    'a live ISO, while the BMC does not answer',
    { ...ipxeBoot, validate: async () => Promise.reject(new Error('the BMC does not answer')) },
    /the BMC does not answer/,
  ],
])('adopts an instance of %s, and says that it cannot boot again', async (_, boot, reason) => {
  const { events, complaints, node } = await adopted({ deploy: ramdiskDeploy, boot });
  expect(events).toEqual([expect.stringMatching(/^record adoption: Adopted an instance that the server cannot boot again: /)]);
  expect(events[0]).toMatch(reason);
  expect(complaints.join()).toMatch(reason);
  expect(node().last_error).toBeNull();
});
it('says nothing of an instance that can boot again', async () => {
  const { events, complaints } = await adopted({ deploy: ramdiskDeploy, boot: ipxeBoot }, { boot_iso: 'http://192.0.2.1/live.iso' });
  expect([events, complaints]).toEqual([[], []]);
});

it('leaves the boot mode of the machine as it is', async () => {
  const set: string[] = [];
  const management = {
    ...noopManagement,
    bootMode: { get: async () => 'bios' as const, set: async (_: unknown, mode: string) => void set.push(mode) },
  };
  const deploy = { ...fakeDeploy, prepare: async (task: FlowTask['task']) => ipxeBoot.prepareInstance(task) };
  const { events } = await adopted({ deploy, boot: ipxeBoot, management });
  expect(set).toEqual([]);
  expect(events).toEqual([]);
});
