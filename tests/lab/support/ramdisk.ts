/** The ramdisks that the machines of the lab boot; built when their sources have changed. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './venv';

/** Milliseconds. Must fit into a test's `beforeAll`, together with its other preparations. */
const LIMIT = 900_000;

interface Build {
  /** Of another architecture than this host's. */
  readonly architecture?: 'aarch64';
  readonly variant?: 'podman';
}
/**
 * In .cache/ramdisk, followed by the architecture and the variant. Compressed less than for real machines: their level takes a minute longer,
 * for a ramdisk that is an eighth smaller.
 * @returns its folder
 */
export async function buildRamdisk({ architecture, variant }: Build = {}): Promise<string> {
  const env = { ...process.env, ZSTD_CLEVEL: '9' };
  mkdirSync(join(root, '.cache'), { recursive: true });
  const name = ['ramdisk', architecture, variant].filter((part) => part !== undefined).join('-');
  const folder = join(root, '.cache', name);
  const words = [join(root, 'ramdisk-agent/build/ramdisk.sh'), ...(variant === undefined ? [] : ['--variant', variant])];
  const place = architecture === undefined ? [] : [folder, architecture];
  // If several tests begin together, one of them builds the ramdisk.
  await promisify(execFile)('flock', [join(root, '.cache/ramdisk.lock'), 'bash', ...words, ...place], {
    cwd: root,
    env,
    maxBuffer: 16 << 20,
    timeout: LIMIT,
  });
  return folder;
}
