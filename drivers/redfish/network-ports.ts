/**
 * Ports and functions of the machine's network adapters with their modes (schemas NetworkAdapter, NetworkDeviceFunction, NetworkPort, Port).
 * The mode is that of the function where it has one: NetDevFuncType is the standard's property for it.
 */
import { PORT_MODES, type NetworkPort } from '../../model/rules/network-ports';
import {
  RedfishError,
  allowableValues,
  linkKey,
  linkOf,
  linkedCollection,
  listOf,
  member,
  readResource,
  textOf,
  textsOf,
  type RedfishResource,
  type SendRedfishRequest,
} from '../../wire/redfish';
import type { Task } from '../interfaces';
import type { SystemView } from './target';

export interface FoundPort extends NetworkPort {
  readonly path: string;
  /** The property of the resource that is the mode. */
  readonly property: string;
}

/** LinkNetworkTechnology (schemas NetworkPort and Port). */
const LINK_MODES: readonly string[] = ['Ethernet', 'FibreChannel', 'InfiniBand'];
/** Collections of an adapter whose members have a mode. The first that has a name owns it. */
const KINDS: readonly {
  readonly collection: string;
  readonly property: string;
  readonly possible: readonly string[];
  /** The modes that the hardware can do; empty: not listed. */
  readonly capable: (body: unknown) => readonly string[];
}[] = [
  {
    collection: 'NetworkDeviceFunctions',
    property: 'NetDevFuncType',
    possible: PORT_MODES,
    capable: (body) => textsOf(member(body, 'NetDevFuncCapabilities')) ?? [],
  },
  {
    collection: 'NetworkPorts',
    property: 'ActiveLinkTechnology',
    possible: LINK_MODES,
    capable: (body) =>
      listOf(member(body, 'SupportedLinkCapabilities'))
        .slice(0, 64)
        .flatMap((link) => textOf(member(link, 'LinkNetworkTechnology')) ?? []),
  },
  { collection: 'Ports', property: 'LinkNetworkTechnology', possible: LINK_MODES, capable: () => [] },
];

const MAX_CHASSIS = 16;
const MAX_REQUESTS = 1000;
const MAX_MINUTES = 10;
const MAX_PORTS = 512;
const MAX_NAME = 100;
/** At most so many requests, for so long: a service may link to anything. */
function bounded({ clock }: Task, ask: SendRedfishRequest): SendRedfishRequest {
  const end = clock.now() + MAX_MINUTES * 60_000;
  let left = MAX_REQUESTS;
  return async (...request) => {
    if (left-- <= 0 || clock.now() > end) throw new RedfishError('protocol', 'the network adapters have more resources than the limit');
    return ask(...request);
  };
}

const lastOf = (path: string): string => decodeURIComponentOrSame(path.split('/').findLast((part) => part !== '') ?? '');
function decodeURIComponentOrSame(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
const idOf = ({ path, body }: RedfishResource): string => (textOf(member(body, 'Id')) ?? lastOf(path)).slice(0, MAX_NAME);

interface Adapter {
  /** Of its chassis. */
  readonly chassis: string;
  readonly resource: RedfishResource;
}
/** The adapters of the system's chassis; those of its network interfaces if a chassis has none. */
async function adaptersOf(ask: SendRedfishRequest, system: SystemView): Promise<readonly Adapter[]> {
  const found = new Map<string, Adapter>();
  const chassisPaths = listOf(member(system.body, 'Links', 'Chassis')).flatMap((item) => linkOf(item) ?? []);
  for (const path of chassisPaths.slice(0, MAX_CHASSIS)) {
    const chassis = await readResource(ask, path);
    for (const resource of (await linkedCollection(ask, chassis, 'NetworkAdapters')) ?? [])
      found.set(linkKey(resource.path), { chassis: idOf(chassis), resource });
  }
  if (found.size > 0) return [...found.values()];
  for (const { body } of (await linkedCollection(ask, system, 'NetworkInterfaces')) ?? []) {
    const path = linkOf(member(body, 'Links', 'NetworkAdapter'));
    if (path !== undefined && !found.has(linkKey(path)))
      found.set(linkKey(path), { chassis: lastOf(path.split('/NetworkAdapters', 1)[0]!), resource: await readResource(ask, path) });
  }
  return [...found.values()];
}

/** A port that has no names yet. */
type Candidate = Omit<FoundPort, 'names'> & { readonly kind: number; readonly spellings: readonly string[] };
function candidateOf(kind: number, { chassis, resource: adapter }: Adapter, resource: RedfishResource): readonly Candidate[] {
  const { collection: folder, property, possible, capable } = KINDS[kind]!;
  const mode = textOf(member(resource.body, property))?.slice(0, MAX_NAME);
  if (mode === undefined) return [];
  const lists = [capable(resource.body), allowableValues(resource.body, property) ?? []].filter((list) => list.length > 0);
  const modes = possible.filter((candidate) => candidate === mode || lists.every((list) => list.includes(candidate)));
  const [own, id] = [idOf(adapter), idOf(resource)];
  const spellings = [id, `${own}/${id}`, `${own}/${folder}/${id}`, `${chassis}/${own}/${id}`, `${chassis}/${own}/${folder}/${id}`];
  return [{ kind, path: resource.path, property, mode, modes, spellings }];
}
/** Gives each port the names that mean it alone. A function comes before a port of the same name. */
function named(candidates: readonly Candidate[]): readonly FoundPort[] {
  const owners = new Map<string, Candidate | 'several'>();
  for (const candidate of candidates)
    for (const spelling of new Set(candidate.spellings)) {
      const owner = owners.get(spelling);
      // Candidates come in the order of their kinds.
      if (owner === undefined) owners.set(spelling, candidate);
      else if (owner !== 'several' && owner.kind === candidate.kind) owners.set(spelling, 'several');
    }
  return candidates.flatMap((candidate) => {
    const { path, property, mode, modes, spellings } = candidate;
    const names = spellings.filter((spelling) => owners.get(spelling) === candidate);
    return names.length > 0 ? [{ names, path, property, mode, modes }] : [];
  });
}

/** All ports whose mode the service shows. @throws RedfishError when one of the resources cannot be read */
export async function networkPortsOf(task: Task, system: SystemView): Promise<readonly FoundPort[]> {
  const ask = bounded(task, system.ask);
  const adapters = await adaptersOf(ask, system);
  const candidates: Candidate[] = [];
  for (const [kind, { collection: folder }] of KINDS.entries())
    for (const adapter of adapters) {
      const found = (await linkedCollection(ask, adapter.resource, folder)) ?? [];
      candidates.push(...found.flatMap((resource) => candidateOf(kind, adapter, resource)));
      if (candidates.length > MAX_PORTS) throw new RedfishError('protocol', `the network adapters have more than ${MAX_PORTS} ports`);
    }
  return named(candidates);
}
