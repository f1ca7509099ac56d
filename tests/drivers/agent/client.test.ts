import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Options } from '../../../config/options';
import { commandError, withAgent } from '../../../drivers/agent/client';
import { ownCertificate } from '../../../wire/http/certificate';
import { type Answer, type AgentRequest, type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { NODE_UUID, type TestTask, testTask } from '../../support/task';

const agents: FakeAgent[] = [];
afterEach(async () => {
  await Promise.all(agents.splice(0).map((agent) => agent.close()));
});

async function against(
  answer: (asked: AgentRequest, times: number) => Answer,
  given: { internal?: object; info?: object; options?: Partial<Options>; tls?: { certificate: string; privateKey: string } } = {},
): Promise<TestTask & { readonly agent: FakeAgent }> {
  const agent = await startFakeAgent(answer, given.tls);
  agents.push(agent);
  const driver_internal_info = { agent_url: agent.url, agent_secret_token: 's3cret', ...given.internal };
  return { ...testTask({ node: { driver_internal_info, driver_info: { ...given.info } }, options: given.options ?? {} }), agent };
}
const succeed = (): Answer => ({ body: result('sync', 'SUCCEEDED') });

describe('a command', () => {
  it('goes with its parameters and the token', async () => {
    const { task, agent } = await against(succeed);
    const answer = await withAgent(task, (one) => one.command('standby.sync', { a: 1 }, { wait: true }));
    expect(answer).toMatchObject({ command_name: 'sync', command_status: 'SUCCEEDED' });
    expect(agent.asked).toEqual([
      {
        method: 'POST',
        path: '/v1/commands/',
        query: { wait: 'true', agent_token: 's3cret' },
        body: { name: 'standby.sync', params: { a: 1 } },
      },
    ]);
  });
  it('is sent again when the connection breaks and the agent does not run it', async () => {
    const { task, agent } = await against(({ method }, times) =>
      times === 1 ? 'hang up' : method === 'GET' ? { body: { commands: [] } } : succeed(),
    );
    await withAgent(task, (one) => one.command('standby.sync', {}));
    expect(agent.asked.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST']);
  });
  it('is not sent again when the agent turns out to run it', async () => {
    const running = result('execute_clean_step', 'RUNNING');
    const { task, agent } = await against((_, times) => (times === 1 ? 'hang up' : { body: { commands: [running] } }));
    expect(await withAgent(task, (one) => one.command('clean.execute_clean_step', {}))).toEqual(running);
    expect(agent.asked.map(({ method }) => method)).toEqual(['POST', 'GET']);
  });
  it('fails after the tries that the option allows', async () => {
    const { task, agent } = await against(() => 'hang up', { options: { 'agent.max_command_attempts': 2 } });
    await expect(withAgent(task, (one) => one.command('standby.sync', {}))).rejects.toMatchObject({
      kind: 'connection',
      message: expect.stringContaining(
        `Connection to agent failed: Failed to connect to the agent running on node ${NODE_UUID} for invoking command standby.sync. Error: `,
      ) as string,
    });
    expect(agent.asked.filter(({ method }) => method === 'POST')).toHaveLength(2);
  });
  it('fails in time when the agent says nothing', async () => {
    const { task } = await against(() => 'say nothing');
    await expect(withAgent(task, (one) => one.command('standby.sync', {}, { attempts: 1, timeout: 0.1 }))).rejects.toMatchObject({
      kind: 'connection',
    });
  });
  it.each([
    [409, { faultstring: 'no' }, 'busy', `Node ${NODE_UUID} command "a.b" failed. Agent is presently executing a command. Error no`],
    [
      500,
      { details: 'Agent is busy: x' },
      'busy',
      `Node ${NODE_UUID} command "a.b" failed. Agent is presently executing a command. Error Agent is busy: x`,
    ],
    [401, { faultstring: 'bad token' }, 'refused', `Agent API for node ${NODE_UUID} returned HTTP status code 401 with error: bad token`],
    [
      404,
      { type: 'T', message: 'Unknown', details: 'no such command' },
      'refused',
      `Agent API for node ${NODE_UUID} returned HTTP status code 404 with error: no such command`,
    ],
    [502, '<html>', 'refused', `Agent API for node ${NODE_UUID} returned HTTP status code 502 with error: no JSON`],
    [200, '<html>', 'refused', `Agent API for node ${NODE_UUID} returned HTTP status code 200 with error: no JSON`],
    [200, { nothing: 1 }, 'refused', 'Agent returned bad command result'],
    [200, null, 'refused', 'Agent returned bad command result'],
    [
      403,
      { secret: 'of another server' },
      'refused',
      `Agent API for node ${NODE_UUID} returned HTTP status code 403 with error: Invalid agent response`,
    ],
  ])('answered %i %j is %s', async (status, body, kind, message) => {
    const { task } = await against(() => ({ status, body }));
    await expect(withAgent(task, (one) => one.command('a.b', {}))).rejects.toMatchObject({ kind, message });
  });
  it('does not show the token that an agent quotes', async () => {
    const { task } = await against((asked) => ({ status: 401, body: { message: `wrong token in ${JSON.stringify(asked.query)}` } }));
    await expect(withAgent(task, (one) => one.command('a.b', {}))).rejects.toMatchObject({
      message: expect.stringMatching(/wrong token in .*"agent_token":"\*{6}"/) as unknown,
    });
  });
  it('does not follow a redirect', async () => {
    const elsewhere = await startFakeAgent(succeed);
    agents.push(elsewhere);
    const { task, agent } = await against(() => ({ status: 307, body: {}, headers: { location: `${elsewhere.url}/v1/commands/` } }));
    await expect(withAgent(task, (one) => one.command('standby.sync', {}))).rejects.toMatchObject({ kind: 'refused' });
    expect([agent.asked.length, elsewhere.asked.length]).toEqual([1, 0]);
  });
  it('takes no answer without end', async () => {
    const { task } = await against(() => ({ body: 'x'.repeat(17 * 1024 * 1024) }), { options: { 'agent.max_command_attempts': 1 } });
    await expect(withAgent(task, (one) => one.commands())).rejects.toMatchObject({ kind: 'connection' });
  });
  it('ends when the server stops', async () => {
    const { task, stop } = await against(() => 'say nothing');
    const work = withAgent(task, (one) => one.command('standby.sync', {}));
    setImmediate(() => stop(new Error('going down')));
    await expect(work).rejects.toThrow('going down');
  });
  it('needs an agent that is known', async () => {
    const { task } = testTask();
    await expect(withAgent(task, (one) => one.commands())).rejects.toMatchObject({ kind: 'connection' });
  });
});

describe('waiting for a command', () => {
  const started = { command_name: 'install_bootloader', command_status: 'RUNNING' };
  it('asks for it once, and the agent answers when it is over', async () => {
    const { task, agent } = await against(() => ({ body: result('install_bootloader', 'SUCCEEDED') }));
    expect(await withAgent(task, (one) => one.finished({ ...started, id: 'a/b' }))).toMatchObject({ command_status: 'SUCCEEDED' });
    expect(agent.asked).toMatchObject([{ method: 'GET', path: '/v1/commands/a%2Fb', query: { wait: 'true' } }]);
  });
  it('looks again at an agent that does not wait, through lost connections', async () => {
    const { task } = await against((_, times) =>
      times === 2 ? 'hang up' : { body: result('install_bootloader', times < 4 ? 'RUNNING' : 'FAILED') },
    );
    expect(await withAgent(task, (one) => one.finished({ ...started, id: 'x' }))).toMatchObject({ command_status: 'FAILED' });
  });
  it('looks in the list for one without an id', async () => {
    const { task } = await against(() => ({ body: { commands: [result('install_bootloader', 'SUCCEEDED'), result('other', 'RUNNING')] } }));
    expect(await withAgent(task, (one) => one.finished(started))).toMatchObject({ command_status: 'SUCCEEDED' });
  });
  it('does not wait for ever', async () => {
    const { task } = await against(() => ({ body: result('install_bootloader', 'RUNNING') }));
    await expect(withAgent(task, (one) => one.finished({ ...started, id: 'x' }))).rejects.toThrow(
      `Timeout executing command install_bootloader on node ${NODE_UUID}`,
    );
  });
});

describe('TLS', () => {
  const own = ownCertificate('127.0.0.1', 'agent', Date.now(), randomBytes);
  const other = ownCertificate('127.0.0.1', 'agent', Date.now(), randomBytes);
  const elsewhere = ownCertificate('127.0.0.2', 'agent', Date.now(), randomBytes);
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'agent-ca-'));
    writeFileSync(join(folder, 'ca.pem'), own.certificate);
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const once = { 'agent.max_command_attempts': 1 };

  it.each([
    ['the certificate of its heartbeat', () => ({ internal: { agent_verify_ca: own.certificate }, info: { agent_verify_ca: '/none' } })],
    ['a file that the node names', () => ({ info: { agent_verify_ca: join(folder, 'ca.pem') } })],
    ['a folder that the node names', () => ({ info: { agent_verify_ca: folder } })],
    ['a file of the configuration', () => ({ options: { 'agent.verify_ca': join(folder, 'ca.pem') } })],
    ['nothing, as the node wants', () => ({ info: { agent_verify_ca: false } })],
    ['nothing, as the configuration wants', () => ({ options: { 'agent.verify_ca': 'False' } })],
  ])('is held against %s', async (_, given) => {
    const { task } = await against(succeed, { ...given(), tls: own });
    expect(await withAgent(task, (one) => one.command('standby.sync', {}))).toMatchObject({ command_status: 'SUCCEEDED' });
  });
  it.each([
    ['another certificate', own, () => ({ internal: { agent_verify_ca: other.certificate }, options: once })],
    ["the system's authorities", own, () => ({ options: once })],
    ['a certificate of another address', elsewhere, () => ({ internal: { agent_verify_ca: elsewhere.certificate }, options: once })],
  ])('fails against %s', async (_, tls, given) => {
    const { task, agent } = await against(succeed, { ...given(), tls });
    await expect(withAgent(task, (one) => one.command('standby.sync', {}))).rejects.toMatchObject({ kind: 'connection' });
    expect(agent.asked).toEqual([]);
  });
  it('refuses a path that the agent sent, which it would have to open', async () => {
    const { task, agent } = await against(succeed, { internal: { agent_verify_ca: join(folder, 'ca.pem') }, tls: own });
    await expect(withAgent(task, (one) => one.command('standby.sync', {}))).rejects.toMatchObject({ status: 400 });
    expect(agent.asked).toEqual([]);
  });
  it('refuses a path that is none', async () => {
    const { task } = await against(succeed, { info: { agent_verify_ca: '/none' }, tls: own });
    await expect(withAgent(task, (one) => one.command('standby.sync', {}))).rejects.toMatchObject({
      status: 400,
      message: 'Agent CA /none is neither a path nor a boolean',
    });
  });
});

it.each([
  [{ details: 'd', message: 'm' }, 'd'],
  [{ message: 'm' }, 'm'],
  ['text', 'text'],
  ['x'.repeat(6 * 2 ** 20), 'x'.repeat(2 ** 16)],
  [{ details: 'x'.repeat(6 * 2 ** 20) }, 'x'.repeat(2 ** 16)],
  [{ odd: 1 }, 'Invalid agent response'],
  [null, 'Invalid agent response'],
])('command error %# reads its text', (command_error, expected) => {
  expect(commandError({ command_name: 'x', command_status: 'FAILED', command_error })).toBe(expected);
});
