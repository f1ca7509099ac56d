/**
 * The loads of a burn-in: each runs in a program of its own, so that a fault of the machine ends it and not the agent. They check what they
 * compute and what they remember: a machine that gives wrong results fails.
 */
import { createHash } from 'node:crypto';

/** What a load did, as the last line of its output. */
export interface LoadReport {
  readonly rounds: number;
  readonly bytes: number;
}
interface LoadTime {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly seconds: number;
}

const SIDE = 64;
/** One round of work for the processor's parts: integers, floating point (only operations that IEEE 754 rounds exactly), hashes. @internal */
export function cpuRound(): string {
  const [a, b, product] = [new Float64Array(SIDE * SIDE), new Float64Array(SIDE * SIDE), new Float64Array(SIDE * SIDE)];
  let state = 0x9e3779b9;
  for (let at = 0; at < a.length; at++) {
    // xorshift32 (Marsaglia 2003)
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    a[at] = state / 2 ** 31;
    b[at] = Math.sqrt(Math.abs(state)) / (1 + (at % 7));
  }
  for (let row = 0; row < SIDE; row++)
    for (let column = 0; column < SIDE; column++) {
      let sum = 0;
      for (let at = 0; at < SIDE; at++) sum += a[row * SIDE + at]! * b[at * SIDE + column]!;
      product[row * SIDE + column] = sum;
    }
  let digest = createHash('sha512').update(new Uint8Array(product.buffer)).digest();
  for (let times = 0; times < 500; times++) digest = createHash('sha512').update(digest).update(digest).digest();
  return digest.toString('hex', 0, 16);
}
/** Of every processor that works (little-endian). */
const CPU_RESULT = 'b15d1d384cd7b76352049505c06213f7';

/** @throws Error if the processor gives another result. @internal */
export function loadCpu({ now, seconds }: LoadTime, expected = CPU_RESULT, round = cpuRound): LoadReport {
  const end = now() + seconds * 1000;
  let rounds = 0;
  do {
    const result = round();
    rounds++;
    if (result !== expected) throw new Error(`the processor computed ${result} in place of ${expected} in round ${rounds}`);
  } while (now() < end);
  return { rounds, bytes: 0 };
}

const BLOCK = 2 ** 20;
/** Bytes of one allocation. */
const PIECE = 64 * BLOCK;
/** Of all bits, of every second one, and of neighbours that differ. */
const PATTERNS = ['00', 'ff', 'aa', '55', '0f', 'f0', '0123456789abcdef', 'fedcba9876543210'];

/** Memory as a list of blocks. @internal */
export function allocate(bytes: number): readonly Buffer[] {
  const blocks: Buffer[] = [];
  for (let left = Math.max(BLOCK, Math.floor(bytes / BLOCK) * BLOCK); left > 0; left -= PIECE) {
    const piece = Buffer.allocUnsafeSlow(Math.min(PIECE, left));
    for (let at = 0; at < piece.length; at += BLOCK) blocks.push(piece.subarray(at, at + BLOCK));
  }
  return blocks;
}

/** Fills all blocks with a pattern, then compares them, with one pattern after the other. @throws Error for a block that has changed @internal */
export function loadMemory({ now, seconds }: LoadTime, blocks: readonly Buffer[]): LoadReport {
  const end = now() + seconds * 1000;
  const wanted = Buffer.alloc(BLOCK);
  let [rounds, bytes] = [0, 0];
  const stamp = (block: Buffer, index: number): void => void block.writeUInt32LE(index, (index * 64) % BLOCK);
  do {
    const pattern = Buffer.from(PATTERNS[rounds % PATTERNS.length]!, 'hex');
    wanted.fill(pattern);
    let filled = 0;
    for (; filled < blocks.length && (filled === 0 || now() < end); filled++) {
      blocks[filled]!.set(wanted);
      // Blocks of one pattern differ, so that memory that appears at two addresses is found.
      stamp(blocks[filled]!, filled);
    }
    for (let index = 0; index < filled; index++) {
      stamp(wanted, index);
      if (blocks[index]!.compare(wanted) !== 0) throw new Error(changed(blocks[index]!, wanted, index));
      wanted.fill(pattern);
    }
    bytes += filled * BLOCK;
    rounds++;
  } while (now() < end);
  return { rounds, bytes };
}
function changed(found: Buffer, wanted: Buffer, index: number): string {
  const at = found.findIndex((byte, place) => byte !== wanted[place]);
  const hex = (byte: number): string => byte.toString(16).padStart(2, '0');
  return `the memory kept ${hex(found[at]!)} in place of ${hex(wanted[at]!)} at byte ${index * BLOCK + at} of the worker`;
}

/** The command `agent burn-in cpu SECONDS`, or `agent burn-in memory SECONDS BYTES`. @param now milliseconds of a monotonic clock */
export function burnIn([what, seconds, bytes]: readonly string[], now: () => number, write: (line: string) => void): void {
  const time = { now, seconds: Number(seconds) };
  const report = what === 'memory' ? loadMemory(time, allocate(Number(bytes))) : loadCpu(time);
  write(`${JSON.stringify(report)}\n`);
}
