/** Python programs from PyPI, each in its own virtual environment, which is made once and kept under .cache. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../../demo/lab/root';

export { root };

const run = promisify(execFile);
/** Milliseconds. Nova's packages alone need two minutes of processor time. */
const LIMIT = 1_500_000;
/**
 * Makes the environment unless it exists. An environment cannot be moved: so it is made in place, and marked when it is complete. Other
 * tests that need the same one wait for the lock.
 */
const MAKE = `set -e
[ ! -e "$0/.done" ] || exit 0
rm -rf "$0"
read -r python options <<< "$1"; shift
"$python" -m venv $options "$0"
"$0/bin/pip" -q install "$@"
touch "$0/.done"`;

/**
 * @param packages with exact versions, such as `sushy-tools==2.2.0`
 * @param system whether Debian's Python modules are visible (python3-libvirt has no wheel on PyPI)
 * @returns the folder of its programs
 */
export async function programs(name: string, packages: readonly string[], system = false): Promise<string> {
  const folder = join(root, '.cache/venv', `${name}-${packages[0]!.split('==')[1]!}`);
  mkdirSync(join(folder, '..'), { recursive: true });
  const python = system ? ['/usr/bin/python3', '--system-site-packages'] : ['python3'];
  await run('flock', [`${folder}.lock`, 'bash', '-c', MAKE, folder, python.join(' '), ...packages], { timeout: LIMIT });
  return join(folder, 'bin');
}

/** The bare metal CLI as users have it. */
export const openstackClient = (): Promise<string> => programs('cli', ['python-ironicclient==6.3.0', 'python-openstackclient==10.5.0']);
