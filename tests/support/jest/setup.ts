/** Jest's globalSetup: the run's database server. What tests need to know goes to the workers through the environment. */
import { join } from 'node:path';
import { ADMIN_URL, TEMPLATE, startCluster } from '../cluster';
import type { Cluster } from '../cluster';

/** Setup and teardown are separate modules of one process. */
export const running = globalThis as { bloomeryTestCluster?: Cluster };

export default async function setup(): Promise<void> {
  const cluster = await startCluster();
  running.bloomeryTestCluster = cluster;
  process.env[ADMIN_URL] = cluster.connection;
  process.env[TEMPLATE] = cluster.template;
  process.env['NODE_OPTIONS'] = `${process.env['NODE_OPTIONS'] ?? ''} --require "${join(__dirname, 'code-cache.js')}"`;
}
