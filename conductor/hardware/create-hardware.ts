/** The hardware that the options enable, and the drivers of nodes. */
import type { Options } from '../../config/options';
import type { Driver, HardwareType, Interfaces } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { Log } from '../../model/log';
import { INTERFACE_KINDS, type EnabledHardware, type InterfaceFields, type InterfaceKind } from '../../model/records';
import { repr } from '../../model/python';
import { everyKind, hintFor, readHardware, takesAny } from '../../drivers/read-hardware';
import { fenced } from './fenced';
import type { Hardware, InterfaceNames } from './hardware';

const field = (kind: InterfaceKind): `${InterfaceKind}_interface` => `${kind}_interface`;

/** Makes the drivers of nodes, from the hardware that the options enable (`readHardware`). Throws its Errors. */
export function createHardware(
  options: Options,
  hardwareTypes: Readonly<Record<string, HardwareType>>,
  interfaces: Interfaces,
  log: Log,
): Hardware {
  const guarded = fenced(interfaces);
  const { enabledOf, enabled } = readHardware(options, hardwareTypes, interfaces, log);

  const enabledType = (driver: string): EnabledHardware => {
    const found = Object.hasOwn(enabled, driver) ? enabled[driver] : undefined;
    if (!found) throw new Fault('DriverNotFound', { driver_name: driver });
    return found;
  };
  const check = (driver: string, kind: InterfaceKind, name: string): string => {
    if (!enabledOf[kind].includes(name))
      throw new Fault('InvalidParameterValue', {
        message:
          `Could not find the following interface in the 'ironic.hardware.interfaces.${kind}' entrypoint: ${name}. ` +
          `Valid interfaces are ${repr([...enabledOf[kind]].sort())}.${hintFor(kind, name)}`,
      });
    if (!enabledType(driver).enabled[kind].includes(name) && !takesAny(hardwareTypes[driver]!, kind))
      throw new Fault('InvalidParameterValue', {
        message: `${kind} interface implementation '${name}' is not supported by hardware type ${hardwareTypes[driver]!.className}.`,
      });
    return name;
  };
  const fill = (driver: string, names: InterfaceNames): InterfaceFields => {
    const { defaults } = enabledType(driver);
    const chosen = everyKind((kind) => {
      const name = names[field(kind)];
      return name === undefined || name === null ? defaults[kind] : check(driver, kind, name);
    });
    return Object.fromEntries(INTERFACE_KINDS.map((kind) => [field(kind), chosen[kind]])) as unknown as InterfaceFields;
  };
  return {
    enabled,
    fill,
    bmcOf: ({ uuid, driver, driver_info: info }) =>
      (Object.hasOwn(hardwareTypes, driver) && hardwareTypes[driver]!.bmcOf?.(info)) || `of ${uuid}`,
    impatient: Object.assign({}, ...Object.values(hardwareTypes).map((type) => type.impatient)) as Partial<Options>,
    driverOf: (node) => {
      const names = fill(node.driver, node);
      return Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, guarded[kind][names[field(kind)]!]])) as unknown as Driver;
    },
  };
}
