/** Trees of files, a clock that moves only when a test advances it, a device that is a file. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Clock } from '../../model/clock';
import { type Device, openDevice } from '../../ramdisk-agent/disk/device';
import type { Kept } from '../../ramdisk-agent/kept';

const made: string[] = [];
const opened: Device[] = [];
afterAll(async () => {
  for (const device of opened) await device.close();
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'ramdisk-agent-'));
  made.push(path);
  return path;
}

/** Path → content; a content that begins with `->` is a symbolic link to what follows. */
export function fileTree(files: Readonly<Record<string, string | Buffer>>): string {
  const root = folder();
  for (const [path, content] of Object.entries(files)) {
    const at = join(root, path);
    mkdirSync(dirname(at), { recursive: true });
    if (typeof content === 'string' && content.startsWith('->')) symlinkSync(content.slice(2), at);
    else writeFileSync(at, content);
  }
  return root;
}

export async function fileDevice(size: number, sectorSize = 512): Promise<Device> {
  const path = join(folder(), 'disk');
  writeFileSync(path, '');
  truncateSync(path, size);
  const device = await openDevice({ path, size, sectorSize, mode: 'write' });
  opened.push(device);
  return device;
}

export interface FakeClock extends Clock {
  /** Advances the clock. Sleepers wake in order, and each runs before the time moves further. */
  advance(milliseconds: number): Promise<void>;
}
export function fakeClock(start = 1_700_000_000_000): FakeClock {
  let now = start;
  let sleepers: { readonly due: number; readonly wake: () => void }[] = [];
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    now: () => now,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        const aborted = (): void => {
          sleepers = sleepers.filter((candidate) => candidate !== sleeper);
          reject(signal!.reason as Error);
        };
        const wake = (): void => {
          signal?.removeEventListener('abort', aborted);
          resolve();
        };
        const sleeper = { due: now + milliseconds, wake };
        sleepers.push(sleeper);
        signal?.addEventListener('abort', aborted);
      }),
    async advance(milliseconds) {
      const end = now + milliseconds;
      await settle();
      for (;;) {
        const next = sleepers.filter((sleeper) => sleeper.due <= end).sort((a, b) => a.due - b.due)[0];
        if (!next) break;
        now = Math.max(now, next.due);
        sleepers = sleepers.filter((sleeper) => sleeper !== next);
        next.wake();
        await settle();
      }
      now = end;
      await settle();
    },
  };
}

/** Whether all bytes are that one. */
export const isFull = (bytes: Buffer, byte: number): boolean => bytes.equals(Buffer.alloc(bytes.length, byte));

/** An agent that nothing is known of, and that leaves nothing. */
export const keptNowhere: Kept = {
  earlierLines: () => [],
  addLine: () => {},
  identity: () => null,
  setIdentity: () => {},
  forget: () => {},
  howTheLastEnded: async () => null,
};
