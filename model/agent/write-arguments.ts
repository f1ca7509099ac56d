/** The arguments of write_image: the image's description, the sizes of partitions, and the config drive. */
import { gunzipSync } from 'node:zlib';
import type { JsonObject } from '../records';
import { toBoolean, toInteger } from '../python';
import { AgentError } from './errors';
import { EPHEMERAL_FORMATS, type EphemeralFormat, type PartitionSizes } from './partition-plan';

/** Bytes. */
const MAX_CONFIG_DRIVE = 64 * 2 ** 20;

export interface WriteArguments {
  readonly image: JsonObject;
  /** base64 of the gzipped volume, its URL, or null. */
  readonly configDrive: string | null;
  /** Null: the image is one of a whole disk. */
  readonly partitions: PartitionSizes | null;
}
/** Where the image may be downloaded. */
export const imageUrls = ({ urls }: JsonObject): readonly string[] =>
  Array.isArray(urls) ? (urls as readonly unknown[]).filter((url): url is string => typeof url === 'string') : [];

/** The config drive is beside the image or, from older conductors, inside its description; empty means none. Throws AgentError. */
export function readWriteArguments(args: JsonObject): WriteArguments {
  const refuse = (text: string): AgentError => new AgentError('InvalidCommandParamsError', text);
  const image = args['image_info'];
  if (typeof image !== 'object' || image === null) throw refuse("write_image needs 'image_info'.");
  const { urls, configdrive, image_type: type } = image as JsonObject;
  if (!Array.isArray(urls) || urls.length === 0) throw refuse("Image 'urls' must be a list with at least one element.");
  const configDrive = args['configdrive'] ?? configdrive ?? '';
  if (typeof configDrive !== 'string') throw refuse("'configdrive' must be a string: base64 of a gzipped volume, or its URL.");
  return {
    image: image as JsonObject,
    configDrive: configDrive === '' ? null : configDrive,
    partitions: type === 'partition' ? readSizes(image as JsonObject) : null,
  };
}

/** MiB: a pebibyte, so that sums in bytes are exact. */
const MOST = 2 ** 30;
/** Throws AgentError. */
function readSizes(image: JsonObject): PartitionSizes {
  const refuse = (name: string, must: string): AgentError =>
    new AgentError('InvalidCommandParamsError', `Image '${name}' must be ${must}.`);
  const size = (name: string, least: number): number => {
    const value = toInteger(image[name] ?? 0);
    if (value === undefined || value < least || value > MOST) throw refuse(name, `a number of MiB from ${least} to ${MOST}`);
    return value;
  };
  const ephemeral = size('ephemeral_mb', 0);
  const format = image['ephemeral_format'] ?? 'ext4';
  if (ephemeral > 0 && (typeof format !== 'string' || !Object.hasOwn(EPHEMERAL_FORMATS, format)))
    throw refuse('ephemeral_format', `one of ${Object.keys(EPHEMERAL_FORMATS).join(', ')}`);
  const preserve = toBoolean(image['preserve_ephemeral'] ?? false);
  if (preserve === undefined) throw refuse('preserve_ephemeral', 'a boolean');
  return {
    root: size('root_mb', 1),
    swap: size('swap_mb', 0),
    ephemeral,
    ephemeralFormat: format as EphemeralFormat,
    // Without such a partition there is nothing to preserve.
    preservesEphemeral: preserve && ephemeral > 0,
  };
}

/** `text`: base64 of the gzipped volume, or the URL of such a text. */
export async function readConfigDrive(text: string, fetchText: (url: string) => Promise<string>): Promise<Buffer> {
  const encoded = /^https?:\/\//.test(text) ? await fetchText(text) : text;
  try {
    return gunzipSync(Buffer.from(encoded.trim(), 'base64'), { maxOutputLength: MAX_CONFIG_DRIVE });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new AgentError('DeploymentError', 'Config drive size exceeds maximum limit of 64MiB.', { cause: error });
    }
    throw new AgentError('DeploymentError', 'Config drive is not base64 encoded gzip content or the content is malformed.', {
      cause: error,
    });
  }
}
