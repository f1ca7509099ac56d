/**
 * A real Neutron 29 (PyPI) on loopback beside a Keystone: ML2 with networking-generic-switch, whose switches are simulated and log their
 * orders. One process; no agents but networking-baremetal's, so a bound port is active at once.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endReference } from '../../lab/inspection/real-ironic';
import { programs } from '../../lab/support/venv';
import { freePort } from '../../support/free-port';
import { writeIni, type RealKeystone } from './keystone';
import { callerOf, clientSection, sqlite, startWsgi, tokenSection, type Body } from './service';

const run = promisify(execFile);

export interface NeutronPortView {
  readonly id: string;
  readonly status: string;
  readonly network_id: string;
  readonly mac_address: string;
  readonly device_id: string;
  readonly device_owner: string;
  readonly 'binding:host_id': string;
  readonly 'binding:vnic_type': string;
  readonly 'binding:profile': Body;
  readonly fixed_ips: readonly Body[];
  readonly extra_dhcp_opts: readonly Body[];
}
export interface RealNeutron {
  readonly url: string;
  readonly log: string;
  /** As administrator. Answers the body; throws unless the status is 2xx. */
  call(method: string, path: string, body?: Body): Promise<Body>;
  /** A VLAN network with one subnet. Answers its ID. */
  network(name: string, vlan: number, subnet: Body): Promise<string>;
  port(body: Body): Promise<NeutronPortView>;
  ports(query?: string): Promise<readonly NeutronPortView[]>;
  /** The moves of switch ports so far: `p1: 100`, and `p1: -` without a network. */
  moves(): readonly string[];
  /** Its HTTP requests so far: `POST /v2.0/ports 201`. */
  requests(): readonly string[];
  /** The options of a section that authenticates to this cloud. */
  readonly credentials: Readonly<Record<string, string>>;
  /** Starts networking-baremetal's agent, which reads the ports of the Bare Metal service of the catalog. Closed with Neutron. */
  startAgent(): void;
  close(): Promise<void>;
}

/** The one switch. */
export const SWITCH = { switch_id: '0a:1b:2c:3d:4e:5f', switch_info: 'sw1' } as const;

/** Name → its options of networking-generic-switch. */
export type Switches = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Neutron's migrations need another database; its models describe the same tables. */
const MAKE_TABLES = `
import sys
from neutron.common import config
config.register_common_config_options()
config.init(sys.argv[1:])
from neutron.db.migration.models import head
from neutron_lib.db import api, model_base
model_base.BASEV2.metadata.create_all(api.get_writer_session().get_bind())
`;

/**
 * @param folder of its own
 * @param connection URL of its database
 * @param switches further ones
 */
