/**
 * The verbs other than deploying and cleaning: adopt, rescue, service, hold, abort; steps of the conductor itself, and steps on children.
 */
import { randomUUID } from 'node:crypto';
import type { PlannedStep, Step } from '../../../drivers/interfaces';
import { done } from '../../../drivers/interfaces';
import type { NodeChanges } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { clock, start: startWith } = useConductor();
const start = (machine: Partial<Machine> = {}): Promise<Started> => startWith({ machine: newMachine(machine) });

const active: NodeChanges = { provision_state: 'active', power_state: 'power on', instance_info: { image_source: 'x' } };
const manageable: NodeChanges = { provision_state: 'manageable', power_state: 'power off' };
/** A step of the vendor interface that notes the node on which it ran. */
const vendorStep = (machine: Machine, abortable = false): Step => ({
  step: 'flash',
  priority: { clean: 0, deploy: 0, service: 0 },
  requiresRamdisk: false,
  abortable,
  run: async (task) => {
    machine.orders.push(`flash ${task.node.description ?? ''}`.trim());
    return done;
  },
});
const flash = { interface: 'vendor', step: 'flash' };
const reserved = (step: string, args?: object): { interface: string; step: string; args?: object } => ({
  interface: 'power',
  step,
  ...(args ? { args } : {}),
});
const withSteps = async (ramdisk = false): Promise<Started> => {
  const machine = newMachine({ ramdisk });
  (machine as { steps: readonly Step[] }).steps = [vendorStep(machine)];
  return start(machine);
};

it('adopts without touching the machine', async () => {
  const { conductor, enrol, node, machine } = await start();
  const { uuid } = await enrol(manageable);
  await conductor.provision(uuid, 'adopt', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'active',
    target_provision_state: null,
    power_state: 'power off',
    last_error: null,
  });
  expect(machine.orders).toEqual(['prepare']);
});

it('rescues through the agent, and unrescues', async () => {
  const { conductor, enrol, node, speak, machine } = await start();
  const { uuid } = await enrol(active);
  await conductor.provision(uuid, 'rescue', { rescue_password: 's3cret' });
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'rescue wait',
    target_provision_state: 'rescue',
    instance_info: { image_source: 'x', rescue_password: 's3cret', hashed_rescue_password: expect.stringMatching(/^\$5\$/) as unknown },
  });
  await speak(uuid);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'rescue', target_provision_state: null, last_error: null });
  await conductor.provision(uuid, 'unrescue', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'active', target_provision_state: null });
  expect(machine.orders).toEqual(['rescue', 'power on', 'finish rescue', 'unrescue']);
});

it('aborts a waiting rescue, and removes its passwords', async () => {
  const { conductor, enrol, node, machine } = await start();
  const { uuid } = await enrol(active);
  await conductor.provision(uuid, 'rescue', { rescue_password: 's3cret' });
  await conductor.idle();
  await conductor.provision(uuid, 'abort', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'rescue failed', last_error: null, instance_info: { image_source: 'x' } });
  machine.broken.set('clean up rescue', new Error('no'));
  await conductor.provision(uuid, 'rescue', { rescue_password: 's3cret' });
  await conductor.idle();
  await conductor.provision(uuid, 'abort', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'rescue failed', maintenance: true, fault: 'rescue abort failure' });
});

it('cleans up a rescue and detaches VIFs at the tear-down', async () => {
  const { conductor, enrol, machine, store } = await start({ ramdisk: false });
  const { uuid } = await enrol(active);
  await store.ports.create({
    uuid: randomUUID(),
    node_uuid: uuid,
    address: '52:54:00:0a:0b:0c',
    internal_info: { tenant_vif_port_id: 'v' },
  });
  await conductor.provision(uuid, 'rescue', { rescue_password: 's3cret' });
  await conductor.idle();
  await conductor.provision(uuid, 'deleted', {});
  await conductor.idle();
  expect(machine.orders.slice(0, 5)).toEqual(['rescue', 'clean up rescue', 'cleanUp', 'tearDown', 'vifDetach']);
});

it('services without a ramdisk if no step needs one', async () => {
  const { conductor, enrol, node, machine } = await withSteps(true);
  const { uuid } = await enrol(active);
  await conductor.provision(uuid, 'service', { service_steps: [flash] });
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'active',
    target_provision_state: null,
    service_step: {},
    driver_internal_info: { service_steps: null },
  });
  expect(machine.orders).toEqual(['flash']);
});

