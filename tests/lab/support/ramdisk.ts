/** The ramdisk that the machines of the lab boot; built when its sources have changed. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './venv';

/** Milliseconds. Must fit into a test's `beforeAll`, together with its other preparations. */
const LIMIT = 900_000;

/** The ramdisk of this host's architecture, or of another (.cache/ramdisk-ARCHITECTURE). Compressed less than for real machines: their level takes a minute longer, for a ramdisk that is an eighth smaller. */
export async function buildRamdisk(architecture?: 'aarch64'): Promise<void> {
  const env = { ...process.env, ZSTD_CLEVEL: '9' };
  mkdirSync(join(root, '.cache'), { recursive: true });
  // If several tests begin together, one of them builds the ramdisk.
  const words = architecture === undefined ? [] : [join(root, `.cache/ramdisk-${architecture}`), architecture];
  await promisify(execFile)('flock', [join(root, '.cache/ramdisk.lock'), 'bash', join(root, 'ramdisk-agent/build/ramdisk.sh'), ...words], {
    cwd: root,
    env,
    maxBuffer: 16 << 20,
    timeout: LIMIT,
  });
}
