/** Jest's globalSetup: the run's database server. Its address goes to the workers through the environment. */
import { ADMIN_URL, TEMPLATE, startCluster } from './cluster';
import type { Cluster } from './cluster';

/** Setup and teardown are separate modules of one process. */
export const running = globalThis as { bloomeryTestCluster?: Cluster };

export default async function setup(): Promise<void> {
  const cluster = await startCluster();
  running.bloomeryTestCluster = cluster;
  process.env[ADMIN_URL] = cluster.connection;
  process.env[TEMPLATE] = cluster.template;
}
