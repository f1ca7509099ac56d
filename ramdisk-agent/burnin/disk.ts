/**
 * Burn-in of disks: writes random data to all of each disk, reads it back and compares. It takes the disks that an erasure would take, all at
 * once, and destroys their data.
 */
import { AgentError } from '../../model/agent/errors';
import { type DiskBurnIn, readDiskBurnIn } from '../../model/agent/burnin';
import { describeDisk, concerning } from '../../model/agent/subject';
import { reasonOf } from '../../model/errors';
import { isObject, objectOf } from '../../model/json';
import type { JsonObject } from '../../model/records';
import type { Device } from '../disk/device';
import { isReadOnly } from '../disk/guard';
import { planOf } from '../erase/each';
import type { FoundDisk } from '../inventory/disks';
import { type Machine, openDisk, openDiskToRead } from '../machine';
import { alignedBuffer } from '../system/aligned';
import type { ReportProgress } from '../system/progress';
import { monotonic, writeResult } from './measures';

const MiB = 2 ** 20;
const SECTOR = 4096;
/** Bytes that are written before they are read: more than the disk's own memory has. */
const SEGMENT = 256 * MiB;
/** Places of wrong data that a result names. */
const MAX_PLACES = 10;

interface DiskResult {
  readonly disk: string;
  readonly serial: string | null;
  readonly loops: number;
  readonly written: number;
  readonly read: number;
  readonly seconds: number;
  readonly wrong: number;
  /** Positions in bytes. */
  readonly wrong_at: readonly number[];
}
interface Counts {
  loops: number;
  written: number;
  read: number;
  wrong: number;
  places: number[];
}

/** The content of the disk in one loop: the same random data everywhere, with its own position in each sector. */
function contentOf(random: Buffer): (position: number, length: number) => Buffer {
  return (position, length) => {
    for (let at = 0; at < length; at += SECTOR) random.writeBigUInt64LE(BigInt(position + at), at);
    return random.subarray(0, length);
  };
}

interface Test {
  readonly writing: Device;
  /** Reads past the kernel's memory. */
  readonly reading: Device;
  readonly room: Buffer;
  readonly isOver: () => boolean;
  readonly report: (done: number) => void;
}
/** Writes from `start` until the end of the segment or of the time, then compares what was written. @returns where it ended */
async function testSegment(test: Test, start: number, content: ReturnType<typeof contentOf>, counts: Counts): Promise<number> {
  const { writing, reading, room, isOver, report } = test;
  const last = Math.min(start + SEGMENT, writing.size);
  let end = start;
  while (end < last && (end === start || !isOver())) {
    const length = Math.min(MiB, last - end);
    await writing.write(content(end, length), end);
    end += length;
    counts.written += length;
    report(counts.written + counts.read);
  }
  await writing.flush();
  for (let at = start; at < end; at += MiB) {
    const length = Math.min(MiB, end - at);
    const found = await reading.read(at, length, room);
    counts.read += found.length;
    report(counts.written + counts.read);
    if (found.equals(content(at, length))) continue;
    counts.wrong++;
    if (counts.places.length < MAX_PLACES) counts.places.push(at);
  }
  return end;
}

async function testDisk(machine: Machine, disk: FoundDisk, wanted: DiskBurnIn, report: (share: number) => void): Promise<DiskResult> {
  const began = monotonic(machine);
  const until = began + wanted.seconds * 1000;
  const isTimed = wanted.seconds > 0;
  const isOver = (): boolean => {
    machine.fetching.signal.throwIfAborted();
    return isTimed && monotonic(machine) >= until;
  };
  const writing = await openDisk(machine, disk);
  const counts: Counts = { loops: 0, written: 0, read: 0, wrong: 0, places: [] };
  try {
    const reading = await openDiskToRead(machine, disk);
    try {
      const all = 2 * writing.size * wanted.loops;
      const share = (done: number): number => (isTimed ? (monotonic(machine) - began) / (wanted.seconds * 1000) : done / all);
      const room = await alignedBuffer(MiB);
      const test: Test = { writing, reading, room, isOver, report: (done) => report(Math.min(1, share(done))) };
      while (isTimed ? !isOver() : counts.loops < wanted.loops) {
        const content = contentOf(machine.random(MiB));
        let at = 0;
        do at = await testSegment(test, at, content, counts);
        while (at < writing.size && !isOver());
        if (at === writing.size) counts.loops++;
      }
    } finally {
      await reading.close();
    }
  } finally {
    await writing.close();
  }
  const { places, ...numbers } = counts;
  const seconds = (monotonic(machine) - began) / 1000;
  return { disk: disk.name, serial: disk.serial[0] ?? null, ...numbers, wrong_at: places, seconds };
}

