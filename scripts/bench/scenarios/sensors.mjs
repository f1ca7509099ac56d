// npm run bench -- sensors: the sensors of simulated BMCs, all kinds in each round. A latency of 20 ms makes concurrent calls at one BMC
// visible.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../free-port.mjs';
import { openClient } from '../client.mjs';
import { cpuMeter } from '../cpu.mjs';
import { DRIVERS, activeNode, halfAndHalf, memoryText, startFleet } from '../fleet.mjs';
import { roundsOf } from '../measure.mjs';
import { lanes } from '../work.mjs';

/** @typedef {{ protocols: readonly string[], traffic: { most: number, calls: number } }} Machine in part */

/** Seconds of an interval. */
const EVERY = 30;
/** How long a round may take. */
const MAX_MS = 1_800_000;

/** @param {string} text of the metrics @param {string} name */
const countOf = (text, name) => text.match(new RegExp(`^${name}\\{`, 'gm'))?.length ?? 0;
/**
 * By protocol: the maximum of concurrent calls at one BMC, and the number of BMCs with it. A retransmitted IPMI request counts again.
 * @param {readonly Machine[]} machines
 */
const mostAtOnce = (machines) =>
  ['ipmi', 'redfish']
    .map((protocol) => {
      const all = machines.filter(({ protocols }) => protocols[0] === protocol).map(({ traffic }) => traffic.most);
      const most = Math.max(...all);
      return `${most} (${protocol}, ${all.filter((candidate) => candidate === most).length} of ${all.length})`;
    })
    .join(' and ');

/** @type {import('../scenarios.mjs').Scenario} */
export const sensors = {
  nodes: 1000,
  run: async (bench, { nodes: count }) => {
    const fleet = await startFleet(bench, [...halfAndHalf(count), '--faults', 'latency=20']);
    const store = await bench.openStore();
    await lanes(8, fleet.nodes, async (node) => {
      await fleet.ask('POST', `/machines/${node.name}/power`, { action: 'on' });
      await store.nodes.create(activeNode(node, randomUUID(), 'power on'));
    });
    await store.close();
    // Metrics of single machines are on this port only.
    const port = await freePort();
    const metrics = await openClient(`http://127.0.0.1:${port}`, bench.atEnd);
    /** @param {string} what @param {import('../server.mjs').Measured} measured @param {number} times */
    const rounds = async (what, { server, database }, times) => {
      const read = async () => {
        const { text } = await metrics.send('GET', '/metrics');
        /** @type {{ machines: readonly Machine[] }} */
        const { machines } = await fleet.ask('GET', '/machines');
        return {
          rounds: roundsOf(text, 'sensors'),
          read: countOf(text, 'baremetal_sensor_reading'),
          told: countOf(text, 'baremetal_last_payload_timestamp_seconds'),
          calls: machines.reduce((sum, { traffic }) => sum + traffic.calls, 0),
          most: mostAtOnce(machines),
        };
      };
      let before = await read();
      for (let time = 1; time <= times; time++) {
        const cpu = cpuMeter(server.pid, database.pid, fleet.pid);
        let now = before;
        // Not more often, because a scrape of all readings costs CPU too.
        for (
          const end = performance.now() + MAX_MS;
          now.rounds.count === before.rounds.count && performance.now() < end;
          now = await read()
        )
          await delay(5000);
        const seconds = now.rounds.sum - before.rounds.sum;
        const [ours, its, theirs] = cpu();
        console.log(
          `${what}, round ${time}: ${seconds.toFixed(1)} s; ${now.told} machines, ${now.read} readings, ${(now.read / seconds).toFixed(0)} a second; ` +
            `CPU server ${ours} ms (${(ours / now.read).toFixed(3)} a reading, ${(ours / count).toFixed(2)} a machine), database ${its} ms, fleet ${theirs} ms; ` +
            `${now.calls - before.calls} calls, at one BMC at once at most ${now.most}; server ${memoryText(server.pid)}`,
        );
        before = now;
      }
    };
    const options = (/** @type {number} */ powerEvery) => ({
      DEFAULT: DRIVERS,
      conductor: { sync_power_state_interval: powerEvery, sync_power_state_workers: 64 },
      redfish: { connection_cache_size: count },
      metrics: { prometheus_port: port },
      sensor_data: {
        send_sensor_data: true,
        workers: 64,
        wait_timeout: 1800,
        enable_for_conductor: false,
        ...Object.fromEntries(['', '_power', '_temperature', '_fan', '_drive'].map((kind) => [`interval${kind}`, EVERY])),
      },
    });
    const alone = await bench.begin(options(0));
    await rounds('sensors alone', alone, 3);
    await alone.server.stop();
    await rounds('beside power states each 5 s', await bench.begin(options(5)), 2);
  },
};
