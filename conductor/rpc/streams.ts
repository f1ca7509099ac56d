/**
 * WebSockets between the processes of one database: what a call cannot carry, such as the screen of a machine. They share the port, the
 * certificate and the signatures of calls. The signature of the request covers its path, and the conductor signs its answer.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../model/clock';
import type { UpgradeListener } from '../../wire/http/upgrades';
import { authorized, digestOf, MAX_SKEW_MS, signAnswer } from './codec';

/** @param answer header lines for the response that accepts the WebSocket */
export type StreamListener = (request: IncomingMessage, socket: Duplex, head: Buffer, answer: readonly string[]) => void;
interface Admission {
  readonly name: string;
  readonly secret: string;
  readonly clock: Clock;
  readonly isNew: (nonce: string, now: number) => boolean;
  /** Undefined: the conductor accepts no streams, because it starts or stops. */
  readonly listener: () => StreamListener | undefined;
  readonly onRefused: () => void;
}
/** Checks the signature, the clock and the nonce as for calls. */
export function admitStreams({ name, secret, clock, isNew, listener, onRefused }: Admission): UpgradeListener {
  return (request, socket, head) => {
    const { url = '', headers } = request;
    // A call, whose HTTP client offers another protocol.
    if (request.method !== 'GET') return false;
    socket.on('error', () => {});
    const signed = authorized(secret, name, headers.authorization);
    const isOurs =
      signed !== undefined &&
      signed.digest === digestOf(url) &&
      Math.abs(signed.time - clock.now()) <= MAX_SKEW_MS &&
      isNew(signed.nonce, clock.now());
    const accept = isOurs ? listener() : undefined;
    if (isOurs && accept) accept(request, socket, head, [`X-Bloomery-Signature: ${signAnswer(secret, signed.nonce, url)}`]);
    else {
      if (!isOurs) onRefused();
      const status = isOurs ? '503 Service Unavailable' : '401 Unauthorized';
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
    }
    return true;
  };
}
