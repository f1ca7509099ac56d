/**
 * The identity of a recorder that registers itself: with a token that many hosts may have, it gets one of its own for its node, and keeps it
 * in a file of the host (docs/recorder.md).
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isObject } from '../../model/json';
import { ask, type Trust } from './http';
import type { Tree } from './tree';

/** What the server compares with the node's ports and with what the inspection found. */
interface Claim {
  readonly addresses: readonly string[];
  readonly system_uuid?: string | undefined;
  readonly serial_number?: string | undefined;
}
export const claimOf = (tree: Tree, addresses: readonly string[]): Claim => ({
  addresses,
  system_uuid: tree.text('/sys/class/dmi/id/product_uuid') ?? undefined,
  serial_number: tree.text('/sys/class/dmi/id/product_serial') ?? undefined,
});

interface Own {
  readonly node: string;
  readonly token: string;
}
interface Registration {
  /** Of the service, as it is now. */
  readonly url: () => string;
  /** The token that registers, read before each attempt. */
  readonly bootstrap: () => string;
  readonly claim: () => Promise<Claim>;
  /** Where the host keeps the identity. */
  readonly file: string;
  readonly trust: Trust;
  readonly signal: AbortSignal;
}
const TIMEOUT_MS = 30_000;

function kept(file: string): Own | undefined {
  try {
    const { node, token } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Own>;
    return typeof node === 'string' && typeof token === 'string' ? { node, token } : undefined;
  } catch {
    return undefined;
  }
}
/** The server gives the token once, so the file is open before it is asked. */
async function register({ url, bootstrap, claim, file, trust, signal }: Registration): Promise<Own> {
  const token = bootstrap().trim();
  const body = JSON.stringify(await claim());
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  const descriptor = openSync(fresh, 'wx', 0o600);
  try {
    const { status, text } = await ask({
      method: 'POST',
      url: `${url()
        .replace(/(?<!\/)\/+$/, '')
        .replace(/\/v1$/, '')}/v1/hardware/registrations`,
      headers: { 'content-type': 'application/json', accept: 'application/json', authorization: `Bearer ${token}` },
      body,
      timeoutMs: TIMEOUT_MS,
      trust,
      signal,
    });
    if (status !== 201) throw new Error(`the service does not register this host: it answers ${status} ${text.slice(0, 300)}`);
    const answer = JSON.parse(text) as unknown;
    const { node_uuid: node, token: own } = isObject(answer) ? answer : {};
    if (typeof node !== 'string' || typeof own !== 'string') throw new Error('the service registers this host without an identity');
    writeFileSync(descriptor, JSON.stringify({ node, token: own }));
    fsyncSync(descriptor);
    renameSync(fresh, file);
    return { node, token: own };
  } finally {
    closeSync(descriptor);
    rmSync(fresh, { force: true });
  }
}

/** @returns the identity, and what is to be called after each push */
export function registered(registration: Registration) {
  let isRefused = false;
  return {
    async identity(): Promise<Own> {
      const known = kept(registration.file);
      if (known && !isRefused) return known;
      return register(registration).catch((error: unknown) => {
        // The node may be another one now; or the service was only set up wrongly for a while, and the identity is still good.
        if (known) return known;
        throw error;
      });
    },
    pushed: (isForbidden: boolean): void => void (isRefused = isForbidden),
  };
}
