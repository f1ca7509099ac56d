import { randomBytes } from 'node:crypto';
import { createIpmiPool, IpmiError, type IpmiPool, type IpmiTarget } from '../../../wire/ipmi/client';
import { decodeLanMessage, decodePacket, encodePlain, encodeRmcpPlus, type LanMessage, type Packet } from '../../../wire/ipmi/codec';
import { COMMANDS, COMPLETION, PRIVILEGE } from '../../../wire/ipmi/constants';
import { CIPHER_SUITES } from '../../../wire/ipmi/suites';
import { createConsoleSockets } from '../../../wire/ipmi/socket';
import { MAX_SESSIONS, type BmcRequest } from '../../../wire/ipmi/bmc';
import { echo, openedSessions, testBmc, type TestBmc } from './bmc';
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
  address: '127.0.0.1',
  port,
  username: 'admin',
  password: 'secret',
  privilege: 'ADMINISTRATOR',
  cipherSuites: [3],
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
/** The IPMI message in a packet that is not encrypted. */
const messageIn = (bytes: Buffer): { readonly packet: Packet; readonly message: LanMessage } | undefined => {
  const packet = decodePacket(bytes);
  const message = packet && 'payload' in packet ? decodeLanMessage(packet.payload) : undefined;
  return packet && message && { packet, message };
};
const sent = ({ seen }: Relay, toServer: boolean): NonNullable<ReturnType<typeof messageIn>>[] =>
  seen.flatMap((item) => (item.toServer === toServer ? (messageIn(item.packet) ?? []) : []));
describe('session', () => {
  it.each(Object.keys(CIPHER_SUITES).map(Number))('works with cipher suite %i', async (cipherSuite) => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    expect(await ask(pool, target(bmc.port, { cipherSuites: [cipherSuite] }), [1, 2, 3])).toEqual(Buffer.from([1, 2, 3]));
    expect(bmc.ran).toMatchObject([{ networkFunction: 0x2e, command: 1, privilege: PRIVILEGE.ADMINISTRATOR }]);
  });
  it('is reused, and carries one request at a time', async () => {
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
    expect(openedSessions(relay)).toBe(1);
  });
  it('continues past the last request sequence number', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    for (let i = 0; i < 150; i++) expect(await ask(pool, target(bmc.port), [i])).toEqual(Buffer.from([i]));
    expect(bmc.ran.length).toBe(150);
  });
  it('has the requested privilege level', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    for (const privilege of ['USER', 'OPERATOR', 'ADMINISTRATOR'] as const) await ask(pool, target(bmc.port, { privilege }));
    expect(bmc.ran.map(({ privilege }) => privilege)).toEqual([2, 3, 4]);
  });
  it('works with a K_g key, and fails with another', async () => {
    const kg = Buffer.from('0123456789abcdef0123');
    const [pool, bmc] = [poolOf(), await bmcOf({ kg })];
    expect(await ask(pool, target(bmc.port, { kg }), [9])).toEqual(Buffer.from([9]));
    expect((await failure(ask(pool, target(bmc.port, { kg: Buffer.from('other') })))).message).toContain('wrong K_g key');
  });
});

describe('refusals of the BMC', () => {
  it.each<[string, Partial<IpmiTarget>, object]>([
    ['an unknown user', { username: 'nobody' }, { message: expect.stringContaining('wrong user name') as unknown, rakpStatus: 0x0d }],
    ['a wrong password', { password: 'wrong' }, { message: 'wrong password (RAKP 2 HMAC)' }],
    ['a wrong password, SHA256', { password: 'wrong', cipherSuites: [17] }, { message: 'wrong password (RAKP 2 HMAC)' }],
    ['a privilege level', { username: 'guest', password: 'guest' }, { rakpStatus: 0x0a }],
    ['a name that is too long', { username: 'a'.repeat(17) }, { message: expect.stringContaining('16 bytes') as unknown }],
    ['a password that is too long', { password: 'a'.repeat(21) }, { message: expect.stringContaining('20 bytes') as unknown }],
    ['a cipher suite that the client does not support', { cipherSuites: [99] }, { message: 'cipher suite 99 is not supported' }],
  ])('fail for %s', async (_, changes, expected) => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    expect(await failure(ask(pool, target(bmc.port, changes)))).toMatchObject({ kind: 'refused', ...expected });
    expect(bmc.ran).toEqual([]);
  });
  it('fail for a cipher suite that the BMC does not support', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf({ cipherSuites: [17] })];
    expect(await failure(ask(pool, target(bmc.port)))).toMatchObject({ kind: 'refused', rakpStatus: 0x11 });
  });
  it('are recognised without a session ID', async () => {
    const { createSocket } = await import('node:dgram');
    const socket = createSocket('udp4');
    await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
    stops.push(() => new Promise((done) => socket.close(() => done())));
    socket.on('message', (bytes, from) =>
      socket.send(encodeRmcpPlus({ payloadType: 0x11, sessionId: 0, sequence: 0 }, Buffer.from([bytes[16]!, 4])), from.port, from.address),
    );
    expect(await failure(ask(poolOf(), target(socket.address().port)))).toMatchObject({ kind: 'refused', rakpStatus: 4 });
  });
  it('fail for more sessions than the BMC supports, until one is closed', async () => {
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
  it('for a wrong password do not use up the sessions of the BMC', async () => {
    const [pool, bmc] = [poolOf({ resendMs: 2000 }), await bmcOf()];
    for (let n = 0; n <= MAX_SESSIONS; n++) {
      const error = await failure(ask(pool, target(bmc.port, { password: 'wrong' })));
      expect(error.message).toBe('wrong password (RAKP 2 HMAC)');
    }
    expect(await ask(pool, target(bmc.port), [1])).toEqual(Buffer.from([1]));
  });
  it('of a command fail with the completion code', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf({ reply: () => ({ completionCode: COMPLETION.nodeBusy }) })];
    expect(await failure(ask(pool, target(bmc.port)))).toMatchObject({
      kind: 'completion',
      completionCode: 0xc0,
      message: 'node busy (completion code 0xc0)',
    });
  });
});

