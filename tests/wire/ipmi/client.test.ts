import { randomBytes } from 'node:crypto';
import { createIpmiPool, IpmiError, type IpmiPool, type IpmiTarget } from '../../../wire/ipmi/client';
import { encodePlain, encodeRmcpPlus } from '../../../wire/ipmi/codec';
import { COMPLETION, PRIVILEGE } from '../../../wire/ipmi/constants';
import { CIPHER_SUITES } from '../../../wire/ipmi/suites';
import { createConsoleSockets } from '../../../wire/ipmi/socket';
import type { BmcRequest } from '../../../wire/ipmi/bmc';
import { echo, testBmc, type TestBmc } from './bmc';
import { sameNumbers, udpRelay, type Fate, type Relay } from '../udp-relay';
import { until } from '../../support/until';

type IpmiPoolOptions = Parameters<typeof createIpmiPool>[0];
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
const bmcOf = async (given?: Parameters<typeof testBmc>[0]): Promise<TestBmc> => {
  const bmc = await testBmc(given);
  stops.push(() => bmc.close());
  return bmc;
};
const relayTo = async (port: number, fate?: Fate): Promise<Relay> => {
  const relay = await udpRelay(port, fate);
  stops.push(() => relay.close());
  return relay;
};
const poolOf = (options: Partial<IpmiPoolOptions> = {}): IpmiPool => {
  const pool = createIpmiPool({
    log: { warn: () => {} },
    clock: { now: () => Date.now() },
    random: randomBytes,
    resendMs: 40,
    ...options,
  });
  stops.push(() => pool.close());
  return pool;
};
const target = (port: number, changes: Partial<IpmiTarget> = {}): IpmiTarget => ({
  ...{ address: '127.0.0.1', port, username: 'admin', password: 'secret', privilege: 'ADMINISTRATOR', cipherSuites: [3] },
  ...changes,
});
const ask = (pool: IpmiPool, at: IpmiTarget, data: readonly number[] = [], timeoutMs = 60_000, signal?: AbortSignal): Promise<Buffer> =>
  pool.request(at, 0x2e, 0x01, Buffer.from(data), { timeoutMs, ...(signal ? { signal } : {}) });
const failure = async (promise: Promise<unknown>): Promise<IpmiError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(IpmiError);
  return error as IpmiError;
};
/** The number of requested sessions: Open Session Requests, with repetitions counted once (the console's session ID is the same). */
const opened = (relay: Relay): number =>
  new Set(relay.seen.filter(({ toServer, packet }) => toServer && packet[5] === 0x10).map(({ packet }) => packet.toString('hex', 20, 24)))
    .size;

describe('a session', () => {
  it.each(Object.keys(CIPHER_SUITES).map(Number))('with cipher suite %i', async (cipherSuite) => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    expect(await ask(pool, target(bmc.port, { cipherSuites: [cipherSuite] }), [1, 2, 3])).toEqual(Buffer.from([1, 2, 3]));
    expect(bmc.ran).toMatchObject([{ networkFunction: 0x2e, command: 1, privilege: PRIVILEGE.ADMINISTRATOR }]);
  });
  it('is kept, and takes one request at a time', async () => {
    let inside = 0;
    const bmc = await bmcOf({
      reply: async ({ data }) => {
        expect(++inside).toBe(1);
        await new Promise((done) => setImmediate(done));
        inside--;
        return { completionCode: 0, data };
      },
    });
    const [pool, relay] = [poolOf(), await relayTo(bmc.port)];
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(pool, target(relay.port), [i])));
    expect(answers.map(([first]) => first)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(opened(relay)).toBe(1);
  });
  it('goes on past the end of the request numbers', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    for (let i = 0; i < 150; i++) expect(await ask(pool, target(bmc.port), [i])).toEqual(Buffer.from([i]));
    expect(bmc.ran.length).toBe(150);
  });
  it('has the privilege level asked for', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    for (const privilege of ['USER', 'OPERATOR', 'ADMINISTRATOR'] as const) await ask(pool, target(bmc.port, { privilege }));
    expect(bmc.ran.map(({ privilege }) => privilege)).toEqual([2, 3, 4]);
  });
  it('with a K_g key', async () => {
    const kg = Buffer.from('0123456789abcdef0123');
    const [pool, bmc] = [poolOf(), await bmcOf({ kg })];
    expect(await ask(pool, target(bmc.port, { kg }), [9])).toEqual(Buffer.from([9]));
    expect((await failure(ask(pool, target(bmc.port, { kg: Buffer.from('other') })))).message).toContain('wrong K_g key');
  });
});

