/** Serial-over-LAN: our console at our BMC, over good and bad networks. */
import { randomBytes } from 'node:crypto';
import { createSerial } from '../../../simulator/hardware/serial';
import { createIpmiPool, type IpmiPool, type IpmiTarget, type SolPool } from '../../../wire/ipmi/client';
import type { BmcAnswer, BmcRequest, SerialPort } from '../../../wire/ipmi/bmc';
import type { SolChannel } from '../../../wire/ipmi/sol';
import { SOL_BITS, createSolStream } from '../../../wire/ipmi/sol-stream';
import { ACTIVE_ELSEWHERE, createSolWatch } from '../../../wire/ipmi/sol-watch';
import { testBmc, type TestBmc } from './bmc';
import { sameNumbers, udpRelay, type Fate } from '../udp-relay';
import { ODD_NUMBERS } from '../../support/odd-ipmi/sessions';
import { until } from '../../support/until';
import { PAYLOAD } from '../../../wire/ipmi/codec';
import { COMMANDS, IpmiError, type CommandCode } from '../../../wire/ipmi/constants';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
const KEEP_ALIVE_MS = 25_000;
const poolOf = (resendMs = 40): IpmiPool & SolPool => {
  const pool = createIpmiPool({
    log: { warn: () => {} },
    clock: { now: () => Date.now() },
    random: randomBytes,
    resendMs,
    keepAliveMs: KEEP_ALIVE_MS,
  });
  stops.push(() => pool.close());
  return pool;
};
const bmcOf = async (serial: SerialPort, more: Parameters<typeof testBmc>[0] = {}): Promise<TestBmc> => {
  const bmc = await testBmc({ sol: { serial, port: 623 }, ...more });
  stops.push(() => bmc.close());
  return bmc;
};
const target = (port: number, changes: Partial<IpmiTarget> = {}): IpmiTarget => ({
  address: '127.0.0.1',
  port,
  username: 'admin',
  password: 'secret',
  privilege: 'ADMINISTRATOR',
  cipherSuites: [17, 3, 2, 0],
  ...changes,
});
/** Intervals pass when the returned function is called, and not with time: no BMC is asked too soon or too late on a busy machine. */
function manualIntervals(): () => void {
  const time = ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'nextTick', 'queueMicrotask'] as const;
  jest.useFakeTimers({ doNotFake: [...time, 'Date', 'hrtime', 'performance'] });
  stops.push(async () => {
    jest.useRealTimers();
  });
  return () => {
    jest.advanceTimersByTime(KEEP_ALIVE_MS);
  };
}
/** Resolves when what waited for this BMC has been done. */
const afterTurn = async (pool: IpmiPool, at: IpmiTarget): Promise<void> => {
  const [networkFunction, command] = COMMANDS.getDeviceId;
  await pool.request(at, networkFunction, command, Buffer.alloc(0), { timeoutMs: 60_000 }).catch((error: unknown) => {
    if (!(error instanceof IpmiError && error.kind === 'completion')) throw error;
  });
};
interface Terminal {
  readonly channel: SolChannel;
  text(): string;
  /** Resolves when this text was written. */
  until(part: string): Promise<void>;
}
async function terminal(pool: SolPool, at: IpmiTarget): Promise<Terminal> {
  let [text, look] = ['', (): void => {}];
  const deliver = (bytes: Buffer): void => {
    text += bytes.toString('latin1');
    look();
  };
  const channel = await pool.openSol(at, deliver, { timeoutMs: 60_000 });
  return {
    channel,
    text: () => text,
    until: (part) =>
      new Promise((done) => {
        look = () => {
          if (text.includes(part)) done();
        };
        look();
      }),
  };
}

