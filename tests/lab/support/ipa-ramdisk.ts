/** The ramdisk with ironic-python-agent; built when its script or its packages have changed. */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { programs, root } from './venv';

/** After buildRamdisk, whose kernel it uses. @returns the path of its initrd */
export async function buildIpaRamdisk(): Promise<string> {
  const python = join(await programs('agent-ramdisk', ['ironic-python-agent==13.0.0', 'glean==1.25.1']), '../lib');
  const site = join(python, readdirSync(python)[0]!, 'site-packages');
  const words = [join(root, '.cache/ipa.lock'), 'bash', join(__dirname, 'ipa-ramdisk.sh'), site];
  await promisify(execFile)('flock', words, { timeout: 900_000, maxBuffer: 16 << 20 });
  return join(root, '.cache/ipa/initrd');
}
