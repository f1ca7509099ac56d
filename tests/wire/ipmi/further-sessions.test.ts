/** Sessions of IPMI 1.5, bridged requests, and the choice among cipher suites: our client at our BMC. */
import { randomBytes } from 'node:crypto';
import { createIpmiPool, IpmiError, type IpmiPool, type IpmiTarget } from '../../../wire/ipmi/client';
import { COMMANDS, COMPLETION, PRIVILEGE } from '../../../wire/ipmi/constants';
import type { BmcRequest, Satellite } from '../../../wire/ipmi/bmc';
import { echo, openedSessions, testBmc, type TestBmc } from './bmc';
import { sameNumbers, udpRelay, type Fate, type Relay } from '../udp-relay';

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
const poolOf = (resendMs = 40): IpmiPool => {
  const pool = createIpmiPool({ log: { warn: () => {} }, clock: { now: () => Date.now() }, random: randomBytes, resendMs });
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
const ask = (pool: IpmiPool, at: IpmiTarget, data: readonly number[] = [], timeoutMs = 60_000): Promise<Buffer> =>
  pool.request(at, 0x2e, 0x01, Buffer.from(data), { timeoutMs });
const failure = async (promise: Promise<unknown>): Promise<IpmiError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(IpmiError);
  return error as IpmiError;
};

describe('IPMI 1.5', () => {
  const old = { version: '1.5' } as const;
  it('opens a session with MD5 and reuses it', async () => {
    const [pool, bmc] = [poolOf(2000), await bmcOf()];
    const relay = await relayTo(bmc.port);
    for (let n = 0; n < 80; n++) expect(await ask(pool, target(relay.port, old), [n])).toEqual(Buffer.from([n]));
    expect(openedSessions(relay)).toBe(1);
    expect(bmc.ran.length).toBe(80);
    expect(new Set(bmc.ran.map(({ privilege }) => privilege))).toEqual(new Set([PRIVILEGE.ADMINISTRATOR]));
  });
  it('uses the requested privilege level', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    for (const privilege of ['USER', 'OPERATOR'] as const) await ask(pool, target(bmc.port, { ...old, privilege }));
    expect(bmc.ran.map(({ privilege }) => privilege)).toEqual([2, 3]);
  });
  it.each<[string, Partial<IpmiTarget>, object]>([
    ['user', { username: 'nobody' }, { kind: 'refused', message: expect.stringContaining('wrong user name') as unknown }],
    ['password', { password: 'wrong' }, { kind: 'refused', message: expect.stringContaining('wrong password') as unknown }],
    ['privilege level', { username: 'guest', password: 'guest' }, { kind: 'refused', completionCode: 0x86 }],
    ['length of the password', { password: 'a'.repeat(17) }, { kind: 'refused', message: expect.stringContaining('16 bytes') as unknown }],
  ])('fails for a wrong %s', async (_, changes, expected) => {
    const [pool, bmc] = [poolOf(10), await bmcOf()];
    expect(await failure(ask(pool, target(bmc.port, { ...old, ...changes })))).toMatchObject(expected);
    expect(bmc.ran).toEqual([]);
  });
  it('fails for a BMC that does not support it', async () => {
    const [pool, bmc] = [poolOf(10), await bmcOf({ lan: false })];
    expect((await failure(ask(pool, target(bmc.port, old)))).message).toContain('no authentication type of IPMI 1.5');
  });
  it('each request gets its own response over an unreliable network', async () => {
    const bmc = await bmcOf();
    const next = sameNumbers(3);
    const relay = await relayTo(bmc.port, () => (next() < 0.15 ? [] : next() < 0.2 ? [0, 20] : next() < 0.2 ? [25] : [0]));
    const pool = poolOf(15);
    for (let n = 0; n < 20; n++) expect(await ask(pool, target(relay.port, old), [n], 20_000)).toEqual(Buffer.from([n]));
  });
  it('responses to two users of one BMC are not mixed up', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf()];
    const guest = target(bmc.port, { ...old, username: 'guest', password: 'guest', privilege: 'USER' });
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, (_, n) => ask(pool, target(bmc.port, old), [n])),
      ...Array.from({ length: 20 }, (_, n) => ask(pool, guest, [100 + n])),
    ]);
    expect(answers.map(([first]) => first)).toEqual(Array.from({ length: 40 }, (_, n) => (n < 20 ? n : 80 + n)));
  });
});