describe('serial-over-LAN', () => {
  it.each([[17], [3], [2], [0]])('carries data and a break in both directions with cipher suite %i', async (suite) => {
    const serial = createSerial('m1');
    const bmc = await bmcOf(serial.port, { cipherSuites: [suite] });
    const session = await terminal(poolOf(), target(bmc.port));
    await session.channel.write(Buffer.from('hello\r'));
    await session.until('hello\r\nm1> ');
    serial.log('the machine says something');
    await session.until('something\r\n');
    await session.channel.sendBreak();
    await session.until('[break]');
    await session.channel.close();
    expect(await session.channel.closed).toBeUndefined();
    await expect(session.channel.write(Buffer.from('x'))).rejects.toMatchObject({ kind: 'closed' });
  });
  it('carries data longer than a packet', async () => {
    const bmc = await bmcOf(createSerial('m').port);
    const session = await terminal(poolOf(), target(bmc.port));
    const long = 'abcdefghij'.repeat(300);
    await session.channel.write(Buffer.from(`${long}.`));
    await session.until('.');
    expect(session.text()).toBe(`${long}.`);
    await session.channel.close();
  });
  it('carries each character once and in order over an unreliable network', async () => {
    const bmc = await bmcOf(createSerial('m').port);
    const next = sameNumbers(5);
    const fate: Fate = () => (next() < 0.15 ? [] : next() < 0.2 ? [0, 10] : [0]);
    const relay = await udpRelay(bmc.port, fate);
    stops.push(() => relay.close());
    const session = await terminal(poolOf(15), target(relay.port, { cipherSuites: [3] }));
    const words = Array.from({ length: 25 }, (_, n) => `word ${n};`);
    for (const word of words) await session.channel.write(Buffer.from(word));
    await session.until('word 24;');
    expect(session.text()).toBe(words.join(''));
    await session.channel.close();
  });
  it('takes the session over from another console', async () => {
    const bmc = await bmcOf(createSerial('m').port);
    const first = await terminal(poolOf(), target(bmc.port));
    const second = await terminal(poolOf(), target(bmc.port));
    expect(await first.channel.closed).toMatchObject({ message: 'the BMC ended the serial-over-LAN session' });
    await second.channel.write(Buffer.from('mine'));
    await second.until('mine');
    await second.channel.close();
  });
  const guest = { username: 'guest', password: 'guest', privilege: 'USER' } as const;
  it.each(
    ['RMCP+ numbers that never rise', 'RMCP+ numbers that are zero', 'RMCP+ numbers that jump'].flatMap((name) => [
      [name, 'an administrator', {}] as const,
      [name, 'a user', guest] as const,
    ]),
  )('works with %s, for %s', async (name, _, user) => {
    const bmc = await bmcOf(createSerial('m').port, ODD_NUMBERS[name]!.bmc);
    const session = await terminal(poolOf(), target(bmc.port, { cipherSuites: [3], ...user }));
    for (const word of ['one ', 'two ', 'three ']) {
      await session.channel.write(Buffer.from(word));
      await session.until(word);
    }
    expect(session.text()).toBe('one two three ');
    await session.channel.close();
  });
  /** Loses the SOL packets of RMCP+, and no others, while `lost` says so. */
  const withoutSol = async (bmc: TestBmc, lost: () => boolean): Promise<number> => {
    const relay = await udpRelay(bmc.port, (packet) => (lost() && (packet[5]! & 0x3f) === PAYLOAD.sol ? [] : [0]));
    stops.push(() => relay.close());
    return relay.port;
  };
  /** A serial port that counts how often SOL has begun and ended at it. */
  const counted = (serial: SerialPort) => {
    const counts = { begun: 0, ended: 0 };
    const port: SerialPort = {
      ...serial,
      listen: (output) => {
        counts.begun++;
        const stop = serial.listen(output);
        return () => {
          counts.ended++;
          stop();
        };
      },
    };
    return { port, counts };
  };
  it('is activated again after the BMC has ended it in an outage', async () => {
    const look = manualIntervals();
    const serial = createSerial('m');
    const { port, counts } = counted(serial.port);
    const bmc = await bmcOf(port, { sol: { serial: port, port: 623, resendMs: 20 } });
    let outage = false;
    const pool = poolOf();
    const at = target(await withoutSol(bmc, () => outage), { cipherSuites: [3] });
    const session = await terminal(pool, at);
    await session.channel.write(Buffer.from('before '));
    await session.until('before ');
    outage = true;
    serial.log('lost');
    await until('the BMC gives up', () => counts.ended === 1);
    outage = false;
    // The first look may find that something came since the beginning: then it does not ask.
    await until('it is active again', async () => {
      look();
      await afterTurn(pool, at);
      return counts.begun === 2;
    });
    serial.log('after');
    await session.until('after');
    await session.channel.write(Buffer.from('typed'));
    await session.until('typed');
    await session.channel.close();
  });
  it('delivers nothing twice if someone repeats the packets of the BMC', async () => {
    const serial = createSerial('m');
    const relay = await udpRelay((await bmcOf(serial.port)).port);
    stops.push(() => relay.close());
    const session = await terminal(poolOf(), target(relay.port, { cipherSuites: [3] }));
    serial.log('first ');
    await session.until('first ');
    const output = relay.seen.filter(({ toServer, packet }) => !toServer && (packet[5]! & 0x3f) === PAYLOAD.sol);
    serial.log('second ');
    await session.until('second ');
    for (const { packet } of output) relay.inject(packet);
    serial.log('third');
    await session.until('third');
    expect(session.text().match(/first/g)).toHaveLength(1);
    await session.channel.close();
  });
  it('ends with a reason if another console has it after an outage', async () => {
    const look = manualIntervals();
    const bmc = await bmcOf(createSerial('m').port);
    let outage = false;
    const pool = poolOf();
    const at = target(await withoutSol(bmc, () => outage), { cipherSuites: [3] });
    const first = await terminal(pool, at);
    await afterTurn(pool, at);
    outage = true;
    const second = await terminal(poolOf(), target(bmc.port));
    look();
    expect(await first.channel.closed).toMatchObject({ message: 'another console has taken the serial-over-LAN session over' });
    await second.channel.write(Buffer.from('mine'));
    await second.until('mine');
    await second.channel.close();
  });
  it.each<[string, { readonly status: readonly (readonly number[])[]; readonly ends: boolean }]>([
    [
      'ends with the refusal if the BMC does not activate it again',
      {
        status: [
          [0, 1, 1, 0],
          [0, 1, 0, 0],
        ],
        ends: true,
      },
    ],
    ['stays if the BMC has always said that it is not active', { status: [[0, 1, 0, 0]], ends: false }],
    ['stays if the BMC does not say whether it is active', { status: [[0xc1]], ends: false }],
  ])('%s', async (_, { status, ends }) => {
    const look = manualIntervals();
    let [asked, activations] = [0, 0];
    const is = (request: BmcRequest, [networkFunction, command]: CommandCode): boolean =>
      request.networkFunction === networkFunction && request.command === command;
    const reply = (request: BmcRequest): BmcAnswer => {
      if (is(request, COMMANDS.activatePayload))
        return activations++ === 0 ? { completionCode: 0, data: Buffer.alloc(12, 1) } : { completionCode: 0x81 };
      if (!is(request, COMMANDS.getPayloadActivationStatus)) return { completionCode: 0xc1 };
      const [completionCode = 0, ...data] = status[Math.min(asked++, status.length - 1)]!;
      return { completionCode, data: Buffer.from(data) };
    };
    const bmc = await testBmc({ reply });
    stops.push(() => bmc.close());
    const [pool, at] = [poolOf(), target(bmc.port)];
    const { channel } = await terminal(pool, at);
    await afterTurn(pool, at);
    for (let looks = 1; looks <= 4; looks++) {
      look();
      if (ends) expect(await channel.closed).toMatchObject({ kind: 'completion', completionCode: 0x81 });
      else await afterTurn(pool, at);
    }
    if (!ends) expect(asked).toBe(5);
    expect(activations).toBe(ends ? 2 : 1);
    await channel.close();
  });
  it('ends when the BMC stops responding', async () => {
    const bmc = await bmcOf(createSerial('m').port);
    const session = await terminal(poolOf(5), target(bmc.port));
    bmc.mute(true);
    await expect(session.channel.write(Buffer.from('x'))).rejects.toMatchObject({ kind: 'unreachable' });
    expect(await session.channel.closed).toMatchObject({ kind: 'unreachable' });
  });
  it('ends when the BMC restarts, and a new session can be opened', async () => {
    const bmc = await bmcOf(createSerial('m').port);
    const first = await terminal(poolOf(5), target(bmc.port));
    bmc.restart();
    await expect(first.channel.write(Buffer.from('x'))).rejects.toMatchObject({ kind: 'unreachable' });
    const second = await terminal(poolOf(), target(bmc.port));
    await second.channel.write(Buffer.from('mine'));
    await second.until('mine');
    await second.channel.close();
  });
  it.each<[string, Partial<IpmiTarget>, object]>([
    ['a wrong password', { password: 'wrong' }, { kind: 'refused', message: 'wrong password (RAKP 2 HMAC)' }],
    ['IPMI 1.5', { version: '1.5' }, { kind: 'refused', message: 'serial-over-LAN needs IPMI 2.0' }],
  ])('fails for %s', async (_, changes, expected) => {
    const bmc = await bmcOf(createSerial('m').port);
    await expect(poolOf().openSol(target(bmc.port, changes), () => {}, { timeoutMs: 60_000 })).rejects.toMatchObject(expected);
  });
  it('fails for a BMC without serial-over-LAN', async () => {
    const bmc = await testBmc({ command: async () => ({ completionCode: 0xc1 }) });
    stops.push(() => bmc.close());
    await expect(poolOf().openSol(target(bmc.port), () => {}, { timeoutMs: 60_000 })).rejects.toMatchObject({
      message: 'serial-over-LAN: invalid command (completion code 0xc1)',
    });
  });
});

