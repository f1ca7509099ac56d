/** The enabled hardware types and interfaces, the defaults of a type, and the driver object of a node. */
import type { Driver, Interfaces } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { EnabledHardware, InterfaceFields, InterfaceKind } from '../../model/records';

export type InterfaceNames = Partial<InterfaceFields>;
export interface Hardware {
  /** By hardware type: the interfaces that clients see. */
  readonly enabled: Readonly<Record<string, EnabledHardware>>;
  /**
   * All interfaces of a node: named ones are checked, the others are the type's defaults.
   * Throws DriverNotFound, InvalidParameterValue (an interface that is not enabled, or that the type does not support).
   */
  fill(driver: string, names: InterfaceNames): InterfaceFields;
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
