import { silentLog } from '../../model/log';
import { createHeartbeatSchedule } from '../../ramdisk-agent/heartbeat';
import { type FakeClock, fakeClock } from './support';

interface Beating {
  readonly clock: FakeClock;
  readonly heart: ReturnType<typeof createHeartbeatSchedule>;
  /** Seconds after the start. */
  readonly sent: number[];
  fail: boolean;
  end(): Promise<void>;
}
function start(random: number): Beating {
  const clock = fakeClock();
  const begun = clock.now();
  const stop = new AbortController();
  const beating: { -readonly [Key in keyof Beating]: Beating[Key] } = {
    clock,
    sent: [],
    fail: false,
    heart: createHeartbeatSchedule({
      send: async () => {
        beating.sent.push((clock.now() - begun) / 1000);
        if (beating.fail) throw new Error('no');
      },
      timeout: 300,
      clock,
      random: () => random,
      log: silentLog,
    }),
    end: async () => {
      stop.abort();
      await running;
    },
  };
  const running = beating.heart.run(stop.signal);
  return beating;
}

it('sends a heartbeat at once, repeats it until the first contact, then keeps the interval', async () => {
  const beating = start(0);
  await beating.clock.advance(2_500);
  expect(beating.sent).toEqual([0, 2]);
  beating.heart.contacted();
  await beating.clock.advance(200_000);
  expect(beating.sent).toEqual([0, 2, 92, 182]);
  await beating.end();
});

it('sends a heartbeat for the progress of a command, but not again within seconds', async () => {
  const beating = start(0);
  await beating.clock.advance(500);
  beating.heart.contacted();
  await beating.clock.advance(10_000);
  beating.heart.progressed();
  await beating.clock.advance(2_000);
  beating.heart.progressed();
  await beating.clock.advance(60_000);
  expect(beating.sent).toEqual([0, 10.5]);
  await beating.end();
});

it('ends the short intervals after five repetitions without contact', async () => {
  const beating = start(1);
  await beating.clock.advance(400_000);
  expect(beating.sent).toEqual([0, 2, 6, 14, 22, 30, 210, 390]);
  await beating.end();
});

it('sends a heartbeat at the end of a long command at once', async () => {
  const beating = start(0);
  await beating.clock.advance(500);
  beating.heart.contacted();
  await beating.clock.advance(9_500);
  beating.heart.force();
  await beating.clock.advance(0);
  expect(beating.sent).toEqual([0, 10]);
  await beating.end();
});

it('sends a heartbeat a second after the last contact when a command has ended, and repeats it until the next contact', async () => {
  const beating = start(0);
  await beating.clock.advance(500);
  beating.heart.contacted();
  await beating.clock.advance(9_500);
  beating.heart.contacted();
  beating.heart.force();
  beating.heart.contacted();
  await beating.clock.advance(1_500);
  expect(beating.sent).toEqual([0, 11]);
  await beating.clock.advance(2_000);
  expect(beating.sent).toEqual([0, 11, 13]);
  beating.heart.contacted();
  await beating.clock.advance(60_000);
  expect(beating.sent).toEqual([0, 11, 13]);
  await beating.end();
});

it.each([
  [0, [0, 5, 10]],
  [1, [0, 10]],
])('after a failure, retries in 5 to 10 seconds (random %s)', async (random, expected) => {
  const beating = start(random);
  beating.fail = true;
  await beating.clock.advance(14_000);
  expect(beating.sent).toEqual(expected);
  await beating.end();
});

it('stops in the middle of a pause', async () => {
  const beating = start(0);
  await beating.clock.advance(1_000);
  await beating.end();
  await beating.clock.advance(100_000);
  expect(beating.sent).toEqual([0]);
});

it('keeps the interval when the clock of the machine is set back', async () => {
  const clock = fakeClock();
  const stop = new AbortController();
  let sent = 0;
  const heart = createHeartbeatSchedule({
    send: async () => void sent++,
    timeout: 300,
    clock: { ...clock, now: () => 0, monotonic: () => clock.now() },
    random: () => 0,
    log: silentLog,
  });
  const running = heart.run(stop.signal);
  await clock.advance(2_500);
  heart.contacted();
  await clock.advance(200_000);
  expect(sent).toBe(4);
  stop.abort();
  await running;
});
