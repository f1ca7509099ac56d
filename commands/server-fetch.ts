/** Requests of commands to a server that OS_CACERT may name an authority for, as for the openstack CLI. */
import { readFile } from 'node:fs/promises';
import { createAgent } from '../wire/http-agent';
import { connectionText } from '../wire/http/connection-text';

const CONNECT_MS = 30_000;
/** By file. */
const trusted = new Map<string, Promise<RequestInit>>();
/** OpenSSL's verification errors for an authority that is not known, as Node names them. */
const UNKNOWN_AUTHORITY = /SELF_SIGNED_CERT|UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)/;

async function trusting(file: string): Promise<RequestInit> {
  const ca = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new Error(`cannot read the certificates of OS_CACERT: ${(error as Error).message}`);
  });
  return { dispatcher: createAgent({ bodyBytes: 'streamed', connect: { ca, timeout: CONNECT_MS } }) } as unknown as RequestInit;
}

function trustedBy(file: string): Promise<RequestInit> {
  const known = trusted.get(file) ?? trusting(file);
  trusted.set(file, known);
  return known;
}

/**
 * @param base URL of the server, for the message
 * @throws Error for the operator, with the failed request's `code` in its cause, if the server cannot be reached or is not trusted
 */
export async function serverFetch(base: string, path: string, init: RequestInit): Promise<Response> {
  const file = process.env['OS_CACERT'];
  const more = base.startsWith('https:') && file ? await trustedBy(file) : {};
  return fetch(`${base}${path}`, { ...init, ...more }).catch((error: unknown) => {
    const { cause = error } = error as Error;
    const todo = UNKNOWN_AUTHORITY.test(String((cause as { code?: unknown }).code)) ? ': name its authority by OS_CACERT' : '';
    throw new Error(`${base} does not answer: ${connectionText(cause)}${todo}`, { cause });
  });
}
