// Builds the pages: ui/ to dist/ui, scripts and style sheets, named by their content and compressed once. Code that only some views need is
// in scripts of its own, which the page loads on demand.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist/ui');

/** Packages whose code is in the pages: they are distributed with the program, although npm counts them as packages for development. */
export const PAGE_PACKAGES = ['@novnc/novnc', '@preact/signals', '@preact/signals-core', '@xterm/xterm', 'preact'];

/** One page, whose scripts share nothing with another page. @param {string} entry @param {string} page */
async function buildOne(entry, page) {
  const { metafile } = await build({
    entryPoints: [join(root, entry)],
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
  for (const input of Object.keys(metafile.inputs)) {
    const name = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (name !== undefined && !PAGE_PACKAGES.includes(name)) throw new Error(`PAGE_PACKAGES lacks ${name}`);
  }
  const outputs = Object.entries(metafile.outputs);
  const [main = '', { cssBundle = '' } = {}] = outputs.find(([, { entryPoint }]) => entryPoint === entry) ?? [];
  const [script, style] = [basename(main), basename(cssBundle)];
  const html = readFileSync(join(root, 'ui', page), 'utf8')
    .replace('page.js', script)
    .replace('page.css', style);
  writeFileSync(join(folder, page), html);
}

export async function buildPage() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await buildOne('ui/main.tsx', 'index.html');
  await buildOne('ui/screen.tsx', 'screen.html');
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(bytes));
  }
}
