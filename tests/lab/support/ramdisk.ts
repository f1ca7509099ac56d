/** The ramdisk that the machines of the lab boot; built when its sources have changed. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './venv';

/** Has to fit, with what else a test prepares, into the time of its `beforeAll`. */
const LIMIT = 900_000;

/** Compressed less than for real machines: that takes a minute, for an eighth less of what a machine loads. */
export async function buildRamdisk(): Promise<void> {
  const env = { ...process.env, ZSTD_CLEVEL: '9' };
  mkdirSync(join(root, '.cache'), { recursive: true });
  // Of tests that begin together, one builds it.
  await promisify(execFile)('flock', [join(root, '.cache/ramdisk.lock'), 'bash', join(root, 'ramdisk-agent/build/ramdisk.sh')], {
    cwd: root,
    env,
    maxBuffer: 16 << 20,
    timeout: LIMIT,
  });
}
