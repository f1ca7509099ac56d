/** Readings of machines after events: together, with pauses, few at once, whatever the BMCs send. */
import { setMaxListeners } from 'node:events';
import { createEventReads } from '../../../conductor/runtime/event-reads';
import type { BmcEvent } from '../../../model/rules/bmc-events';
import { silentLog } from '../../../model/log';
import { testClock } from '../../support/clock';

const EVENT: BmcEvent = { MessageId: 'x' };
function setUp() {
  const clock = testClock(0, 0);
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const read: (readonly [string, number])[] = [];
  const ends: (() => void)[] = [];
  let waits = false;
  const reads = createEventReads({
    clock,
    log: silentLog,
    signal: stop.signal,
    track: (work) => work,
    read: async (uuid, events) => {
      read.push([uuid, events.length]);
      if (waits) await new Promise<void>((done) => ends.push(done));
    },
  });
  return { clock, stop, read, ends, reads, holdReads: () => (waits = true) };
}

it('reads a machine once for events that come together, then lets it rest', async () => {
  const { clock, read, reads } = setUp();
  for (let n = 0; n < 500; n++) reads.note('a', [EVENT, EVENT]);
  await clock.advance(1);
  expect(read).toEqual([['a', 64]]);
  reads.note('a', [EVENT]);
  await clock.advance(5);
  expect(read).toHaveLength(1);
  await clock.advance(5);
  expect(read).toEqual([
    ['a', 64],
    ['a', 1],
  ]);
});
it('reads four machines at once: slow ones let the others wait, and take no more', async () => {
  const { clock, read, ends, reads, holdReads } = setUp();
  holdReads();
  for (let n = 0; n < 10; n++) reads.note(String(n), [EVENT]);
  await clock.advance(1);
  expect(read.map(([uuid]) => uuid)).toEqual(['0', '1', '2', '3']);
  ends.shift()!();
  await clock.advance(0);
  expect(read.map(([uuid]) => uuid)).toEqual(['0', '1', '2', '3', '4']);
});
it('slow machines give their places to others, wait behind them the next time, and are a limited number too', async () => {
  const { clock, read, ends, reads, holdReads } = setUp();
  const begun = (): number => read.length;
  holdReads();
  for (let n = 0; n < 4; n++) reads.note(`slow${n}`, [EVENT]);
  reads.note('other', [EVENT]);
  await clock.advance(1);
  expect(begun()).toBe(4);
  await clock.advance(5);
  expect(read.at(-1)![0]).toBe('other');
  for (const end of ends.splice(0)) end();
  await clock.advance(20);
  // Known as slow now: they take no place of the others, which were never slow.
  read.splice(0);
  for (let n = 0; n < 4; n++) reads.note(`slow${n}`, [EVENT]);
  for (let n = 0; n < 100; n++) reads.note(`new${n}`, [EVENT]);
  await clock.advance(1);
  expect(read.map(([uuid]) => uuid).sort()).toEqual(['new0', 'new1', 'new2', 'new3', 'slow0', 'slow1', 'slow2', 'slow3']);
  // All hang: 16 slow ones, and four more.
  await clock.advance(60);
  expect(begun()).toBe(20);
  for (let left = ends.splice(0); left.length > 0; left = ends.splice(0)) {
    for (const end of left) end();
    await clock.advance(1);
  }
  expect(begun()).toBe(104);
});
it('has a limit of machines, and ends with the conductor', async () => {
  const { clock, stop, read, reads } = setUp();
  let noted = 0;
  for (let n = 0; n < 20_100; n++) if (reads.note(String(n), [EVENT])) noted++;
  expect(noted).toBe(20_000);
  stop.abort();
  await clock.advance(1);
  expect(read).toEqual([]);
  expect(reads.note('new', [EVENT])).toBe(false);
});
