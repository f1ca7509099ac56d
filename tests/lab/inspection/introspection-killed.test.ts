/** Processes of the introspection service and of its conductors are killed in the middle: no report is lost, and no node waits for ever. */
import { setTimeout as delay } from 'node:timers/promises';
import { INTERFACE_KINDS } from '../../../model/records';
import { startOwnServer, type OwnServer } from '../../support/cluster';
import { freePort } from '../../support/free-port';
import { openProcesses, type Processes } from '../../support/processes';
import { timeoutSignal } from '../../../wire/timeout-signal';

let database: OwnServer;
let processes: Processes;
const PATIENCE_MS = 240_000;
const NODES = 8;
beforeEach(async () => {
  database = await startOwnServer();
  processes = openProcesses(() => database.connection);
}, PATIENCE_MS);
afterEach(async () => {
  await processes.close();
  await database.close();
}, PATIENCE_MS);

const settings = (host: string, port: number): string => `
[DEFAULT]
host = ${host}
my_ip = 127.0.0.1
listen_address = 127.0.0.1
listen_port = ${port}
enabled_hardware_types = fake-hardware
${INTERFACE_KINDS.map((kind) => `enabled_${kind}_interfaces = ${kind === 'network' ? 'noop' : 'fake'}`).join('\n')}
[api]
host_ip = 127.0.0.1
port = 0
[fake]
power_delay = 0.3,0.6
[conductor]
heartbeat_interval = 1
heartbeat_timeout = 5
`;

interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
async function call(method: string, url: string, body?: unknown): Promise<Reply> {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(PATIENCE_MS),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith('{') ? (JSON.parse(text) as Reply['body']) : {} };
}
/** Repeats a request as the real agent does: without an answer, at 409 and at 5xx. It asks each of the services in turn. */
async function persist(method: string, urls: readonly string[], body?: unknown): Promise<Reply> {
  const end = Date.now() + PATIENCE_MS;
  for (let tried = 0; ; tried++) {
    const reply = await call(method, urls[tried % urls.length]!, body).catch(() => undefined);
    if (reply && reply.status !== 409 && reply.status < 500) return reply;
    if (Date.now() > end) throw new Error(`${method} ${urls.join()}: ${JSON.stringify(reply)}`);
    await delay(100);
  }
}
const macOf = (index: number): string => `52:54:00:00:00:${(16 + index).toString(16)}`;
const reportOf = (index: number): object => ({
  inventory: {
    interfaces: [{ name: 'eth0', mac_address: macOf(index), ipv4_address: '192.0.2.5' }],
    cpu: { architecture: 'x86_64', count: index + 1 },
    memory: { physical_mb: 2048 },
  },
});

/** Host → its roles. `killed`: the hosts that are killed while machines boot, and those while machines report. */
it.each<[string, Readonly<Record<string, string>>, readonly (readonly string[])[]]>([
  ['in one process', { one: 'api,conductor,inspector' }, [['one'], ['one']]],
  [
    'in separate processes',
    { front: 'api', c1: 'conductor', c2: 'conductor', s1: 'inspector', s2: 'inspector' },
    [
      ['c1', 's1'],
      ['c2', 's2'],
    ],
  ],
])(
  'introspections finish, and no report is lost, after kill -9 with all roles %s',
  async (_, hosts, killed) => {
    const ports = new Map(await Promise.all(Object.keys(hosts).map(async (host) => [host, await freePort()] as const)));
    let api = '';
    const start = async (host: string): Promise<void> => {
      const said = await processes.start(host, hosts[host]!, settings(host, ports.get(host)!));
      if (typeof said !== 'string') throw new Error(`${host}: ${said.errors}`);
      if (said.startsWith('http')) api = said;
    };
    await Promise.all(Object.keys(hosts).map(start));
    const services = Object.keys(hosts).filter((host) => hosts[host]!.includes('inspector'));
    const at = (path: string, first = 0): readonly string[] =>
      services.map((__, index) => `http://127.0.0.1:${ports.get(services[(index + first) % services.length]!)!}${path}`);
    const nodes = Array.from({ length: NODES }, (__, index) => `n${index}`);
    const uuids = await Promise.all(
      nodes.map(async (name, index) => {
        const { body } = await call('POST', `${api}/v1/nodes`, { driver: 'fake-hardware', name });
        expect((await call('POST', `${api}/v1/ports`, { node_uuid: body['uuid'], address: macOf(index) })).status).toBe(201);
        return body['uuid'] as string;
      }),
    );
    const kill = async (which: readonly string[]): Promise<void> => {
      await Promise.all(which.map((host) => processes.end(host, 'SIGKILL')));
      await Promise.all(which.map(start));
    };
    const reach = (state: string): Promise<void[]> =>
      Promise.all(
        uuids.map(async (uuid) => {
          const end = Date.now() + PATIENCE_MS;
          for (;;) {
            const { body } = await persist('GET', at(`/v1/introspection/${uuid}`));
            if (body['state'] === state) return;
            if (Date.now() > end || body['error'])
              throw new Error(`the introspection did not reach the state ${state}: ${JSON.stringify(body)}`);
            await delay(200);
          }
        }),
      );

    const begun = Promise.all(uuids.map((uuid, index) => persist('POST', at(`/v1/introspection/${uuid}`, index))));
    await delay(150);
    await kill(killed[0]!);
    // If an introspection had begun before its service died, the repeated request is refused (400).
    for (const { status } of await begun) expect([202, 400]).toContain(status);
    await reach('waiting');

    const told = Promise.all(uuids.map((__, index) => persist('POST', at('/v1/continue', index), reportOf(index))));
    await delay(150);
    await kill(killed[1]!);
    // A report that was accepted before its answer was lost is not accepted twice (404).
    for (const { status } of await told) expect([200, 404]).toContain(status);
    await reach('finished');
    for (const [index, uuid] of uuids.entries()) {
      const { body } = await call('GET', `${api}/v1/nodes/${uuid}`);
      expect(body).toMatchObject({ reservation: null, power_state: 'power off', properties: { cpus: index + 1, memory_mb: 2048 } });
      expect((await persist('GET', at(`/v1/introspection/${uuid}/data`))).body).toMatchObject({ cpus: index + 1 });
    }
  },
  4 * PATIENCE_MS,
);
