/** The image of a deployment: the fields of instance_info for a named image, or for a URL that the user typed. Pure. */
import type { Operation } from './patch';

/** The fields of instance_info that describe one image together. */
const FIELDS = ['image_source', 'image_checksum', 'image_os_hash_algo', 'image_os_hash_value'] as const;
type Field = (typeof FIELDS)[number];
type ImageFields = Readonly<Partial<Record<Field, string | null>>>;
export interface NamedImage extends ImageFields {
  readonly uuid: string;
  readonly name: string;
  readonly description: string | null;
}
/** The fields for a typed URL. `hash`: the SHA-256 of the image, the URL of a file with checksums, or empty. */
export function typedImage(source: string, hash: string): ImageFields {
  if (hash === '') return { image_source: source };
  return /^\w+:/.test(hash)
    ? { image_source: source, image_checksum: hash }
    : { image_source: source, image_os_hash_algo: 'sha256', image_os_hash_value: hash };
}
/** The patch of a node: all fields of the image, so that no checksum of another image stays. */
export const imagePatch = (before: Readonly<Record<string, unknown>>, image: ImageFields): readonly Operation[] =>
  FIELDS.flatMap((name): readonly Operation[] => {
    const path = `/instance_info/${name}`;
    const value = image[name] ?? null;
    if (value !== null) return before[name] === value ? [] : [{ op: 'add', path, value }];
    return Object.hasOwn(before, name) ? [{ op: 'remove', path }] : [];
  });
