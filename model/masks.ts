/** Masks secrets in responses with `******`, and compares secrets. Stored values are never masked. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { isObject } from './json';
import type { Json, JsonObject } from './records';

export const MASK = '******';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
/** Whether both texts are equal. Digests are compared in constant time, so that the duration reveals neither lengths nor contents. */
export const isSameSecret = (left: string, right: string): boolean => timingSafeEqual(digest(left), digest(right));

const SECRET_BYTES = 32;
/** A secret that nobody can guess, as 43 characters that need no escapes in URLs and headers. */
export const newSecret = (random: (bytes: number) => Buffer): string => random(SECRET_BYTES).toString('base64url');

/** A key that contains one of these words, in either case, holds a secret. */
const WORDS = [
  'adminpass',
  'admin_pass',
  'password',
  'auth_token',
  'new_pass',
  'secret_uuid',
  'secret',
  'sys_pswd',
  'token',
  'configdrive',
  'encrypted_key',
  'private_key',
  'fernetkey',
  'sslkey',
  'passphrase',
  'cephclusterfsid',
  'octaviaheartbeatkey',
  'rabbitcookie',
  'cephmanilaclientkey',
  'pacemakerremoteauthkey',
  'designaterndckey',
  'cephadminkey',
  'heatauthencryptionkey',
  'cephclientkey',
  'keystonecredential',
  'barbicansimplecryptokek',
  'cephrgwkey',
  'swifthashsuffix',
  'migrationsshkey',
  'cephmdskey',
  'cephmonkey',
  // Not in Ironic: the K_g key of a BMC, in driver_info.
  'hex_kg_key',
  // Not in Ironic: the PSIDs of disks, in driver_info.
  'opal_psids',
];
const SECRET = new RegExp(WORDS.join('|'), 'i');
const KEY = `(?:${WORDS.join('|')})[0-9]*`;
/** Secrets in texts: `word = value`, `"word": "value"`, `--word value`, `<word>value</word>`. The middle group is masked. */
const TEXTS = [
  new RegExp(`(${KEY}\\s*=\\s*)("[^"]*"|'[^']*'|[^\\s'"]+)()`, 'gi'),
  new RegExp(`(["'][^"']*${KEY}["']\\s*:\\s*u?["'])([^"']*)(["'])`, 'gi'),
  new RegExp(`(--${KEY}\\s+)([^'"=\\s]+)()`, 'gi'),
  new RegExp(`(<${KEY}>)([^<]*)(</${KEY}>)`, 'gi'),
];

/** Tokens of `bloomery token`, anywhere in a text. */
const API_TOKEN = /\bblm_[\w-]{48}/g;
function maskText(value: string, mask: string): string {
  const text = value.includes('blm_') ? value.replace(API_TOKEN, mask) : value;
  return SECRET.test(text) ? TEXTS.reduce((all, pattern) => all.replace(pattern, `$1${mask}$3`), text) : text;
}

/** A URL's user, and the signature of a temporary URL. */
const IN_URL = /(:\/\/)[^\s/@]{1,500}(@)|([?&](?:temp_url_sig|signature|x-amz-signature)=)[^\s&]+/gi;
/** A text of a machine, without the given secrets and without what looks like one. It is short, or cut before. */
export function maskedText(text: string, secrets: readonly string[]): string {
  const known = secrets.reduce((all, secret) => all.replaceAll(secret, MASK), text);
  return maskText(known, MASK).replace(IN_URL, (_, scheme?: string, at?: string, name?: string) =>
    name === undefined ? `${scheme}${MASK}${at}` : `${name}${MASK}`,
  );
}

function maskValue(value: Json, mask: string): Json {
  if (typeof value === 'string') return maskText(value, mask);
  if (Array.isArray(value)) return value.map((item) => maskValue(item, mask));
  return value !== null && typeof value === 'object' ? maskSecrets(value as JsonObject, mask) : value;
}

/** Whether an object names a secret that its member `value` holds, as the settings of BIOS steps do. */
const namesSecret = ({ name, value }: JsonObject): boolean => value !== undefined && typeof name === 'string' && SECRET.test(name);
/**
 * A copy with all secrets masked, at any depth. As in Ironic, an object under a secret key is searched, not masked. Not in Ironic: the value
 * of a setting with the name of a secret.
 */
export function maskSecrets(object: JsonObject, mask = MASK): JsonObject {
  const isNamed = namesSecret(object);
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => {
      const isSecret = SECRET.test(key) || (isNamed && key === 'value');
      return [key, !isObject(value) && isSecret ? mask : maskValue(value, mask)];
    }),
  );
}

/** Further secret keys of driver_info and of instance_info. */
const DRIVER_KEYS = ['snmp_auth_key', 'snmp_priv_key'];
const INSTANCE_KEYS = ['configdrive', 'image_url'];
const MORE_KEYS = [...DRIVER_KEYS, ...INSTANCE_KEYS];
const isSecretKey = (key: string): boolean => SECRET.test(key) || MORE_KEYS.includes(key);
/** Limits in characters for one text and for all values that a message quotes. Searching longer ones for secrets would take too long. */
const MAX_OF_TEXT = 4096;
const MAX_OF_ALL = 64 * 1024;
/** Each item of a list and member of an object counts as this many characters, in addition to its text. */
const OF_VALUE = 4;
/** A copy of a request's data for quotation in a message. Secrets in objects and JSON patches are masked; long texts and lists are cut. */
export function withoutSecrets(value: unknown): unknown {
  let left = MAX_OF_ALL;
  const ofText = (text: string): string => {
    const most = Math.min(left, MAX_OF_TEXT);
    left -= Math.min(text.length, most);
    return text.length > most ? `${maskText(text.slice(0, most), MASK)}…` : maskText(text, MASK);
  };
  /** The first items, as many as the rest of the limit permits; `more` then marks the cut. */
  const cut = <T>(items: readonly T[], more: T): readonly T[] => {
    const most = Math.max(0, Math.floor(left / OF_VALUE));
    left -= OF_VALUE * Math.min(items.length, most);
    return items.length > most ? [...items.slice(0, most), more] : items;
  };
  const ofValue = (item: unknown): unknown => {
    if (Array.isArray(item)) return cut(item as readonly unknown[], '…').map(ofValue);
    if (typeof item === 'string') return ofText(item);
    return typeof item === 'object' && item !== null ? ofObject(item) : item;
  };
  const ofObject = (object: object): object => {
    const { path } = object as { readonly path?: unknown };
    const isSecretPath = typeof path === 'string' && path.split('/').some(isSecretKey);
    const ofMember = (key: string, item: unknown): unknown => {
      const isSecret = isSecretKey(key) || (isSecretPath && key === 'value');
      return isSecret && (typeof item === 'string' || typeof item === 'number') ? MASK : ofValue(item);
    };
    return Object.fromEntries(cut(Object.entries(object), ['…', '…']).map(([key, item]) => [key, ofMember(key, item)]));
  };
  return ofValue(value);
}

const also = (object: JsonObject, keys: readonly string[]): JsonObject =>
  keys.some((key) => object[key])
    ? { ...object, ...Object.fromEntries(keys.filter((key) => object[key]).map((key) => [key, MASK])) }
    : object;

/** Field of a node → its mask for responses. */
export const NODE_MASKS: Readonly<Record<string, (value: JsonObject) => JsonObject>> = {
  driver_info: (value) => also(maskSecrets(value), DRIVER_KEYS),
  driver_internal_info: (value) => maskSecrets(value),
  instance_info: (value) => also(maskSecrets(value), INSTANCE_KEYS),
};
