/**
 * A fan of a simulated machine stops: the alert fires in a real Prometheus, with the rules of docs/prometheus, and reaches a real
 * Alertmanager, whose webhook this test is. The queries of the boards in docs/grafana return what Prometheus has.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { readFaults } from '../../../simulator/bmc/faults';
import { startOwnServer, type OwnServer } from '../../support/cluster';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { needs } from '../support/needs';
import { root } from '../support/venv';

jest.setTimeout(300_000);
const run = promisify(execFile);
let database: OwnServer;
const folder = mkdtempSync(join(tmpdir(), 'bloomery-monitoring-'));
const rules = join(root, 'docs/prometheus/alerts.yml');
/** Seconds between readings of the sensors. */
const INTERVAL = 8;
const DAY_MS = 86_400_000;

interface Sent {
  readonly status: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startsAt: string;
}
let whole: WholeServer;
let receiver: Server;
let prometheus: string;
const sent: Sent[] = [];
const children: ChildProcess[] = [];
/** Starts a program and waits until it is ready. */
async function start(program: string, words: readonly string[], ready: string): Promise<void> {
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'], cwd: folder });
  let said = '';
  child.stderr.on('data', (data: Buffer) => (said = (said + data.toString()).slice(-4000)));
  children.push(child);
  const isReady = (): Promise<boolean> =>
    fetch(ready).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(`${program}: ${said}`, async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`);
    return isReady();
  });
}

beforeAll(async () => {
  needs({ prometheus: 'prometheus', promtool: 'prometheus', 'prometheus-alertmanager': 'prometheus-alertmanager' });
  const [metrics, port, alerts, cluster] = [await freePort(), await freePort(), await freePort(), await freePort()];
  database = await startOwnServer();
  whole = await startWholeServer(database.connection, {
    machines: 2,
    options: {
      'metrics.prometheus_host': '127.0.0.1',
      'metrics.prometheus_port': metrics,
      'sensor_data.send_sensor_data': true,
      'sensor_data.enable_for_undeployed_nodes': true,
      'sensor_data.interval': INTERVAL,
      'sensor_data.interval_fan': INTERVAL,
      'sensor_data.interval_power': INTERVAL,
      'sensor_data.interval_temperature': INTERVAL,
      'sensor_data.interval_drive': INTERVAL,
    },
  });
  receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (data: Buffer) => (body += data.toString()));
    request.on('end', () => {
      sent.push(...(JSON.parse(body) as { readonly alerts: readonly Sent[] }).alerts);
      response.end();
    });
  });
  await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done));
  const { port: webhook } = receiver.address() as AddressInfo;
  prometheus = `http://127.0.0.1:${port}`;
  writeFileSync(
    join(folder, 'prometheus.yml'),
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [rules],
      alerting: { alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${alerts}`] }] }] },
      scrape_configs: [{ job_name: 'bloomery', static_configs: [{ targets: [`127.0.0.1:${metrics}`] }] }],
    }),
  );
  writeFileSync(
    join(folder, 'alertmanager.yml'),
    stringify({
      route: { receiver: 'test', group_by: ['...'], group_wait: '1s', group_interval: '1s' },
      receivers: [{ name: 'test', webhook_configs: [{ url: `http://127.0.0.1:${webhook}/`, send_resolved: true }] }],
    }),
  );
  await start(
    'prometheus-alertmanager',
    [
      '--config.file=alertmanager.yml',
      '--storage.path=alertmanager',
      `--web.listen-address=127.0.0.1:${alerts}`,
      `--cluster.listen-address=127.0.0.1:${cluster}`,
      '--cluster.advertise-address=127.0.0.1:1',
    ],
    `http://127.0.0.1:${alerts}/-/ready`,
  );
  await start(
    'prometheus',
    ['--config.file=prometheus.yml', '--storage.tsdb.path=prometheus', `--web.listen-address=127.0.0.1:${port}`],
    `${prometheus}/-/ready`,
  );
});
afterAll(async () => {
  for (const child of children.reverse()) {
    if (child.exitCode !== null) continue;
    const ended = once(child, 'exit');
    child.kill();
    await ended;
  }
  await new Promise((done) => receiver.close(done));
  await whole.close();
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A node whose machine is on. */
async function managed(index: number): Promise<string> {
  const uuid = await whole.enrol(whole.fleet.machines[index]!, { name: `node-${index}` });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.call('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power on' });
  await until('the machine is on', async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['power_state'] === 'power on');
  return uuid;
}
const query = async (expression: string): Promise<readonly unknown[]> => {
  const answer = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(expression)}`);
  const { status, data } = (await answer.json()) as { readonly status: string; readonly data: { readonly result: readonly unknown[] } };
  expect([expression, status]).toEqual([expression, 'success']);
  return data.result;
};

it('promtool accepts the rules', async () => {
  expect((await run('promtool', ['check', 'rules', rules])).stdout).toMatch(/SUCCESS: \d+ rules found/);
});

it('a fan that stops fires within two intervals, until it turns again or is masked; other machines do not', async () => {
  const [uuid, other] = [await managed(0), await managed(1)];
  const read = (node: string) => query(`baremetal_sensor_reading{node_uuid="${node}",kind="fan"} > 0`);
  await until('both machines are read', async () => (await read(uuid)).length > 0 && (await read(other)).length > 0);
  const { faults } = whole.fleet.machines[0]!;
  const of = (status: string, rule: string) =>
    sent.find(({ status: now, labels }) => now === status && labels['alertname'] === 'BloomeryMachineHealth' && labels['rule'] === rule);

  const stoppedAt = Date.now();
  faults.now = readFaults({ stopped: ['Fan1'] });
  await until('the alert', () => of('firing', 'fan_failed') !== undefined);
  const fired = of('firing', 'fan_failed')!;
  expect(fired).toMatchObject({
    labels: { node_uuid: uuid, node_name: 'node-0', rule: 'fan_failed', subject: 'fan 0', severity: 'critical', source: 'sensor' },
    annotations: { summary: 'node-0: fan_failed (fan 0).' },
  });
  expect((Date.parse(fired.startsAt) - stoppedAt) / 1000).toBeLessThan(2 * INTERVAL);
  await until('the other rule', () => of('firing', 'fan_stopped') !== undefined);
  expect(sent.filter(({ labels }) => labels['node_uuid'] === other)).toEqual([]);

  // The boards show it.
  for (const file of readdirSync(join(root, 'docs/grafana'))) {
    const text = readFileSync(join(root, 'docs/grafana', file), 'utf8');
    const { panels } = JSON.parse(text) as {
      readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
    };
    for (const { title, targets } of panels)
      for (const { expr } of targets) {
        const found = await query(expr.replaceAll('$node', '.*'));
        // Nothing fails here that other boards show.
        if (file === 'health.json') expect([title, found.length > 0]).toEqual([title, true]);
      }
  }

  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/health`);
  const alerts = body['alerts'] as readonly { readonly uuid: string; readonly rule: string }[];
  const masked = alerts.find(({ rule }) => rule === 'fan_stopped')!;
  const mask = { until: new Date(Date.now() + DAY_MS).toISOString(), reason: 'the spare part is ordered' };
  expect((await whole.call('PUT', `/v1/nodes/${uuid}/health/alerts/${masked.uuid}/mask`, mask)).status).toBe(200);
  await until('the masked alert ends', () => of('resolved', 'fan_stopped') !== undefined);
  expect(of('resolved', 'fan_failed')).toBeUndefined();
  faults.now = {};
  await until('the alert ends', () => of('resolved', 'fan_failed') !== undefined);
});
