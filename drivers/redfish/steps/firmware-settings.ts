/** The arguments of the firmware steps: lists of updates, validated by tables, and refused in the words of Ironic's schema check. */
import { Fault } from '../../../model/errors';
import { isObject } from '../../../model/json';
import { repr } from '../../../model/python';
import { shortened } from '../../../model/text';

/** The error in a value; undefined: none. */
type MemberCheck = (value: unknown) => string | undefined;
interface ItemSchema {
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, MemberCheck>>;
}

const text: MemberCheck = (value) =>
  typeof value !== 'string' ? `${repr(value)} is not of type 'string'` : value === '' ? `'' should be non-empty` : undefined;
const seconds: MemberCheck = (value) =>
  !Number.isInteger(value)
    ? `${repr(value)} is not of type 'integer'`
    : (value as number) < 1
      ? `${repr(value)} is less than the minimum of 1`
      : undefined;
const SOURCES = ['http', 'local', 'swift'] as const;
export type FirmwareSource = (typeof SOURCES)[number];
const source: MemberCheck = (value) =>
  typeof value !== 'string'
    ? `${repr(value)} is not of type 'string'`
    : SOURCES.some((candidate) => candidate === value)
      ? undefined
      : `${repr(value)} is not one of ${repr(SOURCES)}`;
const component: MemberCheck = (value) =>
  typeof value !== 'string'
    ? `${repr(value)} is not of type 'string'`
    : /^(?:bios|bmc|nic:.*)$/s.test(value)
      ? undefined
      : `${repr(value)} is not valid under any of the given schemas`;

/** Longer lists are not plausible. */
const MAX = 100;

function itemErrors({ required, properties }: ItemSchema, item: unknown): string | undefined {
  if (!isObject(item)) return `${repr(item)} is not of type 'object'`;
  const missing = required.find((name) => !Object.hasOwn(item, name));
  if (missing !== undefined) return `${repr(missing)} is a required property`;
  const others = Object.keys(item).filter((name) => !Object.hasOwn(properties, name));
  if (others.length === 0) return undefined;
  return `Additional properties are not allowed (${others.map((name) => repr(name)).join(', ')} ${others.length === 1 ? 'was' : 'were'} unexpected)`;
}
/** Sorted by name, the last first: of several errors, this is the one that Ironic reports. */
const valueErrors = ({ properties }: ItemSchema, item: object): string | undefined =>
  Object.entries(item)
    .sort(([a], [b]) => (a < b ? 1 : -1))
    .map(([name, value]) => properties[name]?.(value))
    .find((error) => error !== undefined);

function errorOf(schema: ItemSchema, least: number, list: unknown): string | undefined {
  if (!Array.isArray(list)) return `${repr(list)} is not of type 'array'`;
  if (list.length < least) return `${repr(list)} should be non-empty`;
  if (list.length > MAX) return `${MAX} updates are taken at most`;
  const backwards = [...(list as unknown[])].reverse();
  const first = (check: (item: unknown) => string | undefined): string | undefined =>
    backwards.map(check).find((error) => error !== undefined);
  return first((item) => itemErrors(schema, item)) ?? first((item) => valueErrors(schema, item as object));
}
/** Throws InvalidParameterValue. */
function check(schema: ItemSchema, least: number, list: unknown): void {
  const error = errorOf(schema, least, list);
  if (error === undefined) return;
  throw new Fault('InvalidParameterValue', { message: shortened(`Invalid firmware update ${repr(list)}. Errors: ${error}`, 4000) });
}

/** One component's update. */
export interface FirmwareSetting {
  /** bios, bmc, or nic:NAME. */
  readonly component: string;
  readonly url: string;
  readonly wait?: number | undefined;
}
const SETTING: ItemSchema = { required: ['component', 'url'], properties: { component, url: text, wait: seconds } };
/** The argument of `firmware.update`. */
export function firmwareSettings(list: unknown): readonly FirmwareSetting[] {
  check(SETTING, 1, list);
  return list as readonly FirmwareSetting[];
}

/** A firmware file with its checksum. */
export interface FirmwareImage {
  readonly url: string;
  readonly checksum: string;
  readonly wait?: number | undefined;
  readonly source?: FirmwareSource | undefined;
}
const IMAGE: ItemSchema = { required: ['url', 'checksum'], properties: { url: text, checksum: text, wait: seconds, source } };
/** The argument of `management.update_firmware`. */
export function firmwareImages(list: unknown): readonly FirmwareImage[] {
  check(IMAGE, 0, list);
  return list as readonly FirmwareImage[];
}
