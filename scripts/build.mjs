// npm run build: TypeScript to dist/. Does nothing when dist/ is newer than every source.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '..');
const stamp = join(root, 'dist/.built');
const skipped = new Set(['node_modules', 'dist', '.cache', '.git', 'tests', 'docs']);
const newest = (folder) =>
  Math.max(
    0,
    ...readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !skipped.has(entry.name))
      .map((entry) => {
        const path = join(folder, entry.name);
        return entry.isDirectory() ? newest(path) : /\.(ts|json|yaml)$/.test(entry.name) ? statSync(path).mtimeMs : 0;
      }),
  );

if (existsSync(stamp) && statSync(stamp).mtimeMs > newest(root)) process.exit(0);
console.log('building …');
const begun = new Date();
try {
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(root, 'tsconfig.build.json')], {
    stdio: 'inherit',
  });
} catch {
  process.exit(1);
}
// What is left of a source that is gone would be found before the folder that has its name now.
for (const file of readdirSync(join(root, 'dist'), { recursive: true }))
  if (file.endsWith('.js') && !existsSync(join(root, file.replace(/\.js$/, '.ts')))) rmSync(join(root, 'dist', file));
// What the server reads at its start, read once (api/schema/document.ts).
const text = readFileSync(join(root, 'openapi.yaml'), 'utf8');
const read = { sha256: createHash('sha256').update(text).digest('hex'), document: parse(text, { maxAliasCount: -1 }) };
writeFileSync(join(root, 'dist/openapi.json'), JSON.stringify(read));
writeFileSync(stamp, '');
// What changed while it was built is newer.
utimesSync(stamp, begun, begun);
