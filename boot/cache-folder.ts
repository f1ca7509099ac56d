/** The folder of the image cache: a file and its metadata for each image. A file counts only together with its metadata, which comes last. */
import { createHash, getHashes } from 'node:crypto';
import { open, readdir, readFile, rename, rm, stat, statfs, utimes, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/** Stored beside a complete file. */
export interface CachedFileMetadata {
  readonly url: string;
  readonly file: string;
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  readonly etag: string | null;
  readonly lastModified: string | null;
}
/** Of a complete file: what it has, and how the file system sees it. Any change of the file changes the stamp. */
export interface Proof {
  readonly digest: Digest;
  readonly stamp: string;
}
interface Digest {
  readonly algorithm: string;
  /** In hexadecimal digits. */
  readonly value: string;
}
interface StoredFile {
  readonly metadata: CachedFileMetadata;
  readonly proof: Proof;
  /** Milliseconds since the epoch. */
  readonly usedAt: number;
}

const metadataPath = (folder: string, file: string): string => join(folder, `${file}.json`);

export async function stampOf(handle: FileHandle): Promise<string> {
  const { ino, size, mtimeNs, ctimeNs } = await handle.stat({ bigint: true });
  return [ino, size, mtimeNs, ctimeNs].join(' ');
}

/**
 * Data is on the disk before its metadata: after a loss of power, a file is complete or gone.
 * @param usedAt the time of the metadata file
 */
export async function storeMetadata(folder: string, metadata: CachedFileMetadata, proof: Proof, usedAt: number): Promise<void> {
  const path = metadataPath(folder, metadata.file);
  // The URL may contain a password.
  await writeFile(`${path}.new`, JSON.stringify({ ...metadata, ...proof }), { mode: 0o600 });
  await utimes(`${path}.new`, usedAt / 1000, usedAt / 1000);
  await rename(`${path}.new`, path);
}
/** Remembers when the file was used, beyond the end of this process. */
export const touch = (folder: string, file: string, at: number): Promise<void> =>
  utimes(metadataPath(folder, file), at / 1000, at / 1000).catch(() => {});

export async function removeFile(folder: string, file: string): Promise<void> {
  await rm(metadataPath(folder, file), { force: true });
  await rm(join(folder, file), { force: true });
}

/** Bytes that a file may take. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

const PIECE = 2 ** 20;
/** Whether the file has the digest. Its whole content is read. */
export async function hasDigest(handle: FileHandle, { algorithm, value }: Digest): Promise<boolean> {
  const hash = createHash(algorithm);
  const room = Buffer.allocUnsafeSlow(PIECE);
  for (let at = 0; ;) {
    const { bytesRead } = await handle.read(room, 0, PIECE, at);
    if (bytesRead === 0) return hash.digest('hex') === value;
    hash.update(room.subarray(0, bytesRead));
    at += bytesRead;
  }
}

const isText = (value: unknown): value is string => typeof value === 'string';
/** A file whose hash nobody can compute could never be served again if its stamp changes. */
const isDigest = (digest: Partial<Digest> | undefined): boolean =>
  isText(digest?.algorithm) && getHashes().includes(digest.algorithm) && isText(digest.value);
function parse(text: string): (CachedFileMetadata & Proof) | undefined {
  const value = JSON.parse(text) as Partial<CachedFileMetadata & Proof> | null;
  const isWhole =
    isText(value?.url) && isText(value.file) && Number.isSafeInteger(value.size) && isText(value.stamp) && isDigest(value.digest);
  return isWhole ? (value as CachedFileMetadata & Proof) : undefined;
}

async function load(folder: string, name: string): Promise<StoredFile | undefined> {
  try {
    const path = join(folder, name);
    const found = parse(await readFile(path, 'utf8'));
    if (!found || `${found.file}.json` !== name) return undefined;
    const { digest, stamp, ...metadata } = found;
    const [{ mtimeMs }, { size }] = [await stat(path), await stat(join(folder, found.file))];
    return size === metadata.size ? { metadata, proof: { digest, stamp }, usedAt: mtimeMs } : undefined;
  } catch {
    return undefined;
  }
}
/** The files of an earlier run. Everything else in the folder is removed: what a process left that died while it downloaded. */
export async function loadFolder(folder: string): Promise<readonly StoredFile[]> {
  const names = await readdir(folder);
  const found = await Promise.all(names.filter((name) => name.endsWith('.json')).map((name) => load(folder, name)));
  const stored = found.filter((file) => file !== undefined);
  const whole = new Set(stored.flatMap(({ metadata: { file } }) => [file, `${file}.json`]));
  for (const name of names) if (!whole.has(name)) await rm(join(folder, name), { recursive: true, force: true });
  return stored;
}

/** Writes a file in its order, and leaves holes where long runs of zeros are. */
export async function openSparse(
  path: string,
  size: number,
): Promise<{ readonly handle: FileHandle; write(bytes: Buffer): Promise<void> }> {
  const handle = await open(path, 'w+', 0o600);
  try {
    await handle.truncate(size);
  } catch (error) {
    await handle.close();
    throw error;
  }
  let position = 0;
  return {
    handle,
    async write(bytes) {
      for (let at = 0; at < bytes.length;) {
        const piece = bytes.subarray(at, at + HOLE);
        if (!ZEROS.subarray(0, piece.length).equals(piece)) await writeWhole(handle, piece, position + at);
        at += piece.length;
      }
      position += bytes.length;
    },
  };
}
async function writeWhole(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
}
/** Shorter runs are written: a hole saves no blocks there. */
const HOLE = 64 * 2 ** 10;
const ZEROS = Buffer.alloc(HOLE);
