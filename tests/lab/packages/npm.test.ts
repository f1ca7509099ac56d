/** The npm package: two checkouts make the same bytes, and it is installed below a fresh prefix. Also the tarball with its own Node. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../support/venv';
import { MAKING_MS, release, startInstalled, useServer } from './release';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-npm-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Copies the files of the checkout to another folder. */
function copyCheckout(): string {
  const copy = join(folder, 'checkout');
  mkdirSync(copy);
  execFileSync('sh', ['-c', 'git ls-files -z --cached --others --exclude-standard | tar c --null -T - | tar x -C "$0"', copy], {
    cwd: root,
  });
  execFileSync('cp', ['-a', join(root, 'node_modules'), copy]);
  return copy;
}

let installed: string;
it(
  'two checkouts make the same bytes of the npm package',
  async () => {
    const first = await release(join(folder, 'first'), ['npm', 'tarball']);
    const second = await release(join(folder, 'second'), ['npm'], copyCheckout());
    expect(second).toHaveLength(1);
    installed = first.find((path) => path.endsWith('.tgz'))!;
    expect(readFileSync(second[0]!).equals(readFileSync(installed))).toBe(true);
    execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: join(folder, 'first') });
  },
  MAKING_MS,
);

it(
  'npm installs the package, and its command runs the demonstration',
  async () => {
    const prefix = join(folder, 'prefix');
    await run('npm', ['install', '--global', '--ignore-scripts', '--prefix', prefix, installed], { cwd: folder, timeout: MAKING_MS });
    const { stdout } = await run(join(prefix, 'bin/bloomery'), ['demo'], { cwd: folder, timeout: MAKING_MS });
    expect(stdout).toMatch(/^3 machines active after /m);
  },
  MAKING_MS,
);

it('the tarball unpacks to a server that runs with its own Node', async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const name = `bloomery-${version}-linux-x64`;
  execFileSync('tar', ['-xzf', join(folder, 'first', `${name}.tar.gz`), '-C', folder]);
  const server = await startInstalled([join(folder, name, 'bloomery'), 'serve', '--state-dir', join(folder, 'state')], {
    PATH: '/usr/bin:/bin',
    OS_API__PORT: '0',
    OS_BOOT__HTTP_PORT: '0',
    OS_BOOT__TFTP: 'false',
  });
  await useServer(server.url);
  expect(await server.stop()).toBe(0);
});
