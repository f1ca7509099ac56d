// npm run release [-- --out FOLDER]: the packages of this version, with checksums. The same commit makes the same bytes.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { cliArguments } from './cli-arguments.mjs';
import { root } from './install.mjs';
import { runInGroup } from './testing/process-group.mjs';

const NAMES = ['npm', 'tarball', 'deb', 'image', 'chart', 'kustomize'];
const { out, positionals } = cliArguments({
  command: 'npm run release',
  usage: '[PACKAGE …] [--out FOLDER]',
  about: 'Makes the packages of this version: all, or those named. Linux, x86-64. The image needs mmdebstrap.',
  options: { out: { value: 'FOLDER', default: '.cache/release/out', help: 'the folder of the packages, which is emptied first' } },
  positional: { name: 'PACKAGE', choices: NAMES, several: true },
});
const names = NAMES.filter((name) => positionals.length === 0 || positionals.includes(name));
// https://reproducible-builds.org/specs/source-date-epoch/
const time = process.env.SOURCE_DATE_EPOCH ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }).trim();

// For the temporary files of all programs that make the packages. The user of mmdebstrap's namespace needs search permission.
const scratch = mkdtempSync(join(tmpdir(), 'bloomery-release-'));
chmodSync(scratch, 0o755);
const words = [join(root, 'scripts/release/make.mjs'), time, resolve(root, out), ...names];
const { status } = await runInGroup([process.execPath, ...words], { cwd: root, env: { ...process.env, TMPDIR: scratch } });
// A second Ctrl-C must not interrupt the removal.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
try {
  rmSync(scratch, { recursive: true, force: true });
} catch (error) {
  // mmdebstrap was killed before it removed the files of its namespace's users.
  console.error(`${scratch} cannot be removed: ${/** @type {Error} */ (error).message}`);
}
process.exit(status);
