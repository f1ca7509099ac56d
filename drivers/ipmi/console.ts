/** The console of an IPMI machine over serial-over-LAN, on a TCP port: Ironic's `ipmitool-socat`, without ipmitool and socat. */
import { isIPv6 } from 'node:net';
import { Fault } from '../../model/errors';
import { toInteger } from '../../model/python';
import type { NodeRecord } from '../../model/records';
import type { ConsoleInterface, Property, Task } from '../interfaces';
import { IPMI_PROPERTIES, ipmiTarget, targetOf } from './target';

const TERMINAL: Readonly<Record<string, Property>> = {
  ipmi_terminal_port: { description: "node's UDP port to connect to. Only required for console access." },
};
/** Where the port that was chosen for a node stands. */
const ALLOCATED = 'allocated_ipmi_terminal_port';
/** To open the line after a client came. */
const CONNECT_TIMEOUT = 20_000;

/** `10000:10005`: from the first up to, and without, the last. */
function* portsIn(ranges: readonly string[]): Generator<number> {
  for (const range of ranges) {
    const [first = NaN, end = NaN] = range.split(':').map(Number);
    for (let port = first; port < end; port++) yield port;
  }
}
const ownPort = ({ driver_info: info, driver_internal_info: internal }: NodeRecord): number | undefined =>
  (toInteger(info['ipmi_terminal_port']) ?? 0) || (toInteger(internal[ALLOCATED]) ?? 0) || undefined;

/** @returns the port */
async function listen(task: Task): Promise<number> {
  const { node, options, connections } = task;
  const { consoles } = connections;
  const target = targetOf(task);
  if (!consoles) throw new Fault('DriverOperationError', { message: 'this process serves no consoles' });
  const own = ownPort(node);
  return consoles.open({
    name: node.uuid,
    host: options['console.socat_address'] ?? options['DEFAULT.my_ip'],
    ports: own === undefined ? portsIn(options['console.port_range']) : [own],
    idleMs: options['console.terminal_timeout'] * 1000,
    open: (deliver, signal) => consoles.openSol(target, deliver, { timeoutMs: CONNECT_TIMEOUT, signal }),
  });
}

export const ipmiConsole: ConsoleInterface = {
  properties: { ...IPMI_PROPERTIES, ...TERMINAL },
  validate: async ({ node, options }) => {
    const { version } = ipmiTarget(node);
    if (ownPort(node) === undefined && options['console.port_range'].length === 0)
      throw new Fault('MissingParameterValue', {
        message: "Either missing 'ipmi_terminal_port' parameter in node's driver_info or [console]port_range is not configured",
      });
    if (version !== '2.0')
      throw new Fault('InvalidParameterValue', {
        message:
          "Serial over lan only works with IPMI protocol version 2.0. Check the 'ipmi_protocol_version' parameter in node's driver_info",
      });
  },
  start: async (task) => {
    await ipmiConsole.stop(task);
    const port = await listen(task);
    if (!toInteger(task.node.driver_info['ipmi_terminal_port'])) await task.saveInternal({ [ALLOCATED]: port });
  },
  stop: async (task) => {
    await task.connections.consoles?.close(task.node.uuid);
    if (task.node.driver_internal_info[ALLOCATED] !== undefined) await task.saveInternal({ [ALLOCATED]: undefined });
  },
  // A console that was on before this process began listens again when somebody asks for it.
  get: async (task) => {
    const host = task.options['console.socat_address'] ?? task.options['DEFAULT.my_ip'];
    return { type: 'socat', url: `tcp://${isIPv6(host) ? `[${host}]` : host}:${await listen(task)}` };
  },
};
