/** What the whole server reports about itself: the figures of a deployment at /metrics, and the log lines of its requests. */
import type { Log } from '../../../model/log';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

interface Line {
  readonly message: string;
  readonly [field: string]: unknown;
}
const lines: Line[] = [];
const logWith = (outer: object): Log => {
  const keep = (message: string, fields: object = {}): void => void lines.push({ ...outer, ...fields, message });
  return { debug: keep, info: keep, warn: keep, error: keep, child: (fields) => logWith({ ...outer, ...fields }) };
};
const database = useDatabase();
let whole: WholeServer;
let uuid: string;

beforeAll(async () => {
  whole = await startWholeServer(database.connection(), { machines: 1, log: logWith({}), options: { 'api.log_requests': 'all' } });
  uuid = await whole.enrol(whole.fleet.machines[0]!, { automated_clean: false });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: whole.deployable() }]);
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  await whole.server.conductor!.idle();
  await whole.call('GET', '/v1/nosuch');
});
afterAll(() => whole.close(), 30_000);

const scrape = async (): Promise<string> => (await fetch(`${whole.server.apiUrl!}/metrics`)).text();
/** The value of a series; undefined: there is none. */
const value = (text: string, series: string): number | undefined => {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
};

it('exposes the metrics of a deployment', async () => {
  const text = await scrape();
  expect(value(text, 'bloomery_nodes{provision_state="active",power_state="power on",maintenance="false",fault="none"}')).toBe(1);
  for (const [flow, count] of Object.entries({ verify: 1, clean: 1, deploy: 1 })) {
    expect(value(text, `bloomery_flows_total{flow="${flow}",outcome="done"}`)).toBe(count);
    expect(value(text, `bloomery_flow_duration_seconds_count{flow="${flow}",outcome="done"}`)).toBe(count);
  }
  const step = (name: string, outcome: string): number | undefined =>
    value(text, `bloomery_step_duration_seconds_count{kind="deploy",interface="deploy",step="${name}",outcome="${outcome}"}`);
  expect(step('deploy', 'wait')).toBe(1);
  expect(step('write_image', 'wait')).toBe(1);
  const request = (method: string, route: string, status: string): number =>
    value(text, `bloomery_api_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`) ?? 0;
  expect(request('POST', '/v1/nodes', '2xx')).toBe(1);
  expect(request('PUT', '/v1/nodes/{node_ident}/states/provision', '2xx')).toBe(3);
  expect(request('GET', 'other', '4xx')).toBe(1);
  expect(request('POST', '/v1/heartbeat/{node_ident}', '2xx')).toBeGreaterThan(0);
  expect(value(text, 'bloomery_heartbeats_total{state="wait call-back",outcome="resumed"}')).toBeGreaterThan(0);
  const outcomes = (metric: string, labels: string): number =>
    value(text, `bloomery_${metric}_request_duration_seconds_count{${labels},outcome="ok"}`) ?? 0;
  expect(outcomes('bmc', 'protocol="redfish",operation="GET"')).toBeGreaterThan(0);
  expect(outcomes('bmc', 'protocol="redfish",operation="POST ComputerSystem.Reset"')).toBeGreaterThan(0);
  expect(outcomes('agent', 'command="deploy.get_deploy_steps"')).toBeGreaterThan(0);
  expect(value(text, 'bloomery_http_boot_answers_total{kind="script",status="2xx"}')).toBeGreaterThan(0);
  expect(value(text, 'bloomery_http_boot_bytes_total')).toBeGreaterThan(whole.image.bytes);
  expect(value(text, 'bloomery_database_up')).toBe(1);
  expect(value(text, 'bloomery_database_connections_max')).toBe(10);
  expect(value(text, 'bloomery_workers_in_use')).toBe(0);
  expect(value(text, 'bloomery_locks_held')).toBe(0);
  expect(text).toMatch(/bloomery_build_info\{version="\d[^"]*",node_version="v\d+[^"]*",roles="api,boot,conductor"\} 1/);
  expect(text).not.toContain(uuid);
});

it('logs each request under the request ID that the caller gets', async () => {
  const given = 'req-01234567-89ab-cdef-0123-456789abcdef';
  const headers = { 'X-Openstack-Request-Id': given, 'X-OpenStack-Ironic-API-Version': '1.109' };
  const answer = await fetch(`${whole.server.apiUrl!}/v1/nodes/${uuid}?fields=name`, { headers });
  await answer.text();
  const id = answer.headers.get('openstack-request-id');
  expect(id).toMatch(/^req-/);
  expect(id).not.toBe(given);
  const line = lines.find(({ request_id: candidate }) => candidate === id);
  expect(line).toMatchObject({ message: 'request', component: 'api', method: 'GET', path: `/v1/nodes/${uuid}`, status: 200, node: uuid });
  expect(line!['global_request_id']).toBe(given);
  expect(line!['ms']).toEqual(expect.any(Number));
});

it('logs the node, the host and the request ID in lines of the conductor', () => {
  const moved = lines.filter(({ message }) => message.endsWith('→ active (done)'));
  expect(moved).toEqual([expect.objectContaining({ node: uuid, host: 'conductor-1', component: 'conductor' })]);
  const asked = lines.find(({ message }) => message.endsWith('available → deploying (deploy)'))!;
  const line = lines.find(({ request_id: id, message }) => id === asked['request_id'] && message === 'request')!;
  expect(line).toMatchObject({ method: 'PUT', path: `/v1/nodes/${uuid}/states/provision`, status: 202 });
});
