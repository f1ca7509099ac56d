import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readAuthorities, readRegularFile, verifies } from '../../wire/authorities';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-authorities-'));
const inside = (...parts: readonly string[]): string => join(folder, ...parts);
beforeAll(() => {
  for (const name of ['good', 'many', 'large', 'heavy']) mkdirSync(inside(name));
  writeFileSync(inside('good', 'b.pem'), 'B');
  writeFileSync(inside('good', 'a.crt'), 'A');
  writeFileSync(inside('good', 'notes'), 'N');
  mkdirSync(inside('good', 'c.pem'));
  execFileSync('mkfifo', [inside('pipe'), inside('good', 'd.pem')]);
  symlinkSync(inside('pipe'), inside('link'));
  for (let at = 0; at <= 2000; at++) writeFileSync(inside('many', `${at}.pem`), '');
  writeFileSync(inside('large', 'x.pem'), '');
  truncateSync(inside('large', 'x.pem'), 5_000_000);
  for (const name of ['1', '2', '3', '4', '5']) {
    writeFileSync(inside('heavy', name), '');
    truncateSync(inside('heavy', name), 4_000_000);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

it('readAuthorities reads a file, and the regular files of a directory ordered by name', async () => {
  expect(await readAuthorities(inside('good', 'b.pem'), /\.pem$/)).toEqual(['B']);
  expect(await readAuthorities(inside('good'), /\.(?:pem|crt)$/)).toEqual(['A', 'B']);
  expect(await readAuthorities(inside('good'), /(?:)/)).toEqual(['A', 'B', 'N']);
});

it.each(['pipe', 'link', 'many', 'large', 'large/x.pem', 'heavy', 'none'])('readAuthorities rejects %s', async (name) => {
  await expect(readAuthorities(inside(name), /(?:)/)).rejects.toThrow();
});
it.each(['/dev/zero', '/dev/null'])('readAuthorities rejects the device %s', async (path) => {
  await expect(readAuthorities(path, /(?:)/)).rejects.toThrow('not a regular file');
});

it('readRegularFile reads a file of the maximum size, and names a larger one in its error', async () => {
  expect(await readRegularFile(inside('good', 'b.pem'), 1)).toBe('B');
  await expect(readRegularFile(inside('good', 'b.pem'), 0)).rejects.toThrow(`${inside('good', 'b.pem')} is larger than 0 bytes`);
});
it.each<[string, boolean | undefined]>([
  ...['1', 't', 'true', 'on', 'y', 'yes', ' True\n'].map((word): [string, boolean] => [word, true]),
  ...['0', 'f', 'false', 'off', 'n', 'no', 'NO'].map((word): [string, boolean] => [word, false]),
  ['/etc/ca.pem', undefined],
  ['', undefined],
])('verifies(%j) is %s', (setting, expected) => {
  expect(verifies(setting)).toBe(expected);
});
