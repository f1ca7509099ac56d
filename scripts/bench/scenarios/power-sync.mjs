// npm run bench -- power-sync: GET of a node beside the power synchronisation of fake hardware, and the CPU time of one of its rounds.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuMeter } from '../cpu.mjs';
import { load, measure, roundsOf } from '../measure.mjs';
import { KINDS, NODE, lanes } from '../work.mjs';

/** Seconds of an interval. */
const EVERY = 20;

/** @type {import('../scenarios.mjs').Scenario} */
export const powerSync = {
  nodes: 10_000,
  run: async ({ begin, openStore }, { nodes, seconds }) => {
    const store = await openStore();
    const uuids = Array.from({ length: nodes }, () => randomUUID());
    const known = /** @type {const} */ ({ provision_state: 'active', power_state: 'power on', ...NODE });
    const interfaces = Object.fromEntries([...KINDS, 'deploy'].map((kind) => [`${kind}_interface`, 'fake']));
    await lanes(10, uuids, (uuid) => store.nodes.create({ uuid, ...known, ...interfaces, network_interface: 'noop' }));
    await store.close();
    const all = await begin({ conductor: { sync_power_state_interval: EVERY }, fake: { power_delay: '0.05' } });
    const { send } = all.server;
    const show = (/** @type {number} */ index) => send('GET', `/v1/nodes/${uuids[(index * 7919) % nodes]}`);
    await lanes(1, Array(200).keys(), show);
    const rounds = async () => roundsOf((await send('GET', '/metrics')).text, 'power synchronisation');
    // Synchronisation begins with the first interval after the start.
    await measure('GET of a node, no synchronisation', all, load(1, Math.min(seconds, EVERY * 0.6), show));
    await delay(EVERY * 1000 * 0.35);
    await measure('GET of a node, during synchronisation', all, load(1, seconds, show));
    let done = await rounds();
    while (done.count === 0) {
      await delay(200);
      done = await rounds();
    }
    console.log(`power states of ${nodes} nodes: ${done.sum.toFixed(1)} s a round`);
    const cpu = cpuMeter(all.server.pid, all.database.pid);
    while ((await rounds()).count < 2) await delay(500);
    const [ours, its] = cpu();
    console.log(`CPU of one round: server ${ours} ms, database ${its} ms`);
  },
};
