/** The same callback of an agent for the same node on both servers, and the nodes afterwards. */
import type { JsonObject } from '../../../model/records';
import { until } from '../../../demo/lab/machines';
import type { Settings } from '../../lab/inspection/real-ironic';

/** A machine as its agent reports it, and its node before the inspection. */
export interface Recorded {
  readonly node: JsonObject;
  readonly ports: readonly JsonObject[];
  readonly callback: JsonObject;
}
export interface Inspected {
  readonly node: JsonObject;
  readonly ports: readonly JsonObject[];
  readonly data: JsonObject;
}

const VERSION = { 'x-openstack-ironic-api-version': '1.101', 'content-type': 'application/json' };
export async function call(server: string, method: string, path: string, body?: unknown): Promise<JsonObject> {
  const answer = await fetch(`${server}/v1${path}`, {
    method,
    headers: VERSION,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as JsonObject;
}

/** Neither server boots anything: the hardware is fake, and the test posts as the ramdisk. */
export const AGENT_ONLY: Settings = {
  DEFAULT: { enabled_inspect_interfaces: 'agent,no-inspect' },
  inspector: { require_managed_boot: 'false' },
};

async function reach(server: string, uuid: string, verb: string | undefined, states: readonly string[]): Promise<JsonObject> {
  if (verb !== undefined) await call(server, 'PUT', `/nodes/${uuid}/states/provision`, { target: verb });
  let node: JsonObject = {};
  await until(
    60,
    () => `${uuid} at ${server}: ${JSON.stringify(node)}`,
    async () => {
      node = await call(server, 'GET', `/nodes/${uuid}`);
      return states.includes(String(node['provision_state'])) && node['reservation'] === null;
    },
  );
  return node;
}

/** Enrols a node and brings it to `inspect wait`. */
export async function bringToInspectWait(server: string, uuid: string, { node, ports }: Pick<Recorded, 'node' | 'ports'>): Promise<void> {
  await call(server, 'POST', '/nodes', { uuid, driver: 'fake-hardware', inspect_interface: 'agent', properties: node, driver_info: {} });
  for (const port of ports) await call(server, 'POST', '/ports', { node_uuid: uuid, ...port });
  await reach(server, uuid, 'manage', ['manageable']);
  await reach(server, uuid, 'inspect', ['inspect wait']);
}
/** Inspects a waiting node again, if it was inspected before. */
export const inspectAgain = (server: string, uuid: string): Promise<JsonObject> => reach(server, uuid, 'inspect', ['inspect wait']);

const PORT_FIELDS = ['address', 'pxe_enabled', 'extra', 'local_link_connection', 'physical_network', 'portgroup_uuid', 'name'];
const NODE_FIELDS = ['provision_state', 'last_error', 'properties', 'extra', 'traits', 'resource_class', 'description', 'driver_info'];
const picked = (from: JsonObject, fields: readonly string[]): JsonObject => Object.fromEntries(fields.map((name) => [name, from[name]]));

/** Posts the callback as an agent does, and reads the node when the inspection is over. */
export async function postCallback(server: string, uuid: string, callback: JsonObject): Promise<Inspected> {
  await call(server, 'POST', `/continue_inspection?node_uuid=${uuid}`, callback);
  const node = await reach(server, uuid, undefined, ['manageable', 'inspect failed']);
  const { ports } = (await call(server, 'GET', `/ports?node=${uuid}&detail=true`)) as { ports: readonly JsonObject[] };
  const data = await call(server, 'GET', `/nodes/${uuid}/inventory`).catch((error: unknown) => ({
    status: /: (\d+) /.exec(String(error))?.[1],
  }));
  return {
    node: picked(node, NODE_FIELDS),
    ports: ports.map((port) => picked(port, PORT_FIELDS)).sort((a, b) => String(a['address']).localeCompare(String(b['address']))),
    data,
  };
}
