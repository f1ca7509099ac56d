// The server and the database that a scenario measures.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../install.mjs';
import { openClient } from './client.mjs';
import { bind, startProgram } from './processes.mjs';
import { built } from './program.mjs';
import { KINDS, configurationText } from './work.mjs';

/**
 * @typedef {import('./work.mjs').Sections} Sections
 * @typedef {import('./client.mjs').Client & { url: string, pid: number, stop: () => Promise<void> }} Server
 * @typedef {object} Bench what a scenario runs on
 * @property {string} folder for its files, which is removed at the end
 * @property {import('./processes.mjs').AtEnd} atEnd
 * @property {(pid: number, cpu: number) => void} bind to a CPU, with `--one-core`
 * @property {() => Promise<import('../../store/postgres.js').OpenStore>} openStore
 * @property {(sections: Sections) => Promise<Measured>} begin starts a server
 * @typedef {object} Measured
 * @property {Server} server
 * @property {{ pid: number }} database
 */

const FAKE = {
  enabled_hardware_types: 'fake-hardware',
  ...Object.fromEntries(KINDS.map((kind) => [`enabled_${kind}_interfaces`, 'fake'])),
  enabled_deploy_interfaces: 'fake,direct',
};
/** @param {string} folder @param {Sections} given */
function configuration(folder, given) {
  /** @type {Record<string, Sections[string]>} */
  const sections = {
    DEFAULT: {
      host: 'bench',
      auth_strategy: 'noauth',
      log_file: join(folder, 'log'),
      enabled_network_interfaces: 'noop',
      ...(given['DEFAULT']?.['enabled_hardware_types'] === undefined ? FAKE : {}),
    },
    api: { host_ip: '127.0.0.1', port: 0 },
    agent: { require_tls: false },
  };
  for (const [name, section] of Object.entries(given)) sections[name] = { ...sections[name], ...section };
  return sections;
}

/**
 * Starts a database. `begin` starts servers on it.
 * @param {import('./processes.mjs').AtEnd} atEnd
 * @param {boolean} isOneCore
 * @returns {Promise<Bench>}
 */
export async function prepareBench(atEnd, isOneCore) {
  const bindTo = isOneCore ? bind : () => {};
  const [{ startEmbedded }, { openStore }, { systemClock: clock }, { silentLog: log }, { silentMetrics: metrics }] = await Promise.all([
    built('store/embedded/embedded'),
    built('store/postgres'),
    built('model/clock'),
    built('model/log'),
    built('model/metrics'),
  ]);
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-bench-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const database = await startEmbedded({ stateDir: folder, log, clock });
  atEnd(() => database.stop());
  bindTo(database.pid, 1);
  return {
    folder,
    atEnd,
    bind: bindTo,
    openStore: () => openStore({ connection: database.connection, poolSize: 10, clock, log, metrics }),
    begin: async (sections) => {
      const file = join(folder, 'ironic.conf');
      writeFileSync(file, configurationText(configuration(folder, sections)));
      const roles = sections['boot'] ? 'api,conductor,boot' : 'api,conductor';
      const words = [join(root, 'bin/bloomery'), 'serve', '--config-file', file, '--state-dir', folder, '--roles', roles];
      const options = { environment: { DATABASE_URL: database.connection }, areErrorsShown: true };
      const { pid, line, stop } = await startProgram(words, /ready in .*?API (http[^\s,]+)/, atEnd, options);
      const url = line[1] ?? '';
      bindTo(pid, 0);
      return { server: { url, pid, stop, ...(await openClient(url, atEnd)) }, database };
    },
  };
}