describe('one request at a time per BMC', () => {
  const slowly = (milliseconds: number) => async (request: BmcRequest) => {
    await new Promise((done) => setTimeout(done, milliseconds));
    return echo(request);
  };
  it('the resend interval adapts to a slow BMC, so that requests are not sent twice', async () => {
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
  it('lost packets are sent again', async () => {
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
  it('even for different users', async () => {
    const [pool, bmc] = [poolOf({ resendMs: 2000 }), await bmcOf({ reply: slowly(5) })];
    const others = { username: 'guest', password: 'guest', privilege: 'USER' } as const;
    const all = Array.from({ length: 12 }, (_, n) => ask(pool, target(bmc.port, n % 2 === 0 ? {} : others), [n]));
    expect((await Promise.all(all)).map(([first]) => first)).toEqual(Array.from({ length: 12 }, (_, n) => n));
    expect(bmc.traffic.most).toBe(1);
  });
  it('after an abort, the next request waits for the response of the aborted one', async () => {
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
  it('a response that arrives while the process is busy is not a timeout', async () => {
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

describe('unreliable network', () => {
  const bad = (seed: number, lost: number, doubled: number, late: number): Fate => {
    const next = sameNumbers(seed);
    return () => {
      if (next() < lost) return [];
      const delay = next() < late ? 30 : 0;
      return next() < doubled ? [delay, 1 + next() * 40] : [delay];
    };
  };
  it.each<[string, Fate]>([
    ['duplicates half of the packets', bad(5, 0, 0.5, 0)],
    ['reorders packets', bad(7, 0, 0, 0.4)],
    ['duplicates and reorders packets', bad(9, 0, 0.3, 0.3)],
  ])('that %s: each command runs once and gets its own response', async (_, fate) => {
    const bmc = await bmcOf();
    const [pool, relay] = [poolOf({ resendMs: 25 }), await relayTo(bmc.port, fate)];
    for (let i = 0; i < 20; i++) expect(await ask(pool, target(relay.port), [i], 20_000)).toEqual(Buffer.from([i]));
    expect(bmc.ran.map(({ data }) => data[0])).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });
  it.each<[string, Fate]>([
    ['loses a third of the packets', bad(3, 0.33, 0, 0)],
    ['loses, duplicates and reorders packets', bad(11, 0.15, 0.2, 0.2)],
  ])('that %s: each command runs at least once and in order, and may run again in a new session', async (_, fate) => {
    const bmc = await bmcOf();
    const [pool, relay] = [poolOf({ resendMs: 12 }), await relayTo(bmc.port, fate)];
    for (let i = 0; i < 20; i++) expect(await ask(pool, target(relay.port), [i], 20_000)).toEqual(Buffer.from([i]));
    const ran = bmc.ran.map(({ data }) => data[0]!);
    expect([...new Set(ran)]).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(ran.length).toBeLessThan(30);
  });
  it('with forged and corrupted packets: the client ignores these', async () => {
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

describe('unreachable BMC', () => {
  it('causes a failure after the timeout', async () => {
    const bmc = await bmcOf();
    bmc.mute(true);
    const started = Date.now();
    const error = await failure(ask(poolOf(), target(bmc.port), [], 300));
    expect(error).toMatchObject({ kind: 'unreachable', message: `the BMC at 127.0.0.1 port ${bmc.port} does not answer` });
    expect(Date.now() - started).toBeGreaterThanOrEqual(290);
  });
  it('causes a failure if its name cannot be resolved', async () => {
    const error = await failure(ask(poolOf(), target(1, { address: 'bmc.invalid' })));
    expect(error).toMatchObject({ kind: 'unreachable' });
    expect(error.message).toContain('bmc.invalid');
  });
  it('that restarts without its sessions: the next request opens a new session', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    const relay = await relayTo(bmc.port);
    await ask(pool, target(relay.port), [1]);
    bmc.restart();
    expect(await ask(pool, target(relay.port), [2])).toEqual(Buffer.from([2]));
    expect(openedSessions(relay)).toBe(2);
    expect(bmc.ran.map(({ data }) => data[0])).toEqual([1, 2]);
  });
  it('does not delay requests to others', async () => {
    const [dead, alive, pool] = [await bmcOf(), await bmcOf(), poolOf()];
    dead.mute(true);
    const enough = new AbortController();
    const gone = ask(pool, target(dead.port), [], 60_000, enough.signal);
    const ended = expect(gone).rejects.toThrow('enough');
    expect(await ask(pool, target(alive.port), [4])).toEqual(Buffer.from([4]));
    enough.abort(new Error('enough'));
    await ended;
  });
  it('requests can be aborted, even in the queue, and a later request succeeds', async () => {
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

describe('cached sessions', () => {
  it('are kept alive for a while, and closed when unused', async () => {
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
    expect(openedSessions(relay)).toBe(2);
  });
  it('requests in the queue and later ones fail when the pool is closed', async () => {
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
  it('are limited: the least recently used one is closed', async () => {
    const pool = poolOf({ maxSessions: 2 });
    const relays: Relay[] = [];
    for (let i = 0; i < 3; i++) relays.push(await relayTo((await bmcOf()).port));
    for (const relay of relays) {
      await ask(pool, target(relay.port), [1]);
      await new Promise((done) => setTimeout(done, 5));
    }
    await ask(pool, target(relays[2]!.port));
    await ask(pool, target(relays[1]!.port));
    expect(relays.map(openedSessions)).toEqual([1, 1, 1]);
    await ask(pool, target(relays[0]!.port));
    expect(relays.map(openedSessions)).toEqual([2, 1, 1]);
  });
  it.each<[string, '1.5' | '2.0', Partial<IpmiPoolOptions>, (pool: IpmiPool) => Promise<unknown>]>(
    (['1.5', '2.0'] as const).flatMap((version) => [
      ['the pool is closed', version, {}, (pool) => pool.close()],
      ['they are unused for idleMs', version, { idleMs: 100 }, async () => {}],
      ['another one needs their place', version, { maxSessions: 1 }, async (pool) => ask(pool, target((await bmcOf()).port))],
    ]),
  )('are closed at the BMC by Close Session (§22.19) when %s, IPMI %s', async (_, version, options, then) => {
    const bmc = await bmcOf();
    const [pool, relay] = [poolOf({ resendMs: 2000, ...options }), await relayTo(bmc.port)];
    // Suite 1 does not encrypt, so that the relay can read the packets.
    await ask(pool, target(relay.port, { version, cipherSuites: [1] }), [1]);
    await then(pool);
    const closing = (toServer: boolean): ReturnType<typeof sent> =>
      sent(relay, toServer).filter(({ message }) => message.command === COMMANDS.closeSession[1]);
    await until('the response to Close Session', () => closing(false).length > 0);
    const { packet, message } = closing(true)[0]!;
    expect(message.data.readUInt32LE()).toBe((packet as Packet & { sessionId: number }).sessionId);
    // The completion code.
    expect(closing(false).map(({ message: { data } }) => [...data])).toEqual([[COMPLETION.ok]]);
    expect(closing(true)).toHaveLength(1);
  });
  it.each<[string, '1.5' | '2.0', number, object]>(
    (['1.5', '2.0'] as const).flatMap((version) => [
      ['a keep-alive', version, COMMANDS.getDeviceId[1], { keepAliveMs: 60 }],
      ['the change of the privilege level', version, COMMANDS.setSessionPrivilegeLevel[1], {}],
    ]),
  )('are closed when %s gets no response, IPMI %s', async (_, version, lost, options) => {
    const bmc = await bmcOf();
    const [pool, relay] = [
      poolOf({ resendMs: 10, ...options }),
      await relayTo(bmc.port, (packet, toServer) => (!toServer && messageIn(packet)?.message.command === lost ? [] : [0])),
    ];
    const caller = new AbortController();
    const asked = ask(pool, target(relay.port, { version, cipherSuites: [1] }), [1], 60_000, caller.signal).catch(() => {});
    const closed = (): boolean => sent(relay, false).some(({ message }) => message.command === COMMANDS.closeSession[1]);
    await until('the response to Close Session', closed);
    caller.abort(new Error('the test ends'));
    await asked;
  });
  it('are not reused for other credentials', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    await ask(pool, target(bmc.port));
    expect((await failure(ask(pool, target(bmc.port, { password: 'changed' })))).message).toContain('wrong password');
  });
});
