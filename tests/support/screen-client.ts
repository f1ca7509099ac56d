/** A viewer of screens: undici's WebSocket, which shares no code with the server's, and the handshake of RFB. */
import { WebSocket } from 'undici';
import { until } from './until';

export interface ScreenClient {
  readonly socket: WebSocket;
  bytes: Buffer;
  text: string;
  end?: { readonly code: number; readonly reason: string };
}
/** What the page offers. */
export const BOTH = ['bloomery.screen', 'bloomery.screen.view'];

export function openScreenClient(
  url: string,
  headers: Readonly<Record<string, string>>,
  protocols: readonly string[] = BOTH,
): ScreenClient {
  const socket = new WebSocket(url, { protocols: [...protocols], headers });
  socket.binaryType = 'arraybuffer';
  const made: ScreenClient = { socket, bytes: Buffer.alloc(0), text: '' };
  socket.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') made.text += data;
    else made.bytes = Buffer.concat([made.bytes, Buffer.from(data as ArrayBuffer)]);
  });
  socket.addEventListener('error', () => {});
  socket.addEventListener('close', ({ code, reason }) => (made.end = { code, reason }));
  return made;
}
/** Plays the handshake, until the size of the screen is known. @returns width and height */
export async function shakeHands(made: ScreenClient): Promise<readonly [number, number]> {
  await until('the version', () => made.bytes.length >= 12);
  made.socket.send(Buffer.from('RFB 003.008\n'));
  await until('the security types', () => made.bytes.length >= 14);
  made.socket.send(Buffer.of(1));
  await until('the result', () => made.bytes.length >= 18);
  made.socket.send(Buffer.of(1));
  await until('the screen', () => made.bytes.length >= 18 + 24 + 12);
  return [made.bytes.readUInt16BE(18), made.bytes.readUInt16BE(20)];
}
export async function endOfScreen(of: ScreenClient): Promise<NonNullable<ScreenClient['end']>> {
  await until('the end', () => of.end !== undefined);
  return of.end!;
}
