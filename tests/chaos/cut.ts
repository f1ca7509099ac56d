/** A proxy for a database. Its connections can be cut as when a cable is pulled: none is closed, and nothing arrives. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface DatabaseProxy {
  /** The value of [database]connection that leads through the proxy. */
  readonly connection: string;
  cut(): void;
  restore(): void;
  close(): Promise<void>;
}
const SOCKET = '.s.PGSQL.5432';
const HOST = /host=([^&]+)/;

/** @param connection of a database on a Unix socket */
export async function startDatabaseProxy(connection: string): Promise<DatabaseProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-way-'));
  const target = join(decodeURIComponent(HOST.exec(connection)![1]!), SOCKET);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    const onward = connect(target);
    for (const [item, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(item);
      item.pipe(other);
      item.on('error', () => other.destroy());
      item.on('close', () => {
        sockets.delete(item);
        other.destroy();
      });
    }
    if (isCut) for (const item of [socket, onward]) item.pause();
  }).listen(join(folder, SOCKET));
  await once(server, 'listening');
  const all = (work: (socket: Socket) => void): void => sockets.forEach(work);
  return {
    connection: connection.replace(HOST, `host=${encodeURIComponent(folder)}`),
    cut: () => {
      isCut = true;
      all((socket) => socket.unpipe());
      all((socket) => socket.pause());
    },
    restore: () => {
      isCut = false;
      // Data that has not arrived yet is lost with its connection.
      all((socket) => socket.destroy());
    },
    close: async () => {
      all((socket) => socket.destroy());
      const closed = once(server, 'close');
      server.close();
      await closed;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
