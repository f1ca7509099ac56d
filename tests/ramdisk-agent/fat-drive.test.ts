import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { volumeFor } from '../../ramdisk-agent/disk/fat-drive';
import { fileTree, folder } from './support';

const NOW = Date.parse('2026-02-03T04:05:06Z');
const iso = Buffer.from('the volume');
/** Mounts by copying a tree of files. */
function mounting(files: Readonly<Record<string, string>>) {
  const temporary = folder();
  const ran: string[] = [];
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    ran.push(
      [program, ...args]
        .join(' ')
        .replaceAll(temporary, '')
        .replaceAll(/drive-\w+/g, 'drive'),
    );
    const at = args.at(-1)!;
    if (program === 'mount') cpSync(fileTree(files), at, { recursive: true, verbatimSymlinks: true });
    else for (const name of readdirSync(at)) rmSync(join(at, name), { recursive: true });
    return '';
  };
  return { temporary, ran, run, now: NOW };
}

it('volumeFor leaves the volume for disks with small sectors', async () => {
  const given = mounting({});
  expect(await volumeFor(512, iso, given)).toBe(iso);
  expect(given.ran).toEqual([]);
});

it('volumeFor makes a FAT volume config-2 with sectors of 4096 bytes, and leaves nothing behind', async () => {
  const given = mounting({ 'openstack/latest/meta_data.json': '{"uuid":"x"}', 'openstack/latest/link': '->/etc/passwd' });
  const volume = await volumeFor(4096, Buffer.alloc(1000), given);
  expect(volume.readUInt16LE(11)).toBe(4096);
  expect(volume.toString('latin1', 43, 54)).toBe('CONFIG-2   ');
  expect(volume.length % 4096).toBe(0);
  expect([volume.includes('{"uuid":"x"}'), volume.includes('root:')]).toEqual([true, false]);
  expect(given.ran).toEqual(['mount -t iso9660 -o loop,ro /drive.img /drive', 'umount /drive']);
  expect(readdirSync(given.temporary)).toEqual([]);
});

it('volumeFor converts a FAT volume too', async () => {
  const given = mounting({ A: 'a' });
  const run: typeof given.run = async (program, args) => {
    if (args.includes('iso9660')) throw new Error('wrong type');
    return given.run(program, args);
  };
  expect((await volumeFor(4096, iso, { ...given, run })).includes('A          ')).toBe(true);
  expect(given.ran[0]).toBe('mount -t vfat -o loop,ro /drive.img /drive');
});

it.each<[string, ReturnType<typeof mounting>]>([
  ['that cannot be mounted', { ...mounting({}), run: async () => Promise.reject(new Error('mount: invalid argument')) }],
  ['whose files are larger than the volume', mounting({ a: 'x'.repeat(5000) })],
])('volumeFor rejects a volume %s', async (_, given) => {
  await expect(volumeFor(4096, iso, given)).rejects.toMatchObject({
    type: 'DeploymentError',
    message: expect.stringContaining('cannot be converted') as string,
  });
  expect(readdirSync(given.temporary)).toEqual([]);
});
