// The page: ui/ to dist/ui, one script and one style sheet, named by their content and compressed here, once.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist/ui');

export async function buildPage() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { metafile } = await build({
    entryPoints: [join(root, 'ui/main.tsx')],
    outdir: folder,
    bundle: true,
    minify: true,
    metafile: true,
    format: 'iife',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    entryNames: 'page-[hash]',
    legalComments: 'none',
    logLevel: 'error',
    absWorkingDir: root,
  });
  const names = Object.keys(metafile.outputs).map((file) => basename(file));
  const [script, style] = ['.js', '.css'].map((ending) => names.find((name) => name.endsWith(ending)));
  const html = readFileSync(join(root, 'ui/index.html'), 'utf8').replace('page.js', script).replace('page.css', style);
  writeFileSync(join(folder, 'index.html'), html);
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(bytes));
  }
}
