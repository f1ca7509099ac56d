/** Interfaces that a node does not have: every use is refused, `validate` too, as clients of Ironic see it. */
import { Fault } from '../model/errors';
import type { InterfaceKind } from '../model/records';
import type { InspectInterface, Interface, Task } from './interfaces';

const refusal =
  (extension: InterfaceKind) =>
  async (task: Task): Promise<never> => {
    throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension });
  };
const without = (kind: InterfaceKind): Interface => ({ validate: refusal(kind) });

export const noBios = without('bios');
export const noConsole = without('console');
export const noFirmware = without('firmware');
export const noRaid = without('raid');
export const noRescue = without('rescue');
export const noVendor = without('vendor');
export const noInspect: InspectInterface = { ...without('inspect'), inspect: refusal('inspect') };
