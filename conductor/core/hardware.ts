/** Which hardware types and interfaces are enabled here, what a type takes by default, and the driver object of a node. */
import type { Driver, Interfaces } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { EnabledHardware, InterfaceFields, InterfaceKind } from '../../model/records';

export type InterfaceNames = Partial<InterfaceFields>;
export interface Hardware {
  /** Per enabled hardware type: what is registered for clients to see. */
  readonly enabled: Readonly<Record<string, EnabledHardware>>;
  /**
   * All interfaces of a node: the named ones checked, the others filled with the type's defaults.
   * Throws DriverNotFound, InvalidParameterValue (an interface that is not enabled, not supported, or has no default).
   */
  fill(driver: string, names: InterfaceNames): InterfaceFields;
  /** Throws as `fill`. */
  driverOf(node: { readonly driver: string } & InterfaceFields): Driver;
}

/** The interface that a hardware type takes when a node names none. Throws DriverNotFound. */
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
