/** Reads which hardware types and interfaces the options enable, and checks them against the drivers. */
import type { Options } from '../config/options';
import { suggestionFor } from '../config/suggestion';
import { ANY, type HardwareType, type Interface, type Interfaces } from './interfaces';
import type { Log } from '../model/log';
import { INTERFACE_KINDS, type EnabledHardware, type InterfaceKind } from '../model/records';
import { isElsewhere, successorOf, type RetiredKind } from '../model/rules/retired-hardware';

export const everyKind = <T>(make: (kind: InterfaceKind) => T): Record<InterfaceKind, T> =>
  Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, make(kind)])) as Record<InterfaceKind, T>;

/** The enabled interfaces of a type, best first. */
const offered = (type: HardwareType, kind: InterfaceKind, enabled: readonly string[]): readonly string[] =>
  type[kind].filter((name) => enabled.includes(name));
/** Ironic's own defaults of `default_*_interface`. If they are not enabled, they are ignored; Ironic would not start. */
const IRONICS_DEFAULTS: Partial<Record<InterfaceKind, string>> = { storage: 'noop' };
/** Whether nodes of the type may use every enabled interface of this kind. */
export const takesAny = (type: HardwareType, kind: InterfaceKind): boolean => type[kind].includes(ANY);

/** Without one of these, an instance may be reachable from networks from which the operator separates it. */
const ISOLATING: readonly InterfaceKind[] = ['network'];
/** For a node with such an interface: a sentence, or nothing. */
export const hintFor = (kind: InterfaceKind, name: string): string => {
  const instead = successorOf(kind, name);
  return instead === undefined ? '' : ` The interface ${name} is not here: ${instead}.`;
};
/** The names that are not among the known ones: with what to use in place of them, or which one was meant. */
const listed = (kind: RetiredKind, names: readonly string[], known: readonly string[]): string =>
  names
    .map((name) => {
      const meant = isElsewhere(name) ? undefined : suggestionFor(name, known);
      const hint = successorOf(kind, name) ?? (meant === undefined ? undefined : `did you mean ${meant}?`);
      return hint === undefined ? name : `${name} (${hint})`;
    })
    .join(', ');

interface ReadHardware {
  /** The enabled interfaces that exist. */
  readonly enabledOf: Readonly<Record<InterfaceKind, readonly string[]>>;
  /** Hardware type → its interfaces. */
  readonly enabled: Readonly<Record<string, EnabledHardware>>;
}
/**
 * Checks the options enabled_*_interfaces and default_*_interface against the drivers. A configuration of Ironic may name hardware types and
 * interfaces that this program does not have: a warning says what happens to their nodes. Throws an Error for the operator, with a line for
 * each problem, when no hardware type is left, when one has no interface of some kind or does not support the configured default, and when
 * an interface cannot be used with the configuration.
 */