export async function startNeutron(
  folder: string,
  keystone: RealKeystone,
  connection = sqlite(join(folder, 'neutron.sqlite')),
  switches: Switches = {},
): Promise<RealNeutron> {
  const bin = await programs('network', [
    'neutron==29.0.0',
    'networking-generic-switch==10.2.0',
    'networking-baremetal==8.1.0',
    'pymysql==1.2.4',
    'pyuwsgi==2.0.30.post1',
  ]);
  for (const name of ['state', 'lock']) mkdirSync(join(folder, name), { recursive: true });
  const { identity } = keystone;
  const project = await identity.project('service');
  const roles = { [project]: ['admin', 'service'] };
  await identity.user('neutron', roles);
  const ironic = await identity.user('ironic', roles);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await identity.service('network', url);
  const credentials = clientSection(keystone, 'ironic');
  const config = join(folder, 'neutron.conf');
  writeIni(config, {
    DEFAULT: {
      auth_strategy: 'keystone',
      core_plugin: 'ml2',
      service_plugins: 'segments',
      transport_url: 'fake://',

      api_paste_config: join(bin, '../etc/neutron/api-paste.ini'),
      state_path: join(folder, 'state'),
      notify_nova_on_port_status_changes: 'false',
      notify_nova_on_port_data_changes: 'false',
      dhcp_agent_notification: 'false',
      rpc_workers: '0',
      rpc_state_report_workers: '0',
      api_workers: '1',
    },
    database: { connection },
    ml2: {
      type_drivers: 'flat,vlan',
      project_network_types: 'vlan',
      mechanism_drivers: 'baremetal,genericswitch',
      extension_drivers: 'port_security',
    },
    ml2_type_flat: { flat_networks: '*' },
    ml2_type_vlan: { network_vlan_ranges: 'physnet1:100:199' },
    [`genericswitch:${SWITCH.switch_info}`]: {
      device_type: 'netmiko_fake',
      ngs_mac_address: SWITCH.switch_id,
      ip: '127.0.0.1',
      username: 'none',
      password: 'none',
    },
    ...Object.fromEntries(Object.entries(switches).map(([name, options]) => [`genericswitch:${name}`, options])),
    keystone_authtoken: tokenSection(keystone, 'neutron', 'network'),
    oslo_concurrency: { lock_path: join(folder, 'lock') },
    oslo_messaging_notifications: { driver: 'noop' },
    quotas: { quota_port: '-1' },
  });
  await run(join(bin, 'python'), ['-W', 'ignore', '-c', MAKE_TABLES, '--config-file', config], { timeout: 600_000 });
  const log = join(folder, 'neutron.log');
  const env = { OS_NEUTRON_CONFIG_DIR: folder, OS_NEUTRON_CONFIG_FILES: 'neutron.conf' };
  const child = await startWsgi({ name: 'Neutron', bin, module: 'neutron.wsgi.api', port, env, log, url });
  const text = (): string => readFileSync(log, 'utf8');
  const token = await identity.token(ironic, { project: { id: project } });
  const call = callerOf(`${url}/v2.0`, () => token);
  let agent: ChildProcess | undefined;
  return {
    url,
    log,
    call,
    credentials,
    network: async (name, vlan, subnet) => {
      const provider = { 'provider:network_type': 'vlan', 'provider:physical_network': 'physnet1', 'provider:segmentation_id': vlan };
      const { network } = (await call('POST', '/networks', { network: { name, ...provider } })) as { network: { id: string } };
      await call('POST', '/subnets', { subnet: { network_id: network.id, name, enable_dhcp: false, ...subnet } });
      return network.id;
    },
    port: async (body) => ((await call('POST', '/ports', { port: body })) as { port: NeutronPortView }).port,
    ports: async (query = '') => ((await call('GET', `/ports${query}`)) as { ports: NeutronPortView[] }).ports,
    moves: () =>
      [...text().matchAll(/ (?:plug port (\S+) to network (\S+)|delete port (\S+))$/gm)].map(([, plugged, network, freed]) =>
        freed === undefined ? `${plugged}: ${network}` : `${freed}: -`,
      ),
    requests: () =>
      [...text().matchAll(/\] (GET|POST|PUT|DELETE) (\/v2\.0\/\S+) => generated .*?\(HTTP\/1\.1 (\d+)\)/g)].map(
        ([, method, path, status]) => `${method} ${path} ${status}`,
      ),
    startAgent: () => {
      const own = join(folder, 'agent.conf');
      writeIni(own, {
        // Reports of a minute ago count as those of a dead agent.
        AGENT: { report_interval: '6' },
        ironic: credentials,
        l2vni: { enable_l2vni_trunk_reconciliation: 'false', enable_l2vni_trunk_reconciliation_events: 'false' },
        baremetal_agent: {
          enable_ha_chassis_group_alignment: 'false',
          enable_router_ha_binding: 'false',
          enable_router_ha_binding_events: 'false',
        },
      });
      const output = openSync(join(folder, 'agent.log'), 'a');
      const words = [join(__dirname, 'neutron_agent.py'), '--config-file', config, '--config-file', own];
      agent = spawn(join(bin, 'python'), words, { stdio: ['ignore', output, output] });
    },
    close: async () => {
      if (agent) await endReference(agent);
      await endReference(child);
    },
  };
}
