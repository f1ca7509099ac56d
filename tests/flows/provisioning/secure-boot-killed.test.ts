/**
 * A conductor that is killed while it switches Secure Boot on for an instance. Each case is the node's row as the killed process left it, and
 * the BMC's setting. The next conductor ends the deployment, and the undeployment switches Secure Boot off.
 */
import { customAgentDeploy } from '../../../drivers/agent/deploy';
import { pxeBoot } from '../../../drivers/boot-interfaces/network-boot';
import type { Task } from '../../../drivers/interfaces';
import { noopNetwork } from '../../../drivers/noop';
import { result, startFakeAgent, type FakeAgent } from '../../support/fakes/fake-agent';
import { interfacesOf, newMachine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { after, start } = useConductor();
let agent: FakeAgent | undefined;
afterEach(async () => {
  await agent?.close();
  agent = undefined;
});

const STEPS = ['prepare_instance_boot', 'boot_instance'].map((step, index) => ({
  interface: 'deploy',
  step,
  priority: 60 - index,
  args: {},
}));

it.each([
  ['before the BMC is told', false, false],
  ['after the BMC was told, and before the node was saved', true, false],
  ['after the node was saved', true, true],
] as const)('%s', async (_, onBmc, saved) => {
  let isOn: boolean = onBmc;
  agent = await startFakeAgent(() => ({ body: result('install_bootloader', 'SUCCEEDED') }));
  const test = interfacesOf(newMachine());
  const management = {
    ...test.management['test'],
    secureBoot: { get: async () => isOn, set: async (_task: Task, on: boolean) => void (isOn = on) },
  };
  const interfaces = {
    ...test,
    boot: { ...test.boot, test: pxeBoot },
    deploy: { ...test.deploy, test: { ...customAgentDeploy, agentSteps: undefined } },
    management: { ...test.management, test: management },
    network: { ...test.network, test: noopNetwork },
  } as unknown as typeof test;
  const options = { 'conductor.automated_clean': false, 'agent.max_command_attempts': 1, 'agent.command_timeout': 5 };
  const one = await start({ rooms: { interfaces }, options });
  const { uuid } = await one.enrol({
    provision_state: 'deploying',
    target_provision_state: 'active',
    power_state: 'power on',
    driver_info: { bmc: '192.0.2.9', deploy_forces_oob_reboot: true },
    secure_boot: saved,
    instance_info: { capabilities: { secure_boot: 'true' } },
    deploy_step: STEPS[0]!,
    driver_internal_info: { deploy_steps: STEPS, deploy_step_index: 0, steps_validated: true, agent_url: agent.url },
  });
  await after(1500, async () => (await one.node(uuid)).provision_state === 'active');
  expect([isOn, (await one.node(uuid)).secure_boot]).toEqual([true, true]);
  await one.conductor.provision(uuid, 'deleted', {});
  await after(1500, async () => (await one.node(uuid)).provision_state === 'available');
  expect([isOn, (await one.node(uuid)).secure_boot]).toEqual([false, false]);
});
