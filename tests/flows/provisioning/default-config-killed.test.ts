/** A conductor dies while automated cleaning brings firmware back to a default config: what was planned goes on, though the config is gone. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { useDatabase } from '../../support/database';
import { openProcesses } from '../../support/processes';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const PATIENCE = 240;
/** [redfish] of both conductors. */
const TIMES = {
  'redfish.firmware_update_status_interval': 1,
  'redfish.firmware_update_validation_interval': 1,
  'redfish.firmware_update_required_successes': 2,
  'redfish.firmware_update_wait_unresponsive_bmc': 1,
} as const;
const other = ({ apiUrl, bootUrl }: { readonly apiUrl?: string | undefined; readonly bootUrl?: string | undefined }): string => `
[DEFAULT]
host = conductor-2
my_ip = 127.0.0.1
enabled_boot_interfaces = ipxe
enabled_deploy_interfaces = direct
enabled_inspect_interfaces = agent
enabled_network_interfaces = noop
enabled_firmware_interfaces = redfish,no-firmware
[conductor]
heartbeat_interval = 1
heartbeat_timeout = 5
deploy_kernel = ${bootUrl!}/kernel
deploy_ramdisk = ${bootUrl!}/ramdisk
[deploy]
http_url = ${bootUrl!}
[service_catalog]
endpoint_override = ${apiUrl!}
[redfish]
${Object.entries(TIMES)
  .map(([name, value]) => `${name.slice('redfish.'.length)} = ${value}`)
  .join('\n')}
`;
const database = useDatabase();
let whole: WholeServer;
let files: Server;
beforeAll(async () => {
  files = createServer(({ url }, response) => {
    const image = /^\/(bios)-([\d.]+)$/.exec(url!);
    if (image) response.end(`firmware ${image[1]} ${image[2]}\n`);
    else response.writeHead(404).end();
  });
  files.listen(0, '127.0.0.1');
  await once(files, 'listening');
  whole = await startWholeServer(database.connection(), {
    machines: 1,
    options: {
      'DEFAULT.enabled_firmware_interfaces': ['redfish', 'no-firmware'],
      'conductor.heartbeat_interval': 1,
      'conductor.heartbeat_timeout': 5,
      ...TIMES,
    },
  });
});
const processes = openProcesses(() => database.connection());
afterAll(async () => {
  await processes.close();
  await whole?.close();
  files?.closeAllConnections();
  await new Promise((closed) => files?.close(closed));
});

const manageable = async (): Promise<string> => {
  const uuid = await whole.enrol(whole.fleet.machines[0]!, { firmware_interface: 'redfish', resource_class: 'flashed' });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  return uuid;
};

it('installs the firmware of the class, and goes on when the conductor was killed and the default config deleted', async () => {
  const url = `http://127.0.0.1:${(files.address() as AddressInfo).port}/bios-2.6`;
  const settings = [{ component: 'bios', url, version: '2.6' }];
  const { body: made } = await whole.call('POST', '/v1/default_configs', {
    resource_class: 'flashed',
    steps: [{ interface: 'firmware', step: 'update', args: { settings } }],
  });
  expect(await processes.start('conductor-2', 'conductor', other(whole.server))).toBe('conductor-2');
  // The node's UUID determines its conductor.
  let uuid = await manageable();
  const keeper = async (): Promise<unknown> => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['conductor'];
  while ((await keeper()) !== 'conductor-2') {
    expect((await whole.call('DELETE', `/v1/nodes/${uuid}`)).status).toBe(204);
    uuid = await manageable();
  }
  expect((await whole.call('GET', `/v1/nodes/${uuid}/default_config`)).body).toMatchObject({
    differences: ['firmware differs from the default of resource class flashed in 1 component: bios is 1.0, not 2.6'],
    read_now: true,
  });
  await whole.order(uuid, 'provide');
  const began = Date.now();
  for (;;) {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
    const { clean_steps: steps } = body['driver_internal_info'] as { readonly clean_steps?: readonly { readonly step: string }[] };
    if (steps?.some(({ step }) => step === 'update') && body['provision_state'] === 'clean wait') break;
    if (body['last_error'] !== null || Date.now() - began > PATIENCE * 1000) throw new Error(`no list was made: ${JSON.stringify(body)}`);
    await delay(20);
  }
  expect((await whole.call('DELETE', `/v1/default_configs/${String(made['uuid'])}`)).status).toBe(204);
  await processes.end('conductor-2', 'SIGKILL');
  expect(await whole.reach(uuid, 'available')).toMatchObject({ last_error: null, conductor: 'conductor-1' });
  const { firmware } = (await whole.call('GET', `/v1/nodes/${uuid}/firmware`)).body as { readonly firmware: readonly object[] };
  expect(firmware).toContainEqual(expect.objectContaining({ component: 'bios', current_version: '2.6' }));
}, 600_000);
