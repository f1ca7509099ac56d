/** Packages as `npm run release` makes them, and servers installed from them. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { root } from '../support/venv';

const run = promisify(execFile);
/** Milliseconds to make, install and unpack packages on a busy machine with a slow network. */
export const MAKING_MS = 3_600_000;

/** Makes packages from a checkout. @returns their paths, without the materials */
export async function release(out: string, kinds: readonly string[], checkout = root): Promise<readonly string[]> {
  const words = ['-r', './bin/node-version.js', 'scripts/release.mjs', ...kinds, '--out', out];
  // A fixed time: a copy of the checkout has no commit.
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1700000000' };
  await run(process.execPath, words, { cwd: checkout, env, timeout: MAKING_MS, maxBuffer: 1 << 24 });
  return readdirSync(out)
    .filter((name) => /^bloomery[-_]\d/.test(name))
    .map((name) => join(out, name));
}

interface InstalledServer {
  /** The API's URL. */
  readonly url: string;
  /** Its output: the ready line and its log. */
  readonly output: () => string;
  /** Sends SIGTERM to the server. @returns the exit status of the command */
  stop(): Promise<number | null>;
}
/** Starts a command that becomes the server, and waits for its ready line. */
export async function startInstalled(command: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<InstalledServer> {
  const child = spawn(command[0]!, command.slice(1), { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  let text = '';
  const ready = new Promise<string>((found, fail) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        const url = /^bloomery: ready in .*? API (\S+?),/m.exec(text)?.[1];
        if (url !== undefined) found(url);
      });
    void ended.then(() => fail(new Error(`the server ended before it was ready: ${text}`)));
  });
  const url = await ready;
  return {
    url,
    output: () => text,
    stop: async () => {
      child.kill('SIGTERM');
      const [code] = (await ended) as [number | null];
      return code;
    },
  };
}

/** Calls the API as a client does. Throws unless it answers with 2xx. */
async function call(url: string, method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.90' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}

/** Creates a node, finds it and deletes it: so the API, the conductor and the database work. */
export async function useServer(url: string): Promise<void> {
  const node = await call(url, 'POST', '/v1/nodes', { driver: 'ipmi', name: 'packaged', driver_info: { ipmi_address: '192.0.2.1' } });
  expect(await call(url, 'GET', '/v1/nodes/packaged')).toMatchObject({ uuid: node['uuid'], provision_state: 'enroll' });
  await call(url, 'DELETE', '/v1/nodes/packaged');
  const page = await fetch(`${url}/docs`, { signal: timeoutSignal(60_000) });
  expect(page.status).toBe(200);
  expect(await page.text()).toContain('swagger-ui');
}