describe('a BMC that refuses', () => {
  it.each<[string, Partial<IpmiTarget>, object]>([
    ['an unknown user', { username: 'nobody' }, { message: expect.stringContaining('wrong user name') as unknown, rakpStatus: 0x0d }],
    ['a wrong password', { password: 'wrong' }, { message: 'wrong password (RAKP 2 HMAC)' }],
    ['a wrong password, SHA256', { password: 'wrong', cipherSuites: [17] }, { message: 'wrong password (RAKP 2 HMAC)' }],
    ['a privilege level', { username: 'guest', password: 'guest' }, { rakpStatus: 0x0a }],
    ['a name that is too long', { username: 'a'.repeat(17) }, { message: expect.stringContaining('16 bytes') as unknown }],
    ['a password that is too long', { password: 'a'.repeat(21) }, { message: expect.stringContaining('20 bytes') as unknown }],
    ['a cipher suite that nobody knows', { cipherSuites: [99] }, { message: 'cipher suite 99 is not supported' }],
  ])('%s', async (_, changes, expected) => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    expect(await failure(ask(pool, target(bmc.port, changes)))).toMatchObject({ kind: 'refused', ...expected });
    expect(bmc.ran).toEqual([]);
  });
  it('a cipher suite', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf({ cipherSuites: [17] })];
    expect(await failure(ask(pool, target(bmc.port)))).toMatchObject({ kind: 'refused', rakpStatus: 0x11 });
  });
  it('a refusal without a session ID', async () => {
    const { createSocket } = await import('node:dgram');
    const socket = createSocket('udp4');
    await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
    stops.push(() => new Promise((done) => socket.close(() => done())));
    socket.on('message', (bytes, from) =>
      socket.send(encodeRmcpPlus({ payloadType: 0x11, sessionId: 0, sequence: 0 }, Buffer.from([bytes[16]!, 4])), from.port, from.address),
    );
    expect(await failure(ask(poolOf(), target(socket.address().port)))).toMatchObject({ kind: 'refused', rakpStatus: 4 });
  });
  it('more sessions than it has', async () => {
    const bmc = await bmcOf();
    // A packet that is sent again may open a second session.
    const pools = Array.from({ length: 17 }, () => poolOf({ resendMs: 2000 }));
    for (const pool of pools.slice(0, 16)) await ask(pool, target(bmc.port));
    const error = await failure(ask(pools[16]!, target(bmc.port)));
    expect(error).toMatchObject({ kind: 'refused', rakpStatus: 0x01 });
    expect(error.message).toContain('no free session');
    await pools[0]!.close();
    await ask(pools[16]!, target(bmc.port));
  });
  it('a command', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf({ reply: () => ({ completionCode: COMPLETION.nodeBusy }) })];
    expect(await failure(ask(pool, target(bmc.port)))).toMatchObject({
      kind: 'completion',
      completionCode: 0xc0,
      message: 'node busy (completion code 0xc0)',
    });
  });
});

