/** RFB against scripts of bytes, as RFC 6143 has them. tests/lab/page/screen.test.ts has a real server and a real viewer. */
import { duplexPair, type Duplex } from 'node:stream';
import { vncResponse } from '../../../wire/rfb/authentication';
import { createViewerFilter, messageLength } from '../../../wire/rfb/client-messages';
import { openScreen, welcomeViewer } from '../../../wire/rfb/handshake';
import { startProxy } from '../../../wire/rfb/proxy';
import { readBytes } from '../../../wire/rfb/stream';
import { openTestPicture } from '../../../wire/rfb/test-picture';
import { timeoutSignal } from '../../../wire/timeout-signal';

const bytes = (...parts: readonly (string | number | Buffer)[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.isBuffer(part) ? part : Buffer.from(part, 'latin1'))),
  );
const u16 = (value: number): Buffer => Buffer.of(value >> 8, value & 255);
const u32 = (value: number): Buffer => {
  const out = Buffer.alloc(4);
  out.writeUInt32BE(value >>> 0);
  return out;
};
const init = (width: number, height: number, name: string, length = name.length): Buffer =>
  bytes(u16(width), u16(height), Buffer.alloc(16), u32(length), name);
const V38 = 'RFB 003.008\n';

it('encrypts the challenge by DES with the bits of the password reversed', () => {
  // A well-known vector of DES: key 133457799BBCDFF1. Parity bits do not count.
  const challenge = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');
  expect(vncResponse('H,j\u001eY={\u000f', challenge).toString('hex')).toBe('85e813540f0ab40585e813540f0ab405');
  expect(vncResponse('password-of-sixteen', challenge)).toEqual(vncResponse('password', challenge));
  expect(vncResponse('', challenge)).toHaveLength(16);
});

describe('the handshake with a machine', () => {
  const challenge = Buffer.alloc(16, 7);
  /** Name, password of the node, what the server sends, what it must get, or the error. */
  const rows: readonly (readonly [string, string, Buffer, Buffer | null, string | null])[] = [
    ['3.8 without a password', '', bytes(V38, 1, 1, u32(0), init(640, 480, 'a')), bytes(V38, 1, 1), null],
    [
      '3.8 with a password',
      'geheim',
      bytes(V38, 2, 1, 2, challenge, u32(0), init(1, 1, '')),
      bytes(V38, 2, vncResponse('geheim', challenge), 1),
      null,
    ],
    ['3.8 without a password, although the node has one', 'geheim', bytes(V38, 1, 1, u32(0), init(1, 1, '')), bytes(V38, 1, 1), null],
    ['3.7 without a password', '', bytes('RFB 003.007\n', 1, 1, init(1, 1, '')), bytes('RFB 003.007\n', 1, 1), null],
    [
      '3.3 with a password',
      'x',
      bytes('RFB 003.003\n', u32(2), challenge, u32(0), init(1, 1, '')),
      bytes('RFB 003.003\n', vncResponse('x', challenge), 1),
      null,
    ],
    ['a later version', '', bytes('RFB 003.889\n', 1, 1, u32(0), init(1, 1, '')), bytes(V38, 1, 1), null],
    ['no VNC server', '', bytes('HTTP/1.1 400 Bad Request\r\n'), null, 'What answers there is no VNC server.'],
    ['a version before 3.3', '', bytes('RFB 002.000\n'), null, 'The VNC server speaks a version of RFB before 3.3.'],
    ['a refusal with a reason', '', bytes(V38, 0, u32(3), 'no!'), null, 'The VNC server refuses connections.'],
    ['a refusal with an endless reason', '', bytes(V38, 0, u32(0xffffffff), 'no!'), null, 'The VNC server refuses connections.'],
    ['a password that the node lacks', '', bytes(V38, 1, 2), null, 'The VNC server wants a password, and the node has none.'],
    [
      'other security types',
      'x',
      bytes(V38, 2, 18, 19),
      null,
      'The VNC server offers neither VNC authentication nor access without a password.',
    ],
    ['a wrong password', 'x', bytes(V38, 1, 2, challenge, u32(1), u32(2), 'no'), null, "The VNC server refuses the node's password."],
    ['a large screen', '', bytes(V38, 1, 1, u32(0), init(20_000, 1, '')), null, 'The screen has more than 16384 pixels on a side.'],
    ['an endless name', '', bytes(V38, 1, 1, u32(0), init(1, 1, '', 0xffffffff)), null, 'The name of the screen has more than 4096 bytes.'],
    ['an end', '', bytes(V38, 1), null, 'The connection ended during the handshake.'],
  ];
  it.each(rows)('%s', async (_, password, sent, wanted, error) => {
    // In one piece, and byte by byte.
    for (const size of [sent.length, 1]) {
      const [machine, server] = duplexPair();
      for (let at = 0; at < sent.length; at += size) server.write(sent.subarray(at, at + size));
      if (error === 'The connection ended during the handshake.') server.end();
      const work = openScreen(machine, password, timeoutSignal(5000));
      if (error === null) {
        await expect(work).resolves.toEqual(sent.subarray(sent.length - (await work).length));
        expect(server.read()).toEqual(wanted);
      } else await expect(work).rejects.toThrow(error);
    }
  });
  it('ends when it takes too long', async () => {
    const [machine] = duplexPair();
    await expect(openScreen(machine, '', timeoutSignal(20))).rejects.toThrow(/timeout/i);
  });
});

