/** The screen of a machine with a VNC server of its own: virtual machines, network KVM switches, machines with a VNC server in the BMC. */
import { connect, type Socket } from 'node:net';
import { isAbsolute, normalize } from 'node:path';
import { Fault, invalidParameter } from '../../model/errors';
import { str, toInteger } from '../../model/python';
import type { Property, Task } from '../interfaces';
import { textOf } from '../common/info-text';
import { graphicalConsole } from './graphical-console';

const PROPERTIES: Readonly<Record<string, Property>> = {
  vnc_address: { description: "IP address or host name of the machine's VNC server. One of vnc_address and vnc_socket is required." },
  vnc_port: { description: 'TCP port of the VNC server. Defaults to 5900. Optional.' },
  vnc_socket: { description: "Path of the Unix socket of the VNC server on the conductor's host, in [vnc]socket_folder." },
  vnc_password: { description: 'Password of the VNC server, of which VNC uses the first eight bytes. Optional.', secret: true },
};
const DEFAULT_PORT = 5900;
/** An address or a name; without what would make it a URL, and without zones. */
const HOST = /^[\w.:-]{1,253}$/;
/** The most bytes of a Unix socket's path (unix(7)). */
const MAX_PATH = 107;

type Place = { readonly host: string; readonly port: number } | { readonly path: string };
function socketPath(task: Task, path: string): string {
  const folder = task.options['vnc.socket_folder'];
  if (folder === null) throw invalidParameter('vnc_socket needs [vnc]socket_folder, which is not set.');
  const inside = `${normalize(folder).replace(/\/$/, '')}/`;
  if (
    !isAbsolute(path) ||
    normalize(path) !== path ||
    !path.startsWith(inside) ||
    Buffer.byteLength(path) > MAX_PATH ||
    path.includes('\0')
  )
    throw invalidParameter(
      `Invalid value "${str(path)}" set in driver_info/vnc_socket: it must be the path of a socket in [vnc]socket_folder.`,
    );
  return path;
}
/** Throws Fault MissingParameterValue, InvalidParameterValue. */
function placeOf(task: Task): Place {
  const { node } = task;
  const [host, path] = [textOf(node, 'vnc_address'), textOf(node, 'vnc_socket')];
  if (host !== '' && path !== '') throw invalidParameter('Only one of vnc_address and vnc_socket may be set in driver_info.');
  if (path !== '') return { path: socketPath(task, path) };
  if (host === '')
    throw new Fault('MissingParameterValue', {
      message: `Missing the following VNC properties in node ${node.uuid} driver_info: ['vnc_address'] or ['vnc_socket']`,
    });
  if (!HOST.test(host))
    throw invalidParameter(`Invalid value "${str(host)}" set in driver_info/vnc_address: it must be an address or a host name.`);
  const given = node.driver_info['vnc_port'] ?? DEFAULT_PORT;
  const port = toInteger(given);
  if (port === undefined || port < 1 || port > 65_535)
    throw invalidParameter(`Invalid value "${str(given)}" set in driver_info/vnc_port: it must be a port between 1 and 65535.`);
  return { host, port };
}

function connectTo(place: Place, signal: AbortSignal): Promise<Socket> {
  return new Promise((done, fail) => {
    signal.throwIfAborted();
    const socket = connect(place);
    const abort = (): void => {
      socket.destroy();
      fail(signal.reason as Error);
    };
    signal.addEventListener('abort', abort, { once: true });
    socket.on('error', () => {
      signal.removeEventListener('abort', abort);
      fail(new Fault('DriverOperationError', { message: 'The VNC server of the machine cannot be reached.' }));
    });
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort);
      socket.setNoDelay(true);
      done(socket);
    });
  });
}

export const vncConsole = graphicalConsole({
  properties: PROPERTIES,
  validate: async (task) => {
    if (!task.options['vnc.enabled']) throw invalidParameter('The console interface vnc needs [vnc]enabled = true in the configuration.');
    placeOf(task);
    textOf(task.node, 'vnc_password');
  },
  screen: async (task, signal) => ({
    kind: 'rfb',
    stream: await connectTo(placeOf(task), signal),
    password: textOf(task.node, 'vnc_password'),
  }),
});
