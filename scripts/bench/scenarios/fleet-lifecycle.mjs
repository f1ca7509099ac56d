// npm run bench -- fleet-lifecycle: the whole lifecycle of simulated machines: registration, inspection, cleaning, deployment, deletion.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../free-port.mjs';
import { cpuMeter } from '../cpu.mjs';
import { ADDRESSES, DRIVERS, memoryText, startFleet } from '../fleet.mjs';
import { measure } from '../measure.mjs';
import { through } from '../nodes.mjs';
import { imageAt, lanes, writeImages } from '../work.mjs';

/** How long the registration may take. */
const MAX_MS = 1_800_000;

/**
 * Starts machines that register themselves, and waits until the server has their nodes.
 * @param {import('../server.mjs').Bench} bench
 * @param {import('../server.mjs').Server} server
 * @param {number} count
 * @param {string} bootUrl
 */
async function register(bench, server, count, bootUrl) {
  const words = ['--machines', String(count), ...ADDRESSES, '--boot-url', bootUrl, '--boot-ms', '2000', '--register', server.url];
  const fleet = await startFleet(bench, words);
  for (const limit = performance.now() + MAX_MS; performance.now() < limit; await delay(100)) {
    /** @type {{ nodes: readonly object[] }} */
    const { nodes } = await server.ask('GET', '/v1/nodes?fields=uuid&limit=1000');
    /** @type {{ ports: readonly object[] }} */
    const { ports } = await server.ask('GET', '/v1/ports?fields=uuid&limit=1');
    if (nodes.length === Math.min(count, 1000) && ports.length > 0) return fleet;
  }
  throw new Error('the machines are not registered');
}
/** How many machines are in which phase. @param {import('../fleet.mjs').Fleet} fleet */
async function phasesOf(fleet) {
  /** @type {{ machines: readonly { phase: string }[] }} */
  const { machines } = await fleet.ask('GET', '/machines');
  /** @type {Record<string, number>} */
  const phases = {};
  for (const { phase } of machines) phases[phase] = (phases[phase] ?? 0) + 1;
  return phases;
}

/** @type {import('../scenarios.mjs').Scenario} */
export const fleetLifecycle = {
  nodes: 1000,
  run: async (bench, { nodes: count }) => {
    const { folder } = bench;
    const images = join(folder, 'httpboot');
    const sha256 = writeImages(images, 8 << 20);
    const file = (/** @type {string} */ name) => `file://${join(images, name)}`;
    const bootPort = await freePort();
    const bootUrl = `http://127.0.0.1:${bootPort}`;
    const all = await bench.begin({
      DEFAULT: { my_ip: '127.0.0.1', ...DRIVERS, enabled_deploy_interfaces: 'direct', enabled_inspect_interfaces: 'agent' },
      conductor: { deploy_kernel: file('kernel'), deploy_ramdisk: file('ramdisk'), file_url_allowed_paths: folder },
      boot: { http_host: '127.0.0.1', http_port: bootPort, tftp: false },
    });
    const { server } = all;
    const began = performance.now();
    /** @type {import('../fleet.mjs').Fleet[]} */
    const fleets = [];
    await measure('registered by bloomery simulate --register', all, async () => {
      fleets.push(await register(bench, server, count, bootUrl));
      return { count };
    });
    // Waits until the last port of the last node exists.
    await delay(1000);
    /** @type {{ nodes: readonly { uuid: string }[] }} */
    const { nodes } = await server.ask('GET', `/v1/nodes?fields=uuid,name&limit=${count}`);
    const uuids = nodes.map(({ uuid }) => uuid);
    const image = [{ op: 'add', path: '/instance_info', value: imageAt(bootUrl, sha256) }];
    const pids = fleets.map(({ pid }) => pid);
    for (const [target, end] of /** @type {const} */ ([
      ['manage', 'manageable'],
      ['inspect', 'manageable'],
      ['provide', 'available'],
      ['active', 'active'],
      ['deleted', 'available'],
    ])) {
      if (target === 'active') await lanes(16, uuids, (uuid) => server.ask('PATCH', `/v1/nodes/${uuid}`, image));
      const cpu = cpuMeter(...pids);
      await measure(`${target} → ${end}`, all, async () => {
        const done = await through(server, uuids, target, end)();
        const [theirs = NaN] = cpu();
        return { ...done, 'fleet CPU ms each': (theirs / count).toFixed(2) };
      });
      if (target !== 'active') continue;
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      console.log(`registered, inspected and deployed to active: ${seconds} s for ${count} machines`);
      for (const fleet of fleets)
        console.log(
          `phases of the machines: ${JSON.stringify(await phasesOf(fleet))}; ` +
            `fleet ${memoryText(fleet.pid)}, server ${memoryText(server.pid)}`,
        );
    }
  },
};
