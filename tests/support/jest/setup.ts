/**
 * Jest's globalSetup: the folder of the run (environment.js), and its database server. What tests need to know goes to the workers through
 * the environment.
 */
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ADMIN_URL, TEMPLATE, removeLeftovers, runName, startCluster } from '../cluster';
import type { Cluster } from '../cluster';

/** Setup and teardown are separate modules of one process. */
const running = globalThis as { bloomeryTestCluster?: Cluster; bloomeryTestFolder?: string };

/** Variables of the user's shell that the program reads: tests must not reach the servers and files that these name. */
const OF_THE_USER = /^(?:OS_.*|DATABASE_URL|XDG_STATE_HOME)$/;

export default async function setup(): Promise<void> {
  for (const name of Object.keys(process.env)) if (OF_THE_USER.test(name)) delete process.env[name];
  await removeLeftovers(tmpdir());
  const folder = join(tmpdir(), runName());
  mkdirSync(folder);
  // PostgreSQL's own user needs search permission, whatever the umask is.
  chmodSync(folder, 0o755);
  running.bloomeryTestFolder = folder;
  process.env['BLOOMERY_TEST_FOLDER'] = folder;
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }))
    process.once(signal, () => void clean().finally(() => process.exit(code)));
  const cluster = await startCluster();
  running.bloomeryTestCluster = cluster;
  process.env[ADMIN_URL] = cluster.connection;
  process.env[TEMPLATE] = cluster.template;
  process.env['NODE_OPTIONS'] = `${process.env['NODE_OPTIONS'] ?? ''} --require "${join(__dirname, 'code-cache.js')}"`;
}

/** Ends the database server, and removes the folder of the run. */
export async function clean(): Promise<void> {
  try {
    await running.bloomeryTestCluster?.stop();
  } finally {
    rmSync(running.bloomeryTestFolder!, { recursive: true, force: true });
  }
}
