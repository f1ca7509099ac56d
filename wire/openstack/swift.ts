/** Objects of Swift (Object Storage API v1). The service client's URL contains the account. */
import type { Upload } from '../keystone/exchange';
import { ServiceError, type ServiceCall, type ServiceClient } from '../keystone/services';
import { timeoutSignal } from '../timeout-signal';
import { tempUrlPath } from './temp-url';

/** A body of other content than JSON. */
const BYTES = { 'content-type': 'application/octet-stream' };
const pathOf = (container: string, object?: string): string =>
  [container, ...(object === undefined ? [] : [object])].map((part) => `/${encodeURIComponent(part)}`).join('');

/** The account's secret for temporary URLs; undefined: it has none. @throws ServiceError */
export async function temporaryUrlKey(swift: ServiceClient, call: ServiceCall): Promise<string | undefined> {
  const { headers } = await swift.request('', { ...call, method: 'HEAD' });
  return [headers['x-account-meta-temp-url-key'], headers['x-account-meta-temp-url-key-2']].flat().find(Boolean);
}

interface NewObject {
  readonly container: string;
  readonly name: string;
  /** Bytes, or a function that opens what is uploaded: it is called when the container exists. */
  readonly data: Uint8Array | (() => Promise<Upload>);
  /** Swift deletes the object after that time. Absent: the object stays. */
  readonly secondsToLive?: number;
}
/** Creates the container if it is missing. @throws ServiceError */
export async function putObject(
  swift: ServiceClient,
  { container, name, data, secondsToLive }: NewObject,
  call: ServiceCall & { readonly signal: AbortSignal },
): Promise<void> {
  await swift.request(pathOf(container), { ...call, method: 'PUT' });
  const headers = { ...BYTES, ...(secondsToLive === undefined ? {} : { 'x-delete-after': String(secondsToLive) }) };
  const path = pathOf(container, name);
  if (data instanceof Uint8Array) await swift.request(path, { ...call, method: 'PUT', headers, body: data });
  else {
    const upload = await data();
    try {
      await swift.upload(path, upload, headers, call.signal);
    } finally {
      upload.body.destroy();
    }
  }
}

/** @param most bytes. Undefined: there is no such object. @throws ServiceError; Error for a larger object */
async function getObject(
  swift: ServiceClient,
  { container, name }: Pick<NewObject, 'container' | 'name'>,
  { most, signal }: { readonly most: number; readonly signal: AbortSignal },
): Promise<Buffer | undefined> {
  const response = await swift.stream(pathOf(container, name), {}, signal).catch((error: unknown) => {
    if (error instanceof ServiceError && error.status === 404) return undefined;
    throw error;
  });
  if (!response) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw new Error(`the object is larger than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** An object that is not there is no error. @throws ServiceError */
export async function deleteObject(
  swift: ServiceClient,
  { container, name }: Pick<NewObject, 'container' | 'name'>,
  call: ServiceCall,
): Promise<void> {
  await swift.request(pathOf(container, name), { ...call, method: 'DELETE', accept: [404] });
}

/** A URL from which everybody can read the object until a time. Undefined: the account has no key. @throws ServiceError */
export async function objectTempUrl(
  swift: ServiceClient,
  { container, name, expires }: Pick<NewObject, 'container' | 'name'> & { readonly expires: number },
  call: ServiceCall,
): Promise<string | undefined> {
  const key = await temporaryUrlKey(swift, call);
  if (key === undefined) return undefined;
  const { origin, pathname } = new URL(await swift.endpoint());
  return origin + tempUrlPath({ method: 'GET', path: pathname.replace(/\/$/, '') + pathOf(container, name), expires, key });
}

/** The timeout of one request; short, because callers may hold a transaction. */
const OBJECT_TIMEOUT_MS = 15_000;
const MAX_OBJECT_BYTES = 64 << 20;
/** A container whose objects are small. */
export const swiftContainer = (swift: ServiceClient, container: string) => {
  const signal = (): AbortSignal => timeoutSignal(OBJECT_TIMEOUT_MS);
  return {
    put: (name: string, data: Uint8Array) => putObject(swift, { container, name, data }, { signal: signal() }),
    get: (name: string) => getObject(swift, { container, name }, { most: MAX_OBJECT_BYTES, signal: signal() }),
    remove: (name: string) => deleteObject(swift, { container, name }, { signal: signal() }),
  };
};
