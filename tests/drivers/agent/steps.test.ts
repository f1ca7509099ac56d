import { agentArguments } from '../../../drivers/agent/step-settings';
import { agentSteps, onHeartbeat, runAgentStep } from '../../../drivers/agent/steps';
import type { PlannedStep } from '../../../drivers/interfaces';
import type { JsonObject } from '../../../model/records';
import { type Answer, type AgentRequest, type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { NODE_UUID, type TestTask, testTask } from '../../support/task';

let agent: FakeAgent | undefined;
afterEach(async () => {
  await agent?.close();
});
async function against(answer: (asked: AgentRequest, times: number) => Answer, internal: object = {}): Promise<TestTask> {
  agent = await startFakeAgent(answer);
  return testTask({
    node: {
      driver_internal_info: { agent_url: agent.url, agent_secret_token: 's3cret', ...internal },
      driver_info: { redfish_password: 'hunter2', redfish_username: 'root' },
      instance_info: { configdrive: 'H4sI' },
    },
  });
}
const erase: PlannedStep = { step: 'erase_devices', interface: 'deploy', priority: 10 };
const offered = (steps: unknown, version: unknown = { generic: '1.0' }): Answer => ({
  body: result('get_clean_steps', 'SUCCEEDED', { command_result: { clean_steps: steps, hardware_manager_version: version } }),
});

describe('agentSteps', () => {
  it('requests the steps with a masked node, and caches them in driver_internal_info', async () => {
    const { task, node } = await against(() =>
      offered({ Generic: [{ ...erase, abortable: true }], Other: [{ ...erase, step: 'x', interface: 'raid' }] }),
    );
    const steps = await agentSteps(task, 'clean');
    const expected = [
      { ...erase, abortable: true, requires_ramdisk: true },
      { ...erase, step: 'x', interface: 'raid', requires_ramdisk: true },
    ];
    expect(steps).toEqual(expected);
    expect(node().driver_internal_info).toMatchObject({
      hardware_manager_version: { generic: '1.0' },
      agent_cached_clean_steps: { deploy: [expected[0]], raid: [expected[1]] },
      agent_cached_clean_steps_refreshed: '2026-02-03T04:05:06.000000',
    });
    const { name, params } = agent!.asked[0]!.body!;
    expect([name, agent!.asked[0]!.query.wait]).toEqual(['clean.get_clean_steps', 'true']);
    expect(params).toMatchObject({
      node: {
        uuid: NODE_UUID,
        driver_info: { redfish_password: '******', redfish_username: 'root' },
        driver_internal_info: { agent_secret_token: '******' },
        instance_info: { configdrive: '******' },
      },
      ports: [{ address: '52:54:00:00:00:01' }],
    });
    expect(Object.keys(params['node'] as object)).not.toContain('lock_fence');
  });
  it('returns undefined when the agent is busy', async () => {
    const { task } = await against(() => ({ status: 409, body: { faultstring: 'busy' } }));
    expect(await agentSteps(task, 'deploy')).toBeUndefined();
  });
  it.each([
    [
      'an answer without steps',
      { body: result('get_clean_steps', 'SUCCEEDED', { command_result: {} }) },
      'Keys: clean_steps and hardware_manager_version are needed.',
    ],
    [
      'a step without a priority',
      offered({ G: [{ step: 'x', interface: 'deploy' }] }),
      'invalid clean step. Keys: interface, step and priority are needed',
    ],
    ['a step that is null', offered({ G: [null] }), 'invalid clean step'],
    ['steps of megabytes', offered({ G: [{ ...erase, args: { a: 'x'.repeat(5_000_000) } }] }), '[agent]max_steps_size allows 262144'],
    ['a version of megabytes', offered({ G: [erase] }, { a: 'x'.repeat(5_000_000) }), '[agent]max_steps_size allows 262144'],
    ['too many steps', offered({ G: Array.from({ length: 501 }, () => erase) }), 'It offers 501 steps'],
    ['a failed command', { body: result('get_clean_steps', 'FAILED', { command_error: { details: 'no disks' } }) }, 'no disks'],
  ] as const)('rejects %s', async (_, answer, message) => {
    const { task } = await against(() => answer);
    await expect(agentSteps(task, 'clean')).rejects.toThrow(message);
  });
});

describe('runAgentStep', () => {
  it('sends the step with the hardware manager versions of the agent', async () => {
    const { task } = await against(() => ({ body: result('execute_deploy_step', 'RUNNING') }), { hardware_manager_version: { g: '1' } });
    expect(await runAgentStep(task, 'deploy', erase)).toEqual({ kind: 'wait' });
    expect(agent!.asked).toMatchObject([
      {
        query: { wait: 'false' },
        body: {
          name: 'deploy.execute_deploy_step',
          params: { step: erase, deploy_version: { g: '1' }, node: { instance_info: { configdrive: 'H4sI' } } },
        },
      },
    ]);
  });
  it('sends the settings of a step as its node has them', async () => {
    const { task } = await against(() => ({ body: result('execute_clean_step', 'RUNNING') }), { agent_erase_devices_iterations: 1 });
    await runAgentStep(task, 'clean', { ...erase, args: { iterations: 3, zeroize: false, force: true } });
    await runAgentStep(task, 'clean', { ...erase, step: 'burnin_memory', args: { timeout: 60, 'vm-bytes': '50%' } });
    const [erased, burnt] = agent!.asked.map(({ body }) => body!.params as Readonly<Record<string, JsonObject>>);
    expect(erased).toMatchObject({
      step: { step: 'erase_devices', args: { force: true } },
      node: { driver_internal_info: { agent_erase_devices_iterations: 3, agent_erase_devices_zeroize: false, agent_url: agent!.url } },
    });
    expect(erased!['step']!['args']).toEqual({ force: true });
    expect(burnt).toMatchObject({
      step: { args: {} },
      node: { driver_info: { agent_burnin_vm_timeout: 60, 'agent_burnin_vm_vm-bytes': '50%', redfish_username: 'root' } },
    });
  });
  it.each<[JsonObject, string | undefined]>([
    [{ iterations: 0 }, undefined],
    [{ iterations: 0, zeroize: true }, undefined],
    [{ iterations: 1, zeroize: false }, undefined],
    [{ iterations: 0, zeroize: false }, 'must be above 0 where zeroize is false: nothing would be written'],
    [{ iterations: 101, zeroize: false }, 'must be from 0 to 100'],
  ])('refuses an erasure that writes nothing: %j', (args, problem) => {
    expect(agentArguments['deploy.erase_devices']!['iterations']!.problem!(args['iterations'], args)).toBe(problem);
  });
  it('sends an argument that the agent itself offers', async () => {
    const cached = { deploy: [{ ...erase, argsinfo: { iterations: { description: 'x' } } }] };
    const { task } = await against(() => ({ body: result('execute_clean_step', 'RUNNING') }), { agent_cached_clean_steps: cached });
    await runAgentStep(task, 'clean', { ...erase, args: { iterations: 3 } });
    expect(agent!.asked[0]!.body!.params).toMatchObject({ step: { args: { iterations: 3 } } });
    expect(JSON.stringify(agent!.asked[0]!.body!.params['node'])).not.toContain('agent_erase_devices_iterations');
  });
  it.each([
    ['the same step', 'execute_clean_step', 'RUNNING', true],
    ['another command', 'sync', 'RUNNING', false],
    ['a step that has ended', 'execute_clean_step', 'SUCCEEDED', false],
  ])('waits for a busy agent only if it executes the same step: %s', async (_, name, status, fine) => {
    const { task } = await against(({ method }) =>
      method === 'POST' ? { status: 409, body: { faultstring: 'busy' } } : { body: { commands: [result(name, status)] } },
    );
    const outcome = runAgentStep(task, 'clean', erase);
    if (fine) expect(await outcome).toEqual({ kind: 'wait' });
    else await expect(outcome).rejects.toThrow('Agent is presently executing a command');
  });
});

describe('onHeartbeat', () => {
  const execute = (status: string, more: JsonObject = {}) => result('execute_clean_step', status, more);
  const ended = (step: object) => execute('SUCCEEDED', { command_result: { clean_result: null, clean_step: step } });
  const got = result('get_clean_steps', 'SUCCEEDED');
  const failure = (reason: string) => ({ kind: 'failed', reason });
  const here = `Clean step deploy.erase_devices failed on node ${NODE_UUID}.`;

  it.each([
    ['a percentage', {}, undefined],
    ['a percentage and bytes', { bytes: { done: 4, of: 10 } }, { done: 4, of: 10 }],
    ['a percentage without the invalid bytes', { bytes: { done: '4', of: 10 } }, undefined],
    ['a percentage without bytes beyond the total', { bytes: { done: 11, of: 10 } }, undefined],
  ])('reports the progress of a running step: %s', async (_, more, bytes) => {
    const commands = [got, execute('RUNNING', { command_result: { progress: 40, ...more } })];
    const { task } = await against(() => ({ body: { commands } }));
    const told: unknown[] = [];
    const heard = { ...task, reportProgress: async (...said: readonly unknown[]) => void told.push(said) };
    expect(await onHeartbeat(heard, 'clean', erase)).toEqual({ kind: 'wait' });
    expect(told).toEqual([['clean', erase, 40, bytes]]);
  });
  it.each([
    ['runs', [got, execute('RUNNING')], { kind: 'wait' }],
    ['succeeded', [got, ended(erase)], { kind: 'done' }],
    ['has not begun, after another step', [got, ended({ ...erase, step: 'other' })], { kind: 'wait' }],
    ['succeeded, without the name of the step', [got, execute('SUCCEEDED')], { kind: 'wait' }],
    ['failed', [got, execute('FAILED', { command_error: { message: 'm', details: 'disk gone' } })], failure(`${here} disk gone`)],
    ['failed without an error', [got, execute('FAILED')], failure(`${here} Invalid agent response`)],
    [
      'has an unknown status',
      [got, execute('MAYBE')],
      failure(`Agent returned unknown status for clean step deploy.erase_devices on node ${NODE_UUID} : MAYBE.`),
    ],
    ['is not the last command', [got, ended(erase), result('sync', 'RUNNING')], { kind: 'wait' }],
    ['was lost when the agent restarted', [], failure(`${here} The agent was restarted while the step ran`)],
    ['was lost when the agent restarted and listed its steps', [got], failure(`${here} The agent was restarted while the step ran`)],
  ])('determines the outcome of a step that %s', async (_, commands, expected) => {
    const { task } = await against(() => ({ body: { commands } }));
    expect(await onHeartbeat(task, 'clean', erase)).toEqual(expected);
  });
  it.each([
    ['empty', []],
    ['only get_deploy_steps', [result('get_deploy_steps', 'SUCCEEDED')]],
  ])('completes deploy.deploy for an agent whose commands are %s', async (_, commands) => {
    const { task } = await against(() => ({ body: { commands } }));
    expect(await onHeartbeat(task, 'deploy', { step: 'deploy', interface: 'deploy', priority: 100 })).toEqual({ kind: 'done' });
  });
  it('keeps what a step of the agent measured, of the last steps', async () => {
    const burn = { step: 'burnin_cpu', interface: 'deploy', priority: 0 };
    const finished = (measured: unknown) =>
      execute('SUCCEEDED', { command_result: { clean_result: measured, clean_step: { step: 'burnin_cpu', interface: 'deploy' } } });
    let commands = [got, finished({ rounds: 7 })];
    const earlier = Object.fromEntries(Array.from({ length: 16 }, (__, index) => [`deploy.s${index}`, { at: 'x', result: { index } }]));
    const { task, node } = await against(() => ({ body: { commands } }), { agent_step_results: earlier });
    expect(await onHeartbeat(task, 'clean', burn)).toEqual({ kind: 'done' });
    const kept = (): Readonly<Record<string, { readonly result: unknown }>> => node().driver_internal_info.agent_step_results!;
    expect(Object.keys(kept())).toEqual([...Object.keys(earlier).slice(1), 'deploy.burnin_cpu']);
    expect(kept()['deploy.burnin_cpu']!.result).toEqual({ rounds: 7 });
    commands = [got, finished({ text: 'x'.repeat(10_000) })];
    await onHeartbeat(task, 'clean', burn);
    expect(String(kept()['deploy.burnin_cpu']!.result).length).toBeLessThanOrEqual(8192);
    commands = [got, finished(null)];
    const before = kept();
    await onHeartbeat(task, 'clean', burn);
    expect(kept()).toEqual(before);
  });
  it('reboots after a step with reboot_requested, and completes the step when the agent is back', async () => {
    let commands = [got, ended(erase)];
    const { task, events, node } = await against(() => ({ body: { commands } }));
    const step = { ...erase, reboot_requested: true };
    expect(await onHeartbeat(task, 'clean', step)).toEqual({ kind: 'wait' });
    expect(events).toEqual(['certificate: deploy.erase_devices id-execute_clean_step', 'power: rebooting']);
    expect(node().driver_internal_info).toMatchObject({ cleaning_reboot: true });
    commands = [];
    expect(await onHeartbeat(task, 'clean', step)).toEqual({ kind: 'done' });
    expect(node().driver_internal_info).not.toHaveProperty('cleaning_reboot');
  });
  it.each([
    [
      'another version: it sends the step again',
      { g: '2' },
      { kind: 'wait' },
      ['GET', 'POST clean.get_clean_steps', 'POST clean.execute_clean_step'],
    ],
    [
      'the same version: the step fails',
      { g: '1' },
      failure(`${here} The agent takes no step of its own version`),
      ['GET', 'POST clean.get_clean_steps'],
    ],
  ])('handles CLEAN_VERSION_MISMATCH from an agent with %s', async (_, version, expected, requests) => {
    const { task } = await against(
      ({ method, body }) =>
        method === 'GET'
          ? { body: { commands: [got, execute('CLEAN_VERSION_MISMATCH')] } }
          : body?.name === 'clean.get_clean_steps'
            ? offered({ G: [erase] }, version)
            : { body: execute('RUNNING') },
      { hardware_manager_version: { g: '1' } },
    );
    expect(await onHeartbeat(task, 'clean', erase)).toEqual(expected);
    expect(agent!.asked.map(({ method, body }) => (body ? `${method} ${body.name}` : method))).toEqual(requests);
  });
});
