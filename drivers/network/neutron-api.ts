/** Requests to Neutron (Networking API v2.0) for a node. Changes are sent only while the node's reservation holds. */
import { Fault } from '../../model/errors';
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { ServiceError, type ServiceCall } from '../../wire/keystone/services';
import type { Task } from '../interfaces';

interface FixedIp {
  readonly subnet_id: string;
  readonly ip_address?: string;
}
export interface NeutronPort {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly networkId: string;
  readonly macAddress: string;
  readonly projectId: string;
  /** Empty: it is not bound. */
  readonly hostId: string;
  readonly profile: JsonObject;
  /** `binding_failed`, … */
  readonly vifType: string;
  readonly fixedIps: readonly FixedIp[];
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const objects = (value: unknown): readonly Readonly<Record<string, unknown>>[] => (Array.isArray(value) ? value.filter(isObject) : []);

function portOf(value: unknown): NeutronPort {
  const port = isObject(value) ? value : {};
  const profile = port['binding:profile'];
  return {
    id: text(port['id']),
    name: text(port['name']),
    status: text(port['status']),
    networkId: text(port['network_id']),
    macAddress: text(port['mac_address']),
    projectId: text(port['project_id'] ?? port['tenant_id']),
    hostId: text(port['binding:host_id']),
    profile: isObject(profile) ? profile : {},
    vifType: text(port['binding:vif_type']),
    fixedIps: objects(port['fixed_ips']).flatMap(({ subnet_id: subnet, ip_address: address }) =>
      typeof subnet === 'string' ? [{ subnet_id: subnet, ...(typeof address === 'string' ? { ip_address: address } : {}) }] : [],
    ),
  };
}

/** Neutron's reason for a failure; for other errors the error as text. */
const reasonOfNeutron = (error: unknown): string => (error instanceof ServiceError ? error.reason : String(error));
export const isNotFound = (error: unknown): boolean => error instanceof ServiceError && error.status === 404;

/** Sends a request and returns the body. Throws ServiceError; before a change, also LockLost. */
async function ask(task: Task, path: string, { method = 'GET', ...call }: ServiceCall = {}): Promise<Readonly<Record<string, unknown>>> {
  if (method !== 'GET') await task.stillHeld?.();
  const { globalRequestId, signal } = task;
  const { body } = await task.connections.services.neutron.request(path, { method, globalRequestId, signal, ...call });
  return isObject(body) ? body : {};
}
/** Runs `work`, and turns a ServiceError into a NetworkError with this message. */
export async function orNetworkError<T>(task: Task, message: (reason: string) => string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof ServiceError)) throw error;
    throw new Fault('NetworkError', { message: message(reasonOfNeutron(error)) }, { cause: error });
  }
}

const enc = encodeURIComponent;
type Query = Readonly<Record<string, string | readonly string[]>>;
const queryOf = (query: Query): string =>
  Object.entries(query)
    .flatMap(([name, value]) => [value].flat().map((item) => `${enc(name)}=${enc(item)}`))
    .join('&');

export const findPort = async (task: Task, id: string): Promise<NeutronPort> => portOf((await ask(task, `/ports/${enc(id)}`))['port']);
export const listPorts = async (task: Task, query: Query): Promise<readonly NeutronPort[]> =>
  objects((await ask(task, `/ports?${queryOf(query)}`))['ports']).map(portOf);
export async function createPorts(task: Task, ports: readonly JsonObject[]): Promise<readonly NeutronPort[]> {
  const { ports: made } = await ask(task, '/ports', { method: 'POST', body: { ports } });
  return objects(made).map(portOf);
}
export const updatePort = async (task: Task, id: string, port: JsonObject): Promise<NeutronPort> =>
  portOf((await ask(task, `/ports/${enc(id)}`, { method: 'PUT', body: { port } }))['port']);
/** A port that does not exist is deleted already. */
export async function deletePort(task: Task, id: string): Promise<void> {
  await ask(task, `/ports/${enc(id)}`, { method: 'DELETE', accept: [404] });
}

interface NeutronNetwork {
  readonly id: string;
  readonly mtu: unknown;
  readonly physicalNetwork: string;
  /** Physical networks of its segments; undefined: it has one segment. */
  readonly segmentNetworks: readonly string[] | undefined;
}
function networkOf(value: unknown): NeutronNetwork {
  const network = isObject(value) ? value : {};
  const segments = network['segments'];
  return {
    id: text(network['id']),
    mtu: network['mtu'] ?? null,
    physicalNetwork: text(network['provider:physical_network']),
    segmentNetworks: Array.isArray(segments)
      ? objects(segments)
          .map((segment) => text(segment['provider:physical_network']))
          .filter((name) => name !== '')
      : undefined,
  };
}
const UUID = /^[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/i;
async function networksNamed(task: Task, nameOrId: string): Promise<readonly NeutronNetwork[]> {
  if (UUID.test(nameOrId)) {
    const { network } = await ask(task, `/networks/${enc(nameOrId)}`, { accept: [404] });
    if (network !== undefined) return [networkOf(network)];
  }
  return objects((await ask(task, `/networks?${queryOf({ name: nameOrId })}`))['networks']).map(networkOf);
}
/**
 * A network by UUID or name. Throws InvalidParameterValue unless there is exactly one, NetworkError.
 * @param what for the message
 */
export async function findNetwork(task: Task, nameOrId: string, what: string): Promise<NeutronNetwork> {
  const found = await orNetworkError(
    task,
    (reason) => `Could not retrieve network: ${reason}`,
    () => networksNamed(task, nameOrId),
  );
  const [network, ...others] = found;
  if (!network) throw new Fault('InvalidParameterValue', { message: `${what} with name or UUID ${nameOrId} was not found` });
  if (others.length > 0)
    throw new Fault('InvalidParameterValue', {
      message: `More than one ${what} was found for name ${nameOrId}: ${found.map(({ id }) => id).join(', ')}`,
    });
  return network;
}

export const findSubnet = async (task: Task, id: string): Promise<JsonObject> => {
  const { subnet } = await ask(task, `/subnets/${enc(id)}`);
  return isObject(subnet) ? subnet : {};
};
export const findSegment = async (task: Task, id: string): Promise<JsonObject> => {
  const { segment } = await ask(task, `/segments/${enc(id)}`);
  return isObject(segment) ? segment : {};
};
/** The UUIDs of the given security groups that exist. */
export const existingSecurityGroups = async (task: Task, ids: readonly string[]): Promise<readonly string[]> =>
  objects((await ask(task, `/security-groups?${queryOf({ id: ids, fields: 'id' })}`))['security_groups']).map(({ id }) => text(id));
/** Whether the first agent on a host is alive; false without any. */
export async function isAgentAlive(task: Task, host: string): Promise<boolean> {
  const [agent] = objects((await ask(task, `/agents?${queryOf({ host })}`))['agents']);
  return agent?.['alive'] === true;
}
