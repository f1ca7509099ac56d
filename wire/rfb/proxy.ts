/** Shows a machine's screen to a viewer: the handshakes of both sides, then bytes in both directions, each no faster than the other reads. */
import type { Duplex } from 'node:stream';
import { createViewerFilter } from './client-messages';
import { openScreen, welcomeViewer } from './handshake';

interface ProxySetup {
  readonly machine: Duplex;
  readonly viewer: Duplex;
  /** Empty: the machine wants none. */
  readonly password: string;
  /** Whether the viewer's input reaches the machine. */
  readonly mayControl: boolean;
  /** Called when input reached the machine. */
  readonly onInput?: (() => void) | undefined;
  /** Ends the handshake. */
  readonly handshake: AbortSignal;
}
/** The most bytes of a write to the machine. bmcweb closes a WebSocket whose message has more than 1 KiB. */
const PIECE = 1024;

/** @throws RfbError, or the reason of `handshake` */
export async function startProxy({ machine, viewer, password, mayControl, onInput, handshake }: ProxySetup): Promise<void> {
  const init = await openScreen(machine, password, handshake);
  await welcomeViewer(viewer, init, handshake);
  const filter = createViewerFilter(mayControl, onInput);
  viewer.on('data', (received: Buffer) => {
    let bytes: Buffer;
    try {
      bytes = filter(received);
    } catch (error) {
      machine.destroy(error as Error);
      return;
    }
    let isFull = false;
    for (let at = 0; at < bytes.length; at += PIECE) isFull = !machine.write(bytes.subarray(at, at + PIECE));
    if (!isFull) return;
    viewer.pause();
    machine.once('drain', () => viewer.resume());
  });
  viewer.resume();
  machine.on('data', (bytes: Buffer) => {
    if (viewer.write(bytes)) return;
    machine.pause();
    viewer.once('drain', () => machine.resume());
  });
  machine.resume();
}
