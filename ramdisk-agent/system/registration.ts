/**
 * The identity of a recorder that registers itself: with a token that many hosts may have, it gets one of its own for its node, and keeps it
 * in a file of the host (docs/recorder.md).
 */
import { randomBytes } from 'node:crypto';
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
const SECRET = /^[\w-]{43}$/;

function kept(file: string): Own | undefined {
  try {
    const { node, token } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Own>;
    return typeof node === 'string' && typeof token === 'string' ? { node, token } : undefined;
  } catch {
    return undefined;
  }
}
/** The secret of an attempt whose answer may have been lost: the server knows it then, and takes it again. */
function begun(file: string): string | undefined {
  try {
    const secret = readFileSync(file, 'utf8');
    return SECRET.test(secret) ? secret : undefined;
  } catch {
    return undefined;
  }
}
/** The secret is on the disk before the server is asked, so that a host that is killed meanwhile can repeat the request. */
function begin(file: string): string {
  const secret = randomBytes(32).toString('base64url');
  writeNew(file, secret);
  return secret;
}
function writeNew(file: string, text: string): void {
  rmSync(file, { force: true });
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
async function register({ url, bootstrap, claim, file, trust, signal }: Registration): Promise<Own> {
  const token = bootstrap().trim();
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const secretFile = `${file}.secret`;
  const before = begun(secretFile);
  // Not the token that was refused.
  const secret = before === undefined || before === kept(file)?.token ? begin(secretFile) : before;
  const { status, text } = await ask({
    method: 'POST',
    url: `${url()
      .replace(/(?<!\/)\/+$/, '')
      .replace(/\/v1$/, '')}/v1/hardware/registrations`,
    headers: { 'content-type': 'application/json', accept: 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ ...(await claim()), token: secret }),
    timeoutMs: TIMEOUT_MS,
    trust,
    signal,
  });
  if (status !== 201) throw new Error(`the service does not register this host: it answers ${status} ${text.slice(0, 300)}`);
  const answer = JSON.parse(text) as unknown;
  const { node_uuid: node, token: own } = isObject(answer) ? answer : {};
  if (typeof node !== 'string' || typeof own !== 'string') throw new Error('the service registers this host without an identity');
  const fresh = `${file}.new`;
  writeNew(fresh, JSON.stringify({ node, token: own }));
  renameSync(fresh, file);
  // The next registration, after this token was revoked, has another one.
  rmSync(secretFile, { force: true });
  return { node, token: own };
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
