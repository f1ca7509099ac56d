/** A bad network between our client and BMCs, in real time: late, lost, repeated and corrupted packets, and never a false answer. */
import { randomBytes } from 'node:crypto';
import { createIpmiPool, IpmiError, type IpmiPool, type IpmiTarget } from '../../../wire/ipmi/client';
import { testBmc, type TestBmc } from '../../wire/ipmi/bmc';
import { sameNumbers, udpRelay, type Relay } from '../../wire/udp-relay';

jest.setTimeout(900_000);
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
const poolOf = (resendMs?: number): IpmiPool => {
  const pool = createIpmiPool({
    log: { warn: () => {} },
    clock: { now: () => Date.now() },
    random: randomBytes,
    ...(resendMs === undefined ? {} : { resendMs }),
  });
  stops.push(() => pool.close());
  return pool;
};
const target = (port: number, cipherSuite = 17): IpmiTarget => ({
  address: '127.0.0.1',
  port,
  username: 'admin',
  password: 'secret',
  privilege: 'ADMINISTRATOR',
  cipherSuites: [cipherSuite],
});

it('with 20 % packet loss and 300 ms latency, our client reads every power state correctly', async () => {
  const [machines, rounds] = [50, 2];
  const next = sameNumbers(29);
  const pool = poolOf();
  const fleet = Array.from({ length: machines }, () => ({ on: next() < 0.5 }));
  const ports = await Promise.all(
    fleet.map(async (machine) => {
      const bmc = await testBmc({ reply: () => ({ completionCode: 0, data: Buffer.from([machine.on ? 0x61 : 0x60, 0, 0]) }) });
      // Half of the latency each way; a packet with a longer delay is overtaken by later ones.
      const relay = await udpRelay(bmc.port, () => (next() < 0.2 ? [] : [150 + (next() < 0.1 ? next() * 200 : 0)]));
      stops.push(
        () => bmc.close(),
        () => relay.close(),
      );
      return relay.port;
    }),
  );
  let [right, wrong] = [0, 0];
  const errors: string[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const machine of fleet) machine.on = next() < 0.5;
    await Promise.all(
      fleet.map(async (machine, index) => {
        try {
          const [state] = await pool.request(target(ports[index]!), 0, 1, Buffer.alloc(0), { timeoutMs: 60_000 });
          if ((state! & 1) === (machine.on ? 1 : 0)) right++;
          else wrong++;
        } catch (error) {
          errors.push((error as Error).message);
        }
      }),
    );
  }
  expect({ right, wrong, errors }).toEqual({ right: machines * rounds, wrong: 0, errors: [] });
});

/** The number of corrupted copies that arrive before each answer. */
const COPIES = 20;
/** The number of corrupted copies in all. IPMI_MUTATIONS=1000000 sends a million. */
const COUNT = Number(process.env['IPMI_MUTATIONS'] ?? 20_000);

interface CorruptingRelay {
  readonly relay: Relay;
  /** Corrupted copies so far. */
  readonly sent: () => number;
  /** Messages of the handshake of which corrupted copies were sent so far. */
  readonly handshakes: () => number;
}
/** A relay in front of a BMC: it sends corrupted copies of each answer, and then the answer itself. */
async function corruptingRelay(bmc: TestBmc, seed: number): Promise<CorruptingRelay> {
  const next = sameNumbers(seed);
  let [sent, handshakes] = [0, 0];
  const at = (length: number): number => Math.floor(next() * length);
  const corrupt = (packet: Buffer): Buffer => {
    const bytes = Buffer.from(packet);
    for (let n = 0; n <= at(3); n++) bytes[at(bytes.length)]! ^= 1 << at(8);
    return next() < 0.7
      ? bytes
      : next() < 0.5
        ? bytes.subarray(0, at(bytes.length))
        : Buffer.concat([bytes, bytes.subarray(at(bytes.length))]);
  };
  const relay = await udpRelay(bmc.port, (packet, toServer) => {
    // Not all messages of the handshake are protected (§13.28): a few are corrupted. Those of a session are always corrupted.
    const isProtected = (packet[5]! & 0xc0) !== 0;
    if (toServer || (!isProtected && next() < 0.97)) return [0];
    if (!isProtected) handshakes++;
    for (let n = 0; n < COPIES; n++) {
      relay.inject(corrupt(packet));
      sent++;
    }
    return [0];
  });
  stops.push(() => relay.close());
  return { relay, sent: () => sent, handshakes: () => handshakes };
}

it.each([3, 17])(
  'with corrupted responses and cipher suite %i, a request returns the right data, or fails with an IpmiError if its handshake was corrupted',
  async (suite) => {
    const bmc = await testBmc();
    stops.push(() => bmc.close());
    const { relay, sent, handshakes } = await corruptingRelay(bmc, suite);
    const rss = process.memoryUsage().rss;
    let [right, refused, n] = [0, 0, 0];
    const unexplained: string[] = [];
    while (sent() < COUNT / 2) {
      // A new session every now and then, so that the handshake is corrupted too. The BMC still has sessions of corrupted handshakes.
      bmc.restart();
      const pool = createIpmiPool({ log: { warn: () => {} }, clock: { now: () => Date.now() }, random: randomBytes, resendMs: 50 });
      try {
        for (let turn = 0; turn < 20; turn++) {
          const data = Buffer.from([n & 0xff, (n >> 8) & 0xff, n++ >> 16]);
          const before = handshakes();
          try {
            expect(await pool.request(target(relay.port, suite), 0x2e, 1, data, { timeoutMs: 60_000 })).toEqual(data);
            right++;
          } catch (error) {
            if (!(error instanceof IpmiError)) throw error;
            refused++;
            if (handshakes() === before) unexplained.push(error.message);
          }
        }
      } finally {
        await pool.close();
      }
    }
    console.log(
      `${sent()} corrupted packets: ${right} right responses, ${refused} refusals after ${handshakes()} corrupted messages of handshakes, ${Math.round((process.memoryUsage().rss - rss) / 1e6)} MB more`,
    );
    expect(unexplained).toEqual([]);
    // The handshake has few messages, of which 3 % are corrupted.
    expect(right).toBeGreaterThan(3 * refused);
  },
);