describe('createSolWatch', () => {
  /** The BMC's responses in order → the commands that it was asked, and what the last look said. */
  const looked = async (learned: readonly (Buffer | undefined)[], answers: readonly (readonly number[])[]) => {
    const asked: string[] = [];
    const rest = [...learned, ...answers.map((bytes) => Buffer.from(bytes))];
    const ask = async (code: CommandCode): Promise<Buffer | undefined> => {
      asked.push(Object.entries(COMMANDS).find(([, known]) => known === code)![0]);
      return rest.shift();
    };
    let restarts = 0;
    const watch = createSolWatch(new IpmiError('unreachable', 'silent'), [], () => restarts++);
    await watch.learn(ask);
    let end: IpmiError | undefined;
    while (rest.length > 0 && !end) end = await watch.look(ask);
    return { asked, restarts, end };
  };
  const [INACTIVE, ACTIVE, REFUSED] = [[0, 1, 0, 0], [0, 1, 1, 0], [ACTIVE_ELSEWHERE]];
  it('activates SOL again if the BMC did not answer right after the activation', async () => {
    const { asked, restarts, end } = await looked([undefined], [INACTIVE, [0], ACTIVE, [0, 7, 0, 0, 0]]);
    expect([restarts, end]).toEqual([1, undefined]);
    expect(asked.slice(1, 3)).toEqual(['getPayloadActivationStatus', 'activatePayload']);
  });
  it('activates nothing twice at a BMC that always says "inactive"', async () => {
    const { asked, restarts, end } = await looked([undefined], [INACTIVE, REFUSED, INACTIVE, INACTIVE]);
    expect([restarts, end]).toEqual([0, undefined]);
    expect(asked.filter((name) => name === 'activatePayload')).toHaveLength(1);
  });
});

