/** Temporary URLs of Swift: access to one object without a token, until a time. Swift's middleware `tempurl`. */
import { createHmac } from 'node:crypto';

interface TempUrl {
  readonly method: 'GET' | 'PUT';
  /** `/v1/ACCOUNT/CONTAINER/OBJECT`, as it stands in the URL. */
  readonly path: string;
  /** Seconds since the epoch. */
  readonly expires: number;
  /** A secret that Swift knows for the account or the container. */
  readonly key: string;
}

/** The path with its signature. Signatures by SHA-256 are accepted by every Swift since 2.15, and SHA-1 no longer by default. */
export function tempUrlPath({ method, path, expires, key }: TempUrl): string {
  const signature = createHmac('sha256', key)
    .update(`${method}\n${expires}\n${decodeURIComponent(path)}`)
    .digest('hex');
  return `${path}?temp_url_sig=${signature}&temp_url_expires=${expires}`;
}

/** @param seed `swift_store_multiple_containers_seed`: this many digits of the ID are part of the name. Dashes do not count. */
export function containerOf(container: string, imageId: string, seed: number): string {
  if (seed === 0) return container;
  const dashes = imageId.slice(0, seed).split('-').length - 1;
  return `${container}_${imageId.toLowerCase().slice(0, seed + dashes)}`;
}

/** `…/v1/AUTH_PROJECT` at the end of an endpoint is removed. */
export function withoutAccount(endpoint: string, accountPrefix: string): string {
  const at = endpoint.lastIndexOf('/v1/');
  const account = at < 0 ? '' : endpoint.slice(at + '/v1/'.length).replace(/\/$/, '');
  return account.startsWith(accountPrefix) && account.length > accountPrefix.length && !account.includes('/')
    ? endpoint.slice(0, at)
    : endpoint;
}
