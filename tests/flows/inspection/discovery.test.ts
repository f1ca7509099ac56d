/** Unknown machines report themselves to the whole server: each is enrolled once, and then does not boot discovery any more. */
import type { LoadedOptions } from '../../../config/options';
import { useDatabase } from '../../support/database';
import { startWholeServer, type Answer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let all: WholeServer | undefined;
afterEach(async () => {
  await all?.close();
  all = undefined;
  await database.clear();
});
const start = async (options: Partial<LoadedOptions> = {}): Promise<WholeServer> =>
  (all = await startWholeServer(database.connection(), {
    machines: 0,
    options: {
      'auto_discovery.enabled': true,
      'auto_discovery.driver': 'redfish',
      'inspector.add_ports': 'all',
      'DEFAULT.default_resource_class': 'baremetal',
      ...options,
    },
  }));

const macOf = (index: number, nic = 0): string => `52:54:0${nic}:00:${index.toString(16).padStart(4, '0').replace(/..$/, ':$&')}`;
const report = (index: number, more: object = {}, nics = [0, 1]) => ({
  inventory: {
    interfaces: nics.map((nic) => ({
      name: `eth${nic}`,
      mac_address: macOf(index, nic),
      ipv4_address: `192.0.2.${index}`,
      has_carrier: true,
    })),
    cpu: { architecture: 'x86_64', count: 2 },
    memory: { physical_mb: 1024 },
    disks: [],
    bmc_address: '0.0.0.0',
    boot: { current_boot_mode: 'bios', pxe_interface: macOf(index) },
    ...more,
  },
});
const post = (server: WholeServer, body: unknown): Promise<Answer> => server.call('POST', '/v1/continue_inspection', body);
const nodesOf = async (server: WholeServer): Promise<readonly Record<string, unknown>[]> =>
  (await server.call('GET', '/v1/nodes/detail')).body['nodes'] as readonly Record<string, unknown>[];
const script = async (server: WholeServer, mac: string): Promise<number> =>
  (await fetch(`${server.server.bootUrl!}/ipxe/${mac.replaceAll(':', '-')}`)).status;
const idle = (server: WholeServer): Promise<void> => server.server.conductor!.idle();

it('enrols an unknown machine once, in enroll and with its report', async () => {
  const server = await start({ 'auto_discovery.inspection_scope': 'rack-1' });
  expect(await script(server, macOf(1))).toBe(200);
  const { status, body } = await post(server, report(1));
  expect(status).toBe(202);
  expect(body).toMatchObject({
    node: { uuid: expect.any(String) as string },
    config: { agent_token: expect.stringMatching(/^[\w-]{43}$/) as string },
  });
  await idle(server);
  expect(await nodesOf(server)).toMatchObject([
    {
      uuid: (body['node'] as { uuid: string }).uuid,
      name: null,
      driver: 'redfish',
      inspect_interface: 'agent',
      provision_state: 'enroll',
      target_provision_state: null,
      resource_class: 'baremetal',
      driver_info: {},
      last_error: null,
      reservation: null,
      properties: { cpu_arch: 'x86_64', inspection_scope: 'rack-1' },
    },
  ]);
  const uuid = (body['node'] as { uuid: string }).uuid;
  expect((await server.call('GET', `/v1/nodes/${uuid}/inventory`)).body).toMatchObject({
    inventory: report(1).inventory,
    plugin_data: { auto_discovered: true },
  });
  // No machine boots discovery twice, whichever interface it boots from.
  expect(await Promise.all([macOf(1), macOf(1, 1), macOf(2)].map((mac) => script(server, mac)))).toEqual([404, 404, 200]);
  expect((await post(server, report(1))).status).toBe(404);
  // A deleted node leaves nothing behind.
  expect((await server.call('DELETE', `/v1/nodes/${uuid}`)).status).toBe(204);
  expect(await script(server, macOf(1, 1))).toBe(200);
  expect((await post(server, report(1))).status).toBe(202);
});

it('enrols 199 machines once each that report twice at the same time, and does not enrol a known one', async () => {
  const server = await start();
  const { body: known } = await server.call('POST', '/v1/nodes', { driver: 'redfish' });
  await server.call('POST', '/v1/ports', { node_uuid: known['uuid'], address: macOf(0) });
  expect(await script(server, macOf(0))).toBe(404);
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) => [0, 1].map(async () => ({ index, answer: await post(server, report(index)) }))).flat(),
  );
  const taken = answers.filter(({ answer }) => answer.status === 202);
  // An agent repeats its report while another report is processed, or while all workers are busy.
  for (let round = 0; round < 50; round++) {
    const missing = Array.from({ length: 200 }, (_, index) => index).filter(
      (index) => index > 0 && !taken.some((candidate) => candidate.index === index),
    );
    if (missing.length === 0) break;
    taken.push(
      ...(await Promise.all(missing.map(async (index) => ({ index, answer: await post(server, report(index)) })))).filter(
        ({ answer }) => answer.status === 202,
      ),
    );
  }
  expect(answers.filter(({ answer }) => ![202, 404, 409, 503].includes(answer.status))).toEqual([]);
  await idle(server);
  expect(taken.map(({ index }) => index).sort((a, b) => a - b)).toEqual(Array.from({ length: 199 }, (_, index) => index + 1));
  const nodes = await nodesOf(server);
  expect(nodes.length).toBe(200);
  expect(nodes.filter(({ uuid, last_error: error }) => error !== null && uuid !== known['uuid'])).toEqual([]);
  const { ports } = (await server.call('GET', '/v1/ports?fields=address,node_uuid')).body as { ports: readonly { address: string }[] };
  expect(ports.map(({ address }) => address).sort()).toEqual(
    [macOf(0), ...Array.from({ length: 199 }, (_, index) => [macOf(index + 1), macOf(index + 1, 1)]).flat()].sort(),
  );
});

