/** API, conductors and boot service as processes of their own on one database: the built program (npm test builds it). */
import { setTimeout as delay } from 'node:timers/promises';
import { INTERFACE_KINDS } from '../../../model/records';
import { useDatabase } from '../../support/database';
import { openProcesses, type Ended } from '../../support/processes';
import { NEVER_MS } from '../../support/until';
import { timeoutSignal } from '../../../wire/timeout-signal';

const database = useDatabase();
const settings = (host: string): string => `
[DEFAULT]
host = ${host}
my_ip = 127.0.0.1
enabled_hardware_types = fake-hardware
${INTERFACE_KINDS.map((kind) => `enabled_${kind}_interfaces = ${kind === 'network' ? 'noop' : 'fake'}`).join('\n')}
[api]
host_ip = 127.0.0.1
port = 0
[boot]
http_host = 127.0.0.1
http_port = 0
tftp = false
[conductor]
heartbeat_interval = 1
heartbeat_timeout = 5
graceful_shutdown_timeout = 5
`;

const processes = openProcesses(() => database.connection());
const start = (host: string, roles: string): Promise<string | Ended> => processes.start(host, roles, settings(host));
const end: typeof processes.end = (host, signal) => processes.end(host, signal);
afterAll(() => processes.close(), 60_000);

type Body = Readonly<Record<string, unknown>>;
let url = '';
async function call(method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: Body }> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Body) };
}
async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + NEVER_MS; ;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
    await delay(50);
  }
}
const reach = (uuid: string, state: string): Promise<Body> =>
  until(`${uuid} ${state}`, async () => {
    const { body } = await call('GET', `/v1/nodes/${uuid}`);
    return body['provision_state'] === state && body['reservation'] === null ? body : undefined;
  });
const order = (uuid: string, target: string) => call('PUT', `/v1/nodes/${uuid}/states/provision`, { target });
const keepers = async (): Promise<ReadonlyMap<string, string>> => {
  const { nodes } = (await call('GET', '/v1/nodes/detail')).body as { nodes: readonly { uuid: string; conductor: string }[] };
  return new Map(nodes.map(({ uuid, conductor }) => [uuid, conductor]));
};
const alive = async (): Promise<Body> => {
  const { conductors } = (await call('GET', '/v1/conductors')).body as { conductors: readonly { hostname: string; alive: boolean }[] };
  return Object.fromEntries(conductors.map(({ hostname, alive: lives }) => [hostname, lives]));
};

it('processes work together, take over the nodes of a dead conductor, and give them back when it returns', async () => {
  const [api] = await Promise.all([start('front', 'api'), start('c1', 'conductor'), start('c2', 'conductor'), start('boot', 'boot')]);
  expect(api).toMatch(/^http:/);
  url = api as string;
  expect(await alive()).toEqual({ c1: true, c2: true });
  const { drivers } = (await call('GET', '/v1/drivers')).body as { drivers: readonly { name: string; hosts: readonly string[] }[] };
  expect(drivers.map(({ name, hosts }) => [name, hosts.toSorted()])).toEqual([['fake-hardware', ['c1', 'c2']]]);

  const uuids = await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      const made = await call('POST', '/v1/nodes', { driver: 'fake-hardware', name: `n${index}` });
      expect(made.status).toBe(201);
      return made.body['uuid'] as string;
    }),
  );
  const before = await keepers();
  expect([...new Set(before.values())].sort()).toEqual(['c1', 'c2']);
  for (const uuid of uuids) expect((await order(uuid, 'manage')).status).toBe(202);
  for (const uuid of uuids) await reach(uuid, 'manageable');
  // A remote conductor refuses the verb as a local one does.
  expect(await order(uuids[0]!, 'rebuild')).toMatchObject({
    status: 400,
    body: { error_message: expect.stringContaining('The requested action') as string },
  });
  expect((await call('PUT', `/v1/nodes/${uuids[0]!}/states/power`, { target: 'sideways' })).status).toBe(400);
  for (const uuid of uuids) {
    const { history } = (await call('GET', `/v1/nodes/${uuid}/history`)).body as { history: readonly { conductor: string }[] };
    for (const { conductor } of history) expect(conductor).toBe(before.get(uuid));
  }

  const lost = uuids.find((uuid) => before.get(uuid) === 'c1')!;
  await end('c1', 'SIGKILL');
  // The request waits until another conductor has the node.
  expect((await order(lost, 'provide')).status).toBe(202);
  expect(await reach(lost, 'available')).toMatchObject({ conductor: 'c2' });
  expect(await alive()).toEqual({ c1: false, c2: true });

  // After a kill, the host name can be used at once: the port of the dead conductor refuses connections.
  expect(await start('c1', 'conductor')).toBe('c1');
  expect(await keepers()).toEqual(before);
  const twin = (await start('c1', 'conductor')) as Ended;
  expect(twin.code).not.toBe(0);
  expect(twin.errors).toMatch(/a conductor named c1 runs already and answers at http:\S+: give this one another \[DEFAULT\]host/);

  await end('c1', 'SIGTERM');
  expect(new Set((await keepers()).values())).toEqual(new Set(['c2']));
  expect((await order(lost, 'manage')).status).toBe(202);
  await reach(lost, 'manageable');
  await end('c2', 'SIGTERM');
  expect(await order(lost, 'provide')).toMatchObject({
    status: 404,
    body: { error_message: expect.stringContaining('No conductor service registered which supports driver fake-hardware') as string },
  });
});
