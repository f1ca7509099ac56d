/** Our client at BMCs with odd sessions. */
import { randomBytes } from 'node:crypto';
import { createIpmiPool, type IpmiPool, type IpmiTarget } from '../../../wire/ipmi/client';
import { ODD_NUMBERS, ODD_SESSIONS } from '../../support/odd-ipmi/sessions';
import { udpRelay, type Fate, type Relay } from '../udp-relay';
import { openedSessions, testBmc } from './bmc';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
async function bench(
  bmcOptions: Parameters<typeof testBmc>[0],
  changes: Partial<IpmiTarget> = {},
  { fate, resendMs = 40 }: { readonly fate?: Fate; readonly resendMs?: number } = {},
): Promise<{ readonly relay: Relay; readonly ask: (...data: readonly number[]) => Promise<readonly number[]> }> {
  const bmc = await testBmc(bmcOptions);
  stops.push(() => bmc.close());
  const relay = await udpRelay(bmc.port, fate);
  stops.push(() => relay.close());
  const pool: IpmiPool = createIpmiPool({ log: { warn: () => {} }, clock: { now: () => Date.now() }, random: randomBytes, resendMs });
  stops.push(() => pool.close());
  const target: IpmiTarget = {
    address: '127.0.0.1',
    port: relay.port,
    username: 'admin',
    password: 'secret',
    privilege: 'ADMINISTRATOR',
    cipherSuites: [3],
    ...changes,
  };
  return { relay, ask: async (...data) => [...(await pool.request(target, 0x2e, 0x01, Buffer.from(data), { timeoutMs: 20_000 }))] };
}

describe('session sequence numbers', () => {
  it.each(Object.entries(ODD_NUMBERS))('%s: each command gets its response, and no rqSeq is used twice', async (_, { bmc, target }) => {
    const { ask, relay } = await bench(bmc, target, { resendMs: 2000 });
    for (let n = 0; n < 150; n++) expect(await ask(n)).toEqual([n]);
    expect(openedSessions(relay)).toBe(3);
  });
  it('an authentic response of the same rqSeq is not accepted again', async () => {
    let replay: Buffer | undefined;
    const { ask, relay } = await bench(
      {},
      {},
      {
        resendMs: 2000,
        fate: (_, toServer) => {
          if (toServer && replay) relay.inject(replay);
          return [0];
        },
      },
    );
    const responses: Buffer[] = [];
    for (let n = 0; n < 100; n++) {
      // The responses have the same command, and rqSeq repeats after 64 commands.
      replay = responses[n - 64];
      expect(await ask(n)).toEqual([n]);
      responses.push(relay.seen.findLast(({ toServer }) => !toServer)!.packet);
    }
    expect(openedSessions(relay)).toBe(1);
  });
  it('without signatures, odd numbers are refused', async () => {
    const { ask } = await bench({ oddities: { sequence: () => 7 } }, { cipherSuites: [0] }, { resendMs: 5 });
    await expect(Promise.race([ask(1), new Promise((_, fail) => setTimeout(() => fail(new Error('none')), 300))])).rejects.toThrow('none');
  });
});

it.each(Object.entries(ODD_SESSIONS))('%s: commands get their responses', async (_, { bmc, target }) => {
  const { ask, relay } = await bench(bmc, target);
  for (let n = 0; n < 70; n++) expect(await ask(n)).toEqual([n]);
  expect(openedSessions(relay)).toBe(1);
});
