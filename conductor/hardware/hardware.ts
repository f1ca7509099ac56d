/** The enabled hardware types and interfaces, the defaults of a type, and the driver object of a node. */
import type { Options } from '../../config/options';
import type { Driver, Interfaces } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { EnabledHardware, InterfaceFields, InterfaceKind, NodeRecord } from '../../model/records';

export type InterfaceNames = Partial<InterfaceFields>;
export interface Hardware {
  /** By hardware type: the interfaces that clients see. */
  readonly enabled: Readonly<Record<string, EnabledHardware>>;
  /**
   * All interfaces of a node: named ones are checked, the others are the type's defaults.
   * Throws DriverNotFound, InvalidParameterValue (an interface that is not enabled, or that the type does not support).
   */
  fill(driver: string, names: InterfaceNames): InterfaceFields;
  /**
   * The name of a node's BMC: nodes may share a BMC. Reads of power states use the UUID instead: thousands of nodes may share an address.
   */
  bmcOf(node: Pick<NodeRecord, 'uuid' | 'driver' | 'driver_info'>): string;
  /** Options for work whose client waits for the answer: see HardwareType. */
  readonly impatient: Partial<Options>;
  /** Throws as `fill`. */
  driverOf(node: { readonly driver: string } & InterfaceFields): Driver;
}

/** The interface of a node that names none: the default of its hardware type. Throws DriverNotFound. */
export function defaultInterface<Kind extends InterfaceKind>(
  { hardware, interfaces }: { readonly hardware: Hardware; readonly interfaces: Interfaces },
  driver: string,
  kind: Kind,
): Driver[Kind] {
  const type = Object.hasOwn(hardware.enabled, driver) ? hardware.enabled[driver] : undefined;
  if (!type) throw new Fault('DriverNotFound', { driver_name: driver });
  const named: Readonly<Record<string, Driver[Kind]>> = interfaces[kind];
  return named[type.defaults[kind]!]!;
}