describe('never two at one BMC', () => {
  const slowly = (milliseconds: number) => async (request: BmcRequest) => {
    await new Promise((done) => setTimeout(done, milliseconds));
    return echo(request);
  };
  it('one that takes longer than the usual is given longer, once that is seen', async () => {
    const [pool, bmc] = [poolOf({ resendMs: 20 }), await bmcOf({ reply: slowly(100) })];
    for (let n = 0; n < 6; n++) await ask(pool, target(bmc.port), [n]);
    // They were sent again meanwhile. While this process does not run, a packet may be sent again still.
    expect(bmc.ran.map(({ data }) => data[0])).toEqual([0, 1, 2, 3, 4, 5]);
    const numbers = [6, 7, 8, 9, 10, 11];
    await until('six answers to six packets', async () => {
      Object.assign(bmc.traffic, { taken: 0, most: 0 });
      bmc.ran.length = 0;
      for (const n of numbers) expect(await ask(pool, target(bmc.port), [n])).toEqual(Buffer.from([n]));
      return bmc.traffic.taken === 6;
    });
    expect(bmc.traffic).toEqual({ taken: 6, open: 0, most: 1 });
    expect(bmc.ran.map(({ data }) => data[0])).toEqual(numbers);
  });
  it('losses are made up for', async () => {
    const bmc = await bmcOf();
    let lost = 0;
    const [pool, relay] = [poolOf({ resendMs: 20 }), await relayTo(bmc.port, (_, toServer) => (toServer && lost-- > 0 ? [] : [0]))];
    await ask(pool, target(relay.port), [1]);
    for (const count of [2, 2, 2]) {
      lost = count;
      expect(await ask(pool, target(relay.port), [2])).toEqual(Buffer.from([2]));
      expect(await ask(pool, target(relay.port), [3])).toEqual(Buffer.from([3]));
      expect(lost).toBeLessThanOrEqual(0);
    }
  });
  it('whoever logs in there', async () => {
    const [pool, bmc] = [poolOf({ resendMs: 2000 }), await bmcOf({ reply: slowly(5) })];
    const others = { username: 'guest', password: 'guest', privilege: 'USER' } as const;
    const all = Array.from({ length: 12 }, (_, n) => ask(pool, target(bmc.port, n % 2 === 0 ? {} : others), [n]));
    expect((await Promise.all(all)).map(([first]) => first)).toEqual(Array.from({ length: 12 }, (_, n) => n));
    expect(bmc.traffic.most).toBe(1);
  });
  it('after one was given up, the next waits for its answer', async () => {
    const [pool, bmc] = [poolOf({ resendMs: 2000 }), await bmcOf({ reply: slowly(30) })];
    await ask(pool, target(bmc.port), [1]);
    const given = new AbortController();
    const first = ask(pool, target(bmc.port), [2], 5000, given.signal);
    const second = ask(pool, target(bmc.port), [3]);
    while (bmc.ran.length < 2) await new Promise((done) => setImmediate(done));
    given.abort(new Error('given up'));
    await expect(first).rejects.toThrow('given up');
    expect(bmc.ran.length).toBe(2);
    expect(await second).toEqual(Buffer.from([3]));
    expect(bmc.traffic.most).toBe(1);
  });
  it('an answer that came while this process was busy is not late', async () => {
    const { createSocket } = await import('node:dgram');
    const peer = createSocket('udp4');
    await new Promise<void>((done) => peer.bind(0, '127.0.0.1', done));
    const sockets = createConsoleSockets({ warn: () => {} });
    stops.push(
      async () => sockets.close(),
      () => new Promise((done) => peer.close(() => done())),
    );
    peer.on('message', (bytes, { port, address }) =>
      peer.send(bytes, port, address, () => {
        for (const end = Date.now() + 300; Date.now() < end;);
      }),
    );
    const route = { peer: { address: '127.0.0.1', family: 4, port: peer.address().port }, consoleId: 5 } as const;
    const packet = encodeRmcpPlus({ payloadType: 0, sessionId: 5, sequence: 1 }, Buffer.from([1]));
    expect(await sockets.ask(route, packet, () => 'heard', 200)).toBe('heard');
  });
});

