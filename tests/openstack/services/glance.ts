/** A real Glance 33 (PyPI) on loopback beside a Keystone. It stores images in files. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { endReference } from '../../lab/inspection/real-ironic';
import { freePort } from '../../support/free-port';
import { writeIni, type RealKeystone } from './keystone';
import { callerOf, computePrograms, startWsgi, tokenSection, type Body } from './service';

const run = promisify(execFile);

export interface RealGlance {
  readonly url: string;
  /** As administrator. */
  call(method: string, path: string, body?: Body): Promise<Body>;
  /** Makes an image and answers its ID. */
  image(properties: Body, bytes: Buffer): Promise<string>;
  close(): Promise<void>;
}

/** Glance's migrations need another database; its models describe the same tables. */
const MAKE_TABLES = `
import sys, sqlalchemy
from glance.db.sqlalchemy import models, models_metadef
engine = sqlalchemy.create_engine(sys.argv[1])
models.BASE.metadata.create_all(engine)
models_metadef.BASE_DICT.metadata.create_all(engine)
`;

/**
 * @param folder of its own
 * @param connection URL of its database
 */
export async function startGlance(folder: string, keystone: RealKeystone, connection: string): Promise<RealGlance> {
  const bin = await computePrograms();
  for (const name of ['images', 'staging', 'tasks', 'lock']) mkdirSync(join(folder, name), { recursive: true });
  const { identity } = keystone;
  const project = await identity.project('service');
  const user = await identity.user('glance', { [project]: ['admin', 'service'] });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await identity.service('image', url);
  const store = (name: string): Readonly<Record<string, string>> => ({ filesystem_store_datadir: join(folder, name) });
  writeIni(join(folder, 'glance-api.conf'), {
    DEFAULT: { enabled_backends: 'files:file', node_staging_uri: `file://${join(folder, 'staging')}` },
    glance_store: { default_backend: 'files' },
    files: store('images'),
    os_glance_staging_store: store('staging'),
    os_glance_tasks_store: store('tasks'),
    database: { connection },
    paste_deploy: { flavor: 'keystone', config_file: join(bin, '../etc/glance/glance-api-paste.ini') },
    keystone_authtoken: tokenSection(keystone, 'glance', 'image'),
    oslo_concurrency: { lock_path: join(folder, 'lock') },
  });
  await run(join(bin, 'python'), ['-W', 'ignore', '-c', MAKE_TABLES, connection], { timeout: 600_000 });
  const child = await startWsgi({
    name: 'Glance',
    bin,
    module: 'glance.wsgi.api',
    port,
    log: join(folder, 'glance.log'),
    url: `${url}/versions`,
    env: { OS_GLANCE_CONFIG_DIR: folder },
  });
  const token = await identity.token(user, { project: { id: project } });
  const call = callerOf(url, () => token);
  return {
    url,
    call,
    image: async (properties, bytes) => {
      const { id } = (await call('POST', '/v2/images', { container_format: 'bare', ...properties })) as { id: string };
      const { ok, status } = await fetch(`${url}/v2/images/${id}/file`, {
        method: 'PUT',
        headers: { 'content-type': 'application/octet-stream', 'x-auth-token': token },
        body: new Uint8Array(bytes),
        signal: timeoutSignal(120_000),
      });
      if (!ok) throw new Error(`Glance does not store the image: ${status}`);
      return id;
    },
    close: () => endReference(child),
  };
}
