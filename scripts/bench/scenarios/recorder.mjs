// npm run bench -- recorder: the load of 10,000 recorders with an interval of 300 s. Then the load when the server returns after an outage
// of twelve intervals, shortened to 10 s each. The agent's own functions compute the pauses. Each push uses a new connection.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { freePort } from '../../free-port.mjs';
import { createTally, measure } from '../measure.mjs';
import { built } from '../program.mjs';
import { lanes } from '../work.mjs';

/**
 * A machine that records. `rest`: milliseconds of its pause that are left.
 * @typedef {{ index: number, uuid: string, token: string, digest: string, failures: number, rest?: number }} Recorder
 * @typedef {Parameters<typeof import('../../../ramdisk-agent/recorder.js').firstPause>[0]} Pace
 * @typedef {(status: number, took: number, began: number) => void} Report of a push: its status and its milliseconds
 */

const INTERVAL_MS = 300_000;
const SHORT_MS = 10_000;
const OUTAGE_INTERVALS = 12;

/** A server with two processors, sixteen disks and four interfaces. @param {number} index */
const hardwareOf = (index) => ({
  disks: Array.from({ length: 16 }, (_, at) => ({
    name: `/dev/sd${'abcdefghijklmnop'[at]}`,
    model: 'SAMSUNG MZ7LH960',
    vendor: 'ATA',
    size: 960197124096,
    rotational: false,
    serial: `S45N${index}x${at}`,
    wwn: `0x5002538e${(index * 16 + at).toString(16).padStart(8, '0')}`,
    firmware: 'HXT7404Q',
  })),
  interfaces: Array.from({ length: 4 }, (_, at) => ({
    name: `eth${at}`,
    vendor: '0x8086',
    product: '0x1572',
    pci_address: `0000:3b:00.${at}`,
    driver: 'i40e',
    mac_address: `52:54:${[24, 16, 8, 0].map((bits) => (((index * 4 + at) >>> bits) & 255).toString(16).padStart(2, '0')).join(':')}`,
  })),
  cpu: {
    model_name: 'Intel(R) Xeon(R) Gold 6230',
    architecture: 'x86_64',
    count: 80,
    socket_count: 2,
    flags: Array.from({ length: 120 }, (_, at) => `flag${at}`),
  },
  memory: { physical_mb: 393216, present_mb: 393216 },
  system_vendor: {
    manufacturer: 'Dell',
    product_name: 'R640',
    serial_number: `X${index}`,
    firmware: { vendor: 'Dell', version: '2.1', build_date: '1' },
  },
  bmc_address: '192.0.2.1',
});

/**
 * @param {string} url
 * @param {Recorder} recorder
 * @param {object} body
 * @returns {Promise<number>} the status of the response; 0 if there is none
 */
const send = (url, { uuid, token }, body) =>
  new Promise((done) => {
    const packed = gzipSync(JSON.stringify(body));
    const headers = {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-length': packed.length,
      'x-recorder-token': token,
    };
    const call = request(`${url}/v1/nodes/${uuid}/hardware`, { method: 'PUT', agent: false, headers, timeout: 30_000 }, (answer) =>
      answer.resume().on('end', () => done(answer.statusCode ?? 0)),
    );
    call.on('timeout', () => call.destroy());
    call.on('error', () => done(0));
    call.end(packed);
  });

/**
 * The recorders push until the time is over.
 * @param {string} url
 * @param {readonly Recorder[]} recorders
 * @param {Pace} pace
 * @param {number} milliseconds
 * @param {Report} report
 */
async function push(url, recorders, pace, milliseconds, report) {
  const { pauseAfter, firstPause } = await built('ramdisk-agent/recorder');
  const end = performance.now() + milliseconds;
  await Promise.all(
    recorders.map(async (item) => {
      for (let pause = item.rest ?? firstPause(pace, Math.random); ; pause = pauseAfter(pace, item.failures, Math.random)) {
        const left = end - performance.now();
        item.rest = pause - left;
        await delay(Math.max(0, Math.min(pause, left)));
        if (pause >= left) return;
        const began = performance.now();
        const status = await send(url, item, { digest: item.digest });
        item.failures = status === 200 ? 0 : item.failures + 1;
        report(status, performance.now() - began, began);
      }
    }),
  );
}

/** @type {import('../scenarios.mjs').Scenario} */
export const recorder = {
  nodes: 10_000,
  seconds: 60,
  run: async ({ begin, openStore }, { nodes: count, seconds }) => {
    const { digestOf } = await built('model/hardware-records');
    const store = await openStore();
    /** @type {Recorder[]} */
    const recorders = Array.from({ length: count }, (_, index) => ({
      index,
      uuid: randomUUID(),
      token: randomBytes(32).toString('base64url'),
      digest: digestOf(hardwareOf(index)),
      failures: 0,
    }));
    await lanes(10, recorders, async (value) => {
      await store.nodes.create({ uuid: value.uuid, driver: 'fake-hardware', provision_state: 'active' });
      await store.hardware.putToken(value.uuid, createHash('sha256').update(value.token).digest('hex'), 'operator');
    });
    await store.close();
    const options = { api: { port: await freePort() }, recorder: { enabled: true }, conductor: { sync_power_state_interval: 0 } };
    let all = await begin(options);
    const { url } = all.server;
    await measure('first records, 16 at once', all, async () => {
      const { add, row } = createTally();
      await lanes(16, recorders, async (value) => add(await send(url, value, { hardware: hardwareOf(value.index) }), 0));
      return { count, answers: row().answers };
    });
    await measure(`${count} recorders at 300 s`, all, async () => {
      const { add, row } = createTally();
      await push(url, recorders, { intervalMs: INTERVAL_MS, jitter: 0.3 }, seconds * 1000, add);
      return row();
    });

    const some = recorders.slice(0, Math.min(count, 2000));
    for (const item of some) delete item.rest;
    const pace = { intervalMs: SHORT_MS, jitter: 0.3 };
    const mean = some.length / (SHORT_MS / 1000);
    await push(url, some, pace, 2 * SHORT_MS, () => {});
    await all.server.stop();
    await push(url, some, pace, OUTAGE_INTERVALS * SHORT_MS, () => {});
    all = await begin(options);
    /** @type {Map<number, number>} */
    const perSecond = new Map();
    const back = performance.now();
    await measure(`${some.length} at 10 s, after an outage of ${OUTAGE_INTERVALS} intervals`, all, async () => {
      const { add, row } = createTally();
      await push(url, some, pace, 6 * SHORT_MS, (status, took, began) => {
        const second = Math.floor((began - back) / 1000);
        perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
        add(status, took);
      });
      return row();
    });
    const peak = Math.max(...perSecond.values());
    console.log(`after the outage: at most ${peak} pushes in a second, ${(peak / mean).toFixed(2)} times the mean of ${mean.toFixed(0)}`);
  },
};
