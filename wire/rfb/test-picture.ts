/** An RFB server in this process that shows a test picture: coloured bars, and a square that moves. It ignores input. */
import { duplexPair, type Duplex } from 'node:stream';
import { messageLength } from './client-messages';
import { welcomeViewer } from './handshake';

const WIDTH = 640;
const HEIGHT = 400;
const SQUARE = 48;
/** Pixels that the square moves from one picture to the next. */
const STEP = 8;
const GREY = 0x808080;
const NAME = 'test picture';
/** Milliseconds between two pictures. */
const PAUSE_MS = 100;
/** White, yellow, cyan, green, magenta, red, blue, black. */
const BARS = [0xffffff, 0xffff00, 0x00ffff, 0x00ff00, 0xff00ff, 0xff0000, 0x0000ff, 0x000000] as const;
const UPDATE = 0;
const SET_PIXEL_FORMAT = 0;
const UPDATE_REQUEST = 3;

/** 32 bits, 24 of them for the colours: shifts of red, green and blue. The order of bytes is that of Intel. */
type Shifts = readonly [number, number, number];
function serverInit(): Buffer {
  const init = Buffer.alloc(24 + NAME.length);
  init.writeUInt16BE(WIDTH, 0);
  init.writeUInt16BE(HEIGHT, 2);
  // Bits per pixel, depth, big endian, true colour, three maxima, three shifts.
  Buffer.of(32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0).copy(init, 4);
  init.writeUInt32BE(NAME.length, 20);
  init.write(NAME, 24, 'latin1');
  return init;
}
const colourAt = (x: number): number => BARS[Math.floor((x * BARS.length) / WIDTH)]!;

/** A FramebufferUpdate with one raw rectangle (RFC 6143 §7.6.1, §7.7.1). */
function update(
  [x, y, width, height]: readonly [number, number, number, number],
  [red, green, blue]: Shifts,
  colour: (x: number, y: number) => number,
): Buffer {
  const out = Buffer.alloc(16 + 4 * width * height);
  out[0] = UPDATE;
  out.writeUInt16BE(1, 2);
  for (const [index, value] of [x, y, width, height].entries()) out.writeUInt16BE(value, 4 + 2 * index);
  for (let row = 0, at = 16; row < height; row++)
    for (let column = 0; column < width; column++, at += 4) {
      const value = colour(x + column, y + row);
      out.writeUInt32LE((((value >> 16) << red) | (((value >> 8) & 255) << green) | ((value & 255) << blue)) >>> 0, at);
    }
  return out;
}

/** Answers the viewer's messages: requests that come before the last picture was read, or too soon after it, get one picture together. */
function show(viewer: Duplex): void {
  let shifts: Shifts = [16, 8, 0];
  let turn = 0;
  let timer: NodeJS.Timeout | undefined;
  let wanted: 'whole' | 'part' | undefined;
  let isBusy = false;
  const placeOf = (number: number): number => (number * STEP) % (WIDTH - SQUARE);
  const top = (HEIGHT - SQUARE) / 2;
  const picture = (isWhole: boolean): Buffer => {
    const before = placeOf(turn++);
    const left = placeOf(turn);
    const isInside = (x: number, y: number): boolean => x >= left && x < left + SQUARE && y >= top && y < top + SQUARE;
    const colour = (x: number, y: number): number => (isInside(x, y) ? GREY : colourAt(x));
    const [first, last] = left > before ? [before, left + SQUARE] : [0, WIDTH];
    return isWhole ? update([0, 0, WIDTH, HEIGHT], shifts, colour) : update([first, top, last - first, SQUARE], shifts, colour);
  };
  const rest = (): void => {
    timer = setTimeout(() => {
      isBusy = false;
      send();
    }, PAUSE_MS);
  };
  const send = (): void => {
    if (wanted === undefined || isBusy) return;
    isBusy = true;
    const isWhole = wanted === 'whole';
    wanted = undefined;
    if (viewer.write(picture(isWhole))) rest();
    else viewer.once('drain', rest);
  };
  const answer = (message: Buffer): void => {
    if (message[0] === SET_PIXEL_FORMAT) shifts = [message[14]! & 31, message[15]! & 31, message[16]! & 31];
    if (message[0] !== UPDATE_REQUEST) return;
    if (message[1] === 0) wanted = 'whole';
    else wanted ??= 'part';
    send();
  };
  let bytes: Buffer = Buffer.alloc(0);
  viewer.on('data', (part: Buffer) => {
    bytes = Buffer.concat([bytes, part]);
    for (let length = messageLength(bytes); length !== undefined && length <= bytes.length; length = messageLength(bytes)) {
      answer(bytes.subarray(0, length));
      bytes = bytes.subarray(length);
    }
  });
  viewer.once('close', () => clearTimeout(timer));
  viewer.resume();
}

/** @returns a stream that speaks RFB as a machine's server does, until it is destroyed or the signal aborts */
export function openTestPicture(signal: AbortSignal): Duplex {
  const [inside, outside] = duplexPair();
  for (const stream of [inside, outside]) stream.on('error', () => {});
  outside.once('close', () => inside.destroy());
  inside.once('close', () => outside.destroy());
  welcomeViewer(inside, serverInit(), signal).then(
    () => show(inside),
    () => inside.destroy(),
  );
  return outside;
}
