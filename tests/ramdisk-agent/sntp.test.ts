import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { timeOf } from '../../ramdisk-agent/network/sntp';

let server: Socket;
/** What the client does not take is lost or ignored: its time is over then. */
interface Answer {
  readonly packet: (request: Buffer) => Buffer | undefined;
  readonly isTaken: boolean;
}
let answers: Answer[];
let endTheWait: () => void;
beforeEach(async () => {
  answers = [];
  server = createSocket('udp4');
  server.on('message', (request, from) => {
    const { packet, isTaken } = answers.shift()!;
    const answer = packet(request);
    const sent = (): void => {
      // The client may read the answer first. It has not to.
      if (!isTaken) setTimeout(endTheWait, 10);
    };
    if (answer) server.send(answer, from.port, from.address, sent);
    else sent();
  });
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
});
afterEach(() => new Promise<void>((closed) => server.close(() => closed())));

const answer =
  (seconds: number, { first = 0b00_100_100, stratum = 2, cookie = true } = {}) =>
  (request: Buffer): Buffer => {
    const packet = Buffer.alloc(48);
    packet[0] = first;
    packet[1] = stratum;
    if (cookie) request.copy(packet, 24, 40, 48);
    packet.writeUInt32BE(seconds, 40);
    packet.writeUInt32BE(0x80000000, 44);
    return packet;
  };
/** The time stands still, but for ten milliseconds between two questions. */
const ask = (host = '127.0.0.1'): Promise<number> => {
  let now = 0;
  const sleep = (): Promise<void> => new Promise((resolve) => (endTheWait = resolve));
  return timeOf(host, { random: randomBytes, monotonic: () => (now += 10), clock: { sleep }, port: server.address().port });
};

it.each<[string, number, number]>([
  ['2024', 3_913_056_000, 1_704_067_200_505],
  ['after the end of the era in 2036', 1000, (2 ** 32 + 1000 - 2_208_988_800) * 1000 + 505],
])('timeOf returns the time of the server, and half of the way: %s', async (_, seconds, expected) => {
  answers.push({ packet: answer(seconds), isTaken: true });
  expect(await ask()).toBe(expected);
});

it('timeOf asks again after a lost answer', async () => {
  answers.push({ packet: () => undefined, isTaken: false }, { packet: answer(3_913_056_000), isTaken: true });
  expect(await ask()).toBe(1_704_067_200_505);
});

it.each<[string, (request: Buffer) => Buffer, RegExp]>([
  ['is not synchronized', answer(1, { first: 0b11_100_100 }), /has no time of its own/],
  ['refuses to answer', answer(1, { stratum: 0 }), /has no time of its own/],
  ['sends what was not asked for', answer(1, { cookie: false }), /did not answer/],
  ['is no server', answer(1, { first: 0b00_100_011 }), /did not answer/],
  ['sends less than a packet', () => Buffer.alloc(10), /did not answer/],
])('timeOf rejects a server that %s', async (_, bad, reason) => {
  // Of a server without a time, the client knows at once.
  const isTaken = reason.source.includes('no time');
  answers.push(...Array.from({ length: 4 }, () => ({ packet: bad, isTaken })));
  await expect(ask()).rejects.toThrow(reason);
  expect(answers).toEqual([]);
});

it.each(['', 'a b', '-x', 'a..b', 'http://ntp', 'x'.repeat(254)])('timeOf asks no server with the address "%s"', async (host) => {
  await expect(ask(host)).rejects.toThrow('Invalid NTP server address');
});
