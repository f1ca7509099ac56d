import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { timeoutSignal } from '../../wire/timeout-signal';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

it('aborts in time, however much garbage is collected meanwhile', async () => {
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

it('aborts with another signal, for its reason, before or after', () => {
  const other = new AbortController();
  const before = timeoutSignal(60_000, other.signal);
  const reason = new Error('no more');
  other.abort(reason);
  expect(before.reason).toBe(reason);
  expect(timeoutSignal(60_000, other.signal).reason).toBe(reason);
});
