/** A conductor dies while automated cleaning brings a machine back to a default config: what was planned goes on, though the config is gone. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NETWORK_MODES, modeOf } from '../../../simulator/hardware/network-modes';
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
/** The BMC gets its firmware once the conductor is dead: until then, the update runs. */
let sendFirmware: () => void;
beforeAll(async () => {
  const mayCome = new Promise<void>((resolve) => (sendFirmware = resolve));
  files = createServer(({ url }, response) => {
    const image = /^\/(bios)-([\d.]+)$/.exec(url!);
    if (image) void mayCome.then(() => response.end(`firmware ${image[1]} ${image[2]}\n`));
    else response.writeHead(404).end();
  });
  files.listen(0, '127.0.0.1');
  await once(files, 'listening');
  whole = await startWholeServer(database.connection(), {
    machines: 2,
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

type Shown = Readonly<Record<string, unknown>>;
/** A manageable node that conductor-2 keeps. */
async function ofSecond(machine: number, resourceClass: string): Promise<string> {
  expect(await processes.start('conductor-2', 'conductor', other(whole.server))).toBe('conductor-2');
  for (;;) {
    // The node's UUID determines its conductor.
    const uuid = await whole.enrol(whole.fleet.machines[machine]!, { firmware_interface: 'redfish', resource_class: resourceClass });
    await whole.order(uuid, 'manage');
    const { conductor } = await whole.reach(uuid, 'manageable');
    if (conductor === 'conductor-2') return uuid;
    expect((await whole.call('DELETE', `/v1/nodes/${uuid}`)).status).toBe(204);
  }
}
/**
 * Kills conductor-2 while it cleans the node, deletes the default config, and waits until the node is available.
 * @param isThere of a node that waits: it is as described, and stays so until `goOn`
 */
async function survive(
  uuid: string,
  config: Shown,
  isThere: (internal: Shown) => boolean,
  goOn: () => void | Promise<void>,
): Promise<void> {
  await until('the node to wait in the step', async () => {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
    if (body['last_error'] !== null) throw new Error(`not reached: ${JSON.stringify(body)}`);
    return body['provision_state'] === 'clean wait' && isThere(body['driver_internal_info'] as Shown);
  });
  expect((await whole.call('DELETE', `/v1/default_configs/${String(config['uuid'])}`)).status).toBe(204);
  await processes.end('conductor-2', 'SIGKILL');
  await goOn();
  expect(await whole.reach(uuid, 'available')).toMatchObject({ last_error: null, conductor: 'conductor-1' });
}
const set = async (resourceClass: string, step: object): Promise<Shown> =>
  (await whole.call('POST', '/v1/default_configs', { resource_class: resourceClass, steps: [step] })).body;
const differencesOf = async (uuid: string) => (await whole.call('GET', `/v1/nodes/${uuid}/default_config`)).body;

it('installs the firmware of the class, and goes on when the conductor was killed and the default config deleted', async () => {
  const url = `http://127.0.0.1:${(files.address() as AddressInfo).port}/bios-2.6`;
  const settings = [{ component: 'bios', url, version: '2.6' }];
  const config = await set('flashed', { interface: 'firmware', step: 'update', args: { settings } });
  const uuid = await ofSecond(0, 'flashed');
  expect(await differencesOf(uuid)).toMatchObject({
    differences: ['firmware differs from the default of resource class flashed in 1 component: bios is 1.0, not 2.6'],
    read_now: true,
  });
  await whole.order(uuid, 'provide');
  await survive(uuid, config, (internal) => internal['redfish_fw_updates'] !== undefined, sendFirmware);
  const { firmware } = (await whole.call('GET', `/v1/nodes/${uuid}/firmware`)).body as { readonly firmware: readonly object[] };
  expect(firmware).toContainEqual(expect.objectContaining({ component: 'bios', current_version: '2.6' }));
}, 600_000);

it('sets the modes of network ports of the class, also when the conductor is killed after it has sent them', async () => {
  const args = { ports: [{ name: 'NIC1/1', mode: 'FibreChannel' }] };
  const config = await set('fibre', { interface: 'management', step: 'configure_network_adapters', args });
  const uuid = await ofSecond(1, 'fibre');
  const { control } = whole.fleet.machines[1]!;
  const { hardware } = control;
  await whole.order(uuid, 'provide');
  // The firmware hangs at the restart that applies the modes.
  await until('the modes to be sent', () => hardware.get(NETWORK_MODES).pending !== undefined, 1);
  control.behave({ firmwareMs: 3_600_000 });
  await survive(
    uuid,
    config,
    (internal) => internal['redfish_network_state'] !== undefined,
    async () => {
      control.behave({ firmwareMs: 10 });
      await control.act('reset');
    },
  );
  expect(modeOf(hardware.get(NETWORK_MODES).current, '1')).toBe('FibreChannel');
}, 600_000);