export function readHardware(
  options: Options,
  hardwareTypes: Readonly<Record<string, HardwareType>>,
  interfaces: Interfaces,
  log: Log,
): ReadHardware {
  const problems: string[] = [];
  const named = options['DEFAULT.enabled_hardware_types'];
  const typeNames = named.filter((name) => Object.hasOwn(hardwareTypes, name));
  const unknown = named.filter((name) => !typeNames.includes(name));
  const known = Object.keys(hardwareTypes).sort().join(', ');
  if (named.length === 0) throw new Error('[DEFAULT]enabled_hardware_types is empty: no node could be served');
  const listedTypes = (names: readonly string[]): string => listed('hardware type', names, Object.keys(hardwareTypes));
  const wrong = typeNames.length === 0 ? unknown : unknown.filter((name) => !isElsewhere(name));
  if (wrong.length > 0) problems.push(`[DEFAULT]enabled_hardware_types: unknown hardware types: ${listedTypes(wrong)}; there are ${known}`);
  else if (unknown.length > 0)
    log.warn(
      `[DEFAULT]enabled_hardware_types: not available: ${listedTypes(unknown)}: nodes with such a driver stay in the database, but no ` +
        `conductor serves them, until they get another driver (of ${typeNames.join(', ')})`,
    );

  const listedOf = (kind: InterfaceKind, names: readonly string[]): string => listed(kind, names, Object.keys(interfaces[kind]));
  const exists = (kind: InterfaceKind, name: string): boolean => Object.hasOwn(interfaces[kind], name);
  const enabledOf = everyKind((kind) => {
    const named = options[`DEFAULT.enabled_${kind}_interfaces`] ?? [];
    // As in Ironic, an empty list means the first interface of each enabled type.
    const wanted =
      named.length > 0 ? named : typeNames.flatMap((name) => hardwareTypes[name]![kind].find((candidate) => exists(kind, candidate)) ?? []);
    const available = [...new Set(wanted)].filter((name) => Object.hasOwn(interfaces[kind], name));
    const missing = wanted.filter((name) => !available.includes(name));
    // A configuration of Ironic may name interfaces that this version does not have: they are only logged.
    if (missing.length > 0)
      log.warn(
        `[DEFAULT]enabled_${kind}_interfaces: not available: ${listedOf(kind, missing)}: nodes that set one of these need another one`,
      );
    return available;
  });

  for (const kind of INTERFACE_KINDS)
    for (const name of enabledOf[kind]) {
      const reason = (interfaces[kind] as Readonly<Record<string, Interface>>)[name]!.cannotLoad?.(options);
      if (reason !== undefined) problems.push(`Driver, hardware type or interface ${name} could not be loaded. Reason: ${reason}.`);
    }

  /** The configured defaults that this program has. */
  const preferredOf = everyKind((kind) => {
    const option = `DEFAULT.default_${kind}_interface` as const;
    const preferred = options[option];
    if (preferred === null || preferred === IRONICS_DEFAULTS[kind] || exists(kind, preferred)) return preferred;
    const others = enabledOf[kind].length > 0 ? enabledOf[kind].join(', ') : 'none is enabled';
    const problem = `[DEFAULT]default_${kind}_interface = ${listedOf(kind, [preferred])}: not available`;
    if (ISOLATING.includes(kind) || !isElsewhere(preferred))
      problems.push(`${problem}: choose from [DEFAULT]enabled_${kind}_interfaces, of which are available: ${others}`);
    else
      log.warn(
        `${problem}: nodes that do not set one get the first that their hardware type supports, of those that are enabled and available ` +
          `(${others}); to choose one, set this option to it`,
      );
    return null;
  });

  const enabledFor = (typeName: string): EnabledHardware => {
    const type = hardwareTypes[typeName]!;
    const enabled = everyKind((kind) => offered(type, kind, enabledOf[kind]));
    const defaults = everyKind((kind) => {
      const preferred = preferredOf[kind];
      const possible = takesAny(type, kind) ? enabledOf[kind] : enabled[kind];
      if (preferred !== null && preferred !== IRONICS_DEFAULTS[kind] && !possible.includes(preferred))
        problems.push(
          `[DEFAULT]default_${kind}_interface = ${preferred}: ` +
            (enabledOf[kind].includes(preferred)
              ? `hardware type ${typeName} does not support this interface, of [DEFAULT]enabled_hardware_types`
              : `not enabled: choose from [DEFAULT]enabled_${kind}_interfaces, of which are available: ${enabledOf[kind].join(', ')}`),
        );
      const hasService = (value: string): boolean =>
        (interfaces[kind] as Readonly<Record<string, Interface>>)[value]!.hasService?.(options) ?? true;
      const name = preferred !== null && possible.includes(preferred) ? preferred : (enabled[kind].find(hasService) ?? enabled[kind][0]);
      if (name === undefined)
        problems.push(
          `hardware type ${typeName} would have no ${kind} interface: enable one of ${type[kind].filter((candidate) => exists(kind, candidate)).join(', ')} ` +
            `in [DEFAULT]enabled_${kind}_interfaces`,
        );
      return name ?? '';
    });
    return { enabled, defaults };
  };
  const enabled = Object.fromEntries(typeNames.map((name) => [name, enabledFor(name)]));
  if (problems.length > 0) throw new Error([...new Set(problems)].join('\n'));
  return { enabledOf, enabled };
}
