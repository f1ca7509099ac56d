/**
 * Secrets that an API does not show: Ironic masks them with `******`. Values from a file of the operator replace masked values. Values that
 * remain masked are reported and not written.
 */
import { isObject } from '../../model/json';
import { MASK } from '../../model/masks';
import type { SourceRow } from './source';

/** UUID or name → field → the values that the API masks. `*` is for all nodes. */
export type Secrets = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Ironic also masks parts of texts: `password=******`. */
const isHidden = (value: string): boolean => value.includes(MASK);

/** The paths of masked texts in `value`. */
function hiddenPaths(value: unknown, path: string): readonly string[] {
  if (typeof value === 'string') return isHidden(value) ? [path] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => hiddenPaths(item, `${path}/${key}`));
}
/** A copy without masked members and items. */
function withoutHidden(value: unknown): unknown {
  const isShown = (item: unknown): boolean => typeof item !== 'string' || !isHidden(item);
  if (Array.isArray(value)) return value.filter(isShown).map(withoutHidden);
  if (!isObject(value)) return value;
  const members = Object.entries(value).filter(([, item]) => isShown(item));
  return Object.fromEntries(members.map(([key, item]) => [key, withoutHidden(item)]));
}
/** Replaces masked values only, because the values that the API shows are newer than the file. */
function filled(value: unknown, secret: unknown): unknown {
  if (isObject(value) && isObject(secret))
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, Object.hasOwn(secret, key) ? filled(item, secret[key]) : item]),
    );
  // A list, such as steps, is replaced as a whole.
  if (Array.isArray(value) && Array.isArray(secret)) return secret;
  return typeof value === 'string' && isHidden(value) ? secret : value;
}

type Need =
  /** The resource cannot be used without it. */
  | 'needed'
  /** Only another deployment needs it. */
  | 'optional'
  /** The server or the agent generates a new one. */
  | 'replaced';
/** Ironic's tables → their fields with secrets. */
const FIELDS: Readonly<Record<string, Readonly<Record<string, Need>>>> = {
  nodes: { driver_info: 'needed', instance_info: 'optional', driver_internal_info: 'replaced' },
  volume_targets: { properties: 'needed' },
  deploy_templates: { steps: 'needed' },
  runbooks: { steps: 'needed' },
};
/** Ironic generates this URL for each deployment, so no warning is needed. */
const IMAGE_URL = 'instance_info/image_url';

interface RowWithSecrets {
  readonly row: SourceRow;
  /** Paths of values that are needed and still masked. */
  readonly missing: readonly string[];
  /** Paths of masked values that were left out, and may be needed later. */
  readonly dropped: readonly string[];
}
/** A row with its secrets from the file, and without values that remain masked. */
export function insertSecrets(row: SourceRow, table: string, secrets: Secrets): RowWithSecrets {
  const keys = [row['uuid'], row['name'], ...(table === 'nodes' ? ['*'] : [])];
  const own = keys.flatMap((key) => (typeof key === 'string' && Object.hasOwn(secrets, key) ? [secrets[key]!] : []));
  const whole: Record<string, unknown> = { ...row };
  const hidden: Record<Need, string[]> = { needed: [], optional: [], replaced: [] };
  for (const [field, need] of Object.entries(FIELDS[table] ?? {})) {
    const value = own.reduce<unknown>((shown, item) => filled(shown, item[field]), row[field]);
    hidden[need].push(...hiddenPaths(value, field));
    whole[field] = withoutHidden(value);
  }
  return { row: whole, missing: hidden.needed, dropped: hidden.optional.filter((path) => path !== IMAGE_URL) };
}
