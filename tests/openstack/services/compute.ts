/** Our server with simulated machines inside a cloud with Nova, and what its tests do with nodes and servers. */
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet, type FleetMachine } from '../../../simulator/fleet/fleet';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { writeRamdisk } from './boot-files';
import { startCloud, type Cloud } from './cloud';
import { SWITCH } from './neutron';
import { startNova, type RealNova } from './nova';
import { callerOf, type Body } from './service';

export interface ComputeCloud {
  readonly cloud: Cloud;
  readonly server: RunningServer;
  readonly fleet: Fleet;
  /** Our API, as administrator of the system. */
  readonly api: ReturnType<typeof callerOf>;
  /** Starts Nova, whose compute service reads the nodes at its start. */
  startNova(ironic?: Readonly<Record<string, string>>): Promise<RealNova>;
  close(): Promise<void>;
}

/**
 * @param folder of its own
 * @param machines number of simulated machines
 * @param conductorGroup of the server
 */
export async function startComputeCloud(folder: string, machines: number, conductorGroup = ''): Promise<ComputeCloud> {
  const running: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of running.splice(0).reverse()) await end();
  };
  try {
    const cloud = await startCloud(folder);
    running.push(() => cloud.close());
    const http = join(folder, 'server/state/httpboot');
    const [port, boot] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${port}`;
    // Before the server starts: it reads its own URL from the catalog.
    await cloud.keystone.identity.service('baremetal', url);
    const fleet = await startFleet({
      count: machines,
      bootUrl: `http://127.0.0.1:${boot}`,
      host: '127.0.0.1',

      log: silentLog,
      clock: systemClock,
      random: randomBytes,
    });
    running.push(() => fleet.close());
    const server = await startServerProcess(join(folder, 'server'), {
      ...cloud.sections,
      DEFAULT: {
        my_ip: '127.0.0.1',
        auth_strategy: 'keystone',
        enabled_hardware_types: 'redfish,fake-hardware',
        enabled_boot_interfaces: 'ipxe,fake',
        enabled_deploy_interfaces: 'direct,fake',
        enabled_inspect_interfaces: 'agent,no-inspect',
        enabled_rescue_interfaces: 'agent,no-rescue,fake',
        enabled_network_interfaces: 'noop,flat,neutron',
      },
      api: { host_ip: '127.0.0.1', port },
      boot: { http_host: '127.0.0.1', http_port: boot, tftp: 'false' },
      conductor: { ...writeRamdisk(http, folder), conductor_group: conductorGroup, max_concurrent_clean: '250' },
    });
    running.push(() => server.stop());
    const token = await cloud.systemToken();
    return {
      cloud,
      server,
      fleet,
      close,
      api: callerOf(url, () => token, { 'x-openstack-ironic-api-version': 'latest' }),
      startNova: async (ironic) => {
        const nova = await startNova(join(folder, 'nova'), cloud, ironic);
        running.push(() => nova.close());
        return nova;
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Nova asks Neutron for each response, and both compete with the work that is waited for: so the pauses are long. Six services share the
 * machine, and one of their operations can take minutes.
 */
export const waitFor = (what: string, isSo: () => Promise<boolean> | boolean, everyMs = 3000): Promise<void> =>
  until(what, isSo, everyMs, 1_800_000);

/** The fields of a node that is a simulated machine, and of its two ports. */
export const redfishNode = ({ redfish }: FleetMachine): Body => ({
  driver: 'redfish',
  rescue_interface: 'agent',
  driver_info: {
    redfish_address: redfish.address,
    redfish_system_id: redfish.systemId,
    redfish_username: redfish.username,
    redfish_password: redfish.password,
  },
});
export interface NodeView {
  readonly provision_state: string;
  readonly power_state: string | null;
  readonly last_error: string | null;
  readonly instance_uuid: string | null;
  readonly instance_info: Body;
}
type Api = ReturnType<typeof callerOf>;
export const show = async (api: Api, uuid: string): Promise<NodeView> => (await api('GET', `/v1/nodes/${uuid}`)) as unknown as NodeView;
/** Throws when the node failed. */
export async function stateOf(api: Api, uuid: string): Promise<string> {
  const { provision_state: state, last_error: error } = await show(api, uuid);
  if (/(?:failed|error)$/.test(state)) throw new Error(`${uuid}: ${state}: ${error}`);
  return state;
}

const pretended = (uuid: string, index: number): Body => ({ ...SWITCH, port_id: `${uuid.slice(0, 8)}-${index}` });
/** Makes a node with at most two ports, of which the first one boots, and brings it to `available`. Answers its UUID. */
export async function enroll(
  api: Api,
  fields: Body,
  macs: readonly string[],
  traits: readonly string[],
  linkOf = pretended,
): Promise<string> {
  const uuid = randomUUID();
  await api('POST', '/v1/nodes', { uuid, resource_class: 'baremetal', ...fields });
  await api('PUT', `/v1/nodes/${uuid}/traits`, { traits });
  for (const [index, address] of macs.slice(0, 2).entries())
    await api('POST', '/v1/ports', {
      node_uuid: uuid,
      address,
      pxe_enabled: index === 0,
      physical_network: 'physnet1',
      local_link_connection: linkOf(uuid, index),
    });
  for (const [target, ends] of [
    ['manage', 'manageable'],
    ['provide', 'available'],
  ]) {
    await api('PUT', `/v1/nodes/${uuid}/states/provision`, { target });
    await waitFor(`the node is ${ends}`, async () => (await stateOf(api, uuid)) === ends, 500);
  }
  return uuid;
}

/** A flavor that only nodes with a trait can have. */
export async function makeFlavor(nova: Pick<RealNova, 'call'>, name: string, trait: string): Promise<void> {
  await nova.call('POST', '/flavors', { flavor: { id: name, name, ram: 512, vcpus: 1, disk: 1 } });
  await nova.call('POST', `/flavors/${name}/os-extra_specs`, {
    extra_specs: {
      'resources:CUSTOM_BAREMETAL': '1',
      'resources:VCPU': '0',
      'resources:MEMORY_MB': '0',
      'resources:DISK_GB': '0',
      [`trait:${trait}`]: 'required',
    },
  });
}
interface ServerView {
  readonly id: string;
  readonly status: string;
  readonly 'OS-EXT-STS:task_state': string | null;
  readonly fault?: { readonly message: string };
}
/** Waits until a server has a status and no task. Throws when it has the status ERROR. */
export async function serverReaches(nova: Pick<RealNova, 'call'>, id: string, status: string): Promise<void> {
  await waitFor(`the server is ${status}`, async () => {
    const { server: view } = (await nova.call('GET', `/servers/${id}`)) as unknown as { server: ServerView };
    if (view.status === 'ERROR') throw new Error(`ERROR: ${view.fault?.message}`);
    return view.status === status && view['OS-EXT-STS:task_state'] === null;
  });
}
export async function noServersLeft(nova: Pick<RealNova, 'call'>): Promise<void> {
  await waitFor('all servers are gone', async () => ((await nova.call('GET', '/servers'))['servers'] as unknown[]).length === 0);
}
export const allocationsOf = async (nova: RealNova, uuid: string): Promise<object> =>
  (await nova.placement('GET', `/resource_providers/${uuid}/allocations`))['allocations'] as object;
export async function noAllocationsLeft(nova: RealNova, uuid: string): Promise<void> {
  await waitFor('Placement has no allocation', async () => Object.keys(await allocationsOf(nova, uuid)).length === 0);
}
