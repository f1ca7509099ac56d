/** What the product does with a BMC, each as a function that returns what came of it. */
import { redfishBios } from '../../../drivers/redfish/steps/bios';
import { redfishFirmware } from '../../../drivers/redfish/steps/firmware';
import { redfishInspect } from '../../../drivers/redfish/inspect';
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { redfishPower } from '../../../drivers/redfish/power';
import { redfishSensors } from '../../../drivers/redfish/sensors';
import type { Outcome, Power, Step, Task } from '../../../drivers/interfaces';
import { Fault } from '../../../model/errors';
import type { JsonObject } from '../../../model/records';
import { MEDIA } from '../../../simulator/hardware/boot-media';
import { BIOS, biosValues } from '../../../simulator/hardware/bios-settings';
import { NETWORK_MODES, modeOf } from '../../../simulator/hardware/network-modes';
import type { TestBmc } from '../../simulator/redfish-bmc';
import { setPower } from '../power';

/** Runs a step and its polls. The BMC's clock runs on by a minute at each poll. */
async function toEnd(task: Task, bmc: TestBmc, step: Step, args: JsonObject): Promise<Outcome> {
  let outcome = await step.run(task, args);
  for (let polls = 0; outcome.kind === 'wait' && polls < 60; polls++) {
    await new Promise((done) => setTimeout(done, 5));
    bmc.now += 60_000;
    await task.clock.sleep(60_000);
    outcome = await step.poll!(task, args);
  }
  return outcome;
}
const { virtualMedia } = redfishManagement;

export type Operation = (task: Task, bmc: TestBmc) => Promise<unknown>;
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  manage: async (task) => {
    const { power } = await redfishPower.getStatus!(task);
    const vendor = await redfishManagement.detectVendor!(task);
    const mode = await redfishManagement.bootMode!.get(task);
    const components = await redfishFirmware.components!(task);
    const settings = await redfishBios.settings!(task).then(
      ({ length }) => length,
      (error: unknown) => {
        if (error instanceof Fault && error.name === 'UnsupportedDriverExtension') return 'not supported';
        throw error;
      },
    );
    const macs = await redfishManagement.macAddresses!(task);
    return { power, vendor, mode, components: components.map(({ component }) => component), settings, macs };
  },
  power: async (task, bmc) => {
    const states: unknown[] = [];
    for (const order of ['power on', 'rebooting', 'soft rebooting', 'power off'] as const satisfies readonly Power[]) {
      await setPower(redfishPower, task, order, 60);
      states.push(bmc.on);
    }
    return { states, acted: bmc.acted };
  },
  'boot device': async (task, bmc) => {
    await redfishManagement.setBootDevice(task, 'pxe', false);
    const first = bmc.boot;
    await redfishManagement.setBootDevice(task, 'cdrom', false);
    const second = bmc.boot;
    await redfishManagement.setBootDevice(task, 'disk', true);
    return { first, second, third: bmc.boot, shown: await redfishManagement.getBootDevice(task) };
  },
  media: async (task, bmc) => {
    const drives = (): unknown =>
      Object.entries(bmc.system.hardware.get(MEDIA)).map(([drive, medium]) => [drive, medium?.url.split('/').at(-1)]);
    for (const name of ['one.iso', 'two.iso']) bmc.files.set(`/${name}`, 'image');
    await virtualMedia!.attach(task, 'cdrom', `${bmc.filesUrl}/one.iso`, 'http');
    const first = drives();
    await virtualMedia!.attach(task, 'cdrom', `${bmc.filesUrl}/two.iso`, 'http');
    const second = drives();
    await virtualMedia!.detach(task, ['cdrom']);
    return { first, second, last: drives() };
  },
  inspection: async (task) => {
    const found = await redfishInspect.inspect(task);
    if (found.kind !== 'found') return found;
    const { inventory, properties, hooks } = found;
    return { properties, hooks, cpu: inventory.cpu, interfaces: inventory.interfaces, disks: inventory.disks };
  },
  sensors: async (task) => redfishSensors(task),
  firmware: async (task, bmc) => {
    bmc.files.set('/bios.bin', 'firmware bios 9.9\n');
    const step = redfishFirmware.steps!.find(({ priority }) => priority.service === 0)!;
    const outcome = await toEnd(task, bmc, step, { settings: [{ component: 'bios', url: `${bmc.filesUrl}/bios.bin` }] });
    const components = await redfishFirmware.components!(task);
    return { outcome, version: components.find(({ component }) => component === 'bios')?.current_version };
  },
  bios: async (task, bmc) => {
    const step = redfishBios.steps!.find((candidate) => candidate.step === 'apply_configuration')!;
    const outcome = await toEnd(task, bmc, step, { settings: [{ name: 'WatchdogMinutes', value: '7' }] });
    return { outcome, value: biosValues(bmc.system.hardware.get(BIOS))['WatchdogMinutes'] };
  },
  'network ports': async (task, bmc) => {
    const step = redfishManagement.steps!.find((candidate) => candidate.step === 'configure_network_adapters')!;
    const [port] = await redfishManagement.networkPorts!(task);
    const outcome = await toEnd(task, bmc, step, { ports: [{ name: port?.names[0] ?? 'none', mode: 'FibreChannel' }] });
    return { outcome, mode: modeOf(bmc.system.hardware.get(NETWORK_MODES).current, '1') };
  },
};
