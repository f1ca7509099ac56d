// A server under comparison: its processes, its client, a fleet of simulated machines, and an agent that answers all commands.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../../install.mjs';
import { openClient, verbs } from './client.mjs';

/**
 * @typedef {import('./client.mjs').AtEnd} AtEnd
 * @typedef {import('./client.mjs').Ask} Ask
 * @typedef {object} Compared
 * @property {number} pid of the server, whose descendants are the database
 * @property {Ask} ask
 * @property {import('./client.mjs').Through} through
 * @property {string} agentUrl of an agent whose steps never end
 * @property {(count: number) => Promise<void>} stepsBegun waits until that agent has begun so many steps since the last call
 * @property {readonly string[]} machines UUIDs of the nodes of simulated machines, which are available
 * @property {object} image the instance_info that deploys them
 */

/** How long the start of a program, and its work, may take. */
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
 * Starts a program and waits for a line of its output.
 * @param {readonly string[]} words
 * @param {RegExp} ready
 * @param {AtEnd} atEnd
 * @returns {Promise<[pid: number, line: RegExpExecArray]>}
 */
function startProgram(words, ready, atEnd) {
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((done) => child.once('exit', done));
  atEnd(() => {
    child.kill('SIGTERM');
    return ended;
  });
  let text = '';
  return new Promise((done, fail) => {
    const stopped = (/** @type {string} */ why) => fail(new Error(`${words.slice(0, 2).join(' ')} ${why}: ${text.slice(-2000)}`));
    const timer = setTimeout(() => stopped('does not start'), MAX_MS);
    void ended.then(() => {
      clearTimeout(timer);
      stopped('ends');
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (part) => {
        text = (text + part).slice(-100_000);
        const line = ready.exec(text);
        if (line === null) return;
        clearTimeout(timer);
        done([child.pid ?? 0, line]);
      });
  });
}

/** An agent that knows one clean step, which never ends. @param {AtEnd} atEnd */
async function startAgent(atEnd) {
  let begun = 0;
  const step = { step: 'erase_devices', priority: 10, interface: 'deploy', reboot_requested: false, abortable: true };
  const server = createServer((received, answer) => {
    let text = '';
    received.on('data', (part) => (text += part));
    received.on('end', () => {
      const name = received.method === 'POST' ? JSON.parse(text).name.split('.')[1] : 'execute_clean_step';
      const returnsSteps = name.startsWith('get_');
      if (received.method === 'POST' && name === 'execute_clean_step') begun++;
      const command = {
        command_name: name,
        command_status: returnsSteps ? 'SUCCEEDED' : 'RUNNING',
        command_result: returnsSteps ? { clean_steps: { Generic: [step] }, hardware_manager_version: { Generic: '1' } } : null,
      };
      answer.end(JSON.stringify(received.method === 'POST' ? command : { commands: [command] }));
    });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', () => done(undefined)));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    begun: async (/** @type {number} */ count) => {
      for (const limit = performance.now() + MAX_MS; begun < count;) {
        if (performance.now() > limit) throw new Error(`${begun} of ${count} nodes have begun their first step`);
        await delay(10);
      }
      begun = 0;
    },
  };
}

/** Writes an image, a kernel and a ramdisk of random bytes. @param {string} folder @returns {string} the SHA-256 of the image */
function writeImages(folder) {
  mkdirSync(folder, { recursive: true });
  const image = randomBytes(1 << 20);
  writeFileSync(join(folder, 'image.raw'), image);
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(64 << 10));
  return createHash('sha256').update(image).digest('hex');
}
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
  let nodes = [];
  for (const limit = performance.now() + MAX_MS; performance.now() < limit;) {
    await delay(100);
    ({ nodes } = await ask('GET', '/v1/nodes?fields=uuid'));
    const { ports } = await ask('GET', '/v1/ports?fields=node_uuid');
    if (new Set(ports.map((/** @type {any} */ port) => port.node_uuid)).size === count) break;
  }
  const uuids = nodes.map((/** @type {any} */ node) => node.uuid);
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
  const sha256 = writeImages(join(folder, 'httpboot'));
  const lines = Object.entries(configuration(folder)).flatMap(([name, section]) => [
    `[${name}]`,
    ...Object.entries(section).map(([option, value]) => `${option} = ${value}`),
  ]);
  const file = join(folder, 'ironic.conf');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const words = [join(tree, 'bin/bloomery'), 'serve', '--config-file', file, '--state-dir', folder];
  const [pid, line] = await startProgram(words, /API (http\S+?),.* boot (http\S+?),/, atEnd);
  const [apiUrl = '', bootUrl = ''] = line.slice(1);
  const ask = openClient(apiUrl, atEnd);
  const agent = await startAgent(atEnd);
  const through = verbs(ask);
  const uuids = await startFleet(machines, apiUrl, bootUrl, ask, through, atEnd);
  const image = {
    image_source: `${bootUrl}/image.raw`,
    image_disk_format: 'raw',
    image_os_hash_algo: 'sha256',
    image_os_hash_value: sha256,
  };
  return { pid, ask, through, agentUrl: agent.url, stepsBegun: agent.begun, machines: uuids, image };
}
