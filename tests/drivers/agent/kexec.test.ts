import { customAgentDeploy } from '../../../drivers/agent/deploy';
import { kexecObstacle, wantsKexec } from '../../../drivers/common/kexec-request';
import { noopNetwork } from '../../../drivers/noop';
import { flatNetwork, neutronNetwork } from '../../../drivers/network/neutron';
import { ironicNetworking } from '../../../drivers/network/ironic-networking';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { type Answer, type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { testTask, type TestTask } from '../../support/task';

let agent: FakeAgent | undefined;
afterEach(async () => {
  await agent?.close();
  agent = undefined;
});
const step = (name: string) => (one: TestTask) => customAgentDeploy.steps!.find((row) => row.step === name)!.run(one.task, {});
const tearDown = step('tear_down_agent');
const bootInstance = step('boot_instance');

const LOADED = { kexec: { kernel: '/vmlinuz' } };
const GOING = { body: result('execute', 'SUCCEEDED', { command_result: { going: true } }) };

/** An agent that answers commands by name; it hangs up for those that are not named. */
async function machine(
  answers: Readonly<Record<string, Answer>>,
  { node = {}, ...more }: Parameters<typeof testTask>[0] = {},
): Promise<TestTask & { readonly sent: () => readonly string[] }> {
  agent = await startFakeAgent(({ body }) => (body && answers[body.name]) ?? 'hang up');
  const one = testTask({
    options: { 'agent.max_command_attempts': 1, 'agent.command_timeout': 5 },
    ...more,
    node: {
      power_state: 'power on',
      driver_info: { deploy_kexec: true },
      properties: { capabilities: 'boot_mode:bios' },
      ...node,
      driver_internal_info: { agent_url: agent.url, ...node.driver_internal_info },
    },
  });
  return { ...one, sent: () => agent!.asked.flatMap(({ body }) => (body ? [body.name] : [])) };
}
const loads = (more: JsonObject): Answer => ({ body: result('load', 'SUCCEEDED', { command_result: more }) });

describe('a deployment', () => {
  it('keeps the agent when it has loaded the kernel, and then makes it start the kernel', async () => {
    const one = await machine({ 'kexec.load': loads({ kernel: '/boot/vmlinuz\u001b[2J' }), 'kexec.execute': GOING });
    expect(await tearDown(one)).toEqual({ kind: 'done' });
    expect(one.node().driver_internal_info).toMatchObject({ kexec: { kernel: '/boot/vmlinuz\\u001b[2J' } });
    expect(one.events).toEqual([]);
    expect(await bootInstance(one)).toEqual({ kind: 'done' });
    expect(one.events).toEqual(['boot: kexec: /boot/vmlinuz\\u001b[2J']);
    expect(one.node().driver_internal_info).not.toHaveProperty('kexec');
    expect(one.sent()).toEqual(['kexec.load', 'kexec.execute', 'standby.get_partition_uuids', 'standby.get_partition_uuids']);
    expect(agent!.asked[0]!.body!.params).toEqual({ boot_mode: 'bios' });
  });

  it.each<[string, Answer, string]>([
    [
      'the agent cannot load the kernel',
      { body: result('load', 'FAILED', { command_error: { details: 'The image cannot be started by kexec: no kernel' } }) },
      'The image cannot be started by kexec: no kernel',
    ],
    [
      'the agent does not know kexec',
      { status: 404, body: { type: 'RequestedObjectNotFoundError', details: 'Extension with id kexec not found.' } },
      'Agent API for node 5b7b9a3e-1d0f-4b0c-9b0e-3f6f0c2f8a11 returned HTTP status code 404 with error: Extension with id kexec not found.',
    ],
  ])('powers off when %s, and says so', async (_, answer, reason) => {
    const one = await machine({ 'kexec.load': answer, 'standby.power_off': { body: result('power_off', 'SUCCEEDED') } });
    expect(await tearDown(one)).toEqual({ kind: 'done' });
    expect(one.events).toEqual([`boot: reboot: ${reason}`, 'power: power off']);
    expect(await bootInstance(one)).toEqual({ kind: 'done' });
    expect(one.events.slice(2)).toEqual(['power: power on']);
  });

  it.each<[string, Partial<NodeRecord>, Readonly<Record<string, Answer>>, RegExp]>([
    ['does not answer', {}, {}, /^boot: reboot: Connection to agent failed/],
    [
      'has no kernel any more',
      {},
      { 'kexec.execute': { status: 500, body: { details: 'No kernel is loaded' } } },
      /^boot: reboot: .*No kernel is loaded$/,
    ],
    [
      'does not say that it goes',
      {},
      { 'kexec.execute': { body: result('execute', 'SUCCEEDED') } },
      /^boot: reboot: Invalid agent response$/,
    ],
    [
      'says that it goes, and stays',
      {},
      { 'kexec.execute': GOING, 'standby.get_partition_uuids': { body: result('get_partition_uuids', 'SUCCEEDED') } },
      /^boot: reboot: the agent said that it starts the kernel, and still answers after 20 s$/,
    ],
    [
      'was told before the conductor was restarted, and does not answer',
      { driver_internal_info: { kexec: { kernel: '/k', told: true } } },
      {},
      /^boot: reboot: the conductor was restarted after it had told the agent to start the kernel, and whether it did is not known; Connection/,
    ],
  ])('reboots when the agent %s', async (_, node, answers, told) => {
    const one = await machine(answers, { node: { driver_internal_info: LOADED, ...node } });
    expect(await bootInstance(one)).toEqual({ kind: 'done' });
    expect(one.events).toEqual([expect.stringMatching(told) as string, 'power: rebooting']);
  });

  it('tells the agent again when the conductor was restarted and the agent is still there', async () => {
    const one = await machine({ 'kexec.execute': GOING }, { node: { driver_internal_info: { kexec: { kernel: '/k', told: true } } } });
    expect(await bootInstance(one)).toEqual({ kind: 'done' });
    expect(one.events).toEqual(['boot: kexec: /k']);
  });

  it('saves that the agent is told before it tells it', async () => {
    const one = await machine({ 'kexec.execute': GOING }, { node: { driver_internal_info: LOADED } });
    const saved: unknown[] = [];
    const before = one.task;
    const task = Object.assign(Object.create(before) as typeof before, {
      saveInternal: async (keys: object) => {
        saved.push([keys, one.sent().length]);
        await before.saveInternal(keys);
      },
    });
    await bootInstance({ ...one, task });
    expect(saved[0]).toEqual([{ kexec: { kernel: '/vmlinuz', told: true } }, 0]);
  });

  it('that asks for no kexec asks the agent for none', async () => {
    const one = await machine({}, { node: { driver_info: {} } });
    await tearDown(one);
    await bootInstance(one);
    expect(one.sent().filter((name) => name.startsWith('kexec'))).toEqual([]);
    expect(one.events).toEqual(['power: power off', 'power: power on']);
  });
});

it.each<[string, Partial<NodeRecord>, Parameters<typeof testTask>[0], string | undefined]>([
  ['the network interface noop', {}, { driver: { network: noopNetwork } }, undefined],
  ['the network interface flat', {}, { driver: { network: flatNetwork } }, undefined],
  [
    'neutron',
    { network_interface: 'neutron' },
    { driver: { network: neutronNetwork } },
    'the network interface neutron may move the machine to another network, which needs a reboot',
  ],
  [
    'ironic-networking',
    { network_interface: 'ironic-networking' },
    { driver: { network: ironicNetworking } },
    'the network interface ironic-networking may move the machine to another network, which needs a reboot',
  ],
  [
    'deploy_forces_oob_reboot',
    { driver_info: { deploy_forces_oob_reboot: 'yes' } },
    {},
    'driver_info/deploy_forces_oob_reboot asks for a reboot by the BMC',
  ],
  [
    'secure boot',
    { instance_info: { capabilities: '{"secure_boot": "true"}' } },
    {},
    'the instance is asked for secure boot, in which the firmware checks the boot loader',
  ],
  ['an unfinished update', { driver_internal_info: { firmware_updates: [] } }, {}, 'an update of firmware needs a reboot'],
])('kexecObstacle with %s', (_, node, more, reason) => {
  expect(kexecObstacle(testTask({ node, ...more }).task)).toBe(reason);
});

it.each<[string, boolean, object, object, boolean]>([
  ['nothing', false, {}, {}, false],
  ['the option', true, {}, {}, true],
  ['driver_info against the option', true, {}, { deploy_kexec: 'false' }, false],
  ['instance_info against driver_info', false, { deploy_kexec: true }, { deploy_kexec: false }, true],
  ['a null', true, { deploy_kexec: null }, {}, true],
])('wantsKexec by %s', (_, option, instance, info, expected) => {
  expect(wantsKexec({ instance_info: instance, driver_info: info } as NodeRecord, { 'deploy.kexec': option })).toBe(expected);
});

it.each(['instance_info', 'driver_info'] as const)(
  'validate refuses another value than a boolean in %s, and names the field',
  async (field) => {
    const { task } = testTask({ node: { [field]: { deploy_kexec: 'banana' } } });
    await expect(customAgentDeploy.validate!(task)).rejects.toThrow(
      `Invalid value of ${field}/deploy_kexec: Unrecognized value 'banana', acceptable values are: `,
    );
  },
);
