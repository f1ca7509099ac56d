/** Serial-over-LAN: our console at our BMC, over good and bad networks. */
import { randomBytes } from 'node:crypto';
import { createSerial } from '../../../simulator/hardware/serial';
import { createIpmiPool, type IpmiPool, type IpmiTarget, type SolPool } from '../../../wire/ipmi/client';
import type { SerialPort } from '../../../wire/ipmi/bmc';
import type { SolChannel } from '../../../wire/ipmi/sol';
import { SOL_BITS, createSolStream } from '../../../wire/ipmi/sol-stream';
import { testBmc, type TestBmc } from './bmc';
import { sameNumbers, udpRelay, type Fate } from '../udp-relay';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
const poolOf = (resendMs = 40): IpmiPool & SolPool => {
  const pool = createIpmiPool({ log: { warn: () => {} }, clock: { now: () => Date.now() }, random: randomBytes, resendMs });
  stops.push(() => pool.close());
  return pool;
};
const bmcOf = async (serial: SerialPort, cipherSuites?: readonly number[]): Promise<TestBmc> => {
  const bmc = await testBmc({ sol: { serial, port: 623 }, ...(cipherSuites ? { cipherSuites } : {}) });
  stops.push(() => bmc.close());
  return bmc;
};
const target = (port: number, changes: Partial<IpmiTarget> = {}): IpmiTarget => ({
  ...{ address: '127.0.0.1', port, username: 'admin', password: 'secret', privilege: 'ADMINISTRATOR', cipherSuites: [17, 3, 2, 0] },
  ...changes,
});
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
    const bmc = await bmcOf(serial.port, [suite]);
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

describe('createSolStream', () => {
  const stream = (resendMs = 5) => {
    const [sent, came]: [string[], string[]] = [[], []];
    const sol = createSolStream({
      ...{ maxBytes: 4, resendMs },
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