/** Throws BlockDeviceEraseError or ProtectedDeviceError before a disk is touched, CommandExecutionError if a disk has failed. */
export async function burnInDisk(machine: Machine, progress: ReportProgress): Promise<JsonObject> {
  const wanted = readDiskBurnIn(objectOf(machine.state.node['driver_info']));
  const { disks: found, left } = await planOf(machine);
  const disks = found.filter((disk) => !isReadOnly(machine.tree, disk));
  for (const disk of disks)
    await concerning(
      () => describeDisk(disk),
      async () => (await openDisk(machine, disk)).close(),
    );
  const shares = new Map(disks.map(({ name }) => [name, 0]));
  const failures: string[] = [];
  const one = async (disk: FoundDisk): Promise<DiskResult | undefined> => {
    try {
      const result = await testDisk(machine, disk, wanted, (share) => {
        shares.set(disk.name, share);
        progress(Math.min(99, (100 * [...shares.values()].reduce((sum, each) => sum + each, 0)) / disks.length));
      });
      const {
        wrong,
        wrong_at: [first],
      } = result;
      if (wrong > 0) failures.push(`${disk.name}: ${wrong} blocks of 1 MiB are not as they were written, the first at byte ${first}`);
      return result;
    } catch (error) {
      failures.push(`${disk.name}: ${reasonOf(error)}`);
      return undefined;
    }
  };
  machine.log.info(`Burn-in (disk): ${disks.map(({ name }) => name).join(', ') || 'no disk'}`);
  const tested = (await Promise.all(disks.map(one))).filter((result) => result !== undefined);
  const untouched = [...left.map(({ disk }) => disk.name), ...found.filter((disk) => !disks.includes(disk)).map(({ name }) => name)];
  const result = { disks: tested, untouched } as unknown as JsonObject;
  await writeResult(machine, wanted.outputFile, result);
  if (failures.length > 0) throw new AgentError('CommandExecutionError', `Burn-in (disk) failed with error ${failures.join('; ')}`);
  machine.log.info(`Burn-in (disk): ${JSON.stringify(result)}`);
  return wanted.smartTest
    ? {
        ...result,
        smart: await smartTests(
          machine,
          disks.map(({ name }) => name),
        ),
      }
    : result;
}

const POLL_MS = 30_000;
/** The longest self tests of large disks take a day and a half. */
const SMART_LIMIT_MS = 4 * 86_400_000;
/** What smartctl says of the disk's self test; undefined: the disk says nothing. */
async function selfTest({ run }: Machine, disk: string): Promise<string | undefined> {
  const output = await run('smartctl', ['-ja', disk], { anyStatus: true }).catch(() => '');
  let said: unknown;
  try {
    said = JSON.parse(output);
  } catch {
    return undefined;
  }
  const text = ['ata_smart_data', 'self_test', 'status', 'string'].reduce<unknown>(
    (at, name) => (isObject(at) ? at[name] : undefined),
    said,
  );
  return typeof text === 'string' ? text.slice(0, 200) : undefined;
}
/** Long self tests of all disks at once. Disks that do not say how theirs went count as in ironic-python-agent: not at all. Throws CleaningError. */
async function smartTests(machine: Machine, disks: readonly string[]): Promise<JsonObject> {
  const unstarted: string[] = [];
  for (const disk of disks)
    await machine.run('smartctl', ['-t', 'long', disk]).catch((error: unknown) => {
      machine.log.error(`Starting SMART test on ${disk} failed with: ${reasonOf(error)}`);
      unstarted.push(disk);
    });
  if (unstarted.length > 0) throw new AgentError('CleaningError', `fio (disk) failed to start SMART self test on ${unstarted.join(', ')}`);
  const results: Record<string, string> = {};
  let running = [...disks];
  const end = monotonic(machine) + SMART_LIMIT_MS;
  while (running.length > 0) {
    const states = await Promise.all(running.map(async (disk) => [disk, await selfTest(machine, disk)] as const));
    for (const [disk, state] of states) if (state === undefined || !state.includes('in progress')) results[disk] = state ?? 'unknown';
    running = running.filter((disk) => !Object.hasOwn(results, disk));
    if (running.length === 0) break;
    if (monotonic(machine) >= end) for (const disk of running.splice(0)) results[disk] = 'did not end';
    else await machine.clock.sleep(POLL_MS, machine.fetching.signal);
  }
  const bad = Object.entries(results).filter(([, state]) => state !== 'unknown' && !state.includes('completed without error'));
  if (bad.length > 0) throw new AgentError('CleaningError', `fio (disk) SMART test failed for ${bad.map(([disk]) => disk).join(' ')}`);
  return results;
}
