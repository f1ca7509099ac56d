/** Manifests and indexes of registries (OCI image specification 1.1), and which of their entries Ironic deploys. */
import { isObject, objectOf, type JsonObject } from '../../model/json';
import { isSameProcessor } from '../processors/processors';

export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
/** The type of an artifact's config: `{}` (image specification 1.1, "Guidance for an Empty Descriptor"). */
const EMPTY_CONFIG = 'application/vnd.oci.empty.v1+json';

/** An entry of an index, or a manifest without an index. */
export interface Candidate {
  readonly entry: JsonObject;
  /** `raw` or `qcow2`; undefined: it has no annotation `disktype`. */
  readonly diskType: 'raw' | 'qcow2' | undefined;
}
export interface Layer {
  readonly digest: string;
  /** Bytes; null: unknown. */
  readonly size: number | null;
  readonly mediaType: string | null;
  /** `org.opencontainers.image.title`: the name of its file. */
  readonly title: string | null;
}

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** Characters of a file's name, and of a media type (RFC 6838 §4.2: twice 127). Users see these texts, and records have them. */
const MAX_SHORT = 255;
/** Null: also for a text that is too long, or that has control characters. */
const shortText = (value: unknown): string | null => {
  const found = text(value);
  return found === null || found.length > MAX_SHORT || /\p{Cc}/u.test(found) ? null : found;
};

/** Whether the manifest, or the entry of an index, is an artifact, such as a disk image. Others are containers. */
export const isArtifact = (manifest: JsonObject): boolean =>
  text(manifest['artifactType']) !== null || objectOf(manifest['config'])['mediaType'] === EMPTY_CONFIG;

/** `disktype` → what the agent is told. */
const DISK_TYPES: Readonly<Record<string, 'raw' | 'qcow2'>> = { raw: 'raw', applehv: 'raw', qcow2: 'qcow2', qemu: 'qcow2' };
/** The server prefers what is small, the agent what it can stream. */
const PREFERRED: Readonly<Record<'local' | 'agent', readonly string[]>> = {
  local: ['qcow2', 'qemu', 'raw', 'applehv'],
  agent: ['raw', 'applehv', 'qcow2', 'qemu'],
};
interface Choice {
  /** Who downloads the image. */
  readonly by: 'local' | 'agent';
  /** `properties/cpu_arch`; null: any. */
  readonly cpuArch: string | null;
}
/** The entries that may be deployed, the best first. Entries of other architectures and of unknown disk types are left out. */
export function candidatesOf(entries: readonly JsonObject[], { by, cpuArch }: Choice): readonly Candidate[] {
  const order = PREFERRED[by];
  return entries
    .flatMap((entry) => {
      const architecture = text(objectOf(entry['platform'])['architecture']);
      if (cpuArch !== null && architecture !== null && !isSameProcessor(cpuArch, architecture)) return [];
      const name = text(objectOf(entry['annotations'])['disktype']);
      if (name === null) return [{ entry, diskType: undefined, rank: order.length }];
      return order.includes(name) ? [{ entry, diskType: DISK_TYPES[name], rank: order.indexOf(name) }] : [];
    })
    .sort((a, b) => a.rank - b.rank)
    .map(({ entry, diskType }) => ({ entry, diskType }));
}

const objects = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);
/** The entries of an index. */
export const entriesOf = (index: JsonObject): readonly JsonObject[] => objects(index['manifests']);

const sizeOf = (value: unknown): number | null => (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null);
export const layersOf = (manifest: JsonObject): readonly Layer[] =>
  objects(manifest['layers']).map(({ digest, size, mediaType, annotations }) => ({
    digest: text(digest) ?? '',
    size: sizeOf(size),
    mediaType: shortText(mediaType),
    title: shortText(objectOf(annotations)['org.opencontainers.image.title']),
  }));
/** Bytes of a container: its config and its layers. */
export const sizeOfContainer = (config: unknown, layers: readonly Layer[]): number =>
  layers.reduce((sum, { size }) => sum + (size ?? 0), sizeOf(objectOf(config)['size']) ?? 0);

/** What Ironic calls the compression of a layer: by the end of its media type. */
export const compressionOf = (mediaType: string | null): 'zstd' | 'gzip' | null =>
  (['zstd', 'gzip'] as const).find((name) => mediaType?.endsWith(name)) ?? null;
