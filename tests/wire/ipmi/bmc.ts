/** The BMC side of the project on a socket, with commands that a test can count. */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { PAYLOAD, decodeLanMessage, decodeOpenSessionRequest, decodePacket } from '../../../wire/ipmi/codec';
import { COMMANDS, PRIVILEGE } from '../../../wire/ipmi/constants';
import type { BmcAnswer, BmcOptions, BmcRequest } from '../../../wire/ipmi/bmc';
import { createBmc } from '../../../wire/ipmi/server/server';
import type { Relay } from '../udp-relay';

export interface TestBmc {
  readonly port: number;
  /** Every command that ran, in order. */
  readonly ran: BmcRequest[];
  /** Packets that were taken, how many of them have no answer yet, and the most that ever had none. */
  readonly traffic: { taken: number; open: number; most: number };
  /** As after a reset: all sessions are forgotten. */
  restart(): void;
  /** Drops packets without an answer. */
  mute(silent: boolean): void;
  close(): Promise<void>;
}
/**
 * The number of requested sessions: Open Session Requests, or Activate Session in IPMI 1.5. Repetitions count once, as their session ID is the
 * same.
 */
export const openedSessions = ({ seen }: Relay): number =>
  new Set(
    seen.flatMap(({ toServer, packet: bytes }) => {
      const packet = toServer ? decodePacket(bytes) : undefined;
      if (packet?.kind === 'rmcp+')
        return packet.payloadType === PAYLOAD.openSessionRequest ? [decodeOpenSessionRequest(packet.payload)!.consoleId] : [];
      if (packet?.kind !== 'lan') return [];
      return decodeLanMessage(packet.payload)?.command === COMMANDS.activateSession[1] ? [packet.sessionId] : [];
    }),
  ).size;
export const echo = (request: BmcRequest): BmcAnswer => ({ completionCode: 0, data: request.data });

export async function testBmc(
  given: Partial<BmcOptions> & { readonly reply?: (request: BmcRequest) => BmcAnswer | Promise<BmcAnswer> } = {},
): Promise<TestBmc> {
  const ran: BmcRequest[] = [];
  const { reply = echo, ...options } = given;
  const bmc = createBmc({
    users: [
      { name: 'admin', password: 'secret', privilege: PRIVILEGE.ADMINISTRATOR },
      { name: 'guest', password: 'guest', privilege: PRIVILEGE.USER },
    ],
    cipherSuites: [0, 1, 2, 3, 6, 7, 8, 11, 12, 15, 16, 17],
    lan: true,
    guid: Buffer.alloc(16, 7),
    clock: { now: () => Date.now() },
    random: randomBytes,
    command: async (request) => {
      ran.push({ ...request, data: Buffer.from(request.data) });
      return reply(request);
    },
    ...options,
  });
  let silent = false;
  let isClosed = false;
  const traffic = { taken: 0, open: 0, most: 0 };
  const socket = createSocket('udp4');
  socket.on('message', (bytes, from) => {
    if (silent) return;
    // A console writes for a moment after the end.
    const push = (packet: Buffer): void => {
      if (!isClosed) socket.send(packet, from.port, from.address, () => {});
    };
    traffic.taken++;
    traffic.most = Math.max(traffic.most, ++traffic.open);
    void bmc.answer(bytes, push).then((answer) => {
      traffic.open--;
      if (answer) push(answer);
    });
  });
  await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
  return {
    port: socket.address().port,
    ran,
    traffic,
    restart: () => bmc.reset(),
    mute: (on) => (silent = on),
    close: () => {
      isClosed = true;
      return new Promise((done) => socket.close(() => done()));
    },
  };
}
