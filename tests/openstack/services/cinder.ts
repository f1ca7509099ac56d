/** A real Cinder 29 (PyPI) on loopback, in one process with SQLite, which trusts a real Keystone. Its backend has no disks. */
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { createServices } from '../../../wire/keystone/services';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { endReference } from '../../lab/inspection/real-ironic';
import { programs } from '../../lab/support/venv';
import type { Cinder } from '../../support/cinder-cases';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import type { RealKeystone } from './keystone';
import { PASSWORD, REGION } from './service';

const SIGN_IN = {
  username: 'cinder',
  password: PASSWORD,
  user_domain_id: 'default',
  project_name: 'service',
  project_domain_id: 'default',
};

/** @param folder of its own */
export async function startCinder(folder: string, keystone: RealKeystone): Promise<Cinder & { close(): Promise<void> }> {
  const bin = await programs('cinder', ['cinder==29.0.0']);
  const port = await freePort();
  const own = (name: string): string => join(folder, name);
  for (const name of ['state', 'lock', 'coordination']) mkdirSync(own(name), { recursive: true });
  const { identity } = keystone;
  const project = await identity.project(SIGN_IN.project_name);
  await identity.user(SIGN_IN.username, { [project]: ['admin', 'service'] });
  // With the project in the URL, as catalogs have it.
  await identity.service('volumev3', `http://127.0.0.1:${port}/v3/%(project_id)s`);
  const etc = join(bin, '../etc/cinder');
  const sections = {
    DEFAULT: {
      state_path: own('state'),
      transport_url: 'fake:/',
      auth_strategy: 'keystone',
      osapi_volume_listen: '127.0.0.1',
      osapi_volume_listen_port: port,
      osapi_volume_workers: 1,
      enabled_backends: 'disks',
      quota_volumes: -1,
      quota_gigabytes: -1,
      api_paste_config: join(etc, 'api-paste.ini'),
      rootwrap_config: join(etc, 'rootwrap.conf'),
      host: 'lab',
    },
    disks: { volume_driver: 'cinder_backend.Driver', volume_backend_name: 'disks' },
    database: { connection: `sqlite:///${own('cinder.sqlite')}` },
    oslo_concurrency: { lock_path: own('lock') },
    coordination: { backend_url: `file://${own('coordination')}` },
    keystone_authtoken: { ...SIGN_IN, auth_type: 'password', auth_url: keystone.url, www_authenticate_uri: keystone.url },
  };
  const lines = Object.entries(sections).flatMap(([section, values]) => [
    `[${section}]`,
    ...Object.entries(values).map(([name, value]) => `${name} = ${value}`),
  ]);
  writeFileSync(own('cinder.conf'), `${lines.join('\n')}\n`);
  const log = own('cinder.log');
  const output = openSync(log, 'a');
  const child = spawn(join(bin, 'python'), [join(__dirname, 'cinder_serve.py'), '--config-file', own('cinder.conf')], {
    stdio: ['ignore', output, output],
    env: { ...process.env, PYTHONPATH: __dirname },
  });
  const stopping = new AbortController();
  const options = Object.fromEntries(
    Object.entries({
      ...SIGN_IN,
      auth_type: 'password',
      auth_url: keystone.url,
      service_type: 'volumev3',
      region_name: REGION,
      valid_interfaces: ['internal', 'public'],
      timeout: 120,
    }).map(([name, value]) => [`cinder.${name}`, value]),
  );
  const { cinder: client } = createServices(options, { clock: systemClock, signal: stopping.signal });
  const answers = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`Cinder ended\n${readFileSync(log, 'utf8').slice(-3000)}`);
    return fetch(`http://127.0.0.1:${port}/healthcheck`, { signal: timeoutSignal(30_000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await until('Cinder answers', answers, 100);
  const volumeOf = async (id: string): Promise<{ status: string; attachments: unknown[]; metadata: Record<string, string> }> =>
    ((await client.request(`/volumes/${id}`)).body as { volume: never }).volume;
  return {
    client,
    create: async () => {
      const { body } = await client.request('/volumes', { method: 'POST', body: { volume: { size: 1, name: 'of a test' } } });
      const { id } = (body as { volume: { id: string } }).volume;
      await until('the volume is available', async () => (await volumeOf(id)).status === 'available', 100);
      return id;
    },
    look: async (id) => {
      const { status, attachments, metadata } = await volumeOf(id);
      return { status, attachments: attachments.length, metadata };
    },
    close: async () => {
      stopping.abort();
      await client.close();
      await endReference(child);
    },
  };
}
