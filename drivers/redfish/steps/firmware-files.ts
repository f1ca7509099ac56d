/** Where a BMC gets a firmware file: from its own URL, or from this server's boot service, which serves it by the node's BootRecord. */
import { basename } from 'node:path';
import { Fault, reasonOf } from '../../../model/errors';
import type { BootRecord } from '../../../model/records';
import { checkLocation, digestOf, locate, type ImageLocation } from '../../common/images';
import { urlForBmc } from '../../common/media';
import type { Task } from '../../interfaces';
import type { FirmwareSource } from './firmware-settings';
import { shortened } from '../../../model/text';

/** Prefix of the names of firmware files under `/boot/TOKEN/`. */
const PREFIX = 'firmware-';

const failure = (error: string): Fault => new Fault('DriverOperationError', { message: `Redfish exception occurred. Error: ${error}` });

/** The algorithm of a checksum, by its length, as in Ironic. */
const algorithmOf = ({ length }: string): 'sha1' | 'sha256' | 'sha512' | undefined =>
  length <= 41 ? 'sha1' : length <= 64 ? 'sha256' : length <= 128 ? 'sha512' : undefined;

async function verify(task: Task, location: ImageLocation, expected: string): Promise<void> {
  const algorithm = algorithmOf(expected);
  if (algorithm === undefined)
    throw failure(
      `Unable to identify checksum to perform firmware file checksum calculation. Please validate your input in and try again. Received: ${shortened(expected, 300)}`,
    );
  const place = location.kind === 'file' ? location.path : location.url;
  const found = await digestOf(location, algorithm, task).catch((error: unknown) => {
    task.signal.throwIfAborted();
    throw failure(`For node ${task.node.uuid} failed to read the firmware file ${basename(place)}. Error ${reasonOf(error)}`);
  });
  if (found !== expected.toLowerCase())
    throw failure(
      `For node ${task.node.uuid} firmware file ${basename(place)} checksums do not match. Expected: ${expected}, calculated: ${found}.`,
    );
}

/** A file name that is safe in a path, and that BMCs accept: some check its extension. */
const nameOf = (url: string): string => {
  const { pathname } = new URL(url);
  return (
    PREFIX +
    (decodeURIComponentSafely(basename(pathname))
      .replace(/[^\w.-]/g, '_')
      .slice(-120) || 'file')
  );
};
const decodeURIComponentSafely = (name: string): string => {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
};

/**
 * The URL for the BMC. A file that the BMC cannot or must not fetch itself (`file://`, source `local`) is added to the boot service's
 * files. Its checksum is verified before. Throws InvalidParameterValue, DriverOperationError.
 */
export async function firmwareUrl(
  task: Task,
  url: string,
  given: { source?: FirmwareSource | undefined; checksum?: string } = {},
): Promise<string> {
  const { options, node, boots } = task;
  const source = given.source ?? options['redfish.firmware_source'];
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? '';
  if (source === 'swift' || scheme === 'swift')
    throw new Fault('InvalidParameterValue', {
      message: `Firmware ${url} of node ${node.uuid} cannot be served from Swift: firmware from Swift is not supported. Use [redfish]firmware_source http or local.`,
    });
  if (!['http', 'https', 'file'].includes(scheme))
    throw new Fault('InvalidParameterValue', { message: `${scheme} is not supported for ${url}.` });
  const location = locate(url, options);
  if (location.kind === 'http' && source === 'http') return url;
  const there = await checkLocation(location, task);
  if (given.checksum !== undefined) await verify(task, there, given.checksum);
  const name = nameOf(url);
  const bare: BootRecord = { node_uuid: node.uuid, macs: [], method: 'ipxe', purpose: 'disk', kernel_args: '', files: {} };
  const row = (await boots.ofNode(node.uuid)) ?? bare;
  const { token } = await boots.put({ ...row, files: { ...row.files, [name]: there.kind === 'file' ? there.path : there.url } });
  return `${urlForBmc(task)}/boot/${token}/${name}`;
}

/** Removes the node's firmware files from the boot service. */
export async function forgetFirmwareFiles({ boots, node }: Task): Promise<void> {
  const row = await boots.ofNode(node.uuid);
  if (!row) return;
  const others = Object.entries(row.files).filter(([name]) => !name.startsWith(PREFIX));
  if (others.length === Object.keys(row.files).length) return;
  // The row was made for firmware files only.
  if (others.length === 0 && row.purpose === 'disk' && row.macs.length === 0) await boots.remove(node.uuid);
  else await boots.put({ ...row, files: Object.fromEntries(others) });
}