describe('bridged requests', () => {
  const heard: string[] = [];
  const satellite = (name: string, channel: number, address: number, satellites?: readonly Satellite[]): Satellite => ({
    channel,
    address,
    command: async ({ command, data }) => {
      heard.push(`${name} ${command} ${data.toString('hex')}`);
      return { completionCode: 0, data: Buffer.concat([Buffer.from([address]), data]) };
    },
    ...(satellites ? { satellites } : {}),
  });
  const satellites = [satellite('a', 7, 0x82, [satellite('b', 0, 0x72)]), satellite('c', 6, 0x82)];
  beforeEach(() => (heard.length = 0));
  const through = (...hops: readonly (readonly [number, number])[]): Partial<IpmiTarget> => ({
    bridge: { hops: hops.map(([channel, address]) => ({ channel, address })), localAddress: 0x20 },
  });

  it.each(['1.5', '2.0'] as const)('with IPMI %s, single, dual and no bridging share a session', async (version) => {
    const relay = await relayTo((await bmcOf({ satellites })).port);
    const pool = poolOf(2000);
    expect([...(await ask(pool, target(relay.port, { version, ...through([7, 0x82]) }), [1]))]).toEqual([0x82, 1]);
    expect([...(await ask(pool, target(relay.port, { version, ...through([6, 0x82]) }), [2]))]).toEqual([0x82, 2]);
    expect([...(await ask(pool, target(relay.port, { version, ...through([7, 0x82], [0, 0x72]) }), [3]))]).toEqual([0x72, 3]);
    expect([...(await ask(pool, target(relay.port, { version }), [4]))]).toEqual([4]);
    expect(openedSessions(relay)).toBe(1);
    expect(heard).toEqual(['a 1 01', 'c 1 02', 'b 1 03']);
  });
  it('to a missing controller fail with its address and channel', async () => {
    const [pool, bmc] = [poolOf(), await bmcOf({ satellites })];
    const error = await failure(ask(pool, target(bmc.port, through([7, 0x90]))));
    expect(error.message).toContain('0x90 on channel 7');
    expect(error).toMatchObject({ kind: 'completion', completionCode: 0x83 });
  });
  it('to a controller that does not respond fail as unreachable after the timeout, and later requests succeed', async () => {
    const dead: Satellite = { channel: 7, address: 0x82, command: () => new Promise(() => {}) };
    const bmc = await bmcOf({ satellites: [dead, satellite('c', 6, 0x82)] });
    const pool = poolOf(10);
    await ask(pool, target(bmc.port), [1]);
    // This BMC responds to Send Message only together with the controller, so it seems to be unreachable itself.
    const error = await failure(ask(pool, target(bmc.port, through([7, 0x82])), [2], 300));
    expect(error).toMatchObject({ kind: 'unreachable', message: `the BMC at 127.0.0.1 port ${bmc.port} does not answer` });
    expect([...(await ask(pool, target(bmc.port), [3]))]).toEqual([3]);
    expect([...(await ask(pool, target(bmc.port, through([6, 0x82])), [4]))]).toEqual([0x82, 4]);
  });
  it('to a controller that does not respond fail with its address and channel if the BMC does, and its session remains in use', async () => {
    const [networkFunction, command] = COMMANDS.sendMessage;
    const isBridged = (request: BmcRequest): boolean => request.networkFunction === networkFunction && request.command === command;
    const bmc = await bmcOf({ reply: (request) => (isBridged(request) ? { completionCode: COMPLETION.ok } : echo(request)) });
    const relay = await relayTo(bmc.port);
    const pool = poolOf(200);
    await ask(pool, target(relay.port), [1]);
    const error = await failure(ask(pool, target(relay.port, through([7, 0x82])), [2]));
    expect(error).toMatchObject({
      kind: 'unreachable',
      message: 'the BMC passes messages on, but nothing answers at 0x82 on channel 7',
    });
    expect([...(await ask(pool, target(relay.port), [3]))]).toEqual([3]);
    expect(openedSessions(relay)).toBe(1);
  });
});

describe('choice of the cipher suite', () => {
  it.each([
    [[17], 17],
    [[3], 3],
    [[8], 8],
  ] as const)('the client uses the first suite that a BMC with %j supports', async (cipherSuites, expected) => {
    const bmc = await bmcOf({ cipherSuites });
    const relay = await relayTo(bmc.port);
    expect(await ask(poolOf(), target(relay.port, { cipherSuites: [17, 3, 8] }), [1])).toEqual(Buffer.from([1]));
    // The authentication algorithm of the last Open Session Request.
    const requests = relay.seen.filter(({ toServer, packet }) => toServer && packet[5] === 0x10);
    expect(requests.at(-1)!.packet[28]).toBe({ 17: 3, 3: 1, 8: 2 }[expected]);
  });
  it('the client fails if the BMC supports none', async () => {
    const bmc = await bmcOf({ cipherSuites: [0] });
    expect((await failure(ask(poolOf(), target(bmc.port, { cipherSuites: [17, 3] })))).message).toContain(
      'does not offer the cipher suite',
    );
  });
});
