/**
 * A conductor that is killed at the end of a deployment by kexec. Each case is the node's row as the killed process left it; the next
 * conductor finds it, does the rest again, and says how the instance booted.
 */
import { customAgentDeploy } from '../../../drivers/agent/deploy';
import { noopNetwork } from '../../../drivers/noop';
import type { InternalInfo } from '../../../model/internal-info';
import { type Answer, type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { interfacesOf, newMachine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { after, start } = useConductor();
let agent: FakeAgent | undefined;
afterEach(async () => {
  await agent?.close();
  agent = undefined;
});

const step = (name: string, priority: number) => ({ interface: 'deploy', step: name, priority, args: {} });
const STEPS = [step('tear_down_agent', 40), step('switch_to_tenant_network', 30), step('boot_instance', 20)];
const LOAD: Answer = { body: result('load', 'SUCCEEDED', { command_result: { kernel: '/vmlinuz' } }) };
const GOING: Answer = { body: result('execute', 'SUCCEEDED', { command_result: { going: true } }) };
const BY_KEXEC = /^The agent started the kernel of the instance by kexec: \/vmlinuz$/;

it.each<[string, number, InternalInfo, Readonly<Record<string, Answer>>, readonly string[], readonly string[], RegExp]>([
  [
    'while the agent loads the kernel',
    0,
    {},
    { 'kexec.load': LOAD, 'kexec.execute': GOING },
    ['kexec.load', 'kexec.execute'],
    [],
    BY_KEXEC,
  ],
  [
    'before it tells the agent to start the kernel',
    2,
    { kexec: { kernel: '/vmlinuz' } },
    { 'kexec.execute': GOING },
    ['kexec.execute'],
    [],
    BY_KEXEC,
  ],
  [
    'after it has saved that it tells the agent, and before it tells it',
    2,
    { kexec: { kernel: '/vmlinuz', told: true } },
    { 'kexec.execute': GOING },
    ['kexec.execute'],
    [],
    BY_KEXEC,
  ],
  [
    'after it has told the agent, which is gone',
    2,
    { kexec: { kernel: '/vmlinuz', told: true } },
    {},
    ['kexec.execute'],
    ['reset'],
    /^The machine reboots into the instance, without kexec: the conductor was restarted after it had told the agent to start the kernel, and whether it did is not known; /,
  ],
])('%s', async (_, index, internal, answers, commands, orders, said) => {
  agent = await startFakeAgent(({ body }) => (body && answers[body.name]) ?? 'hang up');
  const machine = newMachine();
  const ordered: string[] = [];
  const order = (name: string) => async () => void ordered.push(name);
  const test = interfacesOf(machine);
  const interfaces = {
    ...test,
    power: {
      ...test.power,
      test: { rebootsByReset: true, get: async () => 'power on', on: order('on'), off: order('off'), reset: order('reset') },
    },
    deploy: { ...test.deploy, test: { ...customAgentDeploy, agentSteps: undefined } },
    network: { ...test.network, test: noopNetwork },
  } as unknown as typeof test;
  const one = await start({ rooms: { interfaces }, options: { 'agent.max_command_attempts': 1, 'agent.command_timeout': 5 } });
  const { uuid } = await one.enrol({
    provision_state: 'deploying',
    target_provision_state: 'active',
    power_state: 'power on',
    driver_info: { bmc: '192.0.2.9', deploy_kexec: true },
    deploy_step: STEPS[index]!,
    driver_internal_info: { deploy_steps: STEPS, deploy_step_index: index, steps_validated: true, agent_url: agent.url, ...internal },
  });
  await after(1500, async () => (await one.node(uuid)).provision_state === 'active');
  const node = await one.node(uuid);
  expect(node).toMatchObject({ reservation: null, last_error: null });
  expect(node.driver_internal_info).not.toHaveProperty('kexec');
  const sent = agent.asked.flatMap(({ body }) => (body?.name.startsWith('kexec.') ? [body.name] : []));
  expect([sent, ordered]).toEqual([commands, orders]);
  const history = await one.store.history.list({ where: { node_uuid: uuid } });
  const boots = history.filter(({ event_type: type }) => type === 'deployment_boot').map(({ event }) => event);
  expect(boots).toEqual([expect.stringMatching(said)]);
});
