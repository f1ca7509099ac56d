/** Screens: viewers that flood, cut and do not read, machines that lie in RFB, and tokens that are guessed. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { freePort } from '../support/free-port';
import { until } from '../support/until';
import { expectBounded, useAttackedServer } from './watchdog';

const KINDS = ['bios', 'firmware', 'inspect', 'raid', 'rescue', 'vendor'].map((kind) => `enabled_${kind}_interfaces = no-${kind}`);
const ORIGIN = 'http://127.0.0.1';
const server = useAttackedServer(
  `auth_strategy = noauth\nenabled_console_interfaces = fake-graphical,vnc,no-console\n${KINDS.join('\n')}`,
  '\n[vnc]\nenabled = true\nhost_ip = 127.0.0.1\nport = 0\nmax_screens = 10\n',
);

interface Given {
  readonly driver_info?: object;
}
async function newScreen(console_interface: string, given: Given = {}): Promise<string> {
  const json = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' };
  const body = JSON.stringify({ driver: 'fake-hardware', console_interface, ...given });
  const { text } = await server.call('POST', '/v1/nodes', { headers: json, body });
  const { uuid } = JSON.parse(text) as { uuid: string };
  await server.call('PUT', `/v1/nodes/${uuid}/states/console`, { headers: json, body: '{"enabled":true}' });
  await until('the console is on', async () =>
    (await server.call('GET', `/v1/nodes/${uuid}/states/console`, { headers: json })).text.includes('"console_enabled":true'),
  );
  return uuid;
}
const upgrade = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: ${ORIGIN}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: bloomery.screen\r\n\r\n`;
const BINARY = 2;
const PING = 9;
/** A masked frame (RFC 6455 §5.2) whose mask is zero. */
function frame(opcode: number, bytes: Buffer, isLast = true): Buffer {
  const first = (isLast ? 0x80 : 0) | opcode;
  const head = bytes.length < 126 ? Buffer.of(first, 0x80 | bytes.length) : Buffer.of(first, 0xfe, bytes.length >> 8, bytes.length & 255);
  return Buffer.concat([head, Buffer.alloc(4), bytes]);
}
const HELLO = [Buffer.from('RFB 003.008\n'), Buffer.of(1), Buffer.of(1)];
/** A viewer of which nobody reads more than the answer to its request. */
async function viewer(uuid: string): Promise<{ readonly socket: Socket; readonly answer: string }> {
  const socket = server.connect();
  socket.write(upgrade(`/ui/screen/${uuid}`));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return { socket, answer: answer.toString('latin1') };
}
async function seen(uuid: string): Promise<Socket> {
  const { socket, answer } = await viewer(uuid);
  expect(answer).toMatch(/^HTTP\/1\.1 101/);
  for (const bytes of HELLO) socket.write(frame(BINARY, bytes));
  return socket;
}
const isOver = (socket: Socket): Promise<void> => until('the end of the connection', () => socket.closed || socket.destroyed);
const KEY = Buffer.from([4, 1, 0, 0, 0, 0, 0, 97]);
const REQUEST = Buffer.from([3, 0, 0, 0, 0, 0, 2, 128, 1, 144]);

/** Name → what the viewer sends again and again, while it reads nothing. */
const FLOODS: readonly (readonly [string, Buffer])[] = [
  ['pings', frame(PING, Buffer.alloc(125)).subarray()],
  ['frames of one byte', Buffer.concat([...KEY].map((byte) => frame(BINARY, Buffer.of(byte))))],
  ['requests for pictures', frame(BINARY, Buffer.concat(Array.from({ length: 100 }, () => REQUEST)))],
  ['fragments without an end', frame(0, Buffer.alloc(0), false)],
];
it.each(FLOODS)('a viewer that sends %s and reads nothing costs no more than others', async (name, piece) => {
  const uuid = await newScreen('fake-graphical');
  const cost = await server.attack(async () => {
    const socket = await seen(uuid);
    socket.on('error', () => {}).pause();
    if (name.startsWith('fragments')) socket.write(frame(BINARY, Buffer.alloc(0), false));
    const much = Buffer.concat(Array.from({ length: Math.ceil(2 ** 20 / piece.length) }, () => piece));
    for (let count = 0; count < 8 && !socket.destroyed; count++) {
      const isTaken = socket.write(much);
      // The server may stop reading, or end the connection.
      if (isTaken) continue;
      const waits = ['drain', 'close'].map((event) => new Promise((done) => socket.once(event, done)));
      await Promise.race([...waits, new Promise((done) => setTimeout(done, 500))]);
      for (const event of ['drain', 'close']) socket.removeAllListeners(event);
    }
    socket.destroy();
  });
  expectBounded(cost);
});

