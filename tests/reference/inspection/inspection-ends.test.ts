/** Inspections without a report in time, and callbacks at the same time: the same on the real Ironic and on our server. */
import type { JsonObject } from '../../../model/records';
import { until } from '../../../demo/lab/machines';
import { startBoth, type Both } from '../both';
import { ask, seen } from '../compare';
import { AGENT_ONLY, bringToInspectWait, call, inspectAgain } from './inspected';
import { MAX, send } from '../requests/steps';

jest.setTimeout(300_000);
/** The timeout in seconds. Within it, a slow machine must bring a node to `inspect wait` and deliver a report. */
const LIMIT_S = 15;
let both: Both;
beforeAll(async () => {
  both = await startBoth({ ...AGENT_ONLY, conductor: { check_provision_state_interval: '1', inspect_wait_timeout: String(LIMIT_S) } });
}, 600_000);
afterAll(() => both?.stop(), 60_000);

const id = (last: number): string => `aaaaaaaa-0000-4000-8000-0000000002${String(last).padStart(2, '0')}`;
const macOf = (uuid: string): string => `52:54:00:00:02:${uuid.slice(-2)}`;
const enrolled = (server: string, uuid: string): Promise<void> =>
  bringToInspectWait(server, uuid, { node: {}, ports: [{ address: macOf(uuid) }] });
/** Posts a callback. @returns the answer */
async function callback(server: string, uuid: string, hostname: string): Promise<unknown> {
  const interfaces = [{ name: 'eth0', mac_address: macOf(uuid), ipv4_address: '192.0.2.7' }];
  const body = {
    inventory: { interfaces, hostname, cpu: { architecture: 'x86_64', count: 1 }, memory: { physical_mb: 1024 } },
    root_disk: null,
  };
  const sent = send('POST', `/v1/continue_inspection?node_uuid=${uuid}`, body, MAX);
  const { status, body: said } = seen(server, sent, await ask(server, sent));
  return status >= 400 ? { status, said } : { status };
}
/** Waits until the node has the state and no reservation. @returns the node with its history */
async function reached(server: string, uuid: string, state: string): Promise<JsonObject> {
  let node: JsonObject = {};
  await until(
    60,
    () => `${state} at ${server}: ${JSON.stringify(node)}`,
    async () => {
      node = await call(server, 'GET', `/nodes/${uuid}`);
      return node['provision_state'] === state && node['reservation'] === null;
    },
  );
  const { target_provision_state, last_error, power_state, maintenance } = node;
  const { history } = (await call(server, 'GET', `/nodes/${uuid}/history?detail=true`)) as { history: readonly JsonObject[] };
  const told = history.map(({ severity, event_type: type, event }) => ({ severity, type, event }));
  return { target_provision_state, last_error, power_state, maintenance, told };
}
const hostnameOf = async (server: string, uuid: string): Promise<unknown> =>
  call(server, 'GET', `/nodes/${uuid}/inventory`).then(
    ({ inventory }) => (inventory as JsonObject)['hostname'],
    (error: unknown) => /: (\d{3}) /.exec(String(error))?.[1],
  );

const ENDS: Readonly<Record<string, (server: string, uuid: string) => Promise<readonly unknown[]>>> = {
  'an inspection without a report times out, a late report is refused, and the next inspection succeeds': async (server, uuid) => {
    await enrolled(server, uuid);
    const late = await reached(server, uuid, 'inspect failed');
    const refused = [await callback(server, uuid, 'late'), await hostnameOf(server, uuid)];
    await inspectAgain(server, uuid);
    const taken = await callback(server, uuid, 'again');
    return [late, refused, taken, await reached(server, uuid, 'manageable'), await hostnameOf(server, uuid)];
  },
  'an inspection in maintenance does not time out, and a report is accepted': async (server, uuid) => {
    await enrolled(server, uuid);
    await call(server, 'PUT', `/nodes/${uuid}/maintenance`, { reason: 'r' });
    await new Promise((past) => setTimeout(past, (LIMIT_S + 3) * 1000));
    const waits = await reached(server, uuid, 'inspect wait');
    const taken = await callback(server, uuid, 'in maintenance');
    return [waits, taken, await reached(server, uuid, 'manageable'), await hostnameOf(server, uuid)];
  },
  'one of four simultaneous reports is accepted and saved': async (server, uuid) => {
    await enrolled(server, uuid);
    const names = ['a', 'b', 'c', 'd'];
    const answers = await Promise.all(names.map((name) => callback(server, uuid, name)));
    const statuses = answers.map((answer) => (answer as { status: number }).status);
    const winner = names[statuses.indexOf(202)];
    // A callback while the first one is processed finds the node locked (409); a later one finds no waiting node (404).
    const refusals = statuses.filter((status) => status === 409 || status === 404).length;
    const left = await reached(server, uuid, 'manageable');
    const { ports } = (await call(server, 'GET', `/nodes/${uuid}/ports`)) as { ports: readonly unknown[] };
    return [refusals, left, ports.length, (await hostnameOf(server, uuid)) === winner];
  },
};
it.each(Object.keys(ENDS))('both servers behave alike: %s', async (name) => {
  const uuid = id(Object.keys(ENDS).indexOf(name) + 1);
  const [theirs, ours] = await Promise.all([both.reference, both.ours].map((server) => ENDS[name]!(server, uuid)));
  expect(ours).toEqual(theirs);
});
