// A server under comparison: its processes, its client, a fleet of simulated machines, and an agent that answers all commands.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../../install.mjs';
import { startAgent } from '../agent.mjs';
import { openClient } from '../client.mjs';
import { startProgram } from '../processes.mjs';
import { configurationText, imageAt, writeImages } from '../work.mjs';
import { verbs } from './verbs.mjs';

/**
 * @typedef {import('../processes.mjs').AtEnd} AtEnd
 * @typedef {import('../client.mjs').Ask} Ask
 * @typedef {object} Compared
 * @property {number} pid of the server, whose descendants are the database
 * @property {Ask} ask
 * @property {import('./verbs.mjs').Through} through
 * @property {string} agentUrl of an agent whose steps never end
 * @property {(count: number) => Promise<void>} stepsBegun waits until that agent has begun so many steps since the last call
 * @property {readonly string[]} machines UUIDs of the nodes of simulated machines, which are available
 * @property {object} image the instance_info that deploys them
 */

/** How long the registration of the machines may take. */
const MAX_MS = 300_000;

/** @param {string} folder */
const configuration = (folder) => ({
  DEFAULT: {
    host: 'bench',
    auth_strategy: 'noauth',
    my_ip: '127.0.0.1',
    log_file: join(folder, 'log'),
    enabled_hardware_types: 'fake-hardware,ipmi,redfish',
    enabled_boot_interfaces: 'fake,ipxe',
    enabled_deploy_interfaces: 'fake,direct',
    enabled_inspect_interfaces: 'agent',
    enabled_network_interfaces: 'noop',
    enabled_bios_interfaces: 'fake,no-bios,redfish',
    enabled_management_interfaces: 'fake,ipmitool,redfish',
    enabled_power_interfaces: 'fake,ipmitool,redfish',
    enabled_raid_interfaces: 'fake,agent,no-raid,redfish',
    enabled_firmware_interfaces: 'fake,no-firmware',
  },
  api: { host_ip: '127.0.0.1', port: 0 },
  agent: { require_tls: false },
  boot: { http_host: '127.0.0.1', http_port: 0, tftp: false },
  conductor: {
    deploy_kernel: `file://${join(folder, 'httpboot/kernel')}`,
    deploy_ramdisk: `file://${join(folder, 'httpboot/ramdisk')}`,
    file_url_allowed_paths: folder,
    // Periodic work is no part of a path.
    sync_power_state_interval: 0,
  },
});

/**
 * Starts simulated machines, and makes their nodes available.
 * @param {number} count
 * @param {string} apiUrl
 * @param {string} bootUrl
 * @param {Ask} ask
 * @param {Compared['through']} through
 * @param {AtEnd} atEnd
 * @returns {Promise<string[]>} their UUIDs
 */
async function startFleet(count, apiUrl, bootUrl, ask, through, atEnd) {
  const words = ['--machines', String(count), '--bmcs', 'half', '--ipmi', '127.0.0.1', '--redfish', '127.0.0.1', '--boot-ms', '100'];
  const program = [
    join(root, 'bin/bloomery'),
    'simulate',
    ...words,
    '--boot-url',
    bootUrl,
    '--register',
    apiUrl,
    '--control',
    '0',
    '--json',
  ];
  await startProgram(program, /"control":"http:/, atEnd);
  /** @type {readonly { uuid: string }[]} */
  let nodes = [];
  for (const limit = performance.now() + MAX_MS; performance.now() < limit;) {
    await delay(100);
    ({ nodes } = await ask('GET', '/v1/nodes?fields=uuid'));
    /** @type {{ ports: readonly { node_uuid: string }[] }} */
    const { ports } = await ask('GET', '/v1/ports?fields=node_uuid');
    if (new Set(ports.map((port) => port.node_uuid)).size === count) break;
  }
  const uuids = nodes.map((node) => node.uuid);
  await through('manage', uuids, 'manageable');
  await through('provide', uuids, 'available');
  return uuids;
}

/**
 * Starts a server of a built tree, on a database of its own.
 * @param {string} tree
 * @param {string} folder for its state, which is removed at the end
 * @param {number} machines how many simulated machines
 * @param {AtEnd} atEnd
 * @returns {Promise<Compared>}
 */
export async function startServer(tree, folder, machines, atEnd) {
  mkdirSync(folder, { recursive: true });
  const sha256 = writeImages(join(folder, 'httpboot'), 1 << 20);
  const file = join(folder, 'ironic.conf');
  writeFileSync(file, configurationText(configuration(folder)));
  const words = [join(tree, 'bin/bloomery'), 'serve', '--config-file', file, '--state-dir', folder];
  const { pid, line } = await startProgram(words, /API (http\S+?),.* boot (http\S+?),/, atEnd);
  const [apiUrl = '', bootUrl = ''] = line.slice(1);
  const { ask } = await openClient(apiUrl, atEnd, 8);
  const agent = await startAgent(atEnd);
  const through = verbs(ask);
  const uuids = await startFleet(machines, apiUrl, bootUrl, ask, through, atEnd);
  const image = imageAt(bootUrl, sha256);
  return { pid, ask, through, agentUrl: agent.url, stepsBegun: agent.begun, machines: uuids, image };
}
