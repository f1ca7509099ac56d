/** A real Swift 2.38 (PyPI) on loopback beside a Keystone: all its servers in one process, with objects in memory. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { createServices, type ServiceClient } from '../../../wire/keystone/services';
import { endReference } from '../../lab/inspection/real-ironic';
import { programs } from '../../lab/support/venv';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { writeIni, type RealKeystone } from './keystone';
import { clientSection, startService, tokenSection } from './service';

export interface RealSwift {
  /** Our client, with the credentials of a user of its own. */
  readonly client: ServiceClient;
  readonly log: string;
  close(): Promise<void>;
}

/** Swift's servers give up after half a second, and share one processor here. Its other timeouts follow from these. */
const TIMEOUTS = { conn_timeout: '60', node_timeout: '600' } as const;

/** @param folder of its own */
export async function startSwift(folder: string, keystone: RealKeystone): Promise<RealSwift> {
  const bin = await programs('swift', ['swift==2.38.3', 'keystonemiddleware==13.0.1']);
  mkdirSync(folder, { recursive: true });
  const { identity } = keystone;
  const project = await identity.project('service');
  await identity.user('swift', { [project]: ['admin', 'service'] });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await identity.service('object-store', `${url}/v1/AUTH_%(project_id)s`);
  writeIni(join(folder, 'swift.conf'), {
    'swift-hash': { swift_hash_path_suffix: 'of tests' },
    'storage-policy:0': { name: 'only', default: 'yes' },
  });
  const filter = (name: string): Readonly<Record<string, string>> => ({ use: `egg:swift#${name}` });
  writeIni(join(folder, 'proxy.conf'), {
    DEFAULT: { swift_dir: folder },
    'pipeline:main': { pipeline: 'catch_errors healthcheck tempurl authtoken keystoneauth proxy' },
    ...Object.fromEntries(['catch_errors', 'healthcheck', 'tempurl'].map((name) => [`filter:${name}`, filter(name)])),
    'filter:authtoken': {
      ...tokenSection(keystone, 'swift', 'object-store'),
      'paste.filter_factory': 'keystonemiddleware.auth_token:filter_factory',
      delay_auth_decision: 'true',
    },
    'filter:keystoneauth': { ...filter('keystoneauth'), operator_roles: 'admin' },
    'app:proxy': { ...filter('proxy'), ...TIMEOUTS, account_autocreate: 'true' },
  });
  const log = join(folder, 'swift.log');
  const child = await startService({
    name: 'Swift',
    command: [join(bin, 'python'), join(__dirname, 'swift_serve.py'), folder],
    log,
    url: `${url}/healthcheck`,
    env: { PORT: String(port) },
  });
  const stopping = new AbortController();
  const options = {
    ...clientSection(keystone, 'swift'),
    service_type: 'object-store',
    valid_interfaces: ['internal', 'public'],
    timeout: 600,
  };
  const { swift: client } = createServices(Object.fromEntries(Object.entries(options).map(([name, value]) => [`swift.${name}`, value])), {
    clock: systemClock,
    signal: stopping.signal,
  });
  // The first request waits for a token, for its validation and for the account. The program's own requests have a short timeout.
  await until(
    'Swift stores',
    () =>
      client.request('/first', { method: 'PUT' }).then(
        () => true,
        () => false,
      ),
    200,
  );
  return {
    client,
    log,
    close: async () => {
      stopping.abort();
      await client.close();
      await endReference(child);
    },
  };
}
