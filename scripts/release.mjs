// npm run release [-- --out FOLDER]: the packages of this version, with checksums. The same commit makes the same bytes.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { cliArguments } from './cli-arguments.mjs';
import { build, installPackages, root } from './install.mjs';

const NAMES = ['npm', 'tarball', 'deb', 'image', 'chart', 'kustomize'];
const { out, positionals } = cliArguments({
  command: 'npm run release',
  usage: '[PACKAGE …] [--out FOLDER]',
  about: 'Makes the packages of this version: all, or those named. Linux, x86-64. The image needs mmdebstrap.',
  options: { out: { value: 'FOLDER', default: '.cache/release/out', help: 'the folder of the packages, which is emptied first' } },
  positional: { name: 'PACKAGE', choices: NAMES, several: true },
});

installPackages();
build();
const { PACKAGES, materials } = await import('./release/packages.mjs');
// https://reproducible-builds.org/specs/source-date-epoch/
const time = Number(process.env.SOURCE_DATE_EPOCH ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }));
const folder = resolve(root, out);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const sums = [];
const keep = (files) => {
  for (const [name, bytes] of Object.entries(files)) {
    writeFileSync(join(folder, name), bytes);
    sums.push(`${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`);
    console.log(`${name}: ${(bytes.length / 1e6).toFixed(1)} MB`);
  }
};
for (const name of NAMES.filter((one) => positionals.length === 0 || positionals.includes(one))) keep(PACKAGES[name](time));
keep(materials());
writeFileSync(join(folder, 'SHA256SUMS'), sums.sort().join(''));