describe('createSolStream', () => {
  const stream = (resendMs = 5) => {
    const [sent, came]: [string[], string[]] = [[], []];
    const sol = createSolStream({
      maxBytes: 4,
      resendMs,
      send: (payload) => sent.push(payload.toString('hex')),
      deliver: (bytes) => came.push(bytes.toString('latin1')),
      failed: () => sent.push('failed'),
    });
    return { sol, sent, came };
  };
  const packet = (sequence: number, answered: number, count: number, bits: number, text = ''): Buffer =>
    Buffer.concat([Buffer.from([sequence, answered, count, bits]), Buffer.from(text)]);
  it('acknowledges each packet, and delivers repeated data only once', () => {
    const { sol, sent, came } = stream();
    sol.receive(packet(1, 0, 0, 0, 'ab'));
    sol.receive(packet(1, 0, 0, 0, 'ab'));
    sol.receive(packet(1, 0, 0, 0, 'abc'));
    sol.receive(packet(2, 0, 0, 0, 'd'));
    expect(came).toEqual(['ab', 'c', 'd']);
    expect(sent).toEqual(['00010200', '00010200', '00010300', '00020100']);
  });
  it('sends the rest of a packet that was accepted in part', async () => {
    const { sol, sent } = stream(1000);
    const written = sol.write(Buffer.from('wxyz'));
    sol.receive(packet(0, 1, 1, SOL_BITS.nack));
    sol.receive(packet(0, 2, 3, 0));
    await written;
    expect(sent).toEqual(['010000007778797a', '0200000078797a']);
  });
  it('ignores acknowledgments of other packets and malformed packets', async () => {
    const { sol, sent } = stream(1000);
    const written = sol.write(Buffer.from('a')).catch(() => 'ended');
    for (const bytes of [Buffer.alloc(0), Buffer.from([1]), packet(0, 5, 1, 0)]) sol.receive(bytes);
    expect(sent).toEqual(['0100000061']);
    sol.end();
    expect(await written).toBe('ended');
  });
  it('numbers packets from 1 to 15, then from 1 again', async () => {
    const { sol, sent } = stream(1000);
    for (let n = 0; n < 17; n++) {
      const written = sol.write(Buffer.from('a'));
      sol.receive(packet(0, (n % 15) + 1, 1, 0));
      await written;
    }
    expect(sent.map((hex) => parseInt(hex.slice(0, 2), 16))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1, 2]);
  });
});
