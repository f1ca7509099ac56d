/** The console of an IPMI machine over serial-over-LAN, on a TCP port: Ironic's `ipmitool-socat`, without ipmitool and socat. */
import { isIPv6 } from 'node:net';
import { Fault } from '../../model/errors';
import { str, toInteger } from '../../model/python';
import type { NodeRecord } from '../../model/records';
import type { ConsoleInterface, Property, Task } from '../interfaces';
import { IPMI_PROPERTIES, ipmiTarget, targetOf } from './target';

const TERMINAL: Readonly<Record<string, Property>> = {
  ipmi_terminal_port: { description: "node's UDP port to connect to. Only required for console access." },
  console_log_size: {
    description:
      'KiB of what the machine says on its serial line that are kept, and shown to who connects. Default: [console]log_size. Optional.',
  },
  console_saved_log_size: {
    description:
      'KiB of what the machine says on its serial line that the conductor saves in files, for GET /v1/nodes/NODE/console_log. Default: [console]saved_log_size. Optional.',
  },
};
/** KiB. */
const MAX_SAVED_KIB = 65_536;
/** The driver_internal_info key of the port that was chosen for the node. */
const ALLOCATED = 'allocated_ipmi_terminal_port';
/** The log of a console is in the conductor's memory. */
const MAX_LOG_KIB = 1024;
/** Milliseconds to open the line after a client has connected. */
const CONNECT_TIMEOUT = 20_000;

/** `10000:10005`: the last number is excluded. */
function* portsIn(ranges: readonly string[]): Generator<number> {
  for (const range of ranges) {
    const [first = NaN, end = NaN] = range.split(':').map(Number);
    for (let port = first; port < end; port++) yield port;
  }
}
const ownPort = ({ driver_info: info, driver_internal_info: internal }: NodeRecord): number | undefined =>
  (toInteger(info['ipmi_terminal_port']) ?? 0) || (toInteger(internal[ALLOCATED]) ?? 0) || undefined;

/** An empty address would mean every address of this host. */
const hostOf = ({ options }: Task): string => options['console.socat_address'] || '127.0.0.1';

/** Throws Fault InvalidParameterValue. */
function sizeIn(node: NodeRecord, key: string, usual: number, most: number): number {
  const given = node.driver_info[key] ?? usual;
  const size = toInteger(given);
  if (size === undefined || size < 0 || size > most)
    throw new Fault('InvalidParameterValue', {
      message: `Invalid value "${str(given)}" set in driver_info/${key}: it must be a number of KiB up to ${most}.`,
    });
  return size;
}
const logKiB = ({ node, options }: Pick<Task, 'node' | 'options'>): number =>
  sizeIn(node, 'console_log_size', options['console.log_size'], MAX_LOG_KIB);
const savedKiB = ({ node, options }: Pick<Task, 'node' | 'options'>): number =>
  sizeIn(node, 'console_saved_log_size', options['console.saved_log_size'], MAX_SAVED_KIB);
/** @returns the port */
async function listen(task: Task): Promise<number> {
  const { node, options, connections } = task;
  const { consoles, consoleLogs: logs } = connections;
  const most = savedKiB(task) * 1024;
  const target = targetOf(task);
  if (!consoles) throw new Fault('DriverOperationError', { message: 'this process serves no consoles' });
  const own = ownPort(node);
  return consoles.open({
    name: node.uuid,
    host: hostOf(task),
    ports: own === undefined ? portsIn(options['console.port_range']) : [own],
    idleMs: options['console.terminal_timeout'] * 1000,
    limitMs: options['console.max_session_time'] * 1000,
    logBytes: logKiB(task) * 1024,
    save: most > 0 && logs ? (bytes) => logs.add(node.uuid, bytes, most) : undefined,
    open: (deliver, signal) => consoles.openSol(target, deliver, { timeoutMs: CONNECT_TIMEOUT, signal }),
  });
}

export const ipmiConsole: ConsoleInterface = {
  properties: { ...IPMI_PROPERTIES, ...TERMINAL },
  validate: async (task) => {
    const { node, options } = task;
    const { version } = ipmiTarget(node);
    logKiB(task);
    savedKiB(task);
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
  // After a restart of this process, the console listens again at the first request for it.
  get: async (task) => {
    const host = hostOf(task);
    return { type: 'socat', url: `tcp://${isIPv6(host) ? `[${host}]` : host}:${await listen(task)}` };
  },
};