it.each<readonly [string, Buffer]>([
  ['a text of 2 GB', Buffer.from([6, 0, 0, 0, 127, 255, 255, 255])],
  ['a text of 2 GB for the extended clipboard', Buffer.from([6, 0, 0, 0, 128, 0, 0, 0])],
  ['65,535 encodings', Buffer.from([2, 0, 255, 255])],
  ['255 screens', Buffer.from([251, 0, 0, 1, 0, 1, 255, 0])],
  ['an unknown message', Buffer.from([99])],
])('a viewer that announces %s is disconnected', async (_, message) => {
  const uuid = await newScreen('fake-graphical');
  const socket = await seen(uuid);
  socket.resume();
  socket.write(frame(BINARY, message));
  await isOver(socket);
});

it('viewers that send half a handshake take no more than the places of one screen, and the places return', async () => {
  const uuid = await newScreen('fake-graphical');
  const cost = await server.attack(async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => viewer(uuid).catch(() => ({ answer: 'closed' }))));
    const open = answers.filter(({ answer }) => answer.startsWith('HTTP/1.1 101') && answer.includes('bloomery.screen'));
    expect(open.length).toBeGreaterThan(0);
  });
  expectBounded(cost);
  let again: Socket | undefined;
  await until('a place', async () => {
    const { socket, answer } = await viewer(uuid);
    again = socket;
    // Only who controls the machine gets the one protocol that was offered.
    const isFirst = answer.includes('Sec-WebSocket-Protocol: bloomery.screen\r\n');
    if (!isFirst) socket.destroy();
    return isFirst;
  });
  again!.destroy();
});

