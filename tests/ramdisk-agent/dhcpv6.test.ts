/** The DHCPv6 client of the ramdisk, with servers of this test and a clock that jumps. */
import { silentLog } from '../../model/log';
import { maintainAddress, type Lease } from '../../ramdisk-agent/network/dhcpv6';
import {
  decode6,
  duidOfMac,
  encode6,
  MESSAGE6,
  NO_ASSOCIATIONS,
  STATUS6,
  type Dhcpv6Message,
  type Dhcpv6Packet,
  type Option6Values,
} from '../../wire/dhcp/dhcpv6';

const MAC = '52:54:00:aa:00:01';
const SERVER = duidOfMac('52:54:00:00:00:99');
const NAMES = new Map<number, string>(Object.entries(MESSAGE6).map(([name, type]) => [type, name]));
const DNS = ['2001:db8::53'];
type Type = keyof typeof MESSAGE6;

interface Answer {
  readonly type: Type;
  readonly address?: string;
  readonly status?: number;
  readonly options?: Option6Values;
  readonly xid?: number;
  readonly lifetimes?: { readonly preferred: number; readonly valid: number };
  readonly times?: { readonly t1: number; readonly t2: number };
}
function bench(serve: (asked: Dhcpv6Message, count: number, seconds: number) => readonly Answer[], endAt = 100) {
  let now = 0;
  const asked: string[] = [];
  const applied: (readonly [string | undefined, string | undefined])[] = [];
  const leases: (Lease | undefined)[] = [];
  const queue: Buffer[] = [];
  const stop = new AbortController();
  const pass = (milliseconds: number): void => {
    now += milliseconds;
    if (now >= endAt * 1000) stop.abort(new Error('the end'));
  };
  const done = maintainAddress({
    mac: MAC,
    log: silentLog,
    signal: stop.signal,
    clock: {
      now: () => now,
      sleep: async (milliseconds) => {
        pass(milliseconds);
        stop.signal.throwIfAborted();
      },
    },
    // The middle of the range: random delays are neither shorter nor longer.
    random: (bytes) => Buffer.alloc(bytes, 127.5),
    link: {
      send: async (bytes) => {
        const { message } = decode6(bytes) as Dhcpv6Packet;
        asked.push(`${Math.round(now / 1000)} ${NAMES.get(message.type)}`);
        const { iaid } = message.associations.addresses[0]!;
        expect(message.options.clientIdentifier).toEqual(duidOfMac(MAC));
        for (const { type, address, status, options, xid = message.xid, times, lifetimes } of serve(message, asked.length, now / 1000)) {
          const addresses = address === undefined ? [] : [{ address, preferred: 100, valid: 200, ...lifetimes }];
          const code = status === undefined ? undefined : { code: status, message: '' };
          const own = { iaid, ...(times ?? { t1: 0, t2: 0 }), addresses, status: code };
          const all = { clientIdentifier: duidOfMac(MAC), serverIdentifier: SERVER, dnsServers: DNS, ...options };
          const associations = { ...NO_ASSOCIATIONS, addresses: [own] };
          queue.push(encode6({ relays: [], message: { type: MESSAGE6[type], xid, options: all, associations } }));
        }
      },
      receive: async (withinMs) => {
        const next = queue.shift();
        if (next === undefined) pass(withinMs);
        return next;
      },
    },
    apply: async (lease, former) => {
      applied.push([lease?.address, former?.address]);
      leases.push(lease);
    },
  }).catch((error: unknown) => (error as Error).message);
  return { asked, applied, leases, done };
}
const A = '2001:db8::a';
const B = '2001:db8::b';
const usual: Readonly<Partial<Record<number, Answer>>> = {
  [MESSAGE6.solicit]: { type: 'advertise', address: A },
  [MESSAGE6.request]: { type: 'reply', address: A },
};
const answerOf = (message: Dhcpv6Message, all = usual): readonly Answer[] => (all[message.type] ? [all[message.type]!] : []);

