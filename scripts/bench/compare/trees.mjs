// The built program of another commit, in the checkout's cache.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../install.mjs';

const cache = join(root, '.cache/bench');
/** The command of the program in one file. */
const BUNDLE = 'dist/bundle/cli/bloomery.js';

/**
 * Runs git in the checkout.
 * @param {readonly string[]} words
 * @returns {string | undefined} its output; undefined if it fails
 */
function git(...words) {
  // In CI, the checkout may belong to another user.
  const { status, stdout } = spawnSync('git', ['-c', 'safe.directory=*', ...words], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return status === 0 ? stdout.trim() : undefined;
}
/** @param {string} ref @returns {string | undefined} the ID of the commit */
export const commitOf = (ref) => git('rev-parse', '--verify', '--quiet', `${ref}^{commit}`);
/** @param {string} commit @returns {string} its short ID and its subject */
export const nameOf = (commit) => git('log', '-1', '--format=%h (%s)', commit) ?? commit;

/** The file with the ID of the last commit that landed after a comparison. */
const LANDED = '.ci/landed';
/**
 * The last landed commit: that of the file, else `main` of the remote repository, else the commit before this one. A clone may have none.
 * @returns {{ commit: string, how: string } | undefined}
 */
export function landedCommit() {
  const head = commitOf('HEAD');
  for (const [ref, how] of /** @type {const} */ ([
    [readFileSync(join(root, LANDED), 'utf8').trim(), LANDED],
    ['origin/main', 'origin/main'],
    ['HEAD^1', 'the commit before this one'],
  ])) {
    const commit = commitOf(ref);
    if (commit !== undefined && commit !== head) return { commit, how };
  }
  return undefined;
}

/** The versions of the packages that a lock file names. @param {string} folder */
function packagesOf(folder) {
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const { '': _root, ...rest } = packages;
  return JSON.stringify(rest);
}
/** @param {string} folder @param {string} command @param {readonly string[]} words */
function must(folder, command, words) {
  const { status } = spawnSync(command, words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${words.join(' ')} fails in ${folder}`);
}

/**
 * Extracts and builds a commit, unless that has been done. Other commits are removed from the cache.
 * @param {string} commit its ID
 * @returns {string} its folder
 */
export function builtTree(commit) {
  const folder = join(cache, commit);
  if (existsSync(join(folder, 'dist/.built'))) return folder;
  rmSync(cache, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const archive = join(cache, 'tree.tar');
  must(root, 'git', ['-c', 'safe.directory=*', 'archive', '--output', archive, commit]);
  must(folder, 'tar', ['-xf', archive]);
  rmSync(archive);
  if (packagesOf(folder) === packagesOf(root)) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  else must(folder, 'npm', ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error']);
  must(folder, process.execPath, ['scripts/build.mjs']);
  return folder;
}

/**
 * Whether two trees have the same program, so that there is nothing to measure.
 * @param {string} left @param {string} right
 */
export function haveSameProgram(left, right) {
  const migrations = readdirSync(join(left, 'migrations')).filter((file) => file.endsWith('.ts'));
  const files = [BUNDLE, 'dist/openapi.json', 'introspection.yaml', ...migrations.map((file) => join('migrations', file))];
  return files.every((file) => {
    const [ours, theirs] = [join(left, file), join(right, file)];
    return existsSync(ours) && existsSync(theirs) && readFileSync(ours).equals(readFileSync(theirs));
  });
}
