/** Reads which hardware types and interfaces the options enable. */
import type { Options } from '../../config/options';
import { ANY, type Driver, type HardwareType, type Interface, type Interfaces } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { Log } from '../../model/log';
import { INTERFACE_KINDS, type EnabledHardware, type InterfaceFields, type InterfaceKind } from '../../model/records';
import { repr } from '../../model/python';
import { fenced } from './fenced';
import type { Hardware, InterfaceNames } from './hardware';

/** Ironic's class names, which its messages use. */
const CLASSES: Readonly<Record<string, string>> = {
  'fake-hardware': 'FakeHardware',
  ipmi: 'IPMIHardware',
  redfish: 'RedfishHardware',
  'manual-management': 'ManualManagementHardware',
};

const field = (kind: InterfaceKind): `${InterfaceKind}_interface` => `${kind}_interface`;
const everyKind = <T>(make: (kind: InterfaceKind) => T): Record<InterfaceKind, T> =>
  Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, make(kind)])) as Record<InterfaceKind, T>;

/** The enabled interfaces of a type, best first. */
const offered = (type: HardwareType, kind: InterfaceKind, enabled: readonly string[]): readonly string[] =>
  type[kind].filter((name) => enabled.includes(name));
/** Ironic's own defaults of `default_*_interface`. If they are not enabled, they are ignored; Ironic would not start. */
const IRONICS_DEFAULTS: Partial<Record<InterfaceKind, string>> = { storage: 'noop' };
/** Whether nodes of the type may use every enabled interface of this kind. */
const takesAny = (type: HardwareType, kind: InterfaceKind): boolean => type[kind].includes(ANY);

/**
 * Checks the options enabled_*_interfaces and default_*_interface against the drivers. Throws an Error for the operator when a hardware
 * type is unknown, has no interface of some kind, or does not support the configured default. Also throws it when an interface cannot be
 * used with the configuration.
 */
export function createHardware(
  options: Options,
  hardwareTypes: Readonly<Record<string, HardwareType>>,
  interfaces: Interfaces,
  log: Log,
): Hardware {
  const typeNames = options['DEFAULT.enabled_hardware_types'];
  const unknown = typeNames.filter((name) => !Object.hasOwn(hardwareTypes, name));
  if (unknown.length > 0) {
    const known = Object.keys(hardwareTypes).sort().join(', ');
    throw new Error(`[DEFAULT]enabled_hardware_types: unknown hardware types: ${unknown.join(', ')}; there are ${known}`);
  }
  if (typeNames.length === 0) throw new Error('[DEFAULT]enabled_hardware_types is empty: no node could be served');

  const guarded = fenced(interfaces);
  const enabledOf = everyKind((kind) => {
    const named = options[`DEFAULT.enabled_${kind}_interfaces`] ?? typeNames.map((name) => hardwareTypes[name]![kind][0]!);
    const known = [...new Set(named)].filter((name) => Object.hasOwn(interfaces[kind], name));
    const missing = named.filter((name) => !known.includes(name));
    // A configuration of Ironic may name interfaces that this version does not have: they are only logged.
    if (missing.length > 0) log.warn(`[DEFAULT]enabled_${kind}_interfaces: not available: ${missing.join(', ')}`);
    return known;
  });

  for (const kind of INTERFACE_KINDS)
    for (const name of enabledOf[kind]) {
      const reason = (interfaces[kind] as Readonly<Record<string, Interface>>)[name]!.cannotLoad?.(options);
      if (reason !== undefined) throw new Error(`Driver, hardware type or interface ${name} could not be loaded. Reason: ${reason}.`);
    }

  const enabledFor = (typeName: string): EnabledHardware => {
    const type = hardwareTypes[typeName]!;
    const enabled = everyKind((kind) => offered(type, kind, enabledOf[kind]));
    const defaults = everyKind((kind) => {
      const preferred = options[`DEFAULT.default_${kind}_interface`];
      const possible = takesAny(type, kind) ? enabledOf[kind] : enabled[kind];
      if (preferred !== null && preferred !== IRONICS_DEFAULTS[kind] && !possible.includes(preferred))
        throw new Error(
          `[DEFAULT]default_${kind}_interface = ${preferred}: ` +
            (enabledOf[kind].includes(preferred)
              ? `hardware type ${typeName} does not support this interface, of [DEFAULT]enabled_hardware_types`
              : `not enabled: choose from [DEFAULT]enabled_${kind}_interfaces, of which are available: ${enabledOf[kind].join(', ')}`),
        );
      const hasService = (one: string): boolean =>
        (interfaces[kind] as Readonly<Record<string, Interface>>)[one]!.hasService?.(options) ?? true;
      const name = preferred !== null && possible.includes(preferred) ? preferred : (enabled[kind].find(hasService) ?? enabled[kind][0]);
      if (name === undefined)
        throw new Error(
          `hardware type ${typeName} would have no ${kind} interface: enable one of ${type[kind].filter((one) => one !== ANY).join(', ')} ` +
            `in [DEFAULT]enabled_${kind}_interfaces`,
        );
      return name;
    });
    return { enabled, defaults };
  };
  const enabled = Object.fromEntries(typeNames.map((name) => [name, enabledFor(name)]));

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
          `Valid interfaces are ${repr([...enabledOf[kind]].sort())}.`,
      });
    if (!enabledType(driver).enabled[kind].includes(name) && !takesAny(hardwareTypes[driver]!, kind))
      throw new Fault('InvalidParameterValue', {
        message: `${kind} interface implementation '${name}' is not supported by hardware type ${CLASSES[driver] ?? driver}.`,
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
    driverOf: (node) => {
      const names = fill(node.driver, node);
      return Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, guarded[kind][names[field(kind)]!]])) as unknown as Driver;
    },
  };
}