it('services through the agent, and aborts after the end of a step that is not abortable', async () => {
  const agentSteps: PlannedStep[] = [{ interface: 'deploy', step: 'burnin_cpu', priority: 0 }];
  const { conductor, enrol, node, speak, machine } = await start({ agentSteps });
  const { uuid } = await enrol(active);
  await conductor.provision(uuid, 'service', { service_steps: [{ interface: 'deploy', step: 'burnin_cpu' }] });
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'service wait', target_provision_state: 'active' });
  await speak(uuid);
  await conductor.idle();
  expect((await node(uuid)).service_step).toEqual({ interface: 'deploy', step: 'burnin_cpu', abortable: false, priority: 0 });
  // The step cannot be aborted: the abort is only noted for its end.
  await conductor.provision(uuid, 'abort', {});
  expect(await node(uuid)).toMatchObject({ provision_state: 'service wait', service_step: { abort_after: true } });
  await speak(uuid);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'service failed',
    service_step: {},
    last_error: 'By request, the service operation was aborted during or after the completion of step "deploy.burnin_cpu"',
  });
  expect(machine.orders).toContain('tearDownService');
});

it('aborts servicing that waits for its ramdisk, and makes the node active again', async () => {
  const { conductor, enrol, node } = await start();
  const { uuid } = await enrol(active);
  await conductor.provision(uuid, 'service', { service_steps: [{ interface: 'deploy', step: 'burnin_cpu' }] });
  await conductor.idle();
  await conductor.provision(uuid, 'abort', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'active',
    target_provision_state: null,
    last_error: 'By request, the service operation was aborted',
  });
});

describe('reserved steps', () => {
  it('change the power between other steps', async () => {
    const { conductor, enrol, node, machine } = await withSteps();
    const { uuid } = await enrol(manageable);
    await conductor.provision(uuid, 'clean', { clean_steps: [reserved('power_on'), flash, reserved('reboot'), reserved('power_off')] });
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: 'manageable', power_state: 'power off', last_error: null });
    expect(machine.orders).toEqual(['power on', 'flash', 'rebooting', 'power off']);
  });

  it.each([
    ['clean', manageable, 'clean hold', 'manageable', 'manageable'],
    ['service', active, 'service hold', 'active', 'active'],
  ] as const)('hold %s until unhold', async (verb, from, hold, target, ends) => {
    const { conductor, enrol, node, machine } = await withSteps();
    const { uuid } = await enrol(from);
    await conductor.provision(uuid, verb, { [`${verb}_steps`]: [reserved('hold'), flash] });
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: hold, target_provision_state: target, [`${verb}_step`]: { step: 'hold' } });
    expect(machine.orders).toEqual([]);
    await conductor.provision(uuid, 'unhold', {});
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: ends, [`${verb}_step`]: {}, last_error: null });
    expect(machine.orders).toEqual(['flash']);
  });

  it("hold a deployment, which continues at the agent's next heartbeat after unhold", async () => {
    const { conductor, enrol, node, speak } = await start();
    const { uuid } = await enrol({ provision_state: 'available', power_state: 'power off' });
    await conductor.provision(uuid, 'active', { deploy_steps: [{ ...reserved('hold', {}), priority: 90 }] });
    await conductor.idle();
    await speak(uuid);
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: 'deploy hold', target_provision_state: 'active' });
    await speak(uuid);
    await conductor.provision(uuid, 'unhold', {});
    await conductor.idle();
    expect((await node(uuid)).provision_state).toBe('wait call-back');
    await speak(uuid);
    await conductor.idle();
    expect((await node(uuid)).deploy_step).toMatchObject({ step: 'write_image' });
  });

  it.each([
    [
      'clean',
      manageable,
      'clean failed',
      /^By request, the clean operation was aborted during or after the completion of step "power.hold"$/,
    ],
    ['service', active, 'active', /^By request, the service operation was aborted during or after the completion of step "power.hold"$/],
  ] as const)('are aborted during a hold in %s', async (verb, from, ends, error) => {
    const { conductor, enrol, node, machine } = await withSteps();
    const { uuid } = await enrol(from);
    await conductor.provision(uuid, verb, { [`${verb}_steps`]: [reserved('hold'), flash] });
    await conductor.idle();
    await conductor.provision(uuid, 'abort', {});
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({
      provision_state: ends,
      maintenance: false,
      last_error: expect.stringMatching(error) as unknown,
      [`${verb}_step`]: {},
    });
    expect(machine.orders).not.toContain('flash');
  });

  it('are aborted during a hold in a deployment', async () => {
    const { conductor, enrol, node } = await start({ ramdisk: false });
    const { uuid } = await enrol({ provision_state: 'available', power_state: 'power off' });
    await conductor.provision(uuid, 'active', { deploy_steps: [{ ...reserved('hold', {}), priority: 200 }] });
    await conductor.idle();
    expect((await node(uuid)).provision_state).toBe('deploy hold');
    await conductor.provision(uuid, 'abort', {});
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: 'deploy failed', deploy_step: {}, target_provision_state: 'active' });
  });

  it('wait some seconds, or for the next heartbeat', async () => {
    const { conductor, enrol, node, speak, machine } = await withSteps();
    const { uuid } = await enrol(manageable);
    await conductor.provision(uuid, 'clean', { clean_steps: [reserved('wait', { seconds: 20 }), reserved('wait'), flash] });
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ provision_state: 'clean wait', clean_step: { args: { seconds: 20 } } });
    await speak(uuid);
    await conductor.idle();
    expect((await node(uuid)).clean_step).toMatchObject({ args: { seconds: 20 } });
    await clock.advance(25);
    await conductor.idle();
    expect((await node(uuid)).clean_step).toEqual({ interface: 'power', step: 'wait', abortable: true, priority: 0 });
    await speak(uuid);
    await conductor.idle();
    expect((await node(uuid)).provision_state).toBe('manageable');
    expect(machine.orders).toContain('flash');
  });

  it('are ignored under other interfaces, as in Ironic', async () => {
    const { conductor, enrol, node, machine } = await withSteps();
    const { uuid } = await enrol(manageable);
    await conductor.provision(uuid, 'clean', { clean_steps: [{ interface: 'deploy', step: 'hold' }, flash] });
    await conductor.idle();
    expect((await node(uuid)).provision_state).toBe('manageable');
    expect(machine.orders).toEqual(['flash']);
  });

  it.each([
    [{ seconds: 'x' }, /needs integer as its argument seconds$/],
    [{ minutes: 1 }, /has these unexpected arguments: minutes$/],
  ])('are refused as a wait with %j', async (args, error) => {
    const { conductor, enrol, node } = await withSteps();
    const { uuid } = await enrol(manageable);
    await expect(conductor.provision(uuid, 'clean', { clean_steps: [reserved('wait', args)] })).rejects.toThrow(error);
    expect(await node(uuid)).toMatchObject({ ...manageable, clean_step: {}, reservation: null });
  });
});

