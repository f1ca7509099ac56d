/**
 * Step inject_files: writes files into the file systems of the root device. Links of these file systems are followed within them: they may
 * belong to an instance, and must not lead into the ramdisk.
 */
import { constants } from 'node:fs';
import { chmod, chown, type FileHandle, mkdir, mkdtemp, open as openFile, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AgentError } from '../../model/agent/errors';
import { filledUrl, type InjectedFile, readInjectedFiles } from '../../model/agent/inject-files';
import { reasonOf } from '../../model/errors';
import { objectOf } from '../../model/json';
import type { JsonObject } from '../../model/records';
import type { Device } from '../disk/device';
import { pathsOf } from '../disk/efi';
import { resolved } from '../kexec/image-files';
import { type MountedVolume, withVolumes } from '../kexec/volumes';
import { findRootDisk, type Machine, openDisk, syncDisks } from '../machine';
import { open } from '../system/http';

/** Bytes of a file from a URL. */
const MAX_CONTENT = 4 * 2 ** 30;

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

async function* contentOf(machine: Machine, file: InjectedFile, verifies: boolean): AsyncGenerator<Buffer> {
  const { node, ports = [] } = machine.state;
  const content = file.content!;
  if (!content.includes('://')) {
    yield Buffer.from(content, 'base64');
    return;
  }
  const url = filledUrl(content, { node, ports });
  const { fetching } = machine;
  const trust = verifies ? fetching.trust : { ...fetching.trust, insecure: true };
  const { answer } = await open({ ...fetching, trust, method: 'GET', url });
  if (answer.statusCode !== 200) {
    answer.destroy();
    throw new Error(`Unable to read data from ${url}: status ${answer.statusCode}`);
  }
  let size = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_CONTENT) throw new Error(`${url} has more than ${MAX_CONTENT} bytes`);
    yield part;
  }
}

/** Throws an Error for what is no regular file: to open a FIFO of the instance without O_NONBLOCK would wait for ever. */
async function openToReplace(path: string): Promise<FileHandle> {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants;
  const found = await stat(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    return undefined;
  });
  if (found && !found.isFile()) throw new Error('the path is there, and is no regular file');
  return openFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o666);
}

/** @internal */
export async function injectAt(machine: Machine, root: string, file: InjectedFile, verifies: boolean): Promise<void> {
  const path = await resolved(root, file.path);
  if (path === undefined) throw new Error('the path has too many links');
  if (file.deleted) {
    await unlink(path).catch((error: unknown) => {
      if (!isMissing(error)) machine.log.warn(`${file.path} cannot be deleted: ${reasonOf(error)}`);
    });
    return;
  }
  const content = contentOf(machine, file, verifies);
  try {
    // A server that does not have the content leaves the file system as it is.
    const first = await content.next();
    const made = await mkdir(dirname(path), { recursive: true });
    if (made !== undefined && file.dirmode) await chmod(dirname(path), file.dirmode);
    const target = await openToReplace(path);
    try {
      if (!first.done) await target.writeFile(first.value);
      for await (const part of content) await target.writeFile(part);
    } finally {
      await target.close();
    }
  } finally {
    await content.return(undefined);
  }
  if (file.mode) await chmod(path, file.mode);
  if (file.owner === undefined && file.group === undefined) return;
  const { uid, gid } = await stat(path);
  await chown(path, file.owner ?? uid, file.group ?? gid);
}

/** Gives `work` the root of the file system for the file, and the file's path in it. */
async function placed(machine: Machine, device: Device, file: InjectedFile, work: (root: string) => Promise<void>): Promise<void> {
  const { partition } = file;
  const host = { run: machine.run, tree: machine.tree, temporary: machine.temporary };
  if (!partition) {
    const first = file.path.split('/').find((part) => part !== '')!;
    return withVolumes(device, host, async (volumes) => work(await volumeWith(volumes, first)), { isWritable: true });
  }
  const source = /^\d+$/.test(String(partition)) ? pathsOf(machine.tree, device.path).partition(Number(partition)) : String(partition);
  const folder = await mkdtemp(join(machine.temporary, 'volume-'));
  await machine.run('mount', ['-o', 'rw,nosuid,nodev,noexec', source, folder]);
  try {
    await work(folder);
  } finally {
    await machine.run('umount', [folder]);
    await rmdir(folder);
  }
}
/** As ironic-python-agent does: the file system that has the path's first folder at its root. That folder is its root's. */
async function volumeWith(volumes: readonly MountedVolume[], name: string): Promise<string> {
  for (const { folder } of volumes) {
    const path = await resolved(folder, name);
    const found = path === undefined ? null : await stat(path).catch(() => null);
    if (found?.isDirectory()) return folder;
  }
  throw new AgentError(
    'DeviceNotFound',
    `No partition found with path ${name}, scanned: ${volumes.map((volume) => volume.name).join(', ') || 'none'}`,
  );
}

/** Throws AgentError: before the disk is touched for files that are wrong. */
export async function injectFiles(machine: Machine, { files: given, verify_ca: verifies = true }: JsonObject): Promise<JsonObject> {
  const files = readInjectedFiles(objectOf(machine.state.node['properties'])['inject_files'], given);
  if (files.length === 0) {
    machine.log.info('No files to inject');
    return { injected: 0 };
  }
  const device = await openDisk(machine, await findRootDisk(machine));
  try {
    for (const file of files)
      try {
        await placed(machine, device, file, (root) => injectAt(machine, root, file, verifies !== false));
      } catch (error) {
        if (error instanceof AgentError) throw error;
        throw new AgentError('CommandExecutionError', `Failed to process file ${file.path}. ${reasonOf(error)}`, { cause: error });
      }
  } finally {
    await device.close();
  }
  await syncDisks(machine);
  return { injected: files.length };
}
