import { createTransfers, transferLimits, type Place } from '../../boot/tftp-transfers';
import { testClock } from '../support/clock';
import { until } from '../support/until';

/** Transfers whose files open when the test says so. */
function open(limits = transferLimits(4)) {
  const clock = testClock(0, 0);
  const dropped: string[] = [];
  const transfers = createTransfers({
    limits,
    clock,
    isNear: (address) => address.startsWith('192.0.2.'),
    dropped: (source) => void dropped.push(source),
  });
  const places = new Map<string, Place & { readonly end: () => void }>();
  const order: string[] = [];
  const repeated: string[] = [];
  const request = (key: string, address = key, bytes = 'a request'): void =>
    transfers.request({ key, address }, Buffer.from(bytes), (place) => {
      order.push(key);
      return new Promise((end) => {
        places.set(key, { ...place, end });
        place.signal.addEventListener('abort', () => end());
      });
    });
  const send = (key: string): void => places.get(key)!.sending(() => void repeated.push(key));
  return {
    transfers,
    clock,
    dropped,
    order,
    repeated,
    request,
    send,
    place: (key: string) => places.get(key)!,
    /** A request whose first packet was acknowledged. */
    confirmed: async (key: string, address = key): Promise<void> => {
      const earlier = places.get(key);
      request(key, address);
      await until('its file is opened', () => places.get(key) !== earlier);
      send(key);
      places.get(key)!.progressed();
    },
    isRunning: (key: string) => places.get(key)?.signal.aborted === false,
  };
}
const keys = (count: number, prefix = '192.0.2.'): readonly string[] => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
const few = { inAll: 3, ofSource: 2 };

it('opens some files at once, and the others in order', async () => {
  const { request, order, place, send } = open({ ...transferLimits(4), opening: 2 });
  for (const key of keys(5)) request(key);
  expect(order).toEqual(keys(2));
  send(keys(1)[0]!);
  await until('the next file is opened', () => order.length === 3);
  expect(order).toEqual(keys(3));
  place(keys(2)[1]!).end();
  await until('the next file is opened', () => order.length === 4);
  expect(order).toEqual(keys(4));
});
it('begins four in a turn of the event loop', async () => {
  const { request, order } = open();
  for (const key of keys(9)) request(key);
  const counts: number[] = [];
  do {
    counts.push(order.length);
    await new Promise((turn) => setImmediate(turn));
  } while (order.length > counts.at(-1)!);
  expect(counts).toEqual([4, 8, 9]);
});
it('in a flood from many networks, a client in a network of this host has its turn soon, and is not displaced', async () => {
  const { request, order, place, dropped } = open({ ...transferLimits(4), opening: 1, waiting: 8 });
  request('first');
  for (let n = 0; n < 100; n++) request(`203.0.${n}.1`);
  request('192.0.2.7');
  for (let n = 100; n < 200; n++) request(`203.0.${n}.1`);
  expect(dropped).toHaveLength(193);
  expect(dropped).not.toContain('192.0.2.7');
  for (const key of ['first', '203.0.0.1']) {
    expect(order.at(-1)).toBe(key);
    place(key).end();
    await until('the next file is opened', () => order.at(-1) !== key);
  }
  expect(order).toEqual(['first', '203.0.0.1', '192.0.2.7']);
});
it('opens no file for a request that was replaced while it waited', async () => {
  const { request, order, place } = open({ ...transferLimits(4), opening: 1 });
  for (const key of ['a', 'b', 'c']) request(key);
  request('b', 'b', 'another request');
  place('a').end();
  await until('the next file is opened', () => order.length === 2);
  place('c').end();
  await until('the next file is opened', () => order.length === 3);
  expect(order).toEqual(['a', 'c', 'b']);
});
it('ends the oldest transfer without an acknowledgment for a new one: that of the same source if it has too many', async () => {
  const { request, send, isRunning } = open({ ...transferLimits(4), sent: few });
  for (const [key, address] of Object.entries({ a: '192.0.2.1', b: '192.0.2.2', c: '192.0.2.2', d: '192.0.2.2', e: '192.0.2.3' })) {
    request(key, address);
    await until('its file is opened', () => isRunning(key));
    send(key);
  }
  // `d` took the place of `b`; `e` that of `a`, the oldest of all.
  expect(['a', 'b', 'c', 'd', 'e'].filter(isRunning)).toEqual(['c', 'd', 'e']);
});
it('counts the addresses of an IPv6 network as one source', () => {
  const { request, send, isRunning } = open({ ...transferLimits(4), sent: { inAll: 9, ofSource: 1 } });
  for (const key of ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1']) {
    request(key);
    send(key);
  }
  expect(['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1'].filter(isRunning)).toEqual(['2001:db8::2', '2001:db8:0:1::1']);
});
it('never ends an acknowledged transfer for requests, nor for one that its own client seems to send', async () => {
  const { request, confirmed, send, isRunning, place } = open({ ...transferLimits(4), sent: few });
  await confirmed('client');
  for (const key of keys(50)) {
    request(key);
    await until('its file is opened', () => isRunning(key));
    send(key);
  }
  const acknowledged = place('client').signal;
  request('client', 'client', 'another request');
  await until('its file is opened', () => place('client').signal !== acknowledged);
  send('client');
  expect(acknowledged.aborted).toBe(false);
});
it('ends the transfer of a client that acknowledges the next one from the same port', async () => {
  const { confirmed, place } = open();
  await confirmed('client');
  const first = place('client').signal;
  await confirmed('client');
  expect([first.aborted, place('client').signal.aborted]).toEqual([true, false]);
});
it('a repeated request begins no second transfer, and a different one replaces the first', () => {
  const { request, order, repeated, send, place } = open();
  request('client');
  request('client');
  send('client');
  request('client');
  expect([order, repeated]).toEqual([['client'], ['client']]);
  const first = place('client').signal;
  request('client', 'client', 'another request');
  expect([order, first.aborted]).toEqual([['client', 'client'], true]);
});
it('when all places are taken, a stalled transfer gives way; without one, the new transfer does', async () => {
  const { confirmed, clock, place, isRunning } = open(transferLimits(4));
  const first = keys(4);
  for (const key of first) await confirmed(key);
  await confirmed('early');
  expect([...first, 'early'].filter(isRunning)).toEqual(first);
  await clock.advance(11);
  for (const key of first.slice(1)) place(key).progressed();
  await confirmed('late');
  expect([...first, 'late'].filter(isRunning)).toEqual([...first.slice(1), 'late']);
});
it('a source may have a quarter of the places for acknowledged transfers', async () => {
  const { confirmed, isRunning } = open(transferLimits(8));
  for (const key of ['a', 'b', 'c']) await confirmed(key, '192.0.2.1');
  expect(['a', 'b', 'c'].filter(isRunning)).toEqual(['a', 'b']);
});
it('ends all transfers when it stops, and begins no others', async () => {
  const { transfers, request, confirmed, order } = open();
  await confirmed('a');
  request('b');
  await transfers.stop();
  request('c');
  expect(order).toEqual(['a', 'b']);
});
