/** Requests for another protocol on the connection (`Upgrade`, RFC 9110 §7.8). */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Takes the connection over, or returns false: then the server ignores the header, as without a listener.
 * @param head the first bytes of the new protocol
 */
export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;

/** The request line and the headers, without `Upgrade`. */
function withoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]!.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
/**
 * Node hands over each connection with an `Upgrade` header once there is a listener, also those of HTTP clients that offer `h2c` with a
 * normal request. Their request is parsed again without the header.
 */
export function answerUpgrades(server: Server, connectionEvent: 'connection' | 'secureConnection', listener: UpgradeListener): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (listener(request, socket, head)) return;
    socket.unshift(Buffer.concat([withoutUpgrade(request), head]));
    server.emit(connectionEvent, socket);
  });
}
