/** The arguments of write_image: the image's description and the config drive. */
import { gunzipSync } from 'node:zlib';
import type { JsonObject } from '../records';
import { AgentError } from './errors';

/** Bytes. */
const MAX_CONFIG_DRIVE = 64 * 2 ** 20;

export interface WriteArguments {
  readonly image: JsonObject;
  /** base64 of the gzipped volume, its URL, or null. */
  readonly configDrive: string | null;
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
  if (type === 'partition')
    throw new AgentError('InvalidImage', 'partition images are not supported: the image has to be one of a whole disk');
  const configDrive = args['configdrive'] ?? configdrive ?? '';
  if (typeof configDrive !== 'string') throw refuse("'configdrive' must be a string: base64 of a gzipped volume, or its URL.");
  return { image: image as JsonObject, configDrive: configDrive === '' ? null : configDrive };
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
