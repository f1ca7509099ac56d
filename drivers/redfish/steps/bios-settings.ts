/** BIOS attributes (schemas Bios and AttributeRegistry) and the settings that clients see and request: pure functions. */
import { isObject } from '../../../model/json';
import { str } from '../../../model/python';
import type { Json, JsonObject } from '../../../model/records';
import { listOf, member, textOf } from '../../../wire/redfish';
import { isPlainValue, type PlainValue } from '../../common/named-values';
import type { BiosAttributeFacts, BiosAttributeRegistry, BiosSetting } from '../../interfaces';

export type Attributes = Readonly<Record<string, PlainValue>>;

/** Servers have up to about 1500 attributes; each is a row of the database. */
const MAX_ATTRIBUTES = 4000;
const MAX_NAME = 255;
const MAX_ALLOWABLE = 1000;

const NOTHING_KNOWN: BiosAttributeFacts = {
  attribute_type: null,
  allowable_values: null,
  lower_bound: null,
  upper_bound: null,
  min_length: null,
  max_length: null,
  read_only: null,
  reset_required: null,
  unique: null,
};

const integer = (value: unknown): number | null => (Number.isSafeInteger(value) ? (value as number) : null);
const flag = (value: unknown): boolean | null => (typeof value === 'boolean' ? value : null);

/** An enumeration's values by their names, or by their display names where they have none. */
const allowable = (value: unknown): readonly Json[] | null =>
  Array.isArray(value)
    ? listOf(value)
        .slice(0, MAX_ALLOWABLE)
        .flatMap((item) => {
          return textOf(member(item, 'ValueName')) ?? textOf(member(item, 'ValueDisplayName')) ?? [];
        })
    : null;

/** The attributes that a registry (its whole body) describes. */
export function registryOf(body: unknown): BiosAttributeRegistry {
  const entries = listOf(member(body, 'RegistryEntries', 'Attributes')).slice(0, MAX_ATTRIBUTES);
  return new Map(
    entries.flatMap((entry): readonly [string, BiosAttributeFacts][] => {
      const [name, type] = [member(entry, 'AttributeName'), member(entry, 'Type')];
      if (typeof name !== 'string') return [];
      return [
        [
          name,
          {
            attribute_type: typeof type === 'string' ? type.slice(0, MAX_NAME) : null,
            allowable_values: allowable(member(entry, 'Value')),
            lower_bound: integer(member(entry, 'LowerBound')),
            upper_bound: integer(member(entry, 'UpperBound')),
            min_length: integer(member(entry, 'MinLength')),
            max_length: integer(member(entry, 'MaxLength')),
            // Some services (Dell) write Readonly.
            read_only: flag(member(entry, 'ReadOnly') ?? member(entry, 'Readonly')),
            reset_required: flag(member(entry, 'ResetRequired')),
            unique: flag(member(entry, 'IsSystemUniqueProperty')),
          },
        ],
      ];
    }),
  );
}

/** The attributes of a Bios resource or of its settings object. Invalid ones are left out. */
export function attributesOf(body: unknown): Attributes {
  const attributes = member(body, 'Attributes');
  if (!isObject(attributes)) return {};
  const entries = Object.entries(attributes).filter(
    (entry): entry is [string, PlainValue] => entry[0].length <= MAX_NAME && isPlainValue(entry[1]),
  );
  return Object.fromEntries(entries.slice(0, MAX_ATTRIBUTES));
}

const isPassword = (name: string, registry: BiosAttributeRegistry): boolean => registry.get(name)?.attribute_type === 'Password';

/** The settings that are stored and shown to clients: values as text, and none of a password. */
export const settingsOf = (attributes: Attributes, registry: BiosAttributeRegistry): readonly BiosSetting[] =>
  Object.entries(attributes).map(([name, value]) => ({
    name,
    value: value === null || isPassword(name, registry) ? null : str(value),
    ...(registry.get(name) ?? NOTHING_KNOWN),
  }));

/** Attributes whose value can be verified after a change: a service never shows a password. */
export const readable = (attributes: Attributes, registry: BiosAttributeRegistry): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([name]) => !isPassword(name, registry)));

