/**
 * The handshake of RFB 3.8 (RFC 6143 §7.1 to §7.3) on both sides of a proxy: as the client of a machine's server, which may want a password,
 * and as the server of a viewer, who gets no password and needs none.
 */
import type { Duplex } from 'node:stream';
import { CHALLENGE_BYTES, vncResponse } from './authentication';
import { readBytes, RfbError } from './stream';

const VERSION_BYTES = 12;
const VERSION_3_8 = 'RFB 003.008\n';
/** §7.2. Other types need TLS or the names of users. */
const NONE = 1;
const VNC = 2;
/** The most bytes of a server's reason and of its desktop's name. Servers send a line. */
const MAX_REASON = 1024;
const MAX_NAME = 4096;
/** Pixels of a side. Real screens have at most 7,680. */
const MAX_SIDE = 16_384;
/** ServerInit up to the name (§7.3.2): width, height, pixel format, length of the name. */
const INIT_BYTES = 24;

/** 3, 7 or 8: the minor version that both sides speak. Some servers send a later one, such as 889 (Apple) or 4.1 (RealVNC), and speak 3.8. */
function minorOf(version: Buffer): 3 | 7 | 8 {
  const [, major, minor] = /^RFB (\d{3})\.(\d{3})\n$/.exec(version.toString('latin1')) ?? [];
  if (major === undefined || minor === undefined) throw new RfbError('What answers there is no VNC server.');
  const number = Number(major) * 1000 + Number(minor);
  if (number < 3003) throw new RfbError('The VNC server speaks a version of RFB before 3.3.');
  return number >= 3008 ? 8 : number === 3007 ? 7 : 3;
}

/** The text that follows a refusal (§7.1.2, §7.1.3). It is dropped: a machine's words are not for the viewer's page. */
async function skipReason(machine: Duplex, signal: AbortSignal): Promise<void> {
  const length = (await readBytes(machine, 4, signal)).readUInt32BE(0);
  if (length <= MAX_REASON) await readBytes(machine, length, signal);
}
/** The types that the server offers (§7.1.2). In version 3.3 the server decides. */
async function offeredTypes(machine: Duplex, minor: 3 | 7 | 8, signal: AbortSignal): Promise<readonly number[]> {
  const types =
    minor === 3
      ? [(await readBytes(machine, 4, signal)).readUInt32BE(0)].filter((type) => type !== 0)
      : [...(await readBytes(machine, (await readBytes(machine, 1, signal))[0]!, signal))];
  if (types.length > 0) return types;
  await skipReason(machine, signal).catch(() => {});
  throw new RfbError('The VNC server refuses connections.');
}

async function authenticate(machine: Duplex, minor: 3 | 7 | 8, password: string, signal: AbortSignal): Promise<void> {
  const offered = await offeredTypes(machine, minor, signal);
  const type = [...(password === '' ? [] : [VNC]), NONE].find((candidate) => offered.includes(candidate));
  if (type === undefined)
    throw new RfbError(
      offered.includes(VNC)
        ? 'The VNC server wants a password, and the node has none.'
        : 'The VNC server offers neither VNC authentication nor access without a password.',
    );
  if (minor !== 3) machine.write(Buffer.of(type));
  if (type === VNC) machine.write(vncResponse(password, await readBytes(machine, CHALLENGE_BYTES, signal)));
  // Before 3.8 there is no result after `None`.
  if (type === NONE && minor !== 8) return;
  const result = (await readBytes(machine, 4, signal)).readUInt32BE(0);
  if (result === 0) return;
  if (minor === 8) await skipReason(machine, signal).catch(() => {});
  throw new RfbError(type === VNC ? "The VNC server refuses the node's password." : 'The VNC server refuses the connection.');
}

/**
 * Connects to the machine's screen, which others may share.
 * @returns its ServerInit
 * @throws RfbError, the signal's reason
 */
export async function openScreen(machine: Duplex, password: string, signal: AbortSignal): Promise<Buffer> {
  const minor = minorOf(await readBytes(machine, VERSION_BYTES, signal));
  machine.write(`RFB 003.00${minor}\n`);
  await authenticate(machine, minor, password, signal);
  machine.write(Buffer.of(1));
  const init = await readBytes(machine, INIT_BYTES, signal);
  const [width, height, length] = [init.readUInt16BE(0), init.readUInt16BE(2), init.readUInt32BE(20)];
  if (width > MAX_SIDE || height > MAX_SIDE) throw new RfbError(`The screen has more than ${MAX_SIDE} pixels on a side.`);
  if (length > MAX_NAME) throw new RfbError(`The name of the screen has more than ${MAX_NAME} bytes.`);
  return Buffer.concat([init, await readBytes(machine, length, signal)]);
}

/**
 * Welcomes a viewer (RFB 3.8, no password), and sends the machine's ServerInit.
 * @throws RfbError, the signal's reason
 */
export async function welcomeViewer(viewer: Duplex, init: Buffer, signal: AbortSignal): Promise<void> {
  viewer.write(VERSION_3_8);
  const version = await readBytes(viewer, VERSION_BYTES, signal);
  if (version.toString('latin1') !== VERSION_3_8) throw new RfbError('The viewer does not speak RFB 3.8.');
  viewer.write(Buffer.of(1, NONE));
  const [type] = await readBytes(viewer, 1, signal);
  if (type !== NONE) throw new RfbError('The viewer wants a security type that was not offered.');
  viewer.write(Buffer.alloc(4));
  // ClientInit: the screen is shared, whatever the viewer wishes. Otherwise the machine would disconnect other viewers.
  await readBytes(viewer, 1, signal);
  viewer.write(init);
}