describe('a bad network', () => {
  const bad = (seed: number, lost: number, doubled: number, late: number): Fate => {
    const next = sameNumbers(seed);
    return () => {
      if (next() < lost) return [];
      const delay = next() < late ? 30 : 0;
      return next() < doubled ? [delay, 1 + next() * 40] : [delay];
    };
  };
  it.each<[string, Fate]>([
    ['doubles half', bad(5, 0, 0.5, 0)],
    ['delivers in another order', bad(7, 0, 0, 0.4)],
    ['doubles and delivers in another order', bad(9, 0, 0.3, 0.3)],
  ])('that %s: every command runs once, every answer is its own', async (_, fate) => {
    const bmc = await bmcOf();
    const [pool, relay] = [poolOf({ resendMs: 25 }), await relayTo(bmc.port, fate)];
    for (let i = 0; i < 20; i++) expect(await ask(pool, target(relay.port), [i], 20_000)).toEqual(Buffer.from([i]));
    expect(bmc.ran.map(({ data }) => data[0])).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });
  it.each<[string, Fate]>([
    ['loses a third', bad(3, 0.33, 0, 0)],
    ['does all of it', bad(11, 0.15, 0.2, 0.2)],
  ])('that %s: a command may run again in a new session, but none is left out and none comes late', async (_, fate) => {
    const bmc = await bmcOf();
    const [pool, relay] = [poolOf({ resendMs: 12 }), await relayTo(bmc.port, fate)];
    for (let i = 0; i < 20; i++) expect(await ask(pool, target(relay.port), [i], 20_000)).toEqual(Buffer.from([i]));
    const ran = bmc.ran.map(({ data }) => data[0]!);
    expect([...new Set(ran)]).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(ran.length).toBeLessThan(30);
  });
  it('ignores what others say', async () => {
    const bmc = await bmcOf();
    const forged = [
      Buffer.alloc(0),
      Buffer.from('0600ff07', 'hex'),
      encodePlain(Buffer.alloc(9)),
      encodeRmcpPlus({ payloadType: 0x11, sessionId: 0, sequence: 0 }, Buffer.from([0, 1])),
      randomBytes(64),
    ];
    let relay: Relay | undefined = undefined as Relay | undefined;
    relay = await relayTo(bmc.port, (packet, toServer) => {
      for (const bytes of forged) relay?.inject(bytes);
      // A corrupted copy of the BMC's packet, and the client's own packets.
      const bent = Buffer.from(packet);
      bent[bent.length - 1]! ^= 1;
      if (!toServer && packet[5] !== 0x13 && packet[5] !== 0x15) relay?.inject(bent);
      if (toServer) relay?.inject(packet);
      return [1];
    });
    const pool = poolOf({ resendMs: 200 });
    for (let i = 0; i < 10; i++) expect(await ask(pool, target(relay.port), [i])).toEqual(Buffer.from([i]));
  });
});

