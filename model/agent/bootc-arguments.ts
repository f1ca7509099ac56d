/** The arguments of execute_bootc_install: the image in a registry, the secret for it, and what the container's installer is told. */
import type { JsonObject } from '../records';
import { toBoolean } from '../python';
import { AgentError } from './errors';

export interface ImageReference {
  /** As container tools name it: `HOST[:PORT]/NAME[:TAG][@DIGEST]`. */
  readonly name: string;
  /** Host, and port if there is one. */
  readonly registry: string;
}
export interface BootcArguments {
  readonly image: ImageReference;
  /** The entry `auth` of container tools for the registry: base64 of `user:password`. Null: the registry needs no login. */
  readonly auth: string | null;
  /** base64 of the gzipped volume, its URL, or null. */
  readonly configDrive: string | null;
  /** For root of the deployed system; null: none. */
  readonly authorizedKeys: string | null;
  readonly encryptsByTpm: boolean;
}

/** Characters. */
export const MAX_AUTHORIZED_KEYS = 64 * 1024;
const MAX_SECRET = 64 * 1024;
const MAX_REFERENCE = 2048;
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]{0,252}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;
/** OCI distribution specification 1.1, "Pulling manifests". */
const PART = /^[a-z0-9](?:[a-z0-9._-]{0,253}[a-z0-9])?$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;

/** `oci://HOST[:PORT]/NAME[:TAG][@DIGEST]`; undefined: the text is none. A program gets the name as an argument. */
export function readReference(href: string): ImageReference | undefined {
  if (!href.startsWith('oci://') || href.length > MAX_REFERENCE) return undefined;
  const name = href.slice('oci://'.length);
  const slash = name.indexOf('/');
  const registry = name.slice(0, Math.max(0, slash));
  const [path, digest, ...others] = name.slice(slash + 1).split('@') as [string, ...string[]];
  const [repository, tag, ...tags] = path.split(':') as [string, ...string[]];
  const isOne = others.length === 0 && tags.length === 0;
  const isValid = HOST.test(registry) && repository.split('/').every((part) => PART.test(part));
  const isPinned = (tag === undefined || TAG.test(tag)) && (digest === undefined || DIGEST.test(digest));
  return isOne && isValid && isPinned ? { name, registry } : undefined;
}

/** @param node as the step's parameters have it. Throws InvalidCommandParamsError. */
export function readBootcArguments(args: JsonObject, node: JsonObject): BootcArguments {
  const refuse = (text: string): AgentError => new AgentError('InvalidCommandParamsError', text);
  const textOf = (from: JsonObject, name: string, most: number): string | null => {
    const value = from[name] ?? '';
    if (typeof value !== 'string' || value.length > most) throw refuse(`'${name}' must be a text of at most ${most} characters.`);
    return value === '' ? null : value;
  };
  const { image_source: source, oci_pull_secret: secret } = args;
  const image = typeof source === 'string' ? readReference(source) : undefined;
  if (!image) throw refuse("'image_source' must be the oci:// URL of an image in a registry.");
  const info = (node['instance_info'] ?? {}) as JsonObject;
  const encrypts = toBoolean(info['bootc_tpm2_luks'] ?? false);
  if (encrypts === undefined) throw refuse("'bootc_tpm2_luks' must be a boolean.");
  const auth = typeof secret === 'string' && secret.length <= MAX_SECRET ? Buffer.from(secret, 'base64').toString() : (secret ?? '');
  if (typeof auth !== 'string') throw refuse("'oci_pull_secret' must be base64.");
  return {
    image,
    auth: auth === '' ? null : auth,
    configDrive: textOf(args, 'configdrive', Number.MAX_SAFE_INTEGER),
    authorizedKeys: textOf(info, 'bootc_authorized_keys', MAX_AUTHORIZED_KEYS),
    encryptsByTpm: encrypts,
  };
}
