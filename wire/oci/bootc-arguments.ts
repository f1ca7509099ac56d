/** The arguments of execute_bootc_install: the image in a registry, the secret for it, and what the container's installer is told. */
import { AgentError } from '../../model/agent/errors';
import { toBoolean } from '../../model/python';
import type { JsonObject } from '../../model/records';
import { BadReference, parseReference } from './reference';

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

/** The image for container tools, which get the name as an argument. Undefined: no reference to an image, or none that these tools take. */
export function readReference(href: string): ImageReference | undefined {
  // Ironic and its agent know the scheme in lower case only.
  if (!href.startsWith('oci://')) return undefined;
  try {
    const { registry, repository, digest } = parseReference(href);
    // OCI distribution specification 1.1, "Pulling manifests": a name has no capital letters.
    if (repository !== repository.toLowerCase()) return undefined;
    const [tagged] = href.slice('oci://'.length).split('@') as [string];
    return { name: digest === undefined ? tagged : `${tagged}@${digest}`, registry };
  } catch (error) {
    if (error instanceof BadReference) return undefined;
    throw error;
  }
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
