/** Config drives: the volume `config-2` with the instance's metadata. */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { type Fault, invalidParameter } from '../../model/errors';
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { JSON_LIMITS, JsonLimitError, parseJson } from '../../wire/bounded-json';
import { isoImage } from '../../wire/images/iso9660';
import { filesOfIso } from '../../wire/images/iso9660-reader';
import { putTemporaryObject } from '../common/swift-objects';
import type { Task } from '../interfaces';

/** Versions of the metadata that readers look for. */
const VERSIONS = ['2012-08-10', 'latest'];
/** Part of a config drive → its file. */
const FILES = {
  meta_data: 'meta_data.json',
  network_data: 'network_data.json',
  user_data: 'user_data',
  vendor_data: 'vendor_data2.json',
} as const;

const VOLUME = 'config-2';
/** Bytes of an image, unpacked. The API refuses larger ones. */
const MAX_UNPACKED = 64 << 20;
const NETWORK_DATA_LIMITS = { values: JSON_LIMITS.request.values, depth: 64 };
const NETWORK_DATA = 'openstack/latest/network_data.json';

const pack = async (files: Readonly<Record<string, Buffer>>, now: number): Promise<string> =>
  (await promisify(gzip)(isoImage(VOLUME, files, now))).toString('base64');

const TOO_MUCH = Symbol('more than can be completed');
/** Parses the user's network data, in pieces and within limits. Undefined: it is not valid JSON. TOO_MUCH: it exceeds the limits. */
const jsonIn = (text: Buffer): Promise<unknown> =>
  parseJson(text, NETWORK_DATA_LIMITS).catch((error: unknown) => {
    if (error instanceof JsonLimitError) return TOO_MUCH;
    if (error instanceof SyntaxError) return undefined;
    throw error;
  });
/** As in Ironic, empty network data, or data without an MTU, is replaced by that of the node's VIFs. Everything else stays as given. */
async function completedImage(task: Task, given: string): Promise<string> {
  const { network } = task.driver;
  if (!network.completeConfigdrive || given.includes('://') || task.options['conductor.disable_configdrive_check']) return given;
  const image = await promisify(gunzip)(Buffer.from(given, 'base64'), { maxOutputLength: MAX_UNPACKED }).catch(() => undefined);
  const files = image && filesOfIso(image, MAX_UNPACKED);
  const own = files?.[NETWORK_DATA];
  if (files === undefined || own === undefined) return given;
  const before = await jsonIn(own);
  if (before === TOO_MUCH) return given;
  const { network_data: made } = await network.completeConfigdrive(task, { network_data: before });
  return made === before ? given : pack({ ...files, [NETWORK_DATA]: Buffer.from(JSON.stringify(made)) }, task.clock.now());
}

/**
 * The node's config drive for the agent. A URL stays as given. An image in base64 gets the network data of Neutron where it has none. An
 * object {meta_data, network_data, user_data, vendor_data} becomes a gzipped ISO image in base64, with a recorder's vendor data. Undefined:
 * the instance has none.
 */
export async function configdriveOf(task: Task): Promise<string | undefined> {
  const { node, clock, driver } = task;
  const given = node.instance_info['configdrive'];
  if (typeof given === 'string') return given === '' ? undefined : completedImage(task, given);
  if (typeof given !== 'object' || given === null) return undefined;
  const parts = (await driver.network.completeConfigdrive?.(task, given as JsonObject)) ?? (given as JsonObject);
  return pack(configdriveFiles(withVendorData(parts, await task.recorderData()), node), clock.now());
}

/**
 * The config drive as the agent gets it: as `configdriveOf`, or by a temporary URL of Swift ([deploy]configdrive_use_object_store).
 * Throws SwiftOperationError, MissingParameterValue.
 */
export async function deliveredConfigdrive(task: Task): Promise<string | undefined> {
  const configdrive = await configdriveOf(task);
  const { options, node } = task;
  if (configdrive === undefined || !options['deploy.configdrive_use_object_store'] || configdrive.includes('://')) return configdrive;
  const callback = options['conductor.deploy_callback_timeout'];
  return putTemporaryObject(task, {
    container: options['conductor.configdrive_swift_container'],
    name: `configdrive-${node.uuid}`,
    data: Buffer.from(configdrive),
    secondsToLive: options['conductor.configdrive_swift_temp_url_duration'] ?? (callback > 0 ? callback + 120 : 1800),
  });
}

const tooLarge = (cause?: unknown): Fault =>
  invalidParameter('Invalid configdrive of instance_info: Config drive size exceeds maximum limit of 64MiB.', cause);
/** Throws InvalidParameterValue for a config drive that no agent can use. One behind a URL is left to the agent. */
export async function checkConfigdrive({ node }: Pick<Task, 'node'>): Promise<void> {
  const given = node.instance_info['configdrive'];
  if (isObject(given)) {
    const files = Object.values(configdriveFiles(given, node));
    if (files.reduce((sum, { length }) => sum + length, 0) > MAX_UNPACKED) throw tooLarge();
  }
  if (typeof given !== 'string' || given === '' || given.includes('://')) return;
  await promisify(gunzip)(Buffer.from(given, 'base64'), { maxOutputLength: MAX_UNPACKED }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(error);
    throw invalidParameter(
      'Invalid configdrive of instance_info: it is not base64 encoded gzip content, or the content is malformed.',
      error,
    );
  });
}

/** The client's own entries take precedence. Vendor data that is a text stays unchanged. */
function withVendorData(parts: JsonObject, recorder: JsonObject | undefined): JsonObject {
  const own = parts['vendor_data'] ?? {};
  return recorder === undefined || !isObject(own) ? parts : { ...parts, vendor_data: { ...recorder, ...own } };
}

/** Path → content. The metadata contains the node's UUID and name by default. User data that is a text stays unchanged. @internal */
export function configdriveFiles(parts: JsonObject, node: { readonly uuid: string; readonly name: string | null }): Record<string, Buffer> {
  const meta = { ...(parts['meta_data'] as object | null | undefined) };
  const all: JsonObject = { ...parts, meta_data: { uuid: node.uuid, ...(node.name === null ? {} : { name: node.name }), ...meta } };
  const files: Record<string, Buffer> = {};
  for (const [part, file] of Object.entries(FILES)) {
    const value = all[part];
    if (value === undefined || value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)) continue;
    const content = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
    for (const version of VERSIONS) files[`openstack/${version}/${file}`] = content;
  }
  return files;
}
