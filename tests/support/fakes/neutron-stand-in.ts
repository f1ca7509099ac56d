/** Neutron's API for ports, as its clients see it: with its refusals of a MAC address in use and of a change to a bound port. */
import { randomUUID } from 'node:crypto';
import { ServiceError, type ServiceCall, type ServiceClient, type Services } from '../../../wire/keystone/services';
import { servicesOf } from '../services';

interface StandInPort {
  readonly id: string;
  readonly network_id: string;
  readonly mac_address: string;
  readonly 'binding:host_id': string;
  readonly 'binding:profile': object;
  readonly [more: string]: unknown;
}
export interface NeutronRequest {
  /** `POST /ports`, with the rest of the path decoded. */
  readonly line: string;
  readonly body: unknown;
}
/** The fate of a request: its effect and answer, no effect and no answer, or its effect without an answer. */
export type Fate = 'answered' | 'lost before' | 'lost after';
interface NeutronStandIn {
  readonly services: Services;
  readonly ports: Map<string, StandInPort>;
  /** An unbound port, as a user makes it. */
  readonly userPort: (network: string) => StandInPort;
  /** Decides about each request. */
  fate: (request: NeutronRequest) => Fate;
}

const MAKER = { 'binding:host_id': '', 'binding:profile': {}, 'binding:vif_type': 'unbound', status: 'DOWN', fixed_ips: [] };
const isBound = (port: StandInPort): boolean => port['binding:host_id'] !== '' && Object.keys(port['binding:profile']).length > 0;

export function startNeutronStandIn(): NeutronStandIn {
  const ports = new Map<string, StandInPort>();
  const refuse = (status: number, reason: string): never => {
    throw new ServiceError('neutron', 'failing', reason, status);
  };
  const newMac = (): string =>
    `fa:16:3e:${randomUUID()
      .slice(0, 6)
      .replace(/..(?!$)/g, '$&:')}`;
  const save = (given: object, before?: StandInPort): StandInPort => {
    const merged = { ...MAKER, id: randomUUID(), ...before, ...given } as StandInPort;
    const port = { ...merged, mac_address: merged.mac_address ?? newMac() };
    const status = isBound(port) ? 'ACTIVE' : 'DOWN';
    if (before && isBound(before) && before.mac_address !== port.mac_address) refuse(409, `PortBound: ${port.id}`);
    const twin = [...ports.values()].find(
      (candidate) => candidate.id !== port.id && candidate.network_id === port.network_id && candidate.mac_address === port.mac_address,
    );
    if (twin) refuse(409, `MacAddressInUse: ${port.mac_address}`);
    ports.set(port.id, { ...port, status });
    return ports.get(port.id)!;
  };
  const answer = (method: string, path: string, query: URLSearchParams, body: unknown): object => {
    const [, kind, id] = path.split('/');
    if (kind === 'networks' && id !== undefined) return { network: { id, 'provider:physical_network': 'physnet1', mtu: 1500 } };
    if (kind !== 'ports') return refuse(404, `no ${path}`);
    if (method === 'POST') return { ports: (body as { readonly ports: readonly object[] }).ports.map((port) => save(port)) };
    if (id === undefined) {
      const [macs, network] = [query.getAll('mac_address'), query.get('network_id')];
      return { ports: [...ports.values()].filter((port) => port.network_id === network && macs.includes(port.mac_address)) };
    }
    const port = ports.get(id) ?? refuse(404, `PortNotFound: ${id}`);
    if (method === 'PUT') return { port: save((body as { readonly port: object }).port, port) };
    if (method === 'DELETE') ports.delete(id);
    return { port };
  };
  const never = new Promise<never>(() => {});
  const request: ServiceClient['request'] = async (path, { method = 'GET', body, accept = [] }: ServiceCall = {}) => {
    const url = new URL(path, 'http://neutron');
    const fate = standIn.fate({ line: `${method} ${decodeURIComponent(path)}`, body });
    if (fate === 'lost before') return never;
    try {
      const answered = answer(method, url.pathname, url.searchParams, body);
      return await (fate === 'lost after' ? never : { status: 200, headers: {}, body: structuredClone(answered) });
    } catch (error) {
      if (!(error instanceof ServiceError) || !accept.includes(error.status!)) throw error;
      return { status: error.status!, headers: {}, body: {} };
    }
  };
  const standIn: NeutronStandIn = {
    services: { ...servicesOf(), neutron: { ...servicesOf().neutron, request } },
    ports,
    userPort: (network) => save({ network_id: network }),
    fate: () => 'answered',
  };
  return standIn;
}
