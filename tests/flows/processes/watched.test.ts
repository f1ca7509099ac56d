/** A process without the API, as monitors and logrotate meet it. Runs the built program (npm test builds it). */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { timeoutSignal } from '../../../wire/timeout-signal';

const database = useDatabase();
const folder = mkdtempSync(join(tmpdir(), 'bloomery-watched-'));
const log = join(folder, 'boot.log');
let child: ChildProcess;
let port: number;

beforeAll(async () => {
  port = await freePort();
  const config = join(folder, 'boot.conf');
  writeFileSync(
    config,
    `[DEFAULT]\nlog_file = boot.log\nlog_dir = ${folder}\ndebug = true\n[boot]\nhttp_host = 127.0.0.1\nhttp_port = 0\ntftp = false\n` +
      `[metrics]\nprometheus_host = 127.0.0.1\nprometheus_port = ${port}\n[healthcheck]\nbackends = database\n`,
  );
  const program = join(__dirname, '../../../bin/bloomery');
  child = spawn(process.execPath, [program, 'serve', '--roles', 'boot', '--state-dir', join(folder, 'state'), '--config-file', config], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, DATABASE_URL: database.connection() },
  });
  let said = '';
  child.stdout!.on('data', (data: Buffer) => (said += data.toString()));
  await until('its start', () => said.includes('ready') || child.exitCode !== null);
});
async function end(): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  await ended;
}
afterAll(async () => {
  await end();
  rmSync(folder, { recursive: true, force: true });
});

const ask = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`, { signal: timeoutSignal(240_000) });

it('serves metrics and health on a separate port', async () => {
  const metrics = await ask('/metrics');
  expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const text = await metrics.text();
  expect(text).toMatch(/^bloomery_build_info\{.*roles="boot"\} 1$/m);
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
  expect(text).toMatch(/^bloomery_database_up 1$/m);
  expect(text).not.toMatch(/^bloomery_nodes\{/m);
  expect(await (await ask('/healthcheck')).text()).toBe('OK');
  expect((await ask('/v1/nodes')).status).toBe(404);
});

it('reopens its log at SIGHUP', async () => {
  renameSync(log, `${log}.1`);
  child.kill('SIGHUP');
  await until('a new file of the log', () => existsSync(log));
  await end();
  expect(readFileSync(log, 'utf8')).toMatch(/"msg":"stopping"/);
  expect(readFileSync(`${log}.1`, 'utf8')).not.toContain('stopping');
});