describe('a BMC that is gone', () => {
  it('is told of within the time given', async () => {
    const bmc = await bmcOf();
    bmc.mute(true);
    const started = Date.now();
    const error = await failure(ask(poolOf(), target(bmc.port), [], 300));
    expect(error).toMatchObject({ kind: 'unreachable', message: `the BMC at 127.0.0.1 port ${bmc.port} does not answer` });
    expect(Date.now() - started).toBeGreaterThanOrEqual(290);
  });
  it('and one without a name', async () => {
    const error = await failure(ask(poolOf(), target(1, { address: 'bmc.invalid' })));
    expect(error).toMatchObject({ kind: 'unreachable' });
    expect(error.message).toContain('bmc.invalid');
  });
  it('and comes back without its sessions: the request opens a new one', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    const relay = await relayTo(bmc.port);
    await ask(pool, target(relay.port), [1]);
    bmc.restart();
    expect(await ask(pool, target(relay.port), [2])).toEqual(Buffer.from([2]));
    expect(opened(relay)).toBe(2);
    expect(bmc.ran.map(({ data }) => data[0])).toEqual([1, 2]);
  });
  it('does not hold up others', async () => {
    const [dead, alive, pool] = [await bmcOf(), await bmcOf(), poolOf()];
    dead.mute(true);
    const enough = new AbortController();
    const gone = ask(pool, target(dead.port), [], 60_000, enough.signal);
    const ended = expect(gone).rejects.toThrow('enough');
    expect(await ask(pool, target(alive.port), [4])).toEqual(Buffer.from([4]));
    enough.abort(new Error('enough'));
    await ended;
  });
  it('can be given up, in line too; the next request goes on', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    await ask(pool, target(bmc.port), [1]);
    bmc.mute(true);
    const [first, second] = [new AbortController(), new AbortController()];
    const waiting = [ask(pool, target(bmc.port), [2], 5000, first.signal), ask(pool, target(bmc.port), [3], 5000, second.signal)];
    const ended = Promise.allSettled(waiting);
    second.abort(new Error('second'));
    first.abort(new Error('first'));
    expect(await ended).toEqual([
      { status: 'rejected', reason: new Error('first') },
      { status: 'rejected', reason: new Error('second') },
    ]);
    bmc.mute(false);
    expect(await ask(pool, target(bmc.port), [4])).toEqual(Buffer.from([4]));
    await expect(ask(pool, target(bmc.port), [5], 5000, AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
  });
});

describe('kept sessions', () => {
  it('are kept alive, and closed when nobody uses them', async () => {
    const bmc = await bmcOf();
    const [pool, relay] = [poolOf({ keepAliveMs: 60, idleMs: 2000 }), await relayTo(bmc.port)];
    await ask(pool, target(relay.port), [1]);
    // The keep-alive (Get Device ID) comes a few times. After the session is closed, none comes for fifty of its intervals.
    const kept = (): number => bmc.ran.filter(({ networkFunction, command }) => networkFunction === 6 && command === 1).length;
    await until('what keeps it', () => kept() >= 2);
    for (let before = -1; before !== relay.seen.length;) {
      before = relay.seen.length;
      await new Promise((done) => setTimeout(done, 3000));
    }
    await ask(pool, target(relay.port), [2]);
    expect(opened(relay)).toBe(2);
  });
  it('are closed at the BMC when the client ends, and requests in line fail', async () => {
    const bmc = await bmcOf();
    const pool = poolOf();
    await ask(pool, target(bmc.port), [1]);
    bmc.mute(true);
    const waiting = Promise.all([failure(ask(pool, target(bmc.port), [2])), failure(ask(pool, target(bmc.port), [3]))]);
    await new Promise((done) => setImmediate(done));
    await pool.close();
    expect((await waiting).map(({ kind }) => kind)).toEqual(['closed', 'closed']);
    expect((await failure(ask(pool, target(bmc.port)))).kind).toBe('closed');
  });
  it('are bounded: the one unused for longest goes', async () => {
    const pool = poolOf({ maxSessions: 2 });
    const relays: Relay[] = [];
    for (let i = 0; i < 3; i++) relays.push(await relayTo((await bmcOf()).port));
    for (const relay of relays) {
      await ask(pool, target(relay.port), [1]);
      await new Promise((done) => setTimeout(done, 5));
    }
    await ask(pool, target(relays[2]!.port));
    await ask(pool, target(relays[1]!.port));
    expect(relays.map(opened)).toEqual([1, 1, 1]);
    await ask(pool, target(relays[0]!.port));
    expect(relays.map(opened)).toEqual([2, 1, 1]);
  });
  it('of other credentials are others', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    await ask(pool, target(bmc.port));
    expect((await failure(ask(pool, target(bmc.port, { password: 'changed' })))).message).toContain('wrong password');
  });
});
