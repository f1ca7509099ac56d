/** The settings of the simulated BIOS: their defaults, the values that they may have, and the start that applies changes. */
import { hardwarePart } from './hardware';

export type BiosValue = string | number | boolean | null;
export interface BiosAttribute {
  readonly name: string;
  readonly label: string;
  readonly type: 'Enumeration' | 'String' | 'Integer' | 'Boolean' | 'Password';
  readonly initial: BiosValue;
  readonly values?: readonly string[];
  readonly least?: number;
  readonly most?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly readOnly?: true;
  readonly unique?: true;
}
export interface BiosState {
  /** Values that differ from the defaults. */
  readonly current: Readonly<Record<string, BiosValue>>;
  /** The next start applies these. */
  readonly pending?: Readonly<Record<string, BiosValue>>;
  /** The next start restores the defaults before it applies `pending`. */
  readonly reset?: true;
  /** Milliseconds since the epoch: when a start last applied settings. */
  readonly taken?: number;
}
export const BIOS = hardwarePart<BiosState>('bios', { current: {} });

const ON_OFF = ['Enabled', 'Disabled'] as const;
export const BIOS_ATTRIBUTES: readonly BiosAttribute[] = [
  { name: 'AdminPassword', label: 'Administrator password', type: 'Password', initial: null, minLength: 0, maxLength: 32 },
  { name: 'AssetTag', label: 'Asset tag', type: 'String', initial: '', minLength: 0, maxLength: 63, unique: true },
  { name: 'BootMode', label: 'Boot mode', type: 'Enumeration', initial: 'Uefi', values: ['Uefi', 'LegacyBios'] },
  { name: 'BootRetrySeconds', label: 'Seconds between tries to boot', type: 'Integer', initial: 30, least: 0, most: 300 },
  { name: 'EmbeddedSata', label: 'Embedded SATA controller', type: 'Enumeration', initial: 'Ahci', values: ['Ahci', 'Raid', 'Off'] },
  { name: 'Hyperthreading', label: 'Logical processors', type: 'Enumeration', initial: 'Enabled', values: ON_OFF },
  { name: 'NumaGrouping', label: 'NUMA grouping', type: 'Boolean', initial: true },
  {
    name: 'PowerProfile',
    label: 'Power profile',
    type: 'Enumeration',
    initial: 'Balanced',
    values: ['Balanced', 'Performance', 'PowerSave'],
  },
  { name: 'ProductName', label: 'Product', type: 'String', initial: 'Simulated machine', maxLength: 63, readOnly: true },
  { name: 'QuietBoot', label: 'Quiet boot', type: 'Boolean', initial: false },
  { name: 'SriovGlobalEnable', label: 'SR-IOV', type: 'Enumeration', initial: 'Disabled', values: ON_OFF },
  { name: 'TurboMode', label: 'Turbo mode', type: 'Enumeration', initial: 'Enabled', values: ON_OFF },
  { name: 'Virtualization', label: 'Virtualization', type: 'Enumeration', initial: 'Enabled', values: ON_OFF },
  { name: 'WatchdogMinutes', label: 'Watchdog minutes', type: 'Integer', initial: 5, least: 1, most: 60 },
];
const DEFAULTS: Readonly<Record<string, BiosValue>> = Object.fromEntries(BIOS_ATTRIBUTES.map(({ name, initial }) => [name, initial]));

export const biosValues = ({ current }: BiosState): Readonly<Record<string, BiosValue>> => ({ ...DEFAULTS, ...current });

/** The message of the Base registry, with its arguments, that refuses a value; undefined: the value is valid. */
export function biosProblem(name: string, value: unknown): readonly [message: string, ...args: string[]] | undefined {
  const attribute = BIOS_ATTRIBUTES.find((biosAttribute) => biosAttribute.name === name);
  const shown = JSON.stringify(value) ?? '';
  if (!attribute) return ['PropertyUnknown', name];
  if (attribute.readOnly) return ['PropertyNotWritable', name];
  const { type, values, least = -Infinity, most = Infinity, minLength = 0, maxLength = Infinity } = attribute;
  const expected = type === 'Integer' ? 'number' : type === 'Boolean' ? 'boolean' : 'string';
  if (typeof value !== expected || (type === 'Integer' && !Number.isInteger(value))) return ['PropertyValueTypeError', shown, name];
  if (typeof value === 'number' && (value < least || value > most)) return ['PropertyValueOutOfRange', shown, name];
  if (values && !values.includes(value as string)) return ['PropertyValueNotInList', shown, name];
  if (typeof value === 'string' && (value.length < minLength || value.length > maxLength)) return ['PropertyValueFormatError', shown, name];
  return undefined;
}

/** The settings after a start of the firmware. Returns the same object if nothing was pending. Passwords are not stored. */
export function applyBiosSettings(bios: BiosState, now: number): BiosState {
  if (!bios.pending && !bios.reset) return bios;
  const passwords = BIOS_ATTRIBUTES.filter(({ type }) => type === 'Password').map(({ name }) => [name, null] as const);
  const current = { ...(bios.reset ? {} : bios.current), ...bios.pending, ...Object.fromEntries<BiosValue>(passwords) };
  return { current, taken: now };
}
