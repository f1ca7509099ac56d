/** The server of a model: TCP on loopback. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface LocalServer {
  readonly port: number;
  /** Ends all connections. */
  close(): Promise<void>;
}
export async function startLocalServer(serve: (socket: Socket) => void): Promise<LocalServer> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