describe('child nodes', () => {
  const family = async (): Promise<Started & { readonly parent: string; readonly children: readonly string[] }> => {
    const made = await withSteps();
    const { uuid: parent } = await made.enrol(manageable);
    const children: string[] = [];
    for (const description of ['first', 'second'])
      children.push((await made.enrol({ provision_state: 'enroll', description, parent_node: parent, power_state: 'power on' })).uuid);
    return { ...made, parent, children };
  };

  it.each([
    [undefined, ['flash first', 'flash second', 'flash']],
    [1, ['flash second', 'flash']],
  ])('run a step for their parent (limit %j)', async (only, orders) => {
    const { conductor, node, machine, parent, children } = await family();
    const limit = only === undefined ? {} : { limit_child_node_execution: [children[only]!] };
    await conductor.provision(parent, 'clean', { clean_steps: [{ ...flash, execute_on_child_nodes: true, ...limit }, flash] });
    await conductor.idle();
    expect(await node(parent)).toMatchObject({ provision_state: 'manageable', last_error: null });
    expect(machine.orders).toEqual(orders);
  });

  it('are not touched while one of them is out of service', async () => {
    const { conductor, node, machine, parent, children } = await family();
    const request = { reason: 'a fan is replaced', ticket: null, until: '2026-02-04T00:00:00+00:00' };
    await conductor.declareOutOfService(children[1]!, request, null);
    await conductor.provision(parent, 'clean', { clean_steps: [{ ...flash, execute_on_child_nodes: true }] });
    await conductor.idle();
    expect(await node(parent)).toMatchObject({
      provision_state: 'clean failed',
      last_error: expect.stringMatching(/on child node \S+: Out of service until 2026-02-04T00:00:00Z: a fan is replaced/) as unknown,
    });
    expect(machine.orders).toEqual(['tearDownCleaning']);
  });

  it.each([
    [flash, 'held', /: Node \S+ is locked by host other/],
    [
      { interface: 'bios', step: 'nosuch' },
      'free',
      /on child node \S+, step returned invalid value: node does not support this clean step$/,
    ],
    [reserved('hold'), 'free', /step returned invalid value: hold$/],
  ])('fail their parent with %j (%s)', async (step, held, error) => {
    const { conductor, node, store, parent, children } = await family();
    if (held === 'held') await store.nodes.reserve(children[0]!, 'other');
    await conductor.provision(parent, 'clean', { clean_steps: [{ ...step, execute_on_child_nodes: true }] });
    await conductor.idle();
    expect(await node(parent)).toMatchObject({
      provision_state: 'clean failed',
      maintenance: true,
      last_error: expect.stringMatching(error) as unknown,
    });
  });
});