it('enrols at most max_nodes_per_hour machines within an hour', async () => {
  const server = await start({ 'auto_discovery.max_nodes_per_hour': 2 });
  const statuses: number[] = [];
  for (const index of [1, 2, 3, 4]) statuses.push((await post(server, report(index))).status);
  expect(statuses).toEqual([202, 202, 503, 503]);
  await idle(server);
  expect(await nodesOf(server)).toHaveLength(2);
  await database.query("UPDATE nodes SET created_at = created_at - interval '1 hour'");
  expect((await post(server, report(3))).status).toBe(202);
  await idle(server);
});

it.each<[string, Partial<LoadedOptions>, object, number]>([
  ['discovery is off', { 'auto_discovery.enabled': false }, report(1), 404],
  ['one of its MAC addresses is denied', { 'pxe_filter.deny_macs': [macOf(1, 1)] }, report(1), 404],
  ['none of its MAC addresses is allowed', { 'pxe_filter.allow_macs': ['00:11:22'] }, report(1), 404],
  ['one of its MAC addresses is allowed', { 'pxe_filter.allow_macs': [macOf(1, 1)] }, report(1), 202],
  ['the driver does not exist', { 'auto_discovery.driver': 'nosuch' }, report(1), 503],
  ['it names a node that does not exist', {}, report(1), 404],
])('accepts or refuses a report if %s', async (what, options, body, status) => {
  const server = await start(options);
  const path = what.includes('names') ? '?node_uuid=aaaaaaaa-0000-4000-8000-00000000aaaa' : '';
  expect((await server.call('POST', `/v1/continue_inspection${path}`, body)).status).toBe(status);
  await idle(server);
  expect((await nodesOf(server)).length).toBe(status === 202 ? 1 : 0);
});

it('a report that the hooks refuse leaves the node with the reason, and a later report succeeds', async () => {
  const server = await start({ 'inspector.hooks': ['ramdisk-error', 'validate-interfaces', 'ports'] });
  expect((await post(server, { ...report(1), error: 'broken' })).status).toBe(202);
  await idle(server);
  const [node] = await nodesOf(server);
  expect(node).toMatchObject({
    provision_state: 'enroll',
    reservation: null,
    last_error: expect.stringMatching(/^Failed to finish inspection: .*broken/s) as string,
  });
  expect((await post(server, report(1))).status).toBe(202);
  await idle(server);
  expect(await nodesOf(server)).toMatchObject([{ uuid: node!['uuid'], last_error: null }]);
  expect((await server.call('GET', `/v1/nodes/${String(node!['uuid'])}/inventory`)).status).toBe(200);
});
