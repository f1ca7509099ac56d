import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** A TCP port of loopback on which nothing listened a moment ago, for servers that need a fixed port. */
export async function freePort(): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  await new Promise((closed) => holder.close(closed));
  return port;
}
