/** Agents that already run in the machine, and running instances that an agent replaces: which power actions follow. */
import { customAgentDeploy } from '../../../drivers/agent/deploy';
import { agentAlreadyRunning, done, wait } from '../../../drivers/interfaces';
import { isFastTrack } from '../../../drivers/agent/fast-track';
import type { NodeRecord } from '../../../model/records';
import { type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { testTask, type TestTask } from '../../support/task';

const NOW = '2026-02-03T04:05:06.000000';
const spoken = { agent_secret_token: 'held', agent_url: 'http://192.0.2.9:9999', agent_last_heartbeat: NOW };
const there: Partial<NodeRecord> = { driver_info: { fast_track: true }, driver_internal_info: spoken, power_state: 'power on' };

it.each<[boolean, string, Partial<NodeRecord>]>([
  [true, 'sent a recent heartbeat', {}],
  [false, 'was forgotten since a recent inspection', { driver_internal_info: { agent_last_heartbeat: NOW }, inspection_finished_at: NOW }],
  [false, 'has a URL and no token', { driver_internal_info: { agent_url: spoken.agent_url, agent_last_heartbeat: NOW } }],
  [
    true,
    'has just sent the report of an inspection',
    {
      driver_internal_info: { agent_last_heartbeat: NOW },
      provision_state: 'inspecting',
      inspection_started_at: '2026-02-03T04:04:00.000000+00:00',
    },
  ],
  [
    false,
    'ran before the inspection that has just begun',
    {
      driver_internal_info: { agent_last_heartbeat: NOW },
      provision_state: 'inspecting',
      inspection_started_at: '2026-02-03T04:05:07.000000+00:00',
    },
  ],
  [false, 'runs without fast_track in driver_info', { driver_info: {} }],
  [false, 'is in a machine that is off', { power_state: 'power off' }],
  [false, 'has no URL since its machine was powered off', { driver_internal_info: { agent_last_heartbeat: NOW } }],
  [
    false,
    'sent its last heartbeat too long ago',
    { driver_internal_info: { ...spoken, agent_last_heartbeat: '2026-02-03T03:59:59.000000' } },
  ],
  [false, 'runs on a node with last_error', { last_error: 'x' }],
  [false, 'runs on a node in the state servicing', { provision_state: 'servicing' }],
  [false, 'runs on a node with an unfinished firmware update', { driver_internal_info: { ...spoken, redfish_fw_updates: [] } }],
])('isFastTrack returns %s for an agent that %s', async (expected, _, node) => {
  expect(await isFastTrack(testTask({ node: { ...there, ...node } }).task)).toBe(expected);
});

const stepOf = (value: TestTask, name: string) => customAgentDeploy.steps!.find(({ step }) => step === name)!.run(value.task, {});
it('a deployment powers the machine off and on only without fast track', async () => {
  const one = testTask({ node: there });
  await customAgentDeploy.prepare!(one.task);
  expect(await stepOf(one, 'deploy')).toEqual(agentAlreadyRunning);
  expect(one.events).toEqual([]);
  const cold = testTask({ node: { ...there, driver_info: {} } });
  await customAgentDeploy.prepare!(cold.task);
  expect(await stepOf(cold, 'deploy')).toEqual(wait);
  expect(cold.events).toEqual(['power: power off', 'power: power on']);
});
it('cleaning with fast track uses the running agent and leaves it running', async () => {
  const one = testTask({ node: { ...there, provision_state: 'cleaning' } });
  expect(await customAgentDeploy.prepareCleaning(one.task)).toEqual(agentAlreadyRunning);
  expect(one.node().driver_internal_info).toMatchObject({ agent_enable_ata_secure_erase: true, agent_erase_skip_read_only: false });
  await customAgentDeploy.tearDownCleaning(one.task);
  expect(one.events).toEqual([]);
});
it.each([
  [{}, ['power: power off']],
  [{ disable_power_off: true }, ['power: rebooting']],
  [{ fault: 'clean failure' }, []],
])('tearDownCleaning without fast track, of a node with %j, executes the expected power actions', async (node, events) => {
  const one = testTask({ node: { ...node, provision_state: 'cleaning', power_state: 'power on' } });
  await customAgentDeploy.tearDownCleaning(one.task);
  expect(one.events).toEqual(events);
});

describe('servicing', () => {
  let agent: FakeAgent | undefined;
  afterEach(async () => agent?.close());
  const servicing: Partial<NodeRecord> = { provision_state: 'servicing', power_state: 'power on' };
  it.each([
    [{}, ['power: power off', 'power: power on'], ['power: power off', 'power: power on']],
    [{ fault: 'service failure' }, ['power: power off', 'power: power on'], []],
  ])('boots the ramdisk, and boots the instance again unless the service failed: %j', async (node, begin, end) => {
    const one = testTask({ node: { ...servicing, ...node } });
    expect(await customAgentDeploy.prepareService!(one.task)).toEqual(wait);
    expect(one.events.splice(0)).toEqual(begin);
    await customAgentDeploy.tearDownService!(one.task);
    expect(one.events).toEqual(end);
  });
  it('reboots with disable_power_off, after the lockdown of the agent', async () => {
    agent = await startFakeAgent(() => ({ body: result('lockdown', 'SUCCEEDED') }));
    const one = testTask({ node: { ...servicing, disable_power_off: true, driver_internal_info: { agent_url: agent.url } } });
    expect(await customAgentDeploy.prepareService!(one.task)).toEqual(wait);
    await customAgentDeploy.tearDownService!(one.task);
    expect(one.events).toEqual(['power: rebooting', 'power: rebooting']);
    expect(agent.asked.map(({ body }) => body?.name)).toEqual(['system.lockdown']);
  });
});

it('onHeartbeat completes deploy.deploy for an agent whose last command was a clean step', async () => {
  const agent = await startFakeAgent(() => ({ body: { commands: [result('execute_clean_step', 'SUCCEEDED')] } }));
  const one = testTask({ node: { driver_internal_info: { agent_url: agent.url } } });
  expect(await customAgentDeploy.onHeartbeat!(one.task, 'deploy', { interface: 'deploy', step: 'deploy', priority: 100 })).toEqual(done);
  await agent.close();
});
