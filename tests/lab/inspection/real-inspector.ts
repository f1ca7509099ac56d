/**
 * The real ironic-inspector 12.5.0 (PyPI) as one process with SQLite and without authentication, in front of an Ironic API without
 * authentication.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../../../demo/lab/machines';
import { endReference, type Settings } from './real-ironic';
import { programs } from '../support/venv';

const run = promisify(execFile);

export interface RealInspector {
  readonly url: string;
  readonly log: string;
  stop(): Promise<void>;
}

/**
 * @param folder of its own
 * @param ironicUrl without /v1
 * @param settings over the usual ones, by section
 */
export async function startRealInspector(
  folder: string,
  address: string,
  port: number,
  ironicUrl: string,
  settings: Settings = {},
): Promise<RealInspector> {
  const bin = await programs('ironic-inspector', ['ironic-inspector==12.5.0']);
  mkdirSync(folder, { recursive: true });
  const at = (name: string): string => join(folder, name);
  const url = `http://${address}:${port}`;
  const usual: Settings = {
    DEFAULT: {
      auth_strategy: 'noauth',
      listen_address: address,
      listen_port: String(port),
      transport_url: 'fake://',
      standalone: 'true',
      host: 'real-inspector',
      introspection_delay: '0',
    },
    database: { connection: `sqlite:///${at('inspector.sqlite')}` },
    ironic: { auth_type: 'none', endpoint_override: ironicUrl },
    service_catalog: { auth_type: 'none', endpoint_override: url },
    pxe_filter: { driver: 'noop' },
    processing: { store_data: 'database' },
    coordination: { backend_url: `file://${at('coordination')}` },
    mdns: { enable_mdns: 'false' },
  };
  const sections = [...new Set([...Object.keys(usual), ...Object.keys(settings)])];
  const lines = sections.flatMap((section) => [
    `[${section}]`,
    ...Object.entries({ ...usual[section], ...settings[section] }).map(([name, value]) => `${name} = ${value}`),
  ]);
  const config = at('inspector.conf');
  writeFileSync(config, `${lines.join('\n')}\n`);
  await run(join(bin, 'ironic-inspector-dbsync'), ['--config-file', config, 'upgrade'], { timeout: 180_000 });
  const log = openSync(at('inspector.log'), 'a');
  const child = spawn(join(bin, 'ironic-inspector'), ['--config-file', config], { stdio: ['ignore', log, log] });
  const tail = (): string => readFileSync(at('inspector.log'), 'utf8').slice(-3000);
  await until(
    240,
    () => `the real inspector to answer\n${tail()}`,
    async () => {
      if (child.exitCode !== null) throw new Error(`the real inspector ended\n${tail()}`);
      return fetch(url).then(
        ({ ok }) => ok,
        () => false,
      );
    },
  );
  return {
    url,
    log: at('inspector.log'),
    stop: () => endReference(child),
  };
}
