/**
 * The interface of hooks. A hook reads the inspection data and returns changes; it writes nothing. The runner applies all changes at
 * once.
 */
import type { Options } from '../../../config/options';
import { Fault } from '../../../model/errors';
import type { Inventory, JsonObject, NodeRecord, PortChanges, PortRecord } from '../../../model/records';
import type { Accelerator } from '../../hardware/accelerator';

export type Change =
  | { readonly on: 'property'; readonly name: string; readonly value: unknown }
  /** A capability in `properties.capabilities`. */
  | { readonly on: 'capability'; readonly name: string; readonly value: string }
  | { readonly on: 'port'; readonly mac: string; readonly pxeEnabled: boolean; readonly clientId?: string }
  /** Changes the port with this address, which the same inspection may create. */
  | { readonly on: 'port update'; readonly mac: string; readonly changes: PortChanges }
  | { readonly on: 'port removal'; readonly uuid: string }
  /** An undefined value removes the member. */
  | { readonly on: 'plugin_data'; readonly name: string; readonly value: unknown };

export interface HookOptions extends Pick<
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
> {}
export interface InspectionData {
  readonly node: NodeRecord;
  readonly ports: readonly PortRecord[];
  readonly inventory: Inventory;
  /** What the agent sent, with the additions of earlier hooks. */
  readonly pluginData: JsonObject;
  readonly options: HookOptions;
  /** The devices that the hook `accelerators` recognizes. */
  readonly accelerators: readonly Accelerator[];
  /** The inventory of the previous inspection; undefined if there is none, or if no hook uses it. */
  readonly previous?: Inventory | undefined;
}
export type HookFunction = (data: InspectionData) => readonly Change[];
export interface Hook {
  readonly name: string;
  /** Needs the inventory of the previous inspection. */
  readonly usesPrevious?: true;
  /** Hooks that must precede it in the list. */
  readonly after?: readonly string[];
  /** All hooks preprocess before any `apply` runs. If it throws a Fault, the inspection fails with it. */
  readonly preprocess?: HookFunction;
  readonly apply?: HookFunction;
}

export const invalidInventory = (node: NodeRecord, reason: string): Fault => new Fault('InvalidNodeInventory', { node: node.uuid, reason });
/** A failure whose message has no prefix. */
export const plainFailure = (message: string): Fault => new Fault('HardwareInspectionFailure', { message });
export const inspectionFailure = (reason: string): Fault => plainFailure(`Failed to inspect hardware. Reason: ${reason}`);
