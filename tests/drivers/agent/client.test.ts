import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Options } from '../../../config/options';
import { commandError, withAgent } from '../../../drivers/agent/client';
import { ownCertificate } from '../../../wire/http/certificate';
import { type Answer, type AgentRequest, type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { NODE_UUID, type TestTask, testTask } from '../../support/task';
import { shortened } from '../../../model/text';

const agents: FakeAgent[] = [];
afterEach(async () => {
  await Promise.all(agents.splice(0).map((agent) => agent.close()));
});

async function against(
  answer: (asked: AgentRequest, times: number) => Answer,
  given: {
    internal?: object;
    info?: object;
    options?: Partial<Options>;
    tls?: { certificate: string; privateKey: string; maxVersion?: 'TLSv1.2' };
  } = {},
): Promise<TestTask & { readonly agent: FakeAgent }> {
  const agent = await startFakeAgent(answer, given.tls);
  agents.push(agent);
  const driver_internal_info = { agent_url: agent.url, agent_secret_token: 's3cret', ...given.internal };
  return { ...testTask({ node: { driver_internal_info, driver_info: { ...given.info } }, options: given.options ?? {} }), agent };
}
const succeed = (): Answer => ({ body: result('sync', 'SUCCEEDED') });

describe('command', () => {
  it('sends the parameters and the agent token', async () => {
    const { task, agent } = await against(succeed);
    const answer = await withAgent(task, (value) => value.command('standby.sync', { a: 1 }, { wait: true }));
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
  it('uses a connection for several commands', async () => {
    const { task, agent } = await against(succeed);
    for (let sent = 0; sent < 3; sent++) await withAgent(task, (one) => one.command('standby.sync', {}, { wait: true }));
    expect(agent.asked).toHaveLength(3);
    expect(agent.connections()).toBe(1);
  });
  it('sends the command again when the connection breaks and the agent does not execute it', async () => {
    const { task, agent } = await against(({ method }, times) =>
      times === 1 ? 'hang up' : method === 'GET' ? { body: { commands: [] } } : succeed(),
    );
    await withAgent(task, (value) => value.command('standby.sync', {}));
    expect(agent.asked.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST']);
  });
  it('does not send the command again when the agent already executes it', async () => {
    const running = result('execute_clean_step', 'RUNNING');
    const { task, agent } = await against((_, times) => (times === 1 ? 'hang up' : { body: { commands: [running] } }));
    expect(await withAgent(task, (value) => value.command('clean.execute_clean_step', {}))).toEqual(running);
    expect(agent.asked.map(({ method }) => method)).toEqual(['POST', 'GET']);
  });
  it('fails after [agent]max_command_attempts', async () => {
    const { task, agent } = await against(() => 'hang up', { options: { 'agent.max_command_attempts': 2 } });
    await expect(withAgent(task, (value) => value.command('standby.sync', {}))).rejects.toMatchObject({
      kind: 'unreachable',
      message: expect.stringContaining(
        `Connection to agent failed: Failed to connect to the agent running on node ${NODE_UUID} for invoking command standby.sync. Error: `,
      ) as string,
    });
    expect(agent.asked.filter(({ method }) => method === 'POST')).toHaveLength(2);
  });
  it('fails after the timeout when the agent does not answer', async () => {
    const { task } = await against(() => 'say nothing');
    await expect(withAgent(task, (value) => value.command('standby.sync', {}, { attempts: 1, timeout: 0.1 }))).rejects.toMatchObject({
      kind: 'unreachable',
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
    [502, '<html>', 'refused', `Agent API for node ${NODE_UUID} returned HTTP status code 502 with error: the response is not JSON`],
    [200, '<html>', 'refused', `Agent API for node ${NODE_UUID} returned HTTP status code 200 with error: the response is not JSON`],
    [200, { nothing: 1 }, 'refused', 'Agent returned bad command result'],
    [200, null, 'refused', 'Agent returned bad command result'],
    [
      403,
      { secret: 'of another server' },
      'refused',
      `Agent API for node ${NODE_UUID} returned HTTP status code 403 with error: Invalid agent response`,
    ],
  ])('maps the answer %i %j to a failure of kind %s', async (status, body, kind, message) => {
    const { task } = await against(() => ({ status, body }));
    await expect(withAgent(task, (value) => value.command('a.b', {}))).rejects.toMatchObject({ kind, message });
  });
  it('masks the agent token that an error message quotes', async () => {
    const { task } = await against((asked) => ({ status: 401, body: { message: `wrong token in ${JSON.stringify(asked.query)}` } }));
    await expect(withAgent(task, (value) => value.command('a.b', {}))).rejects.toMatchObject({
      message: expect.stringMatching(/wrong token in .*"agent_token":"\*{6}"/) as unknown,
    });
  });
  it('does not follow a redirect', async () => {
    const elsewhere = await startFakeAgent(succeed);
    agents.push(elsewhere);
    const { task, agent } = await against(() => ({ status: 307, body: {}, headers: { location: `${elsewhere.url}/v1/commands/` } }));
    await expect(withAgent(task, (value) => value.command('standby.sync', {}))).rejects.toMatchObject({ kind: 'refused' });
    expect([agent.asked.length, elsewhere.asked.length]).toEqual([1, 0]);
  });
  it('fails on an answer that exceeds the size limit', async () => {
    const { task } = await against(() => ({ body: 'x'.repeat(17 * 1024 * 1024) }), { options: { 'agent.max_command_attempts': 1 } });
    await expect(withAgent(task, (value) => value.commands())).rejects.toMatchObject({ kind: 'unreachable' });
  });
  it('fails with the reason of the stop when the server stops', async () => {
    const { task, stop } = await against(() => 'say nothing');
    const work = withAgent(task, (value) => value.command('standby.sync', {}));
    setImmediate(() => stop(new Error('going down')));
    await expect(work).rejects.toThrow('going down');
  });
  it('ends after the timeout of the command, also while the connection is being made', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const { task } = testTask({ node: { driver_internal_info: { agent_url: url } }, options: { 'agent.command_timeout': 5 } });
    const said = withAgent(task, (one) => one.command('standby.sync', {}, { attempts: 1, timeout: 0.1 }));
    // The end of the connection attempt, after five seconds, has another text.
    await expect(said)
      .rejects.toThrow('no answer within 0.1 s')
      .finally(() => silent.close());
  });
  it('fails for a node without an agent URL', async () => {
    const { task } = testTask();
    await expect(withAgent(task, (value) => value.commands())).rejects.toMatchObject({ kind: 'unreachable' });
  });
});

describe('finished', () => {
  const started = { command_name: 'install_bootloader', command_status: 'RUNNING' };
  it('sends one GET that waits until the command has ended', async () => {
    const { task, agent } = await against(() => ({ body: result('install_bootloader', 'SUCCEEDED') }));
    expect(await withAgent(task, (value) => value.finished({ ...started, id: 'a/b' }))).toMatchObject({ command_status: 'SUCCEEDED' });
    expect(agent.asked).toMatchObject([{ method: 'GET', path: '/v1/commands/a%2Fb', query: { wait: 'true' } }]);
  });
  it('polls an agent that does not wait, and tolerates a broken connection', async () => {
    const { task } = await against((_, times) =>
      times === 2 ? 'hang up' : { body: result('install_bootloader', times < 4 ? 'RUNNING' : 'FAILED') },
    );
    expect(await withAgent(task, (value) => value.finished({ ...started, id: 'x' }))).toMatchObject({ command_status: 'FAILED' });
  });
  it('finds a command without an id in the list of commands', async () => {
    const { task } = await against(() => ({ body: { commands: [result('install_bootloader', 'SUCCEEDED'), result('other', 'RUNNING')] } }));
    expect(await withAgent(task, (value) => value.finished(started))).toMatchObject({ command_status: 'SUCCEEDED' });
  });
  it('fails after the timeout when the command does not end', async () => {
    const { task } = await against(() => ({ body: result('install_bootloader', 'RUNNING') }));
    await expect(withAgent(task, (value) => value.finished({ ...started, id: 'x' }))).rejects.toThrow(
      `Timeout executing command install_bootloader on node ${NODE_UUID}`,
    );
  });
});

describe('TLS verification', () => {
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
    ['the certificate from its heartbeat', () => ({ internal: { agent_verify_ca: own.certificate }, info: { agent_verify_ca: '/none' } })],
    ['the file in driver_info', () => ({ info: { agent_verify_ca: join(folder, 'ca.pem') } })],
    ['the folder in driver_info', () => ({ info: { agent_verify_ca: folder } })],
    ['the file in [agent]verify_ca', () => ({ options: { 'agent.verify_ca': join(folder, 'ca.pem') } })],
    ['verification disabled in driver_info', () => ({ info: { agent_verify_ca: false } })],
    ['verification disabled by [agent]verify_ca', () => ({ options: { 'agent.verify_ca': 'False' } })],
  ])("accepts the agent's certificate with %s", async (_, given) => {
    const { task } = await against(succeed, { ...given(), tls: own });
    expect(await withAgent(task, (value) => value.command('standby.sync', {}))).toMatchObject({ command_status: 'SUCCEEDED' });
  });
  it.each([
    ['another trusted certificate', own, () => ({ internal: { agent_verify_ca: other.certificate }, options: once })],
    ["only the system's authorities", own, () => ({ options: once })],
    ['a certificate for another address', elsewhere, () => ({ internal: { agent_verify_ca: elsewhere.certificate }, options: once })],
  ])('refuses the connection with %s', async (_, tls, given) => {
    const { task, agent } = await against(succeed, { ...given(), tls });
    await expect(withAgent(task, (value) => value.command('standby.sync', {}))).rejects.toMatchObject({ kind: 'unreachable' });
    expect(agent.asked).toEqual([]);
  });
  it('never uses a connection of a task that did not verify the agent', async () => {
    const { task, agent } = await against(succeed, { options: { 'agent.verify_ca': 'False' }, tls: own });
    await withAgent(task, (one) => one.command('standby.sync', {}));
    const node = { driver_internal_info: { agent_url: agent.url, agent_secret_token: 's3cret' } };
    const { task: other } = testTask({ node, options: once });
    await expect(withAgent(other, (one) => one.command('standby.sync', {}))).rejects.toMatchObject({ kind: 'unreachable' });
    expect(agent.asked).toHaveLength(1);
  });
  it.each<[version: '1.2' | '1.3' | undefined, kind: string | undefined]>([
    ['1.2', undefined],
    ['1.3', 'unreachable'],
    [undefined, 'unreachable'],
  ])('with an agent that has TLS 1.2 only follows [agent]tls_minimum_version = %s', async (version, kind) => {
    const options = { ...once, 'agent.verify_ca': 'False', ...(version ? { 'agent.tls_minimum_version': version } : {}) };
    const { task } = await against(succeed, { options, tls: { ...own, maxVersion: 'TLSv1.2' } });
    const said = await withAgent(task, (value) => value.command('standby.sync', {})).catch((error: unknown) => error);
    expect((said as { kind?: string }).kind).toBe(kind);
  });
  it('refuses a file path in the agent_verify_ca that the agent sent', async () => {
    const { task, agent } = await against(succeed, { internal: { agent_verify_ca: join(folder, 'ca.pem') }, tls: own });
    await expect(withAgent(task, (value) => value.command('standby.sync', {}))).rejects.toMatchObject({ status: 400 });
    expect(agent.asked).toEqual([]);
  });
  it('refuses an agent_verify_ca path that does not exist', async () => {
    const { task } = await against(succeed, { info: { agent_verify_ca: '/none' }, tls: own });
    await expect(withAgent(task, (value) => value.command('standby.sync', {}))).rejects.toMatchObject({
      status: 400,
      message: 'Agent CA /none is neither a path nor a boolean',
    });
  });
});

it.each([
  [{ details: 'd', message: 'm' }, 'd'],
  [{ message: 'm' }, 'm'],
  ['text', 'text'],
  ['x'.repeat(6 * 2 ** 20), shortened('x'.repeat(6 * 2 ** 20), 2 ** 16)],
  [{ details: `${'x'.repeat(6 * 2 ** 20)} No space.` }, shortened(`${'x'.repeat(6 * 2 ** 20)} No space.`, 2 ** 16)],
  [{ odd: 1 }, 'Invalid agent response'],
  [null, 'Invalid agent response'],
])('commandError extracts the error text, case %#', (command_error, expected) => {
  expect(commandError({ command_name: 'x', command_status: 'FAILED', command_error })).toEqual(expected);
});