describe('deploy templates', () => {
  const deployed = async (traits: readonly string[], args: Parameters<Started['conductor']['provision']>[2] = {}) => {
    const made = await withSteps();
    const { deployTemplates } = made.store;
    await deployTemplates
      .create({ uuid: randomUUID(), name: 'CUSTOM_FLASH', steps: [{ ...flash, args: {}, priority: 90 }] })
      .catch(() => undefined);
    await deployTemplates
      .create({ uuid: randomUUID(), name: 'CUSTOM_TWICE', steps: [{ ...flash, args: {}, priority: 10 }] })
      .catch(() => undefined);
    await deployTemplates
      .create({ uuid: randomUUID(), name: 'CUSTOM_WRONG', steps: [{ ...flash, args: { colour: 1 }, priority: 10 }] })
      .catch(() => undefined);
    const { uuid } = await made.enrol({ provision_state: 'available', power_state: 'power off', traits, instance_info: { traits } });
    const refused = await made.conductor.provision(uuid, 'active', args).then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    );
    await made.conductor.idle();
    return {
      refused,
      ran: made.machine.orders.filter((order) => /^step|flash/.test(order)),
      state: (await made.node(uuid)).provision_state,
    };
  };

  it.each([
    [['CUSTOM_FLASH'], {}, ['step deploy.deploy', 'flash', 'step deploy.write_image', 'step deploy.boot_instance']],
    [['CUSTOM_OTHER'], {}, ['step deploy.deploy', 'step deploy.write_image', 'step deploy.boot_instance']],
    // The client's arguments win over those of a template.
    [
      ['CUSTOM_FLASH'],
      { deploy_steps: [{ ...flash, args: {}, priority: 10 }] },
      ['step deploy.deploy', 'step deploy.write_image', 'step deploy.boot_instance', 'flash'],
    ],
    [
      ['CUSTOM_FLASH'],
      { deploy_steps: [{ ...flash, args: {}, priority: 0 }] },
      ['step deploy.deploy', 'step deploy.write_image', 'step deploy.boot_instance'],
    ],
  ])('add their steps to the deployment of an instance with traits %j (%j)', async (traits, args, ran) => {
    expect(await deployed(traits, args)).toEqual({ refused: undefined, ran, state: 'active' });
  });

  it.each([
    [
      ['CUSTOM_FLASH', 'CUSTOM_TWICE'],
      /Matching deploy templates: CUSTOM_FLASH,CUSTOM_TWICE\. Errors: .*Duplicate deploy steps for vendor\.flash$/,
    ],
    [['CUSTOM_WRONG'], /Errors: deploy step \{'interface': 'vendor', .*\} has these unexpected arguments: colour$/],
  ])('are refused before the deployment begins: %j', async (traits, text) => {
    expect(await deployed(traits)).toEqual({ refused: expect.stringMatching(text) as unknown, ran: [], state: 'available' });
  });
});

describe('power of parents and children', () => {
  const pair = async (child: NodeChanges = {}) => {
    const made = await start();
    const { uuid: parent } = await made.enrol({ provision_state: 'active', power_state: 'power off' });
    const { uuid } = await made.enrol({ provision_state: 'active', power_state: 'power off', parent_node: parent, ...child });
    const power = async (node: string, target: string): Promise<void> => {
      await made.conductor.setPower(node, target);
      await made.conductor.idle();
    };
    return { ...made, parent, child: uuid, power };
  };

  it('a child that is powered on powers its parent on; a parent that is powered off powers its children off', async () => {
    const { power, node, parent, child, machine } = await pair();
    await power(child, 'power on');
    expect([(await node(parent)).power_state, (await node(child)).power_state]).toEqual(['power on', 'power on']);
    machine.power = 'power on';
    await power(parent, 'power off');
    expect([(await node(parent)).power_state, (await node(child)).power_state]).toEqual(['power off', 'power off']);
  });

  it.each([
    [true, 'power off'],
    ['true', 'power off'],
    [false, 'power on'],
    ['false', 'power on'],
    ['0', 'power on'],
  ])('a child with has_dedicated_power_supply %j leaves its parent in "%s"', async (has_dedicated_power_supply, state) => {
    const { power, node, parent, child } = await pair({ driver_info: { bmc: '192.0.2.9', has_dedicated_power_supply } });
    await power(child, 'power on');
    expect((await node(parent)).power_state).toBe(state);
  });

  it('a child is not powered on while its parent is reserved', async () => {
    const { power, node, store, parent, child } = await pair();
    await store.nodes.reserve(parent, 'other');
    await power(child, 'power on');
    expect(await node(child)).toMatchObject({
      power_state: 'power off',
      target_power_state: null,
      last_error: expect.stringMatching(
        /^Failed to change power state to 'power on' by 'power on': Node \S+ parent_node \S+ is presently locked/,
      ) as unknown,
    });
  });
});
