/** A viewer here, and the screen in the process of the node's conductor: two WebSockets, of which each gets what the other one says. */
import type { WebSocket } from 'ws';
import type { Clock } from '../../model/clock';
import { close, CLOSE, watchProcess } from './web-sockets';

/** Bytes that wait for one side. Above it nothing is read from the other one. */
const MAX_UNSENT = 256 * 1024;
const FAREWELL_MS = 5000;
const LOST = 'The connection to the conductor of the node was lost.';
/** The codes that this program uses. Others, such as those for a lost connection, cannot be sent. */
const KNOWN: readonly number[] = Object.values(CLOSE);

function pass(from: WebSocket, to: WebSocket): void {
  from.on('message', (data, binary) => {
    to.send(data as Buffer, { binary }, () => {
      if (to.bufferedAmount < MAX_UNSENT) from.resume();
    });
    if (to.bufferedAmount >= MAX_UNSENT) from.pause();
  });
}
/** Why the conductor gives no place: the reason with which it closes the WebSocket. */
export function lastWords(remote: WebSocket): Promise<string> {
  return new Promise((done) => {
    const late = setTimeout(() => remote.terminate(), FAREWELL_MS);
    remote.once('close', (_, reason) => {
      clearTimeout(late);
      done(reason.toString() || LOST);
    });
    remote.resume();
  });
}
/** @returns why it ended */
export function relay(client: WebSocket, remote: WebSocket, clock: Clock, gone: AbortSignal): Promise<string> {
  return new Promise((done) => {
    remote.once('close', (code, reason) => {
      const words = reason.toString() || LOST;
      close(client, KNOWN.includes(code) ? code : CLOSE.failed, words);
      done(words);
    });
    const leave = (): void => {
      done((gone.reason as Error).message);
      close(remote, CLOSE.ended, '');
    };
    gone.addEventListener('abort', leave, { once: true });
    if (gone.aborted) leave();
    watchProcess(remote, clock, gone);
    pass(client, remote);
    pass(remote, client);
    remote.resume();
  });
}
