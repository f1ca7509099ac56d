import { writeBehind } from '../../ramdisk-agent/disk/write-behind';

const MiB = 2 ** 20;
const SIZE = 8 * MiB;

/** A disk in memory whose writes take a turn, and what was asked of it. */
function slowDisk(fails: (position: number) => boolean = () => false) {
  const bytes = Buffer.alloc(SIZE, 0xaa);
  const asked: string[] = [];
  let atATime = 0;
  const turn = (): Promise<void> => new Promise((done) => setImmediate(done));
  return {
    bytes,
    asked,
    size: SIZE,
    async write(content: Uint8Array, position: number) {
      asked.push(`write ${content.length}`);
      expect((atATime += 1)).toBe(1);
      await turn();
      atATime -= 1;
      if (fails(position)) throw new Error('bad sector');
      bytes.set(content, position);
    },
    async zero(position: number, length: number) {
      asked.push(`zero ${length}`);
      bytes.fill(0, position, position + length);
    },
    async flush() {
      asked.push('flush');
    },
  };
}

it('small writes that continue each other become writes of a MiB', async () => {
  const disk = slowDisk();
  const behind = writeBehind(disk);
  const length = 64 * 1024;
  for (let at = 0; at < 2.5 * MiB; at += length) await behind.write(Buffer.alloc(length, at / length + 1), at);
  await behind.flush();
  expect(disk.asked).toEqual([`write ${MiB}`, `write ${MiB}`, `write ${MiB / 2}`, 'flush']);
  for (let at = 0; at < 2.5 * MiB; at += length) expect(disk.bytes[at + 7]).toBe(at / length + 1);
});

it('the disk has the same bytes as after writes one by one, in any order', async () => {
  const [one, other] = [slowDisk(), slowDisk()];
  const behind = writeBehind(one);
  let state = 1;
  const random = (below: number): number => (state = (state * 48271) % 0x7fffffff) % below;
  for (let step = 0, at = 0; step < 300; step++) {
    if (random(4) === 0) at = random(SIZE);
    const length = Math.min(random(step % 9 === 0 ? 3 * MiB : 70_000), SIZE - at);
    if (random(5) === 0) {
      await behind.zero(at, length);
      await other.zero(at, length);
    } else {
      const content = Buffer.alloc(length, step + 1);
      await behind.write(content, at);
      await other.write(content, at);
    }
    at += length;
  }
  await behind.flush();
  expect(one.bytes.equals(other.bytes)).toBe(true);
});

it('a write that fails is told by the next call, and by all after it', async () => {
  const behind = writeBehind(slowDisk((position) => position === 0));
  await behind.write(Buffer.alloc(MiB), 0);
  await behind.write(Buffer.alloc(10), MiB);
  await expect(behind.flush()).rejects.toThrow('bad sector');
  await expect(behind.flush()).rejects.toThrow('bad sector');
});

it('nothing is written once it was abandoned', async () => {
  const disk = slowDisk();
  const behind = writeBehind(disk);
  await behind.write(Buffer.alloc(MiB), 0);
  await behind.write(Buffer.alloc(10), MiB);
  await behind.abandon();
  expect(disk.bytes[0]).toBe(0);
  disk.bytes.fill(0xbb);
  await new Promise((done) => setImmediate(done));
  expect(disk.bytes.every((byte) => byte === 0xbb)).toBe(true);
  expect(disk.asked).toEqual([`write ${MiB}`]);
});
