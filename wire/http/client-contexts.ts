/** TLS contexts of clients. Each takes more than a millisecond to make, so connections that trust the same authorities share one. */
import { createSecureContext, type SecureContext } from 'node:tls';

/** A context takes some 20 kilobytes. */
const MOST = 500;
/** By authorities in PEM; the least recently used one first. */
const contexts = new Map<string, SecureContext>();

/** @param ca authorities in PEM; absent: those of the system. Throws an Error when they cannot be read. */
export function clientContext(ca = ''): SecureContext {
  const context = contexts.get(ca) ?? createSecureContext(ca === '' ? {} : { ca });
  contexts.delete(ca);
  contexts.set(ca, context);
  for (const [oldest] of contexts) {
    if (contexts.size <= MOST) break;
    contexts.delete(oldest);
  }
  return context;
}
