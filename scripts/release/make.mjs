// The work of npm run release, in a process group of its own. Arguments: seconds since 1970, the folder of the packages, their names.
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, installPackages } from '../install.mjs';

const [time = '', folder = '', ...names] = process.argv.slice(2);
installPackages();
build();
const { PACKAGES, materials } = await import('./packages.mjs');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
/** @type {string[]} */
const sums = [];
/** @param {Record<string, Buffer>} files */
const keep = (files) => {
  for (const [name, bytes] of Object.entries(files)) {
    writeFileSync(join(folder, name), bytes);
    sums.push(`${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`);
    console.log(`${name}: ${(bytes.length / 1e6).toFixed(1)} MB`);
  }
};
for (const name of names) keep(PACKAGES[/** @type {keyof typeof PACKAGES} */ (name)](Number(time)));
keep(materials());
writeFileSync(join(folder, 'SHA256SUMS'), sums.sort().join(''));
