// Builds the page: ui/ to dist/ui, scripts and style sheets, named by their content and compressed once. Code that only some views need is
// in scripts of its own, which the page loads on demand.
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
    format: 'esm',
    splitting: true,
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    entryNames: 'page-[hash]',
    chunkNames: 'part-[hash]',
    legalComments: 'none',
    logLevel: 'error',
    absWorkingDir: root,
  });
  const outputs = Object.entries(metafile.outputs);
  const [main = '', { cssBundle = '' } = {}] = outputs.find(([, { entryPoint }]) => entryPoint === 'ui/main.tsx') ?? [];
  const [script, style] = [basename(main), basename(cssBundle)];
  const html = readFileSync(join(root, 'ui/index.html'), 'utf8').replace('page.js', script).replace('page.css', style);
  writeFileSync(join(folder, 'index.html'), html);
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(bytes));
  }
}