describe('the handshake with a viewer', () => {
  it('offers access without a password only, and sends the screen of the machine', async () => {
    const [inside, viewer] = duplexPair();
    viewer.write(bytes(V38, 1, 0));
    await welcomeViewer(inside, init(2, 3, 'name'), timeoutSignal(5000));
    expect(viewer.read()).toEqual(bytes(V38, 1, 1, u32(0), init(2, 3, 'name')));
  });
  it.each([
    ['another version', 'RFB 003.003\n', 'The viewer does not speak RFB 3.8.'],
    ['another type', `${V38}\u0002`, 'The viewer wants a security type that was not offered.'],
  ])('refuses %s', async (_, sent, error) => {
    const [inside, viewer] = duplexPair();
    viewer.write(Buffer.from(sent, 'latin1'));
    await expect(welcomeViewer(inside, init(1, 1, ''), timeoutSignal(5000))).rejects.toThrow(error);
  });
});

describe('messages of a viewer', () => {
  const view: readonly (readonly [string, Buffer])[] = [
    ['SetPixelFormat', bytes(0, Buffer.alloc(19))],
    ['SetEncodings', bytes(2, 0, u16(2), u32(0), u32(-239))],
    ['FramebufferUpdateRequest', bytes(3, 1, Buffer.alloc(8))],
    ['EnableContinuousUpdates', bytes(150, Buffer.alloc(9))],
    ['ClientFence', bytes(248, Buffer.alloc(7), 3, 'abc')],
    ['sound of QEMU: enable', bytes(255, 1, u16(0))],
    ['sound of QEMU: format', bytes(255, 1, u16(2), Buffer.alloc(6))],
  ];
  const input: readonly (readonly [string, Buffer])[] = [
    ['KeyEvent', bytes(4, 1, u16(0), u32(0x61))],
    ['PointerEvent', bytes(5, 1, u16(3), u16(4))],
    ['PointerEvent with more buttons', bytes(5, 0x81, u16(3), u16(4), 1)],
    ['ClientCutText', bytes(6, 0, 0, 0, u32(3), 'abc')],
    ['ClientCutText of the extended clipboard', bytes(6, 0, 0, 0, u32(-4), u32(1))],
    ['SetDesktopSize', bytes(251, 0, u16(8), u16(6), 1, 0, Buffer.alloc(16))],
    ['keys of QEMU', bytes(255, 0, Buffer.alloc(10))],
  ];
  const whole = (rows: readonly (readonly [string, Buffer])[]): Buffer => Buffer.concat(rows.map(([, message]) => message));
  const all = [...view, ...input];
  it.each(all)('knows the length of %s', (_, message) => {
    expect(messageLength(message)).toBe(message.length);
    expect(messageLength(message.subarray(0, 0))).toBeUndefined();
  });
  it.each([1, 2, 3, 7, 1000])('passes input only of who controls the machine, in pieces of %s bytes', (size) => {
    const mixed = whole([view[0]!, input[0]!, view[1]!, input[3]!, ...view, ...input, view[2]!]);
    const through = (mayControl: boolean): Buffer => {
      const filter = createViewerFilter(mayControl);
      const out: Buffer[] = [];
      for (let at = 0; at < mixed.length; at += size) out.push(filter(mixed.subarray(at, at + size)));
      return Buffer.concat(out);
    };
    expect(through(true)).toEqual(mixed);
    expect(through(false)).toEqual(whole([view[0]!, view[1]!, ...view, view[2]!]));
  });
  it('never passes orders that shut the machine down', () => {
    const shutdown = bytes(250, 0, 1, 2);
    expect(createViewerFilter(true)(bytes(shutdown, view[2]![1], shutdown))).toEqual(view[2]![1]);
  });
  it.each([
    ['an unknown message', bytes(99), /not known/],
    ['an unknown message of QEMU', bytes(255, 9), /not known/],
    ['too many encodings', bytes(2, 0, u16(257)), /more than 256 encodings/],
    ['too much text', bytes(6, 0, 0, 0, u32(0x7fffffff)), /more than 262144 bytes of text/],
    ['a large fence', bytes(248, Buffer.alloc(7), 65), /more than 64 bytes in a fence/],
    ['many screens', bytes(251, 0, u16(8), u16(6), 17, 0), /more than 16 screens/],
  ])('refuses %s', (_, message, error) => {
    expect(() => createViewerFilter(false)(message)).toThrow(error);
  });
});

