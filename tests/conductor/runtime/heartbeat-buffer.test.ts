/** The buffer of agents' heartbeats. */
import { createHeartbeatBuffer, type HeartbeatBuffer } from '../../../conductor/runtime/heartbeat-buffer';
import { silentLog } from '../../../model/log';
import type { Store } from '../../../store/store';
import { testClock } from '../../support/clock';

type Stamps = Parameters<Store['nodes']['recordHeartbeats']>[0];
/** A clock whose waits end only by `advance`. */
function remembered(recordHeartbeats: (stamps: Stamps) => Promise<void> = async () => {}) {
  const clock = testClock(undefined, -1);
  const written: Stamps[] = [];
  const stopping = new AbortController();
  const nodes = {
    recordHeartbeats: async (stamps: Stamps) => {
      written.push(stamps);
      await recordHeartbeats(stamps);
    },
  };
  const beats: HeartbeatBuffer = createHeartbeatBuffer({
    store: { nodes } as unknown as Store,
    clock,
    log: silentLog,
    signal: stopping.signal,
  });
  return { beats, clock, written, stop: () => stopping.abort() };
}

describe('times of heartbeats', () => {
  it('are written together after a short delay, one for each node', async () => {
    const { beats, clock, written } = remembered();
    for (const node of ['a', 'b', 'a']) beats.stamp(node, `http://${node}`);
    await clock.advance(0.4);
    expect(written).toEqual([]);
    await clock.advance(0.2);
    const at = '2026-03-01T00:00:00.000000';
    expect(written).toEqual([
      [
        { nodeUuid: 'a', agentUrl: 'http://a', at },
        { nodeUuid: 'b', agentUrl: 'http://b', at },
      ],
    ]);
    await clock.advance(5);
    expect(written).toHaveLength(1);
  });
  it('that cannot be written are dropped, since the agents send more', async () => {
    const { beats, clock, written } = remembered(async () => Promise.reject(new Error('away')));
    beats.stamp('a', 'http://a');
    await clock.advance(1);
    beats.stamp('a', 'http://a');
    await clock.advance(1);
    expect(written).toHaveLength(2);
  });
  it('are written when the buffer closes', async () => {
    const { beats, written, stop } = remembered();
    beats.stamp('a', 'http://a');
    stop();
    await beats.close();
    expect(written).toHaveLength(1);
  });
});

describe('the check of a step at a heartbeat', () => {
  it("is not postponed, unless the node's step was just checked; then it runs once after a second", async () => {
    const { beats, clock } = remembered();
    const look = jest.fn();
    expect(beats.postpone('a', look)).toBe(false);
    beats.stepChecked('a');
    expect([beats.isChecked('a'), beats.isChecked('b')]).toEqual([true, false]);
    expect([beats.postpone('a', look), beats.postpone('b', look), beats.postpone('a', look)]).toEqual([true, false, true]);
    await clock.advance(0.5);
    expect(look).not.toHaveBeenCalled();
    await clock.advance(0.6);
    expect(look).toHaveBeenCalledTimes(1);
    expect(beats.isChecked('a')).toBe(false);
    expect(beats.postpone('a', look)).toBe(false);
  });
  it('does not run for a node that does not wait any more, and runs for its next flow', async () => {
    const { beats, clock } = remembered();
    const [look, next] = [jest.fn(), jest.fn()];
    beats.stepChecked('a');
    beats.postpone('a', look);
    await clock.advance(0.5);
    beats.forget('a');
    expect(beats.postpone('a', next)).toBe(false);
    beats.stepChecked('a');
    expect(beats.postpone('a', next)).toBe(true);
    await clock.advance(0.6);
    expect(next).not.toHaveBeenCalled();
    await clock.advance(0.6);
    expect([look.mock.calls.length, next.mock.calls.length]).toEqual([0, 1]);
  });
  it('does not run after the conductor stops', async () => {
    const { beats, clock, stop } = remembered();
    const look = jest.fn();
    beats.stepChecked('a');
    beats.postpone('a', look);
    stop();
    await clock.advance(5);
    expect(look).not.toHaveBeenCalled();
  });
});
