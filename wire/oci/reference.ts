/**
 * References to images in container registries: `oci://HOST[:PORT]/REPOSITORY[:TAG][@ALGORITHM:DIGEST]`, and to their blobs in records of
 * this program.
 */

export interface OciReference {
  /** Host, and port if there is one. */
  readonly registry: string;
  /** Without a slash at its beginning. */
  readonly repository: string;
  /** Without a tag and a digest, it is `latest`. */
  readonly tag: string;
  /** `sha256:…` or `sha512:…`, in lower case; undefined: the tag decides. */
  readonly digest: string | undefined;
}
export interface BlobReference {
  readonly registry: string;
  readonly repository: string;
  readonly digest: string;
}
/** Why a text is no reference. */
export class BadReference extends Error {
  /** @param notSpecific whether it names no manifest that can be found, by a digest of a known algorithm */
  constructor(
    message: string,
    readonly notSpecific = false,
  ) {
    super(message);
  }
}

const SCHEME = /^oci:\/\//i;
export const isOciUrl = (href: string): boolean => SCHEME.test(href);

const MAX_LENGTH = 2048;
/** A host name, an IPv4 or a bracketed IPv6 address, and a port. */
const REGISTRY = /^(?:[a-z0-9](?:[a-z0-9.-]{0,252}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;
/** OCI distribution specification 1.1, "Pulling manifests". Servers differ about capital letters. */
const NAME = /^[a-z0-9](?:[a-z0-9._-]{0,253}[a-z0-9])?$/i;
const TAG = /^\w[\w.-]{0,127}$/;
export const isTag = (value: unknown): value is string => typeof value === 'string' && TAG.test(value);
/** Algorithm → hexadecimal digits. */
const DIGITS: Readonly<Record<string, number>> = { sha256: 64, sha512: 128 };

/** Digest as `ALGORITHM:DIGITS`, in lower case. Throws BadReference with Ironic's reason. */
export function parseDigest(text: string): string {
  const [algorithm, value, ...rest] = text.toLowerCase().split(':') as [string, string?, ...string[]];
  if (value === undefined || rest.length > 0) throw new BadReference('Lacking required digest value');
  const digits = Object.hasOwn(DIGITS, algorithm) ? DIGITS[algorithm] : undefined;
  if (digits === undefined) throw new BadReference('The algorithm of the digest is neither sha256 nor sha512.', true);
  if (value.length !== digits)
    // The typing error is Ironic's.
    throw new BadReference('Manifest digest length incorrect and does not match the expected lenngth of the algorithm.');
  if (!/^[0-9a-f]+$/.test(value)) throw new BadReference('The digest has characters that are not hexadecimal digits.');
  return `${algorithm}:${value}`;
}

/** Throws BadReference. */
export function parseReference(href: string): OciReference {
  if (href.length > MAX_LENGTH) throw new BadReference(`It is longer than ${MAX_LENGTH} characters.`);
  const rest = href.replace(SCHEME, '');
  const slash = rest.indexOf('/');
  const registry = slash < 0 ? rest : rest.slice(0, slash);
  if (registry.includes('@')) throw new BadReference('Credentials belong to image_pull_secret, not to the URL.');
  if (!REGISTRY.test(registry) || Number(/:(\d+)$/.exec(registry)?.[1] ?? 1) > 65535)
    throw new BadReference('It does not name the host of a registry.');
  const [path, ...digests] = (slash < 0 ? '' : rest.slice(slash + 1)).split('@') as [string, ...string[]];
  const [repository, tag, ...others] = path.split(':') as [string, string?, ...string[]];
  if (digests.length > 1 || others.length > 0) throw new BadReference('It has more than one tag or digest.');
  if (!repository.split('/').every((part) => NAME.test(part)) || repository.length > 255)
    throw new BadReference('It does not name a repository.');
  if (tag !== undefined && !isTag(tag)) throw new BadReference('The tag is invalid.');
  return { registry, repository, tag: tag ?? 'latest', digest: digests[0] === undefined ? undefined : parseDigest(digests[0]) };
}

/** The image by its manifest's digest. */
export const manifestUrl = ({ registry, repository }: Pick<OciReference, 'registry' | 'repository'>, digest: string): string =>
  `oci://${registry}/${repository}@${digest}`;

const BLOB = 'oci-blob://';
/** A blob in records of this program. */
export const blobUrl = ({ registry, repository, digest }: BlobReference): string => `${BLOB}${registry}/${repository}@${digest}`;
export const isBlobUrl = (source: string): boolean => source.startsWith(BLOB);
/** Throws BadReference. */
export function parseBlobUrl(source: string): BlobReference {
  const { registry, repository, digest } = parseReference(`oci://${source.slice(BLOB.length)}`);
  if (digest === undefined) throw new BadReference('Lacking required digest value');
  return { registry, repository, digest };
}
