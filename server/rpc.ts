/** Calls between the processes that share a database. */
import { randomBytes } from 'node:crypto';
import { createRpcClient, type RpcClient } from '../conductor/rpc/client';
import { startRpcServer, type RpcServer } from '../conductor/rpc/server';
import { addressOf } from '../config/host-values';
import { tlsOf } from '../config/tls';
import type { StoreContext } from './context';
import { callsConductors } from './roles';

export interface Rpc {
  readonly client: RpcClient;
  /** Only with the role conductor. */
  readonly server?: RpcServer;
}
/** Undefined if this process neither calls conductors nor is one, or if no other process shares the database. */
export async function startRpc({
  roles,
  given,
  options,
  store,
  clock,
  metrics,
  stops,
  ...context
}: StoreContext): Promise<Rpc | undefined> {
  if (!context.sharesDatabase || !(roles.includes('conductor') || callsConductors(roles))) return undefined;
  const secret = await store.secrets.shared('json-rpc', () => randomBytes(32).toString('base64'));
  const common = { options, secret, clock, metrics, log: context.log.child({ component: 'conductor' }) };
  const client = createRpcClient({ ...common, random: randomBytes });
  stops.push(async () => client.close());
  context.reloads.push(() => client.reload());
  if (!roles.includes('conductor')) return { client };
  // The configured address, else the one by which this host reaches the database.
  const configured = given['DEFAULT.my_ip'] ?? addressOf(given['boot.interface']);
  const announced = configured ?? (await store.localAddress()) ?? options['DEFAULT.my_ip'];
  const server = await startRpcServer({ ...common, announced, tls: tlsOf(given, 'json_rpc') });
  context.reloads.push(() => server.reload());
  stops.push(() => server.stop());
  return { client, server };
}
