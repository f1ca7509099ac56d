/** TLS contexts of clients. Each takes more than a millisecond to make, so connections that trust the same authorities share one. */
import { createSecureContext, type SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { LEAST_TLS, type TlsVersion } from '../authorities';

/** A context takes some 20 kilobytes. */
const MAX = 500;
/** By least version and authorities in PEM. */
const contexts = new LRUCache<string, SecureContext>({ max: MAX });

/** @param ca authorities in PEM; absent: those of the system. Throws an Error when they cannot be read. */
export function clientContext(least: TlsVersion, ca = ''): SecureContext {
  const key = `${least} ${ca}`;
  const context = contexts.get(key) ?? createSecureContext({ minVersion: LEAST_TLS[least], ...(ca === '' ? {} : { ca }) });
  contexts.set(key, context);
  return context;
}
