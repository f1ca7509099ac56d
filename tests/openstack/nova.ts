/** A real Nova 34 with its Placement 16 (PyPI) on loopback beside Keystone, Glance and Neutron: its driver for Ironic, and MariaDB. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { endReference } from '../lab/inspection/real-ironic';
import { freePort } from '../support/free-port';
import type { RealMariadb } from '../lab/support/mariadb';
import { writeIni, type RealKeystone } from './keystone';
import { callerOf, computePrograms, clientSection, PASSWORD, REGION, startService, startWsgi, tokenSection, type Body } from './service';

export interface RealNova {
  readonly url: string;
  readonly log: string;
  /** As administrator of the project `service`. */
  call(method: string, path: string, body?: Body): Promise<Body>;
  placement(method: string, path: string, body?: Body): Promise<Body>;
  close(): Promise<void>;
}

/** @param folder of its own. The catalog has a bare metal server, which answers already. */
export async function startNova(
  folder: string,
  { keystone, mariadb }: { readonly keystone: RealKeystone; readonly mariadb: RealMariadb },
): Promise<RealNova> {
  const bin = await computePrograms();
  for (const name of ['placement', 'state/instances', 'lock']) mkdirSync(join(folder, name), { recursive: true });
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
    ...{ name: 'Placement', bin, module: 'placement.wsgi.api', port: placementPort },
    ...{ log: join(folder, 'placement.log'), url: placementUrl, env: { OS_PLACEMENT_CONFIG_DIR: join(folder, 'placement') } },
  });
  const credentials = clientSection(keystone, 'nova');
  const systemWide = {
    ...{ auth_type: 'password', auth_url: keystone.url, username: 'nova', password: PASSWORD, user_domain_id: 'default' },
    ...{ system_scope: 'all', region_name: REGION },
  };
  const config = join(folder, 'nova.conf');
  writeIni(config, {
    DEFAULT: {
      ...{ host: 'compute', my_ip: '127.0.0.1', transport_url: 'fake:/', state_path: join(folder, 'state') },
      ...{ compute_driver: 'ironic.IronicDriver', reserved_host_memory_mb: '0', update_resources_interval: '60' },
      ...{ sync_power_state_interval: '-1', periodic_fuzzy_delay: '0', reclaim_instance_interval: '0' },
      ...{ max_concurrent_builds: '250', rpc_response_timeout: '600', service_down_time: '600' },
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
    ...{ neutron: credentials, placement: credentials, glance: credentials, keystone: credentials },
    keystone_authtoken: tokenSection(keystone, 'nova', 'compute'),
    oslo_messaging_notifications: { driver: 'noop' },
    oslo_concurrency: { lock_path: join(folder, 'lock') },
  });
  const log = join(folder, 'nova.log');
  const child = await startService({
    ...{ name: 'Nova', command: [join(bin, 'python'), join(__dirname, 'nova_serve.py'), '--config-file', config], log },
    ...{ url: `http://127.0.0.1:${port}/`, env: { PORT: String(port), CELL0: await mariadb.create('nova_cell0') } },
  });
  const token = await identity.token(user, { project: { id: project } });
  return {
    ...{ url, log },
    call: callerOf(url, () => token, { 'openstack-api-version': 'compute 2.90' }),
    placement: callerOf(placementUrl, () => token, { 'openstack-api-version': 'placement 1.39' }),
    close: async () => {
      await endReference(child);
      await endReference(placement);
    },
  };
}
