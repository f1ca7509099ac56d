/** How many pictures a second a screen shows: a viewer that requests the next picture as soon as it has one, and a machine with 60 a second. */
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { welcomeViewer } from '../../../wire/rfb/handshake';
import { readBytes } from '../../../wire/rfb/stream';

const UPDATE = 0;
const ZLIB = 6;
const RAW = 0;
const requestOf = (isIncremental: boolean, width: number, height: number): Buffer => {
  const bytes = Buffer.from([3, isIncremental ? 1 : 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  bytes.writeUInt16BE(width, 6);
  bytes.writeUInt16BE(height, 8);
  return bytes;
};

/** Reads one update (RFC 6143 §7.6.1) and throws it away. */
async function readUpdate(screen: Duplex, signal: AbortSignal): Promise<void> {
  const head = await readBytes(screen, 4, signal);
  if (head[0] !== UPDATE) throw new Error(`message ${head[0]}`);
  for (let left = head.readUInt16BE(2); left > 0; left--) {
    const rectangle = await readBytes(screen, 12, signal);
    const encoding = rectangle.readInt32BE(8);
    if (encoding === ZLIB) await readBytes(screen, (await readBytes(screen, 4, signal)).readUInt32BE(0), signal);
    else if (encoding === RAW) await readBytes(screen, rectangle.readUInt16BE(4) * rectangle.readUInt16BE(6) * 4, signal);
    else throw new Error(`encoding ${encoding}`);
  }
}
/** @param screen after the handshake @param init its ServerInit @returns pictures a second */
export async function picturesOf(screen: Duplex, init: Buffer, seconds: number, signal: AbortSignal): Promise<number> {
  const [width, height] = [init.readUInt16BE(0), init.readUInt16BE(2)];
  screen.write(Buffer.from([2, 0, 0, 1, 0, 0, 0, ZLIB]));
  screen.write(requestOf(false, width, height));
  await readUpdate(screen, signal);
  let count = 0;
  const began = performance.now();
  for (; performance.now() - began < seconds * 1000; count++) {
    screen.write(requestOf(true, width, height));
    await readUpdate(screen, signal);
  }
  return count / ((performance.now() - began) / 1000);
}

/** A VNC server without a password that has a new picture of this size 60 times a second, and sends one for each request. */
export async function startFastMachine(
  pictureBytes: number,
  signal: AbortSignal,
): Promise<{ readonly port: number; readonly server: Server }> {
  const name = Buffer.from('fast');
  const init = Buffer.concat([Buffer.alloc(24), name]);
  init.writeUInt16BE(640, 0);
  init.writeUInt16BE(400, 2);
  init.writeUInt32BE(name.length, 20);
  const update = Buffer.alloc(4 + 12 + 4 + pictureBytes);
  update.writeUInt16BE(1, 2);
  update.writeUInt16BE(640, 8);
  update.writeUInt16BE(400, 10);
  update.writeInt32BE(ZLIB, 12);
  update.writeUInt32BE(pictureBytes, 16);
  const server = createServer((socket) => {
    socket.on('error', () => {}).setNoDelay(true);
    let wanted = false;
    let next = performance.now();
    const clock = setInterval(() => {
      const now = performance.now();
      if (now < next) return;
      next += 1000 / 60;
      if (next < now) next = now;
      if (!wanted) return;
      wanted = false;
      socket.write(update);
    }, 1);
    socket.once('close', () => clearInterval(clock));
    void welcomeViewer(socket, init, signal).then(() => {
      // All that a viewer sends here is a request, or comes before one.
      socket.on('data', () => (wanted = true));
      socket.resume();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return { port: (server.address() as AddressInfo).port, server };
}
