// npm run bench -- fleet-power: power synchronisation with simulated BMCs, half IPMI and half Redfish; then the same with packet loss and
// latency.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuMeter } from '../cpu.mjs';
import { DRIVERS, activeNode, halfAndHalf, memoryText, startFleet } from '../fleet.mjs';
import { roundsOf } from '../measure.mjs';
import { lanes } from '../work.mjs';

/** Seconds of an interval. */
const EVERY = 60;
/** How long a round may take. */
const MAX_MS = 1_800_000;

/** @param {number} index @returns {import('../fleet.mjs').PowerState} */
const powerAt = (index) => (index % 3 === 0 ? 'power on' : 'power off');
/**
 * Counts the nodes with another power state than in `power` (by name), in maintenance, or with an error.
 * @param {import('../client.mjs').Client} client
 * @param {ReadonlyMap<string, string>} power
 */
async function countWrong({ ask }, power) {
  const found = { power: 0, maintenance: 0, errors: 0 };
  for (let marker = ''; ;) {
    /** @type {{ nodes: readonly { uuid: string, name: string, power_state: string, maintenance: boolean, last_error: string | null }[] }} */
    const { nodes } = await ask('GET', `/v1/nodes?fields=uuid,name,power_state,maintenance,last_error&limit=1000${marker}`);
    for (const node of nodes) {
      if (node.power_state !== power.get(node.name)) found.power++;
      if (node.maintenance) found.maintenance++;
      if (node.last_error !== null) found.errors++;
    }
    if (nodes.length < 1000) return found;
    marker = `&marker=${nodes.at(-1)?.uuid}`;
  }
}

/** @type {import('../scenarios.mjs').Scenario} */
export const fleetPower = {
  nodes: 10_000,
  run: async (bench, { nodes: count }) => {
    const fleet = await startFleet(bench, halfAndHalf(count));
    console.log(`${count} simulated machines: ${memoryText(fleet.pid)}`);
    const faults = (/** @type {object} */ value) => fleet.ask('PUT', '/machines/all/faults', value);
    const store = await bench.openStore();
    await lanes(8, fleet.nodes.entries(), async ([index, node]) => {
      if (powerAt(index) === 'power on') await fleet.ask('POST', `/machines/${node.name}/power`, { action: 'on' });
      await store.nodes.create(activeNode(node, randomUUID(), powerAt(index)));
    });
    await store.close();
    const { server, database } = await bench.begin({
      DEFAULT: DRIVERS,
      conductor: { sync_power_state_interval: EVERY, sync_power_state_workers: 256 },
      // With Ironic's 1,000 sessions most BMCs would need a new login in each round.
      redfish: { connection_cache_size: count },
    });
    const rounds = async () => roundsOf((await server.send('GET', '/metrics')).text, 'power synchronisation');
    const power = new Map(fleet.nodes.map(({ name }, index) => [name, powerAt(index)]));
    const round = async (/** @type {string} */ what) => {
      const before = await rounds();
      const cpu = cpuMeter(server.pid, database.pid, fleet.pid);
      let now = before;
      const end = performance.now() + MAX_MS;
      while (now.count === before.count && performance.now() < end) {
        await delay(250);
        now = await rounds();
      }
      const [ours, its, theirs] = cpu();
      const wrong = await countWrong(server, power);
      console.log(
        `${what}: ${(now.sum - before.sum).toFixed(1)} s a round; CPU server ${ours} ms, database ${its} ms, fleet ${theirs} ms; ` +
          `wrong ${JSON.stringify(wrong)}; fleet ${memoryText(fleet.pid)}, server ${memoryText(server.pid)}`,
      );
    };
    await round('first round, logins included');
    await round('second round');
    await round('third round');
    await faults({ loss: 0.2, latency: 300 });
    await round('20 % lost, 300 ms late, the round in which the faults begin');
    await round('20 % lost, 300 ms late');
    await round('20 % lost, 300 ms late, again');
    await round('20 % lost, 300 ms late, again');
    const log = readFileSync(join(bench.folder, 'log'), 'utf8').split('\n');
    const tried = log.filter((line) => line.includes('the power state cannot be read')).length;
    console.log(`failed reads, repeated in the next round: ${tried}`);
    await faults({});
  },
};