describe('a machine', () => {
  let machine: Server;
  let behave: (socket: Socket) => void;
  const open = new Set<Socket>();
  beforeEach(async () => {
    machine = createServer((socket) => {
      open.add(socket.on('error', () => {}));
      behave(socket);
    });
    machine.listen(await freePort(), '127.0.0.1');
    await once(machine, 'listening');
  });
  afterEach(() => {
    for (const socket of open) socket.destroy();
    machine.close();
  });
  const screenOf = (): Promise<string> =>
    newScreen('vnc', {
      driver_info: { vnc_address: '127.0.0.1', vnc_port: (machine.address() as AddressInfo).port, vnc_password: 'geheim12' },
    });
  const init = (nameLength: number, side = 640): Buffer => {
    const bytes = Buffer.alloc(24);
    bytes.writeUInt16BE(side, 0);
    bytes.writeUInt16BE(side, 2);
    bytes.writeUInt32BE(nameLength, 20);
    return bytes;
  };
  const after =
    (...parts: readonly (Buffer | string)[]) =>
    (socket: Socket): void => {
      let at = 0;
      socket.write(parts[at++]!);
      socket.on('data', () => at < parts.length && socket.write(parts[at++]!));
    };
  const flood = (socket: Socket): void => {
    const more = (): void => {
      while (!socket.destroyed && socket.write(Buffer.alloc(1 << 16, 'x')));
    };
    socket.on('drain', more);
    more();
  };

  it.each<readonly [string, (socket: Socket) => void]>([
    ['that speaks another protocol', after('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['that floods before the handshake', flood],
    ['with an old version', after('RFB 003.002\n')],
    ['without security types', after('RFB 003.008\n', Buffer.of(0, 255, 255, 255, 255))],
    ['with 255 unknown security types', after('RFB 003.008\n', Buffer.concat([Buffer.of(255), Buffer.alloc(255, 77)]))],
    ['that refuses the password', after('RFB 003.008\n', Buffer.of(1, 2), Buffer.alloc(16), Buffer.of(0, 0, 0, 1, 255, 255, 255, 255))],
    ['with a name of 4 GB', after('RFB 003.008\n', Buffer.of(1, 1), Buffer.alloc(4), init(2 ** 32 - 1))],
    ['with 65,535 pixels on a side', after('RFB 003.008\n', Buffer.of(1, 1), Buffer.alloc(4), init(4, 65_535))],
    ['that hangs up', (socket) => socket.end('RFB 003')],
  ])('%s costs no more than others, and the viewer is told', async (_, how) => {
    behave = how;
    const uuid = await screenOf();
    const cost = await server.attack(async () => {
      const { socket, answer } = await viewer(uuid);
      expect(answer).toMatch(/^HTTP\/1\.1 101/);
      let text = '';
      socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
      await isOver(socket);
      expect(text.length + answer.length).toBeLessThan(2000);
      expect(text).not.toContain('geheim');
    });
    expectBounded(cost);
  });

  it('that floods after the handshake waits for its viewer, who reads nothing', async () => {
    let sent = 0;
    behave = (socket) => {
      after('RFB 003.008\n', Buffer.of(1, 1), Buffer.alloc(4))(socket);
      let received = 0;
      socket.on('data', (bytes: Buffer) => {
        received += bytes.length;
        // Version, type, ClientInit.
        if (received !== 14) return;
        socket.write(init(4));
        socket.write('name');
        // ServerCutText of 4 GB, then anything.
        socket.write(Buffer.from([3, 0, 0, 0, 255, 255, 255, 255]));
        flood(socket);
      });
      socket.on('close', () => (sent = Math.max(sent, socket.bytesWritten)));
    };
    const uuid = await screenOf();
    const cost = await server.attack(async () => {
      const socket = await seen(uuid);
      socket.pause();
      await until('the flood', () => [...open].some(({ bytesWritten }) => bytesWritten > 1 << 16));
      await new Promise((done) => setTimeout(done, 2000));
      expect(Math.max(...[...open].map(({ bytesWritten, writableLength }) => bytesWritten - writableLength))).toBeLessThan(64 << 20);
      socket.destroy();
    });
    expectBounded(cost);
  });
});

it('tokens that are guessed cost no more than other requests, and the checks are bounded', async () => {
  const uuid = await newScreen('fake-graphical');
  const { text } = await server.call('GET', `/v1/nodes/${uuid}/states/console`, {
    headers: { 'x-openstack-ironic-api-version': 'latest' },
  });
  const { url } = (JSON.parse(text) as { console_info: { url: string } }).console_info;
  const port = Number(new URL(url).port);
  const guess = (number: number): Promise<string> =>
    new Promise((done) => {
      const socket = connect({ port, host: '127.0.0.1' }).on('error', () => done('closed'));
      socket.write(upgrade(`/websockify?node=${uuid}&token=${number}`).replace(/Origin: .*\r\n/, ''));
      socket.once('data', (bytes: Buffer) => {
        done(bytes.toString('latin1').slice(9, 12));
        socket.destroy();
      });
      socket.once('close', () => done('closed'));
    });
  const cost = await server.attack(async () => {
    const answers: string[] = [];
    for (let round = 0; round < 10; round++)
      answers.push(...(await Promise.all(Array.from({ length: 100 }, (_, at) => guess(round * 100 + at)))));
    expect([...new Set(answers)].filter((status) => !['403', '503', 'closed'].includes(status))).toEqual([]);
    expect(answers).toContain('403');
  });
  expectBounded(cost);
});
