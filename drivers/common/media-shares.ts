/** Shares (NFS, CIFS) from which BMCs mount boot images. The operator mounts them on each conductor, which writes the images there. */
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Fault, reasonOf } from '../../model/errors';
import type { Credentials } from '../../model/urls';
import type { Upload } from '../../wire/keystone/exchange';
import { withoutEndSlashes } from '../../wire/urls';
import type { Task } from '../interfaces';

export interface MediaShare {
  readonly baseUrl: string;
  /** The folder here, and its place below the URL. */
  readonly folder: string;
  readonly credentials: Credentials | undefined;
}
const SECTIONS = { NFS: 'nfs', CIFS: 'cifs' } as const;
/** The share of a transport protocol; undefined: the protocol needs none. Throws InvalidParameterValue when it is not configured. */
export function shareFor({ node, options }: Task, protocol: string | undefined): MediaShare | undefined {
  const section = protocol === 'NFS' || protocol === 'CIFS' ? SECTIONS[protocol] : undefined;
  if (section === undefined) return undefined;
  const [baseUrl, folder] = [options[`${section}.base_url`], options[`${section}.share_path`]];
  if (!baseUrl || !folder)
    throw new Fault('InvalidParameterValue', {
      message: `${protocol} transport protocol requested for node ${node.uuid} but [${section}]base_url and [${section}]share_path are not both configured.`,
    });
  const [username, password] = section === 'cifs' ? [options['cifs.username'], options['cifs.password']] : [];
  return { baseUrl, folder, credentials: username ? { username, password: password ?? '' } : undefined };
}

const failure = (doing: string, error: unknown): Fault =>
  new Fault('DriverOperationError', { message: `${doing}: ${reasonOf(error)}` }, { cause: error });
/** Writes a file into the share, whole or not at all. @returns its URL for BMCs. Throws DriverOperationError. */
export async function writeToShare(
  { signal }: Task,
  { baseUrl, folder }: MediaShare,
  name: string,
  data: () => Promise<Upload>,
): Promise<string> {
  const [path, part] = [join(folder, name), join(folder, `.${name}.part`)];
  try {
    await mkdir(folder, { recursive: true });
    const { body } = await data();
    await pipeline(body, createWriteStream(part), { signal });
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    signal.throwIfAborted();
    throw failure(`The boot image cannot be written to the share ${folder}`, error);
  }
  return `${withoutEndSlashes(baseUrl)}/${folder.replace(/^\/+/, '')}/${name}`;
}
/** Removes a file of `writeToShare`. A failure is only logged. */
export async function removeFromShare({ log }: Task, { folder }: MediaShare, name: string): Promise<void> {
  await rm(join(folder, name), { force: true }).catch((error: unknown) => {
    log.warn('a boot image cannot be removed from its share', { folder, name, reason: reasonOf(error) });
  });
}
