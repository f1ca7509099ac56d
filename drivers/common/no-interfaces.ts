/** Interfaces that a node does not have: every use is refused, `validate` too, as clients of Ironic see it. */
import { Fault } from '../../model/errors';
import type { InterfaceKind } from '../../model/records';
import type { ConsoleInterface, InspectInterface, Interface, RaidInterface, RescueInterface, Task } from '../interfaces';

const refusal =
  (extension: InterfaceKind) =>
  async (task: Task): Promise<never> => {
    throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension });
  };
const without = (kind: InterfaceKind): Interface => ({ validate: refusal(kind) });

export const noBios = without('bios');
const noScreen = refusal('console');
export const noConsole: ConsoleInterface = { validate: noScreen, start: noScreen, stop: noScreen, get: noScreen };
export const noFirmware = without('firmware');
export const noRaid: RaidInterface = { ...without('raid'), validateConfig: refusal('raid') };
export const noRescue: RescueInterface = { ...without('rescue'), rescue: refusal('rescue'), unrescue: refusal('rescue') };
export const noVendor = without('vendor');
export const noInspect: InspectInterface = { ...without('inspect'), inspect: refusal('inspect') };
