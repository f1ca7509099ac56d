/**
 * SHA-256 of large buffers, in Node's thread pool. Web Crypto copies them in the main thread, which then keeps all other work waiting for as
 * long as reading a fast disk takes: the function of Node's own OpenSSL does not.
 */
import { promisify } from 'node:util';
import { sha256 } from '../../wire/snapshot-files';

type Digest = (bytes: Buffer) => Promise<Buffer>;
interface Asynchronous {
  readonly async: (...args: unknown[]) => void;
}

async function load(): Promise<Digest> {
  const { default: koffi } = await import('koffi');
  const own = koffi.load(null).func('void *SHA256(const void *, size_t, void *)');
  const call = promisify((own as unknown as Asynchronous).async) as (bytes: Buffer, length: number, digest: Buffer) => Promise<unknown>;
  const digestOf: Digest = async (bytes) => {
    const digest = Buffer.alloc(32);
    await call(bytes, bytes.length, digest);
    return digest;
  };
  const sample = Buffer.from('abc');
  if (!(await digestOf(sample)).equals(await sha256(sample))) throw new Error('SHA256 is another function');
  return digestOf;
}

let loaded: Promise<Digest> | undefined;
export const fastSha256: Digest = async (bytes) => {
  loaded ??= load().catch(() => sha256);
  return (await loaded)(bytes);
};
