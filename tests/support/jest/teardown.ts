/** Jest's globalTeardown: ends what setup.ts started. */
import { running } from './setup';

export default async function teardown(): Promise<void> {
  await running.bloomeryTestCluster?.stop();
}