/** A viewer after its handshake: the size of the screen. */
async function look(viewer: Duplex): Promise<readonly [number, number]> {
  const signal = timeoutSignal(5000);
  viewer.write(bytes(V38, 1, 1));
  await readBytes(viewer, 12 + 2 + 4, signal);
  const head = await readBytes(viewer, 24, signal);
  await readBytes(viewer, head.readUInt32BE(20), signal);
  return [head.readUInt16BE(0), head.readUInt16BE(2)];
}

it('the test picture answers with its bars, and then with what moves', async () => {
  const stop = new AbortController();
  const machine = openTestPicture(stop.signal);
  const [viewer, browser] = duplexPair();
  const started = startProxy({ machine, viewer, password: '', mayControl: true, handshake: stop.signal });
  const [width, height] = await look(browser);
  await started;
  const signal = timeoutSignal(5000);
  const request = (isIncremental: number): boolean => browser.write(bytes(3, isIncremental, u16(0), u16(0), u16(width), u16(height)));
  const update = async (): Promise<{ readonly place: readonly number[]; readonly pixels: Buffer }> => {
    const head = await readBytes(browser, 16, signal);
    const place = [4, 6, 8, 10].map((at) => head.readUInt16BE(at));
    return { place, pixels: await readBytes(browser, 4 * place[2]! * place[3]!, signal) };
  };
  request(0);
  const first = await update();
  expect(first.place).toEqual([0, 0, 640, 400]);
  expect([0, 639].map((x) => first.pixels.readUInt32LE(4 * x))).toEqual([0xffffff, 0]);
  request(1);
  const { place } = await update();
  // Many requests at once get one picture.
  for (let count = 0; count < 1000; count++) request(0);
  await update();
  await new Promise(setImmediate);
  expect(browser.readableLength).toBeLessThan(2 * 4 * 640 * 400);
  expect(place[2]! * place[3]!).toBeLessThan(100 * 100);
  stop.abort();
  machine.destroy();
});

it('the proxy reads no faster than the viewer, and writes to the machine in pieces that bmcweb takes', async () => {
  const [machine, server] = duplexPair();
  const [viewer, browser] = duplexPair();
  const handshake = timeoutSignal(5000);
  server.write(bytes(V38, 1, 1, u32(0), init(4, 4, 'x')));
  const started = startProxy({ machine, viewer, password: '', mayControl: true, handshake });
  await look(browser);
  await started;
  await readBytes(server, 12 + 1 + 1, handshake);
  // The browser reads nothing: the server soon cannot write any more.
  let written = 0;
  while (written < 64 && server.write(Buffer.alloc(64 * 1024))) {
    written++;
    await new Promise(setImmediate);
  }
  expect(written).toBeLessThan(20);
  const write = jest.spyOn(machine, 'write');
  browser.write(bytes(6, 0, 0, 0, u32(5000), Buffer.alloc(5000)));
  const sent = (): readonly number[] => write.mock.calls.map(([part]) => (part as Buffer).length);
  while (sent().reduce((sum, size) => sum + size, 0) < 5008) await new Promise(setImmediate);
  expect(Math.max(...sent())).toBeLessThanOrEqual(1024);
  machine.destroy();
});