it('gets an address and name servers by four messages', async () => {
  const { asked, applied, leases, done } = bench((message) => answerOf(message), 40);
  expect(await done).toBe('the end');
  expect(asked).toEqual(['0 solicit', '0 request']);
  expect(applied).toEqual([[A, undefined]]);
  expect(leases[0]!.nameServers).toEqual(DNS);
});
it('gets an address by two messages if the server replies with rapid commit', async () => {
  const { asked, applied, done } = bench(() => [{ type: 'reply', address: A, options: { rapidCommit: true } }], 40);
  await done;
  expect([asked, applied]).toEqual([['0 solicit'], [[A, undefined]]]);
});
it('repeats Solicit at intervals that double up to two minutes', async () => {
  const { asked, done } = bench(() => [], 500);
  await done;
  expect(asked).toEqual(['0', '1', '3', '7', '15', '31', '63', '127', '247', '367', '487'].map((at) => `${at} solicit`));
});
it.each<readonly [string, Answer]>([
  ['of another transaction', { type: 'advertise', address: A, xid: 1 }],
  ['for another client', { type: 'advertise', address: A, options: { clientIdentifier: SERVER } }],
  ['without a server identifier', { type: 'advertise', address: A, options: { serverIdentifier: undefined } }],
  ['without an address', { type: 'advertise' }],
  ['with the status NoAddrsAvail', { type: 'advertise', address: A, status: STATUS6.noAddresses }],
  ['of another type than expected', { type: 'reply', address: A }],
])('ignores a response %s', async (_, answer) => {
  const { asked, applied, done } = bench(() => [answer], 10);
  await done;
  expect(applied).toEqual([]);
  expect(new Set(asked.map((item) => item.split(' ')[1]))).toEqual(new Set(['solicit']));
});
it('starts over after a pause when the Request is refused', async () => {
  const refusal: Answer = { type: 'reply', status: STATUS6.noAddresses };
  const { asked, done } = bench((message) => answerOf(message, { ...usual, [MESSAGE6.request]: refusal }), 3);
  await done;
  expect(asked).toEqual(['0 solicit', '0 request', '1 solicit', '1 request', '2 solicit', '2 request']);
});
it('renews after half of the preferred lifetime, with the same server', async () => {
  const { asked, applied, done } = bench((message) => {
    if (message.type === MESSAGE6.renew) {
      expect(message.options.serverIdentifier).toEqual(SERVER);
      expect(message.associations.addresses[0]!.addresses).toMatchObject([{ address: A }]);
      return [{ type: 'reply', address: A }];
    }
    return answerOf(message);
  }, 120);
  await done;
  expect(asked).toEqual(['0 solicit', '0 request', '50 renew', '100 renew']);
  expect(applied).toEqual([
    [A, undefined],
    [A, A],
    [A, A],
  ]);
});
it('rebinds with any server, then releases the address and starts over when its lifetime ends', async () => {
  let isSecond = false;
  const { asked, applied, done } = bench((message) => {
    if (message.type === MESSAGE6.rebind) isSecond = true;
    return isSecond && message.type !== MESSAGE6.rebind
      ? answerOf(message, { [MESSAGE6.solicit]: { type: 'advertise', address: B }, [MESSAGE6.request]: { type: 'reply', address: B } })
      : answerOf(message);
  }, 220);
  await done;
  expect(asked.filter((candidate) => !/ (?:renew|rebind)$/.test(candidate))).toEqual([
    '0 solicit',
    '0 request',
    '200 solicit',
    '200 request',
  ]);
  expect(asked.filter((candidate) => candidate.endsWith('renew'))).toEqual(['50 renew', '60 renew', '80 renew']);
  expect(asked.filter((candidate) => candidate.endsWith('rebind'))[0]).toBe('80 rebind');
  expect(applied).toEqual([
    [A, undefined],
    [undefined, A],
    [B, undefined],
  ]);
});
it('does not renew an address with infinite T1 and T2', async () => {
  const forever = 0xffffffff;
  const { asked, done } = bench((message) => answerOf(message).map((item) => ({ ...item, times: { t1: forever, t2: forever } })), 150);
  await done;
  // There is no renewal, but the address still ends with its valid lifetime (200 s).
  expect(asked.slice(2).every((candidate) => Number(candidate.split(' ')[0]) >= 200)).toBe(true);
});
it.each([
  ['a deprecated address', { preferred: 0, valid: 100 }, { t1: 0, t2: 0 }, 50],
  ['a deprecated address with infinite lifetime', { preferred: 0, valid: 0xffffffff }, { t1: 0, t2: 0 }, undefined],
  ['an address with very short times', { preferred: 2, valid: 100 }, { t1: 1, t2: 2 }, 10],
  ['an address whose T1 exceeds the default T2', { preferred: 50, valid: 100 }, { t1: 60, t2: 0 }, 40],
])('renews %s at the expected time', async (_, lifetimes, times, seconds) => {
  const given = { type: 'reply', address: A, times, lifetimes } as const;
  const { asked, done } = bench((message) => answerOf(message, { ...usual, [MESSAGE6.request]: given }), 60);
  await done;
  expect(asked[2]?.split(' ')[0]).toBe(seconds?.toString());
});
it.each([
  ['a T1 beyond T2', { times: { t1: 90, t2: 60 } }],
  ['a preferred lifetime beyond the valid one', { lifetimes: { preferred: 200, valid: 100 } }],
])('ignores %s', async (_, more) => {
  const { applied, done } = bench((message) => answerOf(message).map((item) => ({ ...item, ...more })), 10);
  await done;
  expect(applied).toEqual([]);
});
it('passes on the valid and preferred lifetimes, or undefined if they are infinite', async () => {
  const { leases, done } = bench((message) => answerOf(message), 10);
  await done;
  expect(leases[0]).toMatchObject({ valid: 200, preferred: 100 });
  const endless = { preferred: 0xffffffff, valid: 0xffffffff };
  const other = bench((message) => answerOf(message).map((item) => ({ ...item, lifetimes: endless })), 10);
  await other.done;
  expect(other.leases[0]).toMatchObject({ valid: undefined, preferred: undefined });
});
it('keeps the address while messages cannot be sent', async () => {
  const { asked, applied, done } = bench((message, _, seconds) => {
    if (message.type === MESSAGE6.renew && seconds < 55) throw new Error('ENETUNREACH');
    return message.type === MESSAGE6.renew ? [{ type: 'reply', address: A }] : answerOf(message);
  }, 100);
  await done;
  expect(asked).toEqual(['0 solicit', '0 request', '50 renew', '60 renew']);
  expect(applied).toEqual([
    [A, undefined],
    [A, A],
  ]);
});
