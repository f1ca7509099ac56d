/** What is read of a machine for its default config. */
import { machineFacts } from '../../../conductor/steps/machine-facts';
import type { NodeTask } from '../../../conductor/core/node-task';
import type { MergedStep } from '../../../model/rules/default-config';

const step = (owner: string, name: string): MergedStep => ({ interface: owner, step: name, args: new Map() });
/** Fails at everything that it is asked for. */
const untouched = new Proxy({} as NodeTask, {
  get: (_, name) => {
    throw new Error(`${String(name)} was asked for`);
  },
});

it.each([
  [[]],
  [[step('management', 'set_bmc_clock')]],
  [[step('bios', 'factory_reset')]],
  [[step('raid', 'delete_configuration')]],
  [[step('deploy', 'erase_devices')]],
])('asks neither the machine nor the database for %j, which is not compared', async (defaults) => {
  expect(await machineFacts(untouched, defaults, ['bios', 'firmware', 'management', 'raid'])).toEqual({
    facts: { bios: [], firmware: [], networkPorts: [], raidConfig: {} },
    isRead: true,
  });
});
it('asks for the network ports if they are compared', async () => {
  await expect(machineFacts(untouched, [step('management', 'configure_network_adapters')], [])).rejects.toThrow('node was asked for');
});
