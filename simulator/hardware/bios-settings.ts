/** The simulated BIOS's settings: what there are, what may be set, and when it is taken. */
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
  /** What differs from the defaults. */
  readonly current: Readonly<Record<string, BiosValue>>;
  /** What the next start takes. */
  readonly pending?: Readonly<Record<string, BiosValue>>;
  /** The next start takes the defaults, before what is pending. */
  readonly reset?: true;
  /** Milliseconds since the epoch: when settings were taken last. */
  readonly taken?: number;
}

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

export const biosValues = (bios: BiosState | undefined): Readonly<Record<string, BiosValue>> => ({ ...DEFAULTS, ...bios?.current });

/** The Base message and its arguments for a value that may not be set; undefined: it may. */
export function biosProblem(name: string, value: unknown): readonly [message: string, ...args: string[]] | undefined {
  const attribute = BIOS_ATTRIBUTES.find((one) => one.name === name);
  const shown = JSON.stringify(value) ?? '';
  if (!attribute) return ['PropertyUnknown', name];
  if (attribute.readOnly) return ['PropertyNotWritable', name];
  const { type, values, least = -Infinity, most = Infinity, minLength = 0, maxLength = Infinity } = attribute;
  const wanted = type === 'Integer' ? 'number' : type === 'Boolean' ? 'boolean' : 'string';
  if (typeof value !== wanted || (type === 'Integer' && !Number.isInteger(value))) return ['PropertyValueTypeError', shown, name];
  if (typeof value === 'number' && (value < least || value > most)) return ['PropertyValueOutOfRange', shown, name];
  if (values && !values.includes(value as string)) return ['PropertyValueNotInList', shown, name];
  if (typeof value === 'string' && (value.length < minLength || value.length > maxLength)) return ['PropertyValueFormatError', shown, name];
  return undefined;
}

/** The settings after a start of the firmware. A password is taken and never shown. */
export function takeBiosSettings(bios: BiosState | undefined, now: number): BiosState | undefined {
  if (!bios?.pending && !bios?.reset) return bios;
  const passwords = BIOS_ATTRIBUTES.filter(({ type }) => type === 'Password').map(({ name }) => [name, null] as const);
  const current = { ...(bios.reset ? {} : bios.current), ...bios.pending, ...Object.fromEntries<BiosValue>(passwords) };
  return { current, taken: now };
}
