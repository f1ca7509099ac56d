/** Python programs from PyPI, each in a virtual environment of its own that is made once and kept under .cache. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const rootAbove = (folder: string): string => (existsSync(join(folder, 'package.json')) ? folder : rootAbove(join(folder, '..')));
/** The checkout, also when this file runs from dist/. */
export const root = rootAbove(__dirname);

/**
 * @param packages exact, such as `sushy-tools==2.2.0`
 * @param system whether Debian's Python modules are seen (python3-libvirt is no PyPI wheel)
 * @returns the folder of its programs
 */
export async function programs(name: string, packages: readonly string[], system = false): Promise<string> {
  const folder = join(root, '.cache/venv', `${name}-${packages[0]!.split('==')[1]!}`);
  const done = join(folder, '.done');
  if (!existsSync(done)) {
    // A virtual environment cannot be moved: it is made in place, and marked when it is whole.
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, '..'), { recursive: true });
    await run(system ? '/usr/bin/python3' : 'python3', ['-m', 'venv', ...(system ? ['--system-site-packages'] : []), folder], {
      timeout: 120_000,
    });
    await run(join(folder, 'bin/pip'), ['-q', 'install', ...packages], { timeout: 540_000 });
    mkdirSync(`${done}.new`);
    renameSync(`${done}.new`, done);
  }
  return join(folder, 'bin');
}

/** The bare metal CLI as users have it. */
export const openstackClient = (): Promise<string> => programs('cli', ['python-ironicclient==6.3.0', 'python-openstackclient==10.5.0']);
