/** Simulated Dell machines behind the real Ironic and behind our server, and what both servers make of them. */
import { createServer, request as forward, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '../../../demo/lab/machines';
import type { JsonObject } from '../../../model/records';
import type { FleetMachine } from '../../../simulator/fleet/fleet';
import { ask } from '../compare';
import { get } from '../requests/steps';

/** The interfaces that both servers enable for Dell machines. */
export const IDRAC_INTERFACES = {
  enabled_hardware_types: 'idrac',
  enabled_bios_interfaces: 'idrac-redfish',
  enabled_boot_interfaces: 'idrac-redfish-virtual-media',
  enabled_console_interfaces: 'no-console',
  enabled_deploy_interfaces: 'direct',
  enabled_firmware_interfaces: 'redfish',
  enabled_inspect_interfaces: 'idrac-redfish',
  enabled_management_interfaces: 'idrac-redfish',
  enabled_power_interfaces: 'idrac-redfish',
  enabled_raid_interfaces: 'idrac-redfish',
  enabled_rescue_interfaces: 'no-rescue',
  enabled_storage_interfaces: 'noop',
  enabled_vendor_interfaces: 'idrac-redfish',
} as const;

export const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const listening = async (server: Server): Promise<Server> => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
};
export async function closed(server: Server | undefined): Promise<void> {
  server?.closeAllConnections();
  await new Promise((done) => (server ? server.close(done) : done(undefined)));
}
/** Serves the same content at every URL. */
export const serving = (content: string): Promise<Server> =>
  listening(
    createServer((request, response) => {
      response.writeHead(200, { 'content-length': content.length }).end(request.method === 'HEAD' ? '' : content);
    }),
  );

/** METHOD PATH, with the body. */
export type Change = [string, unknown];
/** Passes requests on to a BMC, and notes those that change something. */
export async function noting(target: string, changes: Change[]): Promise<Server> {
  const { hostname, port } = new URL(target);
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      const { method, url: path = '' } = request;
      if (method !== 'GET' && !path.includes('/SessionService'))
        changes.push([
          `${method ?? ''} ${path.replace(/JID_\d+/, 'JID')}`,
          body.length > 0 ? (JSON.parse(body.toString()) as unknown) : null,
        ]);
      const passed = forward({ hostname, port, method, path, headers: request.headers }, (answer) => {
        // The real one fails at a date in Retry-After while it imports a configuration.
        const { 'retry-after': _, ...kept } = answer.headers;
        response.writeHead(answer.statusCode!, kept);
        answer.pipe(response);
      });
      // A BMC that is away breaks connections off.
      passed.on('error', () => response.destroy());
      passed.end(body);
    });
  });
  return listening(server);
}

/** `driver_info` of a machine behind a proxy. */
export const driverInfo = ({ redfish }: FleetMachine, proxy: Server, files: Server): JsonObject => ({
  redfish_address: urlOf(proxy),
  redfish_system_id: redfish.systemId,
  redfish_username: redfish.username,
  redfish_password: redfish.password,
  deploy_iso: `${urlOf(files)}/ramdisk.iso`,
});
export const jsonAt = async (base: string, path: string): Promise<JsonObject> =>
  JSON.parse((await ask(base, get(path))).body) as JsonObject;
/** Waits until the node rests. @param waiting or until it waits for an agent */
export async function rest(base: string, name: string, waiting = false): Promise<JsonObject> {
  let node: JsonObject = {};
  await until(
    420,
    () => `${base}: ${JSON.stringify(node)}`,
    async () => {
      node = await jsonAt(base, `/v1/nodes/${name}`);
      const { reservation, target_power_state: power, target_provision_state: target, provision_state: state } = node;
      return !reservation && !power && (!target || /failed/.test(String(state)) || (waiting && state === 'clean wait'));
    },
  );
  return node;
}
