/**
 * The conductor's process is killed (SIGKILL) while it fetches the logs of an agent after a failure. It starts again, and the node ends in its
 * failed state with the text of the failure. The API is a process of its own.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '../../../model/records';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { useDatabase } from '../../support/database';
import { result, startFakeAgent, type Answer, type FakeAgent } from '../../support/fakes/fake-agent';
import { freePort } from '../../support/free-port';
import { fakeSettings, openProcesses } from '../../support/processes';
import { requestText } from '../../support/request';
import { until } from '../../support/until';

const database = useDatabase();
const processes = openProcesses(() => database.connection());
const folder = mkdtempSync(join(tmpdir(), 'killed-report-'));
let url = '';
let settings = '';
const startHost = async (host: string, roles: string): Promise<void> => {
  const said = await processes.start(host, roles, settings.replace('HOST', host));
  if (typeof said !== 'string') throw new Error(said.errors);
};

beforeAll(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  writeFileSync(join(folder, 'image.raw'), Buffer.alloc(4096));
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), name);
  settings = fakeSettings(
    'host = HOST\nmy_ip = 127.0.0.1',
    `
[conductor]
heartbeat_interval = 1
heartbeat_timeout = 5
check_provision_state_interval = 1
deploy_callback_timeout = 30
deploy_kernel = file://${folder}/kernel
deploy_ramdisk = file://${folder}/ramdisk
file_url_allowed_paths = ${folder}
[agent]
require_tls = false
deploy_logs_local_path = ${folder}/logs
[service_catalog]
endpoint_override = ${url}
`,
  )
    .replace('enabled_deploy_interfaces = fake', 'enabled_deploy_interfaces = direct')
    .replace('port = 0\nlog_requests', `port = ${port}\nlog_requests`);
  await startHost('front', 'api,boot');
  await startHost('conductor-1', 'conductor');
}, 240_000);
afterAll(async () => {
  await processes.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

type Body = Readonly<Record<string, unknown>>;
async function ask(method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: Body }> {
  const { status, text } = await requestText(`${url}${path}`, method, {
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  return { status, body: text === '' ? {} : (JSON.parse(text) as Body) };
}
async function call(method: string, path: string, body?: unknown): Promise<Body> {
  const answer = await ask(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}
const reach = (uuid: string, state: string): Promise<void> =>
  until(`${uuid} in ${state}`, async () => {
    const { provision_state: now, reservation } = await call('GET', `/v1/nodes/${uuid}`);
    return now === state && reservation === null;
  });

/** An agent whose step is as `command` says, and that gives its logs as soon as it may. */
interface Machine {
  readonly agent: FakeAgent;
  readonly uuid: string;
  readonly beat: () => Promise<number>;
  /** How often its logs were asked for. */
  readonly fetched: () => number;
  readonly release: () => void;
}
async function deploying(index: number, command: JsonObject): Promise<Machine> {
  let isReleased = false;
  const answers: Readonly<Record<string, () => Answer>> = {
    get_deploy_steps: () => ({
      body: result('get_deploy_steps', 'SUCCEEDED', {
        command_result: { deploy_steps: { M: [] }, hardware_manager_version: { M: '1' } },
      }),
    }),
    execute_deploy_step: () => ({ body: result('execute_deploy_step', 'RUNNING') }),
    collect_system_logs: () =>
      isReleased
        ? {
            body: result('collect_system_logs', 'SUCCEEDED', { command_result: { system_logs: gzipSync('').toString('base64') } }),
          }
        : 'say nothing',
  };
  const isCommanded = (name: string): boolean => agent.asked.some(({ body }) => body?.name.endsWith(`.${name}`) === true);
  const agent = await startFakeAgent(({ body }) => {
    const known = body && answers[body.name.replace(/^.*\./, '')];
    if (known) return known();
    return { body: { commands: isCommanded('execute_deploy_step') ? [command] : [result('get_deploy_steps', 'SUCCEEDED')] } };
  });
  const mac = `52:54:00:00:02:0${index}`;
  const { uuid } = (await call('POST', '/v1/nodes', {
    driver: 'fake-hardware',
    automated_clean: false,
    instance_info: {
      image_source: `file://${folder}/image.raw`,
      image_os_hash_algo: 'sha256',
      image_os_hash_value: 'a'.repeat(64),
      image_disk_format: 'raw',
    },
  })) as { readonly uuid: string };
  await call('POST', '/v1/ports', { node_uuid: uuid, address: mac });
  for (const [target, state] of [
    ['manage', 'manageable'],
    ['provide', 'available'],
    ['active', 'wait call-back'],
  ] as const) {
    await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target });
    await reach(uuid, state);
  }
  const { config } = await call('GET', `/v1/lookup?addresses=${mac}`);
  const { agent_token: token } = config as { readonly agent_token: string };
  const beat = async (): Promise<number> =>
    (await ask('POST', `/v1/heartbeat/${uuid}`, { callback_url: agent.url, agent_token: token, agent_version: '1' })).status;
  await beat();
  await until('the step', () => isCommanded('execute_deploy_step'));
  return {
    agent,
    uuid,
    beat,
    fetched: () => agent.asked.filter(({ body }) => body?.name.endsWith('.collect_system_logs') === true).length,
    release: () => (isReleased = true),
  };
}

it('a failure whose logs are fetched when the conductor is killed ends as it would have', async () => {
  const failed = result('execute_deploy_step', 'FAILED', { command_error: { message: 'Boom', details: 'the disk burns', code: 500 } });
  // One step fails, and the other never ends: the server's wait for it does.
  const [broken, silent] = await Promise.all([deploying(1, failed), deploying(2, result('execute_deploy_step', 'RUNNING'))]);
  try {
    await until('the logs of the silent agent to be fetched', () => silent.fetched() > 0);
    await broken.beat();
    await until('the logs of the broken agent to be fetched', () => broken.fetched() > 0);
    await processes.end('conductor-1', 'SIGKILL');
    for (const machine of [broken, silent]) machine.release();
    await startHost('conductor-1', 'conductor');
    const isOver = async ({ uuid }: Machine): Promise<boolean> =>
      (await call('GET', `/v1/nodes/${uuid}`))['provision_state'] === 'deploy failed';
    // An agent goes on to send heartbeats.
    await until('the broken node to fail', async () => (await isOver(broken)) || (await broken.beat(), false), 500, 120_000);
    await until('the silent node to fail', () => isOver(silent), 500, 120_000);
    const textOf = async ({ uuid }: Machine): Promise<string> => String((await call('GET', `/v1/nodes/${uuid}`))['last_error']);
    expect(await textOf(broken)).toMatch(/the disk burns[^]*\nstep: deploy\.write_image\n[^]*logs: .*\.tar\.gz/);
    expect(await textOf(silent)).toMatch(
      /Timeout reached while waiting for callback[^]*\nstep: deploy\.write_image\n[^]*logs: .*\.tar\.gz/,
    );
  } finally {
    for (const { agent } of [broken, silent]) await agent.close();
  }
}, 600_000);
