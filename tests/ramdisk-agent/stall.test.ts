/** What ends the wait for a disk that hangs, and what an operator reads of disks that are gone or in use. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { subjectOf } from '../../model/agent/subject';
import { reasonOf } from '../../model/errors';
import { limited } from '../../ramdisk-agent/disk/stall';
import { usersOf } from '../../ramdisk-agent/disk/users';
import { rescan } from '../../ramdisk-agent/disk/rescan';
import { openToWrite } from '../../ramdisk-agent/disk/guard';
import { tree } from '../../ramdisk-agent/system/tree';
import { fakeClock, fileTree, folder } from './support';

const LIMIT_MS = 300_000;
/** Requests and sectors that are complete; the eighth field counts those under way, the ninth and tenth their time. */
const statOf = (sectors: number, passed = 0): string => `0 0 0 0 ${sectors} 0 ${sectors} 0 1 ${passed} ${passed} 0 0 0 0 0 0`;
const never = (): Promise<never> => new Promise(() => {});

function watched() {
  const clock = fakeClock();
  let stat: string | null = statOf(1);
  const limit = limited({ clock, limitMs: LIMIT_MS, stat: () => stat });
  return { clock, limit, set: (text: string | null) => (stat = text) };
}
const outcome = (work: Promise<unknown>): { said: string } => {
  const seen = { said: 'waits' };
  work.then(
    () => (seen.said = 'done'),
    (error: unknown) => (seen.said = (error as Error).message),
  );
  return seen;
};

it('an operation ends when the disk has done nothing for the limit, although time is counted', async () => {
  const { clock, limit, set } = watched();
  let told: AbortSignal | undefined;
  const write = outcome(limit.run((signal) => ((told = signal), never())));
  await clock.advance(LIMIT_MS - 1000);
  set(statOf(1, 1_000_000));
  expect(write.said).toBe('waits');
  await clock.advance(2000);
  expect(write.said).toBe('the disk hangs: it has done nothing for 300 s (ipa-disk-timeout)');
  expect(told!.aborted).toBe(true);
  // Nothing follows what may still happen.
  let runs = false;
  await expect(limit.run(async () => void (runs = true))).rejects.toThrow('the disk hangs');
  expect(runs).toBe(false);
});

it('a flush may last as long as the disk works', async () => {
  const { clock, limit, set } = watched();
  const flush = outcome(limit.run(never));
  for (let written = 2; written < 9; written++) {
    set(statOf(written));
    await clock.advance(LIMIT_MS / 2);
  }
  expect(flush.said).toBe('waits');
  await clock.advance(2 * LIMIT_MS);
  expect(flush.said).toContain('the disk hangs');
});

it('time between operations does not count, and the last one leaves no timer', async () => {
  const { clock, limit } = watched();
  await expect(limit.run(async () => 7)).resolves.toBe(7);
  await expect(limit.run(() => Promise.reject(new Error('EIO')))).rejects.toThrow(/^EIO$/);
  await clock.advance(10 * LIMIT_MS);
  const late = outcome(limit.run(never));
  await clock.advance(LIMIT_MS - 1000);
  expect(late.said).toBe('waits');
  await expect(limit.run(async () => 8)).resolves.toBe(8);
  limit.end();
  await clock.advance(10 * LIMIT_MS);
  expect(late.said).toBe('waits');
});

it('an error of a disk that is gone says so', async () => {
  const { limit, set } = watched();
  set(null);
  await expect(limit.run(() => Promise.reject(new Error('ENOSPC: no space left on device, write')))).rejects.toThrow(
    'the disk is gone: it was removed, or its controller lost it (ENOSPC: no space left on device, write)',
  );
});

it('the guard limits the disks that it opens, by their names in /sys, and their errors name them', async () => {
  const path = join(folder(), 'disk');
  writeFileSync(path, Buffer.alloc(2 ** 20));
  const block = `sys/block/${`..${path}`.replaceAll('/', '!')}`;
  const root = fileTree({ [`${block}/stat`]: statOf(1) });
  const disk = { name: `/dev/..${path}`, size: 2 ** 20, logical_sectors: 512, serial: ['S1'] };
  const device = await openToWrite(disk, {
    tree: tree(root),
    run: async () => '',
    media: [],
    kept: [],
    protectsShared: false,
    clock: fakeClock(),
    limitMs: LIMIT_MS,
  });
  await device.write(Buffer.alloc(512), 0);
  rmSync(join(root, block), { recursive: true });
  await device.close();
  const failure = await device.read(0, 512).catch((error: unknown) => error);
  expect(reasonOf(failure)).toContain(`${disk.name} cannot be read at 0: the disk is gone`);
  expect(subjectOf(failure)).toBe(`disk ${disk.name} (serial S1, 0.0 GiB)`);
});

it("an error of a disk has the kernel's last words about the disk", async () => {
  const path = '/dev/full';
  const disk = { name: path, size: 2 ** 20, logical_sectors: 512 };
  const failing = async (log: string): Promise<string> => {
    const opened = {
      tree: tree(folder()),
      run: async () => log,
      media: [],
      kept: [],
      protectsShared: false,
      clock: fakeClock(),
      limitMs: LIMIT_MS,
    };
    const device = await openToWrite(disk, opened);
    const failure = await device.write(Buffer.alloc(512), 0).catch((error: unknown) => error);
    await device.close();
    return reasonOf(failure);
  };
  const line = (device: string, sector: number): string =>
    `[   97.33] critical space allocation error, dev ${device}, sector ${sector} op 0x1:(WRITE)\n`;
  expect(await failing(line('full', 1) + line('full', 2) + line('fuller', 3))).toMatch(
    /ENOSPC: no space left on device, write \(the kernel: critical space allocation error, dev full, sector 2 op 0x1:\(WRITE\)\)$/,
  );
  expect(await failing(line('fuller', 3))).toMatch(/ENOSPC: no space left on device, write$/);
});

it('a disk that is in use: by what', async () => {
  const root = fileTree({
    'sys/block/sda/sda1/partition': '1',
    'sys/block/sda/sda2/partition': '2',
    'sys/block/sda/sda3/partition': '3',
    'sys/block/sda/sda4/partition': '4',
    'sys/block/dm-0/dm/name': 'vg0-root\n',
    'proc/swaps': 'Filename Type Size Used Priority\n/dev/sda1 partition 1 0 -2\n/dev/sdb1 partition 1 0 -2\n',
    'proc/mounts': 'proc /proc proc rw 0 0\n/dev/sda2 /mnt vfat rw 0 0\n',
  });
  for (const holder of ['sda3/holders/dm-0', 'sda4/holders/md127']) mkdirSync(join(root, 'sys/block/sda', holder), { recursive: true });
  const used = ['/dev/sda1 (swap)', '/dev/sda2 (mounted at /mnt)', '/dev/sda3 (part of vg0-root)', '/dev/sda4 (part of md127)'];
  expect(usersOf(tree(root), '/dev/sda')).toEqual(used);
  expect(usersOf(tree(root), '/dev/sdc')).toEqual([]);
  const busy = async (): Promise<never> => {
    throw new Error('blockdev: busy');
  };
  const clock = { sleep: async () => {} };
  await expect(rescan({ run: busy, tree: tree(root), clock }, '/dev/sda')).rejects.toThrow(
    `the disk is in use: ${used.join(', ')}: blockdev: busy`,
  );
  await expect(rescan({ run: busy, tree: tree(root), clock }, '/dev/sdc')).rejects.toThrow(/^blockdev: busy$/);
});
