import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileRefused, openLocalFile, openReal, refusalOf } from '../../wire/local-files';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bloomery-files-')));
const images = join(folder, 'images');
const state = join(folder, 'images/state');
mkdirSync(state, { recursive: true });
writeFileSync(join(images, 'a.img'), 'image');
writeFileSync(join(state, 'secret'), 'secret');
afterAll(() => rmSync(folder, { recursive: true }));

const rules = { allowed: [images], own: [state] };
const read = async (path: string): Promise<string | undefined> => {
  const file = await openLocalFile(path, rules);
  if (!file) return undefined;
  try {
    return await file.handle.readFile('utf8');
  } finally {
    await file.handle.close();
  }
};

it.each([
  ['/etc/shadow', '/etc'],
  ['/proc/self/environ', '/proc'],
  ['/root/image', '/root'],
  ['/home/user/.ssh/id_rsa', '.ssh'],
  ['/home/user/.pgpass', '.pgpass'],
  ['/srv/state/postgres/data', '/srv/state'],
])('%s is refused although all folders are allowed', (path, protectedPath) => {
  expect(refusalOf(path, { allowed: ['/'], own: ['/srv/state'] })).toEqual({ kind: 'protected', path: protectedPath });
});
it.each(['/etcetera/x', '/srv/state-images/x', '/srv/..state/x'])('%s is not taken for a protected path', (path) => {
  expect(refusalOf(path, { allowed: ['/'], own: ['/srv/state'] })).toBeUndefined();
});

it('opens regular files only', async () => {
  execFileSync('mkfifo', [join(images, 'pipe')]);
  symlinkSync('/dev/zero', join(images, 'device'));
  expect(await read(join(images, 'a.img'))).toBe('image');
  expect(await read(join(images, 'pipe'))).toBeUndefined();
  expect(await read(images)).toBeUndefined();
  expect(await read(join(images, 'none'))).toBeUndefined();
  await expect(read(join(images, 'device'))).rejects.toThrow(FileRefused);
});

it('refuses protected files by any name', async () => {
  symlinkSync('state/secret', join(images, 'link'));
  symlinkSync('state', join(images, 'folder'));
  for (const name of ['state/secret', 'link', 'folder/secret', 'folder/../state/secret'])
    await expect(read(join(images, name))).rejects.toThrow(FileRefused);
});

it('refuses a protected file that the rules name by a link', async () => {
  const [keys, current] = [join(images, 'keys-1'), join(images, 'keys')];
  mkdirSync(keys);
  writeFileSync(join(keys, 'tls.key'), 'key');
  symlinkSync('keys-1', current);
  await expect(openLocalFile(join(keys, 'tls.key'), { allowed: [images], own: [join(current, 'tls.key')] })).rejects.toThrow(FileRefused);
});

describe('a path that changes after its check', () => {
  const part = join(images, 'part');
  beforeEach(() => {
    rmSync(part, { recursive: true, force: true });
    mkdirSync(part);
    writeFileSync(join(part, 'secret'), 'image');
  });
  it('is refused when the file became a link', async () => {
    rmSync(join(part, 'secret'));
    symlinkSync(join(state, 'secret'), join(part, 'secret'));
    expect(await openReal(join(part, 'secret'))).toBeUndefined();
  });
  it('is refused when a folder became a link', async () => {
    renameSync(part, `${part}-away`);
    symlinkSync(state, part);
    await expect(openReal(join(part, 'secret'))).rejects.toThrow(FileRefused);
    rmSync(`${part}-away`, { recursive: true });
  });
  it('is refused when a folder was a link at the opening only', async () => {
    renameSync(part, `${part}-away`);
    symlinkSync(state, part);
    // By the path, everything looks right again.
    const spy = jest.spyOn(files, 'realpath').mockImplementation(async (path) => String(path));
    try {
      await expect(openReal(join(part, 'secret'))).rejects.toThrow(FileRefused);
    } finally {
      spy.mockRestore();
      rmSync(`${part}-away`, { recursive: true });
    }
  });
});
