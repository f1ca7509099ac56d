/** What a conductor keeps in memory: its workers, and the work that waits for a node. */
import { createLocks } from '../../conductor/runtime/locks';
import { inParallel } from '../../conductor/runtime/parallel';
import { createWorkers } from '../../conductor/runtime/workers';
import { timeoutInterval } from '../../conductor/engine/timeouts';
import { silentLog } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import { conductorOptions, gate } from '../support/conductor';
import { testClock } from '../support/clock';
import { errorWith } from '../support/expect';

describe('workers', () => {
  it('are limited, and become free when their work ends or fails, or when they are given back', async () => {
    const errors: string[] = [];
    const workers = createWorkers(2, { ...silentLog, error: (message) => void errors.push(message) }, silentMetrics);
    const end = gate();
    workers.take().run(() => end.passed);
    const place = workers.take();
    expect(() => workers.take()).toThrow(errorWith({ status: 503 }));
    place.giveBack();
    place.giveBack();
    workers.take().run(async () => Promise.reject(new Error('no')));
    end.open();
    await workers.idle();
    expect(errors).toEqual(['background work failed']);
    workers.take().giveBack();
    workers.close();
    expect(() => workers.take()).toThrow(errorWith({ name: 'NoFreeConductorWorker' }));
  });
  it('stay reserved in part for requests of clients', () => {
    const workers = createWorkers(20, silentLog, silentMetrics, 5);
    for (let taken = 0; taken < 19; taken++) workers.take(true);
    expect(() => workers.take(true)).toThrow(errorWith({ status: 503 }));
    workers.take();
    expect(() => workers.take()).toThrow(errorWith({ status: 503 }));
  });
});

describe('locks', () => {
  it('wake all waiters when they are released, and call the remembered function once', async () => {
    const clock = testClock();
    const locks = createLocks(clock, silentMetrics);
    const signal = new AbortController().signal;
    let calls = 0;
    locks.add('a');
    locks.remember('a', () => calls++);
    locks.remember('a', () => calls++);
    const waits = Promise.all([locks.wait('a', 60_000, signal), locks.wait('a', 60_000, signal)]);
    locks.remove('a');
    await waits;
    locks.remove('a');
    expect([calls, clock.sleeping(), locks.has('a')]).toEqual([1, 0, false]);
  });
});

it('inParallel() processes the whole list with at most the given number at once', async () => {
  let [at, most] = [0, 0];
  const seen: number[] = [];
  await inParallel([1, 2, 3, 4, 5], 2, new AbortController().signal, async (item) => {
    most = Math.max(most, ++at);
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(item);
    at--;
  });
  expect([most, seen.sort()]).toEqual([2, [1, 2, 3, 4, 5]]);
});

it.each([
  ['clean wait', {}, 60],
  ['clean wait', { 'conductor.clean_callback_timeout': 20 }, 2],
  ['clean wait', { 'conductor.clean_callback_timeout': 1 }, 0.25],
  ['clean wait', { 'conductor.check_provision_state_interval': 0 }, 0],
  ['clean wait', { 'conductor.clean_callback_timeout': 0 }, 0],
  ['rescue wait', { 'conductor.check_provision_state_interval': 0, 'conductor.check_rescue_state_interval': 30 }, 30],
] as const)('timeoutInterval() for %s with %j is %s seconds', (state, options, seconds) => {
  expect(timeoutInterval(state, conductorOptions(options))).toBe(seconds);
});
