/** Config drives: the volume `config-2` by which an instance learns who it is. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { isoImage } from '../../wire/images/iso9660';
import type { Task } from '../interfaces';

type DriveTask = Pick<Task, 'node' | 'clock' | 'recorderData'>;

/** Versions of the metadata that readers look for. */
const VERSIONS = ['2012-08-10', 'latest'];
/** Part of a config drive → its file. */
const FILES = {
  meta_data: 'meta_data.json',
  network_data: 'network_data.json',
  user_data: 'user_data',
  vendor_data: 'vendor_data2.json',
} as const;

/**
 * The node's config drive as the agent takes it: a URL or base64 text as given, an object {meta_data, network_data, user_data,
 * vendor_data} built into base64 of a gzipped ISO image, with what a recorder on the host needs. Undefined: the instance has none.
 */
export async function configdriveOf({ node, clock, recorderData }: DriveTask): Promise<string | undefined> {
  const given = node.instance_info['configdrive'];
  if (typeof given === 'string') return given === '' ? undefined : given;
  if (typeof given !== 'object' || given === null) return undefined;
  const image = isoImage('config-2', configdriveFiles(withVendorData(given as JsonObject, await recorderData()), node), clock.now());
  return (await promisify(gzip)(image)).toString('base64');
}

/** What the client gives under a name stays; vendor data that is a text is the client's alone. */
function withVendorData(parts: JsonObject, more: JsonObject | undefined): JsonObject {
  const own = parts['vendor_data'] ?? {};
  return more === undefined || !isObject(own) ? parts : { ...parts, vendor_data: { ...more, ...own } };
}

/** Path → content. The metadata always says the node's UUID and name, unless it says others. User data of a text stays that text. */
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
