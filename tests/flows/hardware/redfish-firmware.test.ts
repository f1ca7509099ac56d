/**
 * Firmware updates through the whole server: simulated machines behind their Redfish service, which install the firmware when they start.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { useDatabase } from '../../support/database';
import { openProcesses } from '../../support/processes';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

/** [redfish] of both conductors. */
const TIMES = {
  'redfish.firmware_update_status_interval': 1,
  'redfish.firmware_update_validation_interval': 1,
  'redfish.firmware_update_required_successes': 2,
  'redfish.firmware_update_wait_unresponsive_bmc': 1,
  'redfish.firmware_update_bmc_version_check_interval': 1,
  'redfish.firmware_update_nic_starting_wait': 1,
} as const;
/** The configuration of the second conductor, whose machines boot from the first process. */
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
/** Images are sent once it is resolved: until then, the update runs. */
let mayCome = Promise.resolve();
beforeAll(async () => {
  files = createServer(({ url }, response) => {
    const image = /^\/(bios|bmc|nic)-([\d.]+)$/.exec(url!);
    if (image) void mayCome.then(() => response.end(`firmware ${image[1]} ${image[2]}\n`));
    else response.writeHead(404).end();
  });
  files.listen(0, '127.0.0.1');
  await once(files, 'listening');
  whole = await startWholeServer(database.connection(), {
    machines: 3,
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

const versions = async (uuid: string): Promise<Readonly<Record<string, unknown>>> => {
  const { firmware } = (await whole.call('GET', `/v1/nodes/${uuid}/firmware`)).body as {
    readonly firmware: readonly { readonly component: string; readonly current_version: string }[];
  };
  return Object.fromEntries(firmware.map((item) => [item.component, item.current_version]));
};
const manageable = async (machine: number): Promise<string> => {
  const uuid = await whole.enrol(whole.fleet.machines[machine]!, { firmware_interface: 'redfish' });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  expect(await versions(uuid)).toMatchObject({ bios: '1.0', bmc: '1.0' });
  return uuid;
};
/** Manual cleaning with one `firmware.update` of these images. */
const update = async (uuid: string, images: Readonly<Record<string, string>>): Promise<void> => {
  const url = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  const settings = Object.entries(images).map(([component, file]) => ({ component, url: `${url}/${file}` }));
  await whole.order(uuid, 'clean', { clean_steps: [{ interface: 'firmware', step: 'update', args: { settings } }] });
};
it('installs several updates one after the other, and shows the new versions', async () => {
  const uuid = await manageable(0);
  await update(uuid, { bmc: 'bmc-3.1', bios: 'bios-2.5' });
  const node = await whole.reach(uuid, 'manageable');
  expect(node).toMatchObject({ last_error: null, clean_step: {} });
  expect(node['driver_internal_info']).not.toHaveProperty('redfish_fw_updates');
  expect(await versions(uuid)).toMatchObject({ bios: '2.5', bmc: '3.1' });
});

it('an image that the BMC cannot download fails the step, and the firmware stays the same', async () => {
  const uuid = await manageable(1);
  await update(uuid, { bios: 'missing' });
  await expect(whole.reach(uuid, 'manageable')).rejects.toThrow(/Firmware update failed for node/);
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
  expect(body).toMatchObject({ provision_state: 'clean failed', maintenance: true });
  expect(body['driver_internal_info']).not.toHaveProperty('redfish_fw_updates');
  expect(await versions(uuid)).toMatchObject({ bios: '1.0' });
});

it('another conductor continues the updates after the first one was killed, and requests each update only once', async () => {
  expect(await processes.start('conductor-2', 'conductor', other(whole.server))).toBe('conductor-2');
  // The node's UUID determines its conductor.
  let uuid = await manageable(2);
  const keeper = async (): Promise<unknown> => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['conductor'];
  while ((await keeper()) !== 'conductor-2') {
    expect((await whole.call('DELETE', `/v1/nodes/${uuid}`)).status).toBe(204);
    uuid = await manageable(2);
  }
  let send = (): void => {};
  mayCome = new Promise((resolve) => (send = resolve));
  await update(uuid, { bios: 'bios-2.6', 'nic:NIC1': 'nic-4.0' });
  await until('an update to run', async () => {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
    if (body['last_error'] !== null) throw new Error(`no update began: ${JSON.stringify(body)}`);
    return body['provision_state'] === 'clean wait' && Object.hasOwn(body['driver_internal_info'] as object, 'redfish_fw_updates');
  });
  await processes.end('conductor-2', 'SIGKILL');
  send();
  expect(await whole.reach(uuid, 'manageable')).toMatchObject({ last_error: null, conductor: 'conductor-1' });
  expect(await versions(uuid)).toMatchObject({ bios: '2.6' });
  const { address, username, password } = whole.fleet.machines[2]!.redfish;
  const tasks = await fetch(`${address}/redfish/v1/TaskService/Tasks`, {
    headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
  });
  expect(await tasks.json()).toMatchObject({ 'Members@odata.count': 2 });
});
