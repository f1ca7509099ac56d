/** /v1/images: names for images, so that they need not be typed for each deployment. An extension of this server. */
import { invalid } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import type { Inputs } from '../schema/operations';
import type { ImageRecord } from '../../model/records';
import { createOf, listOf, removeOf, showOf, updateOf, type Resource } from '../pipeline/resource';
import type { SomeHandlers } from '../pipeline/handler';

/** Algorithm → the length of its value in hexadecimal. */
const HASH_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };
const SOURCE = /^(?:https?|file|glance|oci|snapshot):\/\/[^\s\0]+$/;
const CHECKSUM = /^(?:(?:https?|file):\/\/[^\s\0]+|[0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})$/i;

/** An authority with a login (RFC 3986 §3.2.1), also in text that only a lenient parser takes for a URL. */
const LOGIN = /^[a-z][\w+.-]*:[\\/]*[^/?#\\]*@/i;
/** Arguments of URLs that give access: Swift, S3, Azure, Google, CloudFront, and what others call their secrets. */
const SIGNATURES: ReadonlySet<string> = new Set(
  'temp_url_sig x-amz-signature x-goog-signature sig signature token access_token password secret key apikey api_key md5 hmac'.split(' '),
);
/** Whether an argument of the query or of the fragment gives access. */
const isSigned = (text: string): boolean =>
  text
    .split(/[?#]/)
    .slice(1)
    .some((part) => [...new URLSearchParams(part).keys()].some((name) => SIGNATURES.has(name.toLowerCase())));
/** Refuses URLs that contain credentials, because everybody who may read images sees the URLs. Undefined: no problem. */
function problemOfUrl(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  if (LOGIN.test(text)) return 'a URL with a login cannot be stored here';
  if (isSigned(text)) return 'a signed URL cannot be stored here';
  return text.includes('://') && !URL.canParse(text) ? 'it is not a valid URL' : undefined;
}

/** What is wrong with an image; undefined: nothing. */
function problemOf(values: Inputs['Image']): string | undefined {
  const { name, image_source: source, image_checksum: checksum, image_os_hash_algo: algorithm, image_os_hash_value: hash } = values;
  if (!isLogicalName(name) || isUuid(name)) return `name: '${name}' is not a valid name`;
  for (const [field, url] of Object.entries({ image_source: source, image_checksum: checksum })) {
    const problem = problemOfUrl(url);
    if (problem !== undefined) return `${field}: ${problem}`;
  }
  const isSource: boolean = SOURCE.test(source) || isUuid(source);
  if (!isSource) return 'image_source: it is neither a URL (http, https, file, glance, oci, snapshot) nor a UUID';
  if (typeof checksum === 'string' && !CHECKSUM.test(checksum))
    return 'image_checksum: it is neither a URL (http, https, file) nor a checksum in hexadecimal';
  if ((algorithm ?? null) === null && (hash ?? null) === null) return undefined;
  if (typeof algorithm !== 'string' || typeof hash !== 'string') return 'image_os_hash_algo and image_os_hash_value need each other';
  const length = Object.hasOwn(HASH_LENGTHS, algorithm) ? HASH_LENGTHS[algorithm] : undefined;
  if (length === undefined) return `image_os_hash_algo: '${algorithm}' must be one of ${Object.keys(HASH_LENGTHS).join(', ')}`;
  return /^[0-9a-f]+$/i.test(hash) && hash.length === length
    ? undefined
    : `image_os_hash_value: a value of ${algorithm} has ${length} hexadecimal digits`;
}

function check<Image extends Inputs['Image']>(values: Image): Image {
  const problem = problemOf(values);
  if (problem !== undefined) throw invalid(problem);
  return values;
}

const IMAGES: Resource<ImageRecord, 'Image'> = {
  schema: 'Image',
  path: 'images',
  list: 'images',
  bodyLabel: 'image',
  ident: 'image_ident',
  policy: 'image',
  unsortable: ['extra'],
  computed: [],
  strict: true,
  table: ({ store }) => store.images,
  check,
  create: (record, { store }) => store.images.create(record),
  checkPatched: check,
  // The fields that describe the file are checked together, so they are written together: the last of two concurrent changes stays whole.
  update({ uuid, ...before }, changes, { store }) {
    const { image_source, image_checksum, image_os_hash_algo, image_os_hash_value } = before;
    const file = { image_source, image_checksum, image_os_hash_algo, image_os_hash_value };
    const isOfFile = Object.keys(changes).some((name) => Object.hasOwn(file, name));
    return store.images.update(uuid, isOfFile ? { ...file, ...changes } : changes);
  },
  remove: ({ uuid }, { store }) => store.images.remove(uuid),
};

export const imageHandlers = {
  listImages: (request, context) => listOf(IMAGES, request, context),
  createImage: (request, context) => createOf(IMAGES, request, context),
  showImage: (request, context) => showOf(IMAGES, request, context),
  updateImage: (request, context) => updateOf(IMAGES, request, context),
  deleteImage: (request, context) => removeOf(IMAGES, request, context),
} satisfies SomeHandlers;
