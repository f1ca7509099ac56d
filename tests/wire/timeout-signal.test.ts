import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { timeoutSignal, unlessAborted } from '../../wire/timeout-signal';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

it('timeoutSignal aborts after the timeout even if garbage is collected meanwhile', async () => {
  const other = new AbortController();
  const signals = Array.from({ length: 20 }, () => timeoutSignal(50, other.signal));
  const aborted = Promise.all(signals.map((signal) => once(signal, 'abort')));
  for (let round = 0; round < 3; round++) {
    await turn();
    collectGarbage();
  }
  await aborted;
  expect(signals.map(({ reason }) => (reason as Error).name)).toEqual(Array(20).fill('TimeoutError'));
});

it('timeoutSignal aborts with the reason of the other signal, aborted before or after', () => {
  const other = new AbortController();
  const before = timeoutSignal(60_000, other.signal);
  const reason = new Error('no more');
  other.abort(reason);
  expect(before.reason).toBe(reason);
  expect(timeoutSignal(60_000, other.signal).reason).toBe(reason);
});

describe('unlessAborted', () => {
  const never = new Promise<number>(() => {});
  const reason = new Error('no more');
  it.each([undefined, new AbortController().signal])('returns the outcome of the work while nothing aborts: %p', async (signal) => {
    expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(unlessAborted(Promise.reject(reason), signal)).rejects.toBe(reason);
  });
  it('rejects when the signal aborts before or during the wait', async () => {
    expect.assertions(2);
    const other = new AbortController();
    const waiting = expect(unlessAborted(never, other.signal)).rejects.toBe(reason);
    other.abort(reason);
    await waiting;
    await expect(unlessAborted(never, other.signal)).rejects.toBe(reason);
  });
});
