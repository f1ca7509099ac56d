import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Room → rooms that it may import. Everything else is a wall. */
const MAY: Readonly<Record<string, readonly string[]>> = {
  model: [],
  wire: [],
  config: [],
  store: ['model', 'migrations'],
  drivers: ['model', 'wire', 'config/options'],
  boot: ['store', 'wire', 'model', 'config/options'],
  conductor: ['drivers', 'store', 'model', 'config/options'],
  api: ['conductor/conductor', 'store', 'model', 'config/options'],
  'ramdisk-agent': ['model', 'wire'],
  simulator: ['model', 'wire'],
  migrations: [],
  commands: ['store', 'config', 'simulator', 'model', 'wire'],
  demo: ['simulator', 'model', 'tests'],
};
const root = join(__dirname, '..');
const files = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));

/** The paths, from the root, that a file imports of ours. */
function imports(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/(?:from|import|require)\s*\(?\s*'(\.[^']*)'/g)].map((match) =>
    relative(root, join(root, dirname(file), match[1]!)),
  );
}

describe.each(Object.entries(MAY))('room %s', (room, allowed) => {
  it('imports only what it may', () => {
    const breaches = files(room).flatMap((file) =>
      imports(file)
        .filter((path) => path.split('/')[0] !== room && !allowed.some((other) => path === other || path.startsWith(`${other}/`)))
        .map((path) => `${file} imports ${path}`),
    );
    expect(breaches).toEqual([]);
  });
});

it('imports no values of the option table outside of its room, only types', () => {
  const values = ['drivers', 'boot', 'conductor', 'api'].flatMap(files).filter((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return [...text.matchAll(/^import (.*?) from '[./]*config\/options';$/gms)].some(([, what]) => !what!.startsWith('type '));
  });
  expect(values).toEqual([]);
});

it('knows every room', () => {
  const rooms = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .filter((name) => !['node_modules', 'dist', 'tests', 'docs', 'scripts', 'bin'].includes(name));
  expect(rooms.filter((room) => !(room in MAY))).toEqual([]);
});

/** The folders of the conductor, lowest first: each imports only itself and lower ones. `.` has index.ts, operations.ts and conductor.ts. */
const CONDUCTOR = [
  'core',
  'steps',
  'requests',
  'inspection/rules',
  'inspection',
  'introspection',
  'flows',
  'engine',
  'periodic',
  '.',
  'rpc',
];
it('imports downwards within the conductor', () => {
  const rank = (path: string): number => {
    const name = relative('conductor', path);
    // A folder stands for its index.
    return CONDUCTOR.indexOf(CONDUCTOR.includes(name) ? name : dirname(name));
  };
  const all = files('conductor');
  expect(all.map(rank)).not.toContain(-1);
  const upwards = all.flatMap((file) =>
    imports(file)
      .filter((path) => path.startsWith('conductor/') && rank(path) > rank(file))
      .map((path) => `${file} imports ${path}`),
  );
  expect(upwards).toEqual([]);
});
