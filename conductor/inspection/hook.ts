/** What a hook is: it looks and says what it would change; it writes nothing. The runner applies all of it at once. */
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import type { Inventory, JsonObject, NodeRecord, PortChanges, PortRecord } from '../../model/records';
import type { Accelerator } from './devices';

export type Change =
  | { readonly on: 'property'; readonly name: string; readonly value: unknown }
  /** One of `properties.capabilities`. */
  | { readonly on: 'capability'; readonly name: string; readonly value: string }
  | { readonly on: 'port'; readonly mac: string; readonly pxeEnabled: boolean; readonly clientId?: string }
  /** Of the port with this address, be it made by the same inspection. */
  | { readonly on: 'port update'; readonly mac: string; readonly changes: PortChanges }
  | { readonly on: 'port removal'; readonly uuid: string }
  /** Undefined: it goes. */
  | { readonly on: 'plugin_data'; readonly name: string; readonly value: unknown };

export type HookOptions = Pick<
  Options,
  | 'inspector.add_ports'
  | 'inspector.keep_ports'
  | 'inspector.update_pxe_enabled'
  | 'inspector.cpu_capabilities'
  | 'inspector.disk_partitioning_spacing'
  | 'inspector.extra_hardware_strict'
  | 'inspector.pci_device_alias'
  | 'inspector.physical_network_cidr_map'
  | 'inspector.overwrite_existing'
  | 'inspector.overwrite_existing_hooks'
>;
export interface Seen {
  readonly node: NodeRecord;
  readonly ports: readonly PortRecord[];
  readonly inventory: Inventory;
  /** As the agent sent it, with what earlier hooks added. */
  readonly pluginData: JsonObject;
  readonly options: HookOptions;
  /** Devices that the hook `accelerators` looks for. */
  readonly accelerators: readonly Accelerator[];
  /** What the inspection before this one found; undefined: nothing, or no hook wants it. */
  readonly previous?: Inventory;
}
export type Look = (seen: Seen) => readonly Change[];
export interface Hook {
  readonly name: string;
  /** It compares with the inspection before. */
  readonly wantsPrevious?: true;
  /** Hooks that must stand before it in the list. */
  readonly after?: readonly string[];
  /** Runs for all hooks before any `look`. Throws a Fault: the inspection fails with it. */
  readonly preprocess?: Look;
  readonly look?: Look;
}

export const invalidInventory = (node: NodeRecord, reason: string): Fault => new Fault('InvalidNodeInventory', { node: node.uuid, reason });
/** In just these words. */
export const plainFailure = (message: string): Fault => new Fault('HardwareInspectionFailure', { message });
export const inspectionFailure = (reason: string): Fault => plainFailure(`Failed to inspect hardware. Reason: ${reason}`);
