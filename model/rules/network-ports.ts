/** Modes of the ports of network adapters: what the ports are, and which of them have a name. Pure. */
import { isObject } from '../json';

/** A port or a function of a network adapter, whose mode the BMC shows. */
export interface NetworkPort {
  /** The names that mean this port alone, the shortest first: `NIC.Slot.1-1-1`, `NIC.Slot.1/NIC.Slot.1-1-1`. */
  readonly names: readonly string[];
  readonly mode: string;
  /** The modes that it can have, as far as the BMC lists them. */
  readonly modes: readonly string[];
}
export interface PortMode {
  readonly name: string;
  readonly mode: string;
}

/** NetDevFuncType (schema NetworkDeviceFunction). */
export const PORT_MODES = ['Disabled', 'Ethernet', 'FibreChannel', 'iSCSI', 'FibreChannelOverEthernet', 'InfiniBand'] as const;
const MAX_ASKED = 256;
const MAX_NAME = 255;
const MAX_LISTED = 50;
const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.slice(0, MAX_LISTED).join(', '));

/** What is wrong with the argument `ports`, with the name of the member; undefined: nothing. */
function problemOf(ports: unknown): string | undefined {
  if (!Array.isArray(ports) || ports.length === 0 || ports.length > MAX_ASKED)
    return `ports must be a list of 1 to ${MAX_ASKED} objects, each with a name and a mode`;
  const names = new Set<string>();
  for (const [at, port] of (ports as unknown[]).entries()) {
    if (!isObject(port)) return `ports[${at}] must be an object with a name and a mode`;
    const { name, mode, ...others } = port;
    const other = Object.keys(others)[0];
    if (other !== undefined) return `ports[${at}].${other.slice(0, MAX_NAME)} is not known: a port has a name and a mode`;
    if (typeof name !== 'string' || name === '' || name.length > MAX_NAME)
      return `ports[${at}].name must be a text of 1 to ${MAX_NAME} characters`;
    if (typeof mode !== 'string' || !(PORT_MODES as readonly string[]).includes(mode))
      return `ports[${at}].mode must be one of ${PORT_MODES.join(', ')}`;
    if (names.has(name)) return `ports[${at}].name: ${name} is in the list twice`;
    names.add(name);
  }
  return undefined;
}
/** The argument `ports`, or what is wrong with it. */
export function askedPorts(ports: unknown): { readonly asked: readonly PortMode[] } | { readonly problem: string } {
  const problem = problemOf(ports);
  return problem === undefined ? { asked: ports as readonly PortMode[] } : { problem };
}

export const portNamed = <Port extends NetworkPort>(ports: readonly Port[], name: string): Port | undefined =>
  ports.find(({ names }) => names.includes(name));
/** For each request: why the machine's port cannot be so, after the name of the member; undefined: it can. */
function problemsOf(asked: readonly PortMode[], ports: readonly NetworkPort[]): readonly (string | undefined)[] {
  const used = new Map<NetworkPort, string>();
  return asked.map(({ name, mode }) => {
    const port = portNamed(ports, name);
    if (!port) return `.name: no network adapter has a port ${name} of its own. The ports: ${listed(ports.map(({ names }) => names[0]!))}`;
    const other = used.get(port);
    if (other !== undefined) return `.name: ${name} and ${other} are the same port`;
    used.set(port, name);
    if (port.mode === mode || port.modes.includes(mode)) return undefined;
    return `.mode: the port ${name} cannot be ${mode}. Its modes: ${listed(port.modes)}`;
  });
}
/** @param machines what some machines have. The first request that none of them can have, with its place; undefined: there is none */
export function portsProblem(asked: readonly PortMode[], machines: readonly (readonly NetworkPort[])[]): string | undefined {
  const byMachine = machines.map((ports) => problemsOf(asked, ports));
  for (const at of asked.keys()) {
    const problems = byMachine.map((all) => all[at]);
    const problem = problems.find((text) => text?.startsWith('.mode')) ?? problems[0];
    if (problem !== undefined && !problems.includes(undefined)) return `ports[${at}]${problem}`;
  }
  return undefined;
}

/** More ports of a machine are not stored: then they count as unknown. */
const MAX_STORED = 128;
/** `driver_internal_info.network_ports` */
export const storable = (ports: readonly NetworkPort[]): readonly NetworkPort[] | undefined =>
  ports.length > 0 && ports.length <= MAX_STORED ? ports.map(({ names, mode, modes }) => ({ names, mode, modes })) : undefined;
/** A stored list (`driver_internal_info.network_ports`), which may be anything. */
export const storedPorts = (stored: unknown): readonly NetworkPort[] => (Array.isArray(stored) ? (stored as NetworkPort[]) : []);
