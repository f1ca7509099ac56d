/** The ramdisks that the machines of the lab boot; built when their sources have changed. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './venv';

/** Milliseconds. Must fit into a test's `beforeAll`, together with its other preparations. */
const LIMIT = 900_000;

/** Compressed less than for real machines: their level takes a minute longer, for a ramdisk that is an eighth smaller. */
export async function buildRamdisk(variant?: 'podman'): Promise<void> {
  const env = { ...process.env, ZSTD_CLEVEL: '9' };
  mkdirSync(join(root, '.cache'), { recursive: true });
  // If several tests begin together, one of them builds the ramdisk.
  const words = [join(root, '.cache/ramdisk.lock'), 'bash', join(root, 'ramdisk-agent/build/ramdisk.sh')];
  await promisify(execFile)('flock', [...words, ...(variant === undefined ? [] : ['--variant', variant])], {
    cwd: root,
    env,
    maxBuffer: 16 << 20,
    timeout: LIMIT,
  });
}
