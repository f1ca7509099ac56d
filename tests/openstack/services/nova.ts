/** A real Nova 34 with its Placement 16 (PyPI) on loopback beside Keystone, Glance and Neutron: its driver for Ironic, and MariaDB. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { endReference } from '../../lab/inspection/real-ironic';
import { freePort } from '../../support/free-port';
import type { RealMariadb } from '../../lab/support/mariadb';
import { writeIni, type RealKeystone } from './keystone';
import { callerOf, computePrograms, clientSection, PASSWORD, REGION, startService, startWsgi, tokenSection, type Body } from './service';

export interface RealNova {
  readonly url: string;
  readonly log: string;
  /** As administrator of the project `service`. */
  call(method: string, path: string, body?: Body): Promise<Body>;
  placement(method: string, path: string, body?: Body): Promise<Body>;
  /** UUID of each node that a compute service has → the name of that service. */
  hypervisors(): Promise<Readonly<Record<string, string>>>;
  /**
   * A further compute service, with an API of its own that builds on its nodes. Closed with the first one.
   * @param ironic options of the section `ironic`
   */
  beside(host: string, ironic: Readonly<Record<string, string>>): Promise<Pick<RealNova, 'call'>>;
  close(): Promise<void>;
}

/** @param folder of its own. The catalog must have a bare metal server, which must answer already. */
export async function startNova(
  folder: string,
  { keystone, mariadb }: { readonly keystone: RealKeystone; readonly mariadb: RealMariadb },
  ironic: Readonly<Record<string, string>> = {},
): Promise<RealNova> {
  const bin = await computePrograms();
  for (const name of ['placement', 'lock']) mkdirSync(join(folder, name), { recursive: true });
  const { identity } = keystone;
  const project = await identity.project('service');
  const roles = ['admin', 'service'];
  await identity.user('placement', { [project]: roles });
  const user = await identity.user('nova', { [project]: roles, system: roles });
  const [placementPort, port] = [await freePort(), await freePort()];
  const [placementUrl, url] = [`http://127.0.0.1:${placementPort}`, `http://127.0.0.1:${port}/v2.1`];
  await identity.service('placement', placementUrl);
  await identity.service('compute', url);
  writeIni(join(folder, 'placement/placement.conf'), {
    api: { auth_strategy: 'keystone' },
    placement_database: { connection: await mariadb.create('placement'), sync_on_startup: 'true' },
    keystone_authtoken: tokenSection(keystone, 'placement', 'placement'),
  });
  const placement = await startWsgi({
    name: 'Placement',
    bin,
    module: 'placement.wsgi.api',
    port: placementPort,
    log: join(folder, 'placement.log'),
    url: placementUrl,
    env: { OS_PLACEMENT_CONFIG_DIR: join(folder, 'placement') },
  });
  const credentials = clientSection(keystone, 'nova');
  const systemWide = {
    auth_type: 'password',
    auth_url: keystone.url,
    username: 'nova',
    password: PASSWORD,
    user_domain_id: 'default',
    system_scope: 'all',
    region_name: REGION,
  };
  const sections = {
    DEFAULT: {
      my_ip: '127.0.0.1',
      transport_url: 'fake:/',
      compute_driver: 'ironic.IronicDriver',
      reserved_host_memory_mb: '0',
      update_resources_interval: '60',
      sync_power_state_interval: '-1',
      periodic_fuzzy_delay: '0',
      reclaim_instance_interval: '0',
      max_concurrent_builds: '250',
      rpc_response_timeout: '600',
      service_down_time: '600',
    },
    api: { auth_strategy: 'keystone' },
    wsgi: { api_paste_config: join(bin, '../etc/nova/api-paste.ini') },
    // A connection for each thread that builds a server.
    api_database: { connection: await mariadb.create('nova_api'), max_overflow: '250' },
    database: { connection: await mariadb.create('nova'), max_overflow: '250' },
    vnc: { enabled: 'false' },
    quota: { instances: '-1', cores: '-1', ram: '-1' },
    compute: { consecutive_build_service_disable_threshold: '0' },
    filter_scheduler: { track_instance_changes: 'false' },
    // How long Nova waits for a state: 200 servers that end at once keep Neutron busy for minutes.
    ironic: { ...systemWide, api_max_retries: '900', api_retry_interval: '1' },
    service_user: { ...credentials, send_service_user_token: 'true' },
    neutron: credentials,
    placement: credentials,
    glance: credentials,
    keystone: credentials,
    keystone_authtoken: tokenSection(keystone, 'nova', 'compute'),
    oslo_messaging_notifications: { driver: 'noop' },
    oslo_concurrency: { lock_path: join(folder, 'lock') },
  };
  const cell0 = await mariadb.create('nova_cell0');
  const serve = async (host: string, ownPort: number, own: Readonly<Record<string, string>>, env: Readonly<Record<string, string>>) => {
    const config = join(folder, `${host}.conf`);
    const state = join(folder, `state-${host}`);
    mkdirSync(join(state, 'instances'), { recursive: true });
    writeIni(config, {
      ...sections,
      DEFAULT: { ...sections.DEFAULT, host, state_path: state },
      ironic: { ...sections.ironic, ...own },
    });
    const command = [join(bin, 'python'), join(__dirname, 'nova_serve.py'), '--config-file', config];
    return startService({
      name: `Nova ${host}`,
      command,
      log: join(folder, `${host}.log`),
      url: `http://127.0.0.1:${ownPort}/`,

      env: { PORT: String(ownPort), CELL0: cell0, ...env },
    });
  };
  const children = [await serve('compute', port, ironic, {})];
  const log = join(folder, 'compute.log');
  const token = await identity.token(user, { project: { id: project } });
  const caller = (at: string, version: string): RealNova['call'] =>
    callerOf(at, () => token, { 'openstack-api-version': `compute ${version}` });
  // Later versions call each compute service, which does not work across processes here.
  const older = caller(url, '2.53');
  return {
    url,
    log,
    call: caller(url, '2.90'),
    hypervisors: async () => {
      const { hypervisors } = await older('GET', '/os-hypervisors/detail');
      const views = hypervisors as readonly { readonly hypervisor_hostname: string; readonly service: { readonly host: string } }[];
      return Object.fromEntries(views.map(({ hypervisor_hostname: node, service }) => [node, service.host]));
    },
    beside: async (host, own) => {
      const ownPort = await freePort();
      children.push(await serve(host, ownPort, own, { BESIDE: 'true' }));
      return { call: caller(`http://127.0.0.1:${ownPort}/v2.1`, '2.90') };
    },
    placement: callerOf(placementUrl, () => token, { 'openstack-api-version': 'placement 1.39' }),
    close: async () => {
      for (const child of children) await endReference(child);
      await endReference(placement);
    },
  };
}