const outside = (size: number, low: number | null, high: number | null): boolean =>
  (low !== null && size < low) || (high !== null && size > high);
const wholeNumber = (value: PlainValue): number | undefined => {
  const number = typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) ? (number as number) : undefined;
};
const truth = (value: PlainValue): boolean | undefined => {
  const word = typeof value === 'string' ? value.toLowerCase() : value;
  return word === 'true' || word === true ? true : word === 'false' || word === false ? false : undefined;
};

/** Attribute type → the value in the service's form; undefined: not a valid value. Other types are sent unchanged. */
const CONVERSIONS: Readonly<Record<string, (value: PlainValue, facts: BiosAttributeFacts) => PlainValue | undefined>> = {
  Enumeration: (value, { allowable_values: allowed }) => (allowed?.length && !allowed.includes(value) ? undefined : value),
  Integer: (value, { lower_bound: low, upper_bound: high }) => {
    const number = wholeNumber(value);
    return number === undefined || outside(number, low, high) ? undefined : number;
  },
  Boolean: truth,
  String: (value, { min_length: low, max_length: high }) => (outside(str(value ?? '').length, low, high) ? undefined : value),
};
/** Without a registry: the type of the current value. */
const typeNow = (value: PlainValue | undefined): string =>
  typeof value === 'number' ? 'Integer' : typeof value === 'boolean' ? 'Boolean' : '';

/** The ending that Supermicro puts to names, which differs with the version of the BIOS. */
const ENDING = /(?:#|_)[0-9A-F]{4}$/;
/** Names of the service by their names without the ending; undefined: several have it. */
function withoutEndings(names: Iterable<string>): ReadonlyMap<string, string | undefined> {
  const found = new Map<string, string | undefined>();
  for (const name of names) {
    if (!ENDING.test(name)) continue;
    const short = name.replace(ENDING, '');
    found.set(short, found.has(short) ? undefined : name);
  }
  return found;
}

/**
 * Converts requested values to the types of the service, and names without an ending to those of the service. Clients send text or other plain JSON.
 * @returns also the names that cannot be set, or not to this value
 */
export function convertSettings(
  requested: ReadonlyMap<string, PlainValue>,
  registry: BiosAttributeRegistry,
  current: Attributes,
): { readonly attributes: Attributes; readonly invalid: readonly string[] } {
  const attributes: (readonly [string, PlainValue])[] = [];
  const invalid: string[] = [];
  const isKnown = (name: string): boolean => registry.has(name) || Object.hasOwn(current, name);
  const whole = withoutEndings(new Set([...Object.keys(current), ...registry.keys()]));
  for (const [asked, value] of requested) {
    const name = isKnown(asked) ? asked : (whole.get(asked) ?? asked);
    const facts = registry.get(name) ?? NOTHING_KNOWN;
    const convert = CONVERSIONS[facts.attribute_type ?? typeNow(current[name])];
    const converted = convert ? convert(value, facts) : value;
    if (facts.read_only || converted === undefined) invalid.push(asked);
    else attributes.push([name, converted]);
  }
  return { attributes: Object.fromEntries(attributes), invalid };
}

/** Some services show numbers as texts. */
const isSame = (shown: unknown, value: unknown): boolean => shown !== undefined && str(shown) === str(value);
/** Whether the values are set already, and no pending setting would change them. */
export const allInPlace = (requested: Attributes, current: Attributes, pending: Attributes): boolean =>
  Object.entries(requested).every(
    ([name, value]) => isSame(current[name], value) && (!Object.hasOwn(pending, name) || isSame(pending[name], value)),
  );

/**
 * The settings that did not take effect. Some services (Dell) list only changed settings as pending, and empty the list afterwards.
 * Others (HPE, Lenovo) always list all attributes.
 */
export function unapplied(requested: Attributes, current: Attributes, pending: Attributes): JsonObject {
  const onlyChanged = Object.keys(pending).length <= Object.keys(requested).length;
  return Object.fromEntries(
    Object.entries(requested).filter(([name, value]) => !isSame(current[name], value) || (onlyChanged && Object.hasOwn(pending, name))),
  );
}
