// npm run bench -- recorder: the load of 10,000 recorders with an interval of 300 s. Then the load when the server returns after an outage
// of twelve intervals, shortened to 10 s each. The agent's own functions compute the pauses. Each push uses a new connection.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { root } from '../install.mjs';

const INTERVAL_MS = 300_000;
const SHORT_MS = 10_000;
const OUTAGE_INTERVALS = 12;

/** A server with two processors, sixteen disks and four interfaces. */
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

/** The status of the response; 0 if there is none. */
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
      answer.resume().on('end', () => done(answer.statusCode)),
    );
    call.on('timeout', () => call.destroy());
    call.on('error', () => done(0));
    call.end(packed);
  });

export const recorderScenario = ({ lanes, measure, quantile, freePort, seconds }) => ({
  nodes: 10_000,
  run: async ({ begin, nodes: count, openStore }) => {
    const { pauseAfter, firstPause } = (await import(join(root, 'dist/ramdisk-agent/recorder.js'))).default;
    const { digestOf } = (await import(join(root, 'dist/model/hardware-records.js'))).default;
    const store = await openStore();
    const recorders = Array.from({ length: count }, (_, index) => ({
      index,
      uuid: randomUUID(),
      token: randomBytes(32).toString('base64url'),
    }));
    await lanes(10, recorders, async (value) => {
      await store.nodes.create({ uuid: value.uuid, driver: 'fake-hardware', provision_state: 'active' });
      await store.hardware.putToken(value.uuid, createHash('sha256').update(value.token).digest('hex'), 'operator');
      value.digest = digestOf(hardwareOf(value.index));
    });
    await store.close();
    const options = { api: { port: await freePort() }, recorder: { enabled: true }, conductor: { sync_power_state_interval: 0 } };
    let all = await begin(options);
    const { url } = all.server;
    await measure('first records, 16 at once', all, async () => {
      const statuses = {};
      await lanes(16, recorders, async (value) => {
        const status = await send(url, value, { hardware: hardwareOf(value.index) });
        statuses[status] = (statuses[status] ?? 0) + 1;
      });
      return { count, answers: JSON.stringify(statuses) };
    });

    /** The recorders push until the time is over. `report` gets the status and the milliseconds of each push. */
    const recordersFor = async (some, pace, milliseconds, report) => {
      const end = performance.now() + milliseconds;
      await Promise.all(
        some.map(async (item) => {
          item.failures ??= 0;
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
    };
    const tally = () => {
      const [times, statuses] = [[], {}];
      const report = (status, took) => {
        times.push(took);
        statuses[status] = (statuses[status] ?? 0) + 1;
      };
      return {
        report,
        summary: () => ({
          count: times.length,
          'p50 ms': quantile(times, 0.5),
          'p99 ms': quantile(times, 0.99),
          answers: JSON.stringify(statuses),
        }),
      };
    };
    await measure(`${count} recorders at 300 s`, all, async () => {
      const { report, summary } = tally();
      await recordersFor(recorders, { intervalMs: INTERVAL_MS, jitter: 0.3 }, seconds * 1000, report);
      return summary();
    });

    const some = recorders.slice(0, Math.min(count, 2000));
    for (const item of some) delete item.rest;
    const pace = { intervalMs: SHORT_MS, jitter: 0.3 };
    const mean = some.length / (SHORT_MS / 1000);
    await recordersFor(some, pace, 2 * SHORT_MS, () => {});
    await all.server.stop();
    await recordersFor(some, pace, OUTAGE_INTERVALS * SHORT_MS, () => {});
    all = await begin(options);
    const perSecond = new Map();
    const back = performance.now();
    await measure(`${some.length} at 10 s, after an outage of ${OUTAGE_INTERVALS} intervals`, all, async () => {
      const { report, summary } = tally();
      await recordersFor(some, pace, 6 * SHORT_MS, (status, took, began) => {
        const second = Math.floor((began - back) / 1000);
        perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
        report(status, took);
      });
      return summary();
    });
    const peak = Math.max(...perSecond.values());
    console.log(`after the outage: at most ${peak} pushes in a second, ${(peak / mean).toFixed(2)} times the mean of ${mean.toFixed(0)}`);
  },
});
