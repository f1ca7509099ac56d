/** How options change the flows: limits, runbooks of automated cleaning, lessees, machines that stay on or off; and consoles. */
import { randomUUID } from 'node:crypto';
import type { Options } from '../../../config/options';
import { agentAlreadyRunning, done, failed, type Step } from '../../../drivers/interfaces';
import type { JsonObject, NodeChanges, NodeRecord, StepRecord } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { database, start: startWith } = useConductor();
const start = (options: Partial<Options> = {}, machine: Partial<Machine> = {}): Promise<Started> =>
  startWith({ options, machine: newMachine({ ramdisk: false, ...machine }) });
const manageable: NodeChanges = { provision_state: 'manageable', power_state: 'power off' };
const available: NodeChanges = { provision_state: 'available', power_state: 'power off' };
const active: NodeChanges = { provision_state: 'active', power_state: 'power on' };
/** Runs the verb to its end. */
async function through({ conductor, node }: Started, uuid: string, verb: string, args = {}): Promise<NodeRecord> {
  await conductor.provision(uuid, verb, args);
  await conductor.idle();
  return node(uuid);
}
const flashing = (run: Step['run'] = async () => done): Step => ({
  step: 'flash',
  priority: { clean: 0, service: 0 },
  requiresRamdisk: false,
  run,
});
const flash = { interface: 'vendor', step: 'flash' };

describe('limits', () => {
  it.each([
    ['active', 'conductor.max_concurrent_deploy', 'wait call-back', 'provisioning', available],
    ['clean', 'conductor.max_concurrent_clean', 'clean wait', 'cleaning', manageable],
    ['deleted', 'conductor.max_concurrent_clean', 'deleting', 'unprovisioning', active],
  ] as const)('refuse the verb %s at %s', async (verb, option, state, action, from) => {
    const one = await start({ [option]: 2 });
    const { uuid } = await one.enrol(from);
    await one.enrol({ provision_state: state, conductor_group: 'elsewhere' });
    await one.enrol({ provision_state: state, parent_node: uuid, target_provision_state: 'available' });
    const asked = verb === 'clean' ? { clean_steps: [flash] } : {};
    await expect(one.conductor.provision(uuid, verb, asked)).rejects.toMatchObject({
      status: 503,
      message:
        `Unable to process request at this time. The concurrent action limit for ${action} has been reached. ` +
        'Please contact your administrator and try again later.',
    });
    expect(await one.node(uuid)).toMatchObject({ ...from, reservation: null });
  });
  it("count only the node's conductor group with max_concurrent_per_conductor_group", async () => {
    const one = await start({ 'conductor.max_concurrent_deploy': 1, 'conductor.max_concurrent_per_conductor_group': true });
    await one.enrol({ provision_state: 'deploying', conductor_group: 'elsewhere', reservation: 'there' } as NodeChanges);
    const { uuid } = await one.enrol(available);
    expect(await through(one, uuid, 'active')).toMatchObject({ provision_state: 'active' });
  });
});

describe('automated cleaning by runbook', () => {
  const byRunbook = {
    'conductor.automated_cleaning_step_source': 'runbook',
    'conductor.automated_cleaning_runbook': 'CUSTOM_R',
  } as const;
  const runbook = (traits: readonly string[] = ['CUSTOM_R']) =>
    database.store().runbooks.create({
      uuid: randomUUID(),
      name: 'CUSTOM_R',
      steps: [{ ...flash, args: {}, order: 1 }],
      traits,
    });
  it('runs its steps on nodes with one of its traits', async () => {
    const one = await start(byRunbook, { steps: [flashing(async () => failed('seen'))] });
    await runbook();
    const { uuid } = await one.enrol({ ...manageable, traits: ['CUSTOM_R'] });
    expect(await through(one, uuid, 'provide')).toMatchObject({
      provision_state: 'clean failed',
      target_provision_state: 'available',
      last_error: expect.stringContaining("failed step {'interface': 'vendor', 'step': 'flash', 'args': {}, 'order': 1") as unknown,
    });
    // No step of the list needs the ramdisk.
    expect(one.machine.orders).not.toContain('prepareCleaning');
  });
  it('runs its steps after a tear-down, too, and clears the earlier error', async () => {
    const ran: string[] = [];
    const step = flashing(async ({ node }) => {
      ran.push(`${node.provision_state} ${String(node.last_error)}`);
      return done;
    });
    const one = await start(byRunbook, { steps: [step] });
    await runbook();
    const { uuid } = await one.enrol({ ...active, traits: ['CUSTOM_R'], last_error: 'an error of before' });
    expect(await through(one, uuid, 'deleted')).toMatchObject({ provision_state: 'available', last_error: null });
    expect(ran).toEqual(['cleaning null']);
  });
  it.each([
    [
      'the node has none of its traits',
      {},
      ['CUSTOM_OTHER'],
      /^Automated cleaning runbook CUSTOM_R is not valid for node .*'CUSTOM_OTHER'/,
    ],
    ['the runbook has no traits', {}, [], /Runbook has no traits configured/],
    ['the runbook does not exist', { 'conductor.automated_cleaning_runbook': 'CUSTOM_NONE' }, ['CUSTOM_R'], /CUSTOM_NONE/],
    [
      'no runbook is configured',
      { 'conductor.automated_cleaning_runbook': null },
      ['CUSTOM_R'],
      /requires runbook .* and none was configured/,
    ],
  ])('refuses provide, and fails after a tear-down, if %s', async (_, options, traits, message) => {
    const one = await start({ ...byRunbook, ...options });
    await runbook(traits);
    const { uuid } = await one.enrol({ ...manageable, traits: ['CUSTOM_R'] });
    await expect(one.conductor.provision(uuid, 'provide', {})).rejects.toThrow(message);
    expect(await one.node(uuid)).toMatchObject(manageable);
    // An instance can be deleted all the same, but its node is not available before a cleaning.
    const deployed = await one.enrol({ ...active, traits: ['CUSTOM_R'], instance_info: { image_source: 'x' } });
    expect(await through(one, deployed.uuid, 'deleted')).toMatchObject({
      provision_state: 'clean failed',
      instance_info: {},
      last_error: expect.stringMatching(message) as unknown,
    });
  });
  it('uses the runbook of the node or of its resource class, otherwise the usual steps', async () => {
    const one = await start(
      {
        'conductor.automated_cleaning_step_source': 'hybrid',
        'conductor.automated_cleaning_runbook_by_resource_class': { big: 'CUSTOM_R' },
        'conductor.automated_cleaning_runbook_from_node': true,
        'conductor.automated_cleaning_runbook_validate_traits': false,
      },
      { steps: [flashing(async () => failed('seen'))] },
    );
    await runbook([]);
    const ran = async (changes: NodeChanges): Promise<boolean> => {
      const { uuid, driver_info: info } = await one.enrol(manageable);
      await one.store.nodes.update(uuid, { ...changes, driver_info: { ...info, ...changes.driver_info } });
      return (await through(one, uuid, 'provide')).provision_state === 'clean failed';
    };
    expect(await ran({ resource_class: 'big' })).toBe(true);
    expect(await ran({ driver_info: { cleaning_runbook: 'CUSTOM_R' } })).toBe(true);
    expect(await ran({ resource_class: 'small' })).toBe(false);
  });
});

it.each([
  ['clean', 'conductor.poweroff_in_cleanfail', manageable],
  ['service', 'conductor.poweroff_in_servicefail', active],
] as const)('a failed %s powers the machine off if the option says so', async (verb, option, from) => {
  for (const off of [false, true]) {
    const one = await start({ [option]: off }, { steps: [flashing(async () => Promise.reject(new Error('burnt')))] });
    const { uuid } = await one.enrol({ ...from, power_state: 'power on' });
    one.machine.power = 'power on';
    const after = await through(one, uuid, verb, { [`${verb}_steps`]: [flash], disable_ramdisk: true });
    expect(after).toMatchObject({ provision_state: `${verb} failed`, maintenance: true, fault: `${verb} failure` });
    expect(after.maintenance_reason).toContain('burnt');
    // The test's deploy interface powers off every machine that it has cleaned; the servicing used no ramdisk.
    expect(one.machine.power).toBe(off || verb === 'clean' ? 'power off' : 'power on');
  }
});
it('leases a node to the project of its instance until the instance ends', async () => {
  const one = await start();
  const instance_info = { image_source: 'x', project_id: 'p1' };
  const { uuid } = await one.enrol({ ...available, instance_info });
  expect(await through(one, uuid, 'active')).toMatchObject({ lessee: 'p1', driver_internal_info: { automatic_lessee: true } });
  expect(await through(one, uuid, 'deleted')).toMatchObject({ lessee: null, provision_state: 'available' });
  const leased = await one.enrol({ ...available, instance_info, lessee: 'p2' });
  expect(await through(one, leased.uuid, 'active')).toMatchObject({ lessee: 'p2' });
  expect(await through(one, leased.uuid, 'deleted')).toMatchObject({ lessee: 'p2' });
  const rebuilt = await one.enrol({ ...active, instance_info });
  expect(await through(one, rebuilt.uuid, 'rebuild')).toMatchObject({ lessee: null });
  const asking = await start({ 'conductor.automatic_lessee_source': 'request' });
  const asked = await asking.enrol({ ...available, instance_info });
  const origin = { requestId: 'req-00000000-0000-4000-8000-000000000001', user: 'u', project: 'p3' };
  await asking.conductor.from(origin).provision(asked.uuid, 'active', {});
  await asking.conductor.idle();
  expect(await asking.node(asked.uuid)).toMatchObject({ lessee: 'p3' });
  const without = await start({ 'conductor.automatic_lessee_source': 'none' });
  const bare = await without.enrol({ ...available, instance_info });
  expect(await through(without, bare.uuid, 'active')).toMatchObject({ lessee: null });
});

it('refuses to deploy in a disallowed boot mode', async () => {
  const one = await start({ 'conductor.disallowed_deployment_boot_modes': ['bios'] });
  const { uuid } = await one.enrol({ ...available, properties: { boot_mode: 'BIOS' } });
  await expect(one.conductor.provision(uuid, 'active', {})).rejects.toMatchObject({
    status: 400,
    message: "'bios' boot mode is not allowed for provisioning operation.",
  });
});

describe('an agent that is already running', () => {
  it('adds its steps to the deployment at once', async () => {
    const one = await start({}, { agentSteps: [{ interface: 'deploy', step: 'burn_in', priority: 90 }], deploys: agentAlreadyRunning });
    const { uuid } = await one.enrol(available);
    const waiting = await through(one, uuid, 'active');
    expect(waiting).toMatchObject({ provision_state: 'wait call-back', deploy_step: { step: 'burn_in' } });
    expect(waiting.driver_internal_info).toMatchObject({ steps_validated: true, deploy_step_index: 1 });
  });
  it('is waited for when it is busy', async () => {
    const one = await start({}, { agentSteps: undefined, deploys: agentAlreadyRunning });
    const { uuid } = await one.enrol(available);
    expect(await through(one, uuid, 'active')).toMatchObject({ provision_state: 'wait call-back', deploy_step: { step: 'deploy' } });
  });
  it('adds its steps to the cleaning at once', async () => {
    const one = await start({}, { agentSteps: [{ interface: 'deploy', step: 'erase', priority: 10 }], cleans: agentAlreadyRunning });
    const { uuid } = await one.enrol(manageable);
    expect(await through(one, uuid, 'provide')).toMatchObject({ provision_state: 'clean wait', clean_step: { step: 'erase' } });
  });
});

describe('an invalid list of steps is refused before anything is changed', () => {
  const flashArgs = {
    image: { description: 'what', required: true, type: 'string' },
    force: { description: 'how', type: 'boolean', problem: (value: unknown) => (value === true ? 'must not be true' : undefined) },
  } as const;
  const step: Step = { ...flashing(), priority: { clean: 0, service: 0, deploy: 0 }, args: flashArgs };
  interface Bad {
    readonly asked: JsonObject;
    readonly message: RegExp;
    readonly more?: object;
  }
  const badArguments: readonly Bad[] = [
    { asked: { ...flash, args: {} }, message: /is missing these required arguments: image \(what\)/ },
    { asked: { ...flash, args: { image: 'a', colour: 'red' } }, message: /has these unexpected arguments: colour/ },
    { asked: { ...flash, args: { image: 5 } }, message: /needs string as its argument image$/ },
    { asked: { ...flash, args: { image: 'a', force: 'yes' } }, message: /needs boolean as its argument force$/ },
    { asked: { ...flash, args: { image: 'a', force: true } }, message: /: the argument force of \w+ step .* must not be true$/ },
  ];
  const unknown: Bad = {
    asked: { interface: 'bios', step: 'nosuch' },
    message: /node does not support this/,
    more: { disable_ramdisk: true },
  };
  it.each([...badArguments, unknown].flatMap((bad) => [['clean', bad] as const, ['service', bad] as const]))(
    'by %s: %j',
    async (verb, { asked, message, more }) => {
      const one = await start({}, { steps: [step] });
      const from = verb === 'clean' ? manageable : active;
      const { uuid } = await one.enrol(from);
      await expect(one.conductor.provision(uuid, verb, { [`${verb}_steps`]: [asked], ...more })).rejects.toMatchObject({
        status: 400,
        message: expect.stringMatching(message) as unknown,
      });
      expect(await one.node(uuid)).toMatchObject({ ...from, reservation: null, last_error: null });
      expect(one.machine.orders).toEqual([]);
    },
  );
  it.each(badArguments)('by deploy, from a client and from a deploy template: $asked', async ({ asked, message }) => {
    const one = await start({}, { steps: [step] });
    const { uuid } = await one.enrol(available);
    const wanted: JsonObject = { ...asked, priority: 50 };
    await expect(one.conductor.provision(uuid, 'active', { deploy_steps: [wanted] })).rejects.toThrow(message);
    await one.store.deployTemplates.create({ uuid: randomUUID(), name: 'CUSTOM_T', steps: [wanted as unknown as StepRecord] });
    await one.store.nodes.update(uuid, { traits: ['CUSTOM_T'], instance_info: { traits: ['CUSTOM_T'] } });
    await expect(one.conductor.provision(uuid, 'active', {})).rejects.toThrow(message);
    expect(await one.node(uuid)).toMatchObject({ ...available, reservation: null });
  });
  it('without showing clients the types of arguments', async () => {
    const one = await start({}, { steps: [step], ramdisk: true });
    const { uuid } = await one.enrol(available);
    const after = await through(one, uuid, 'active');
    expect(JSON.stringify(after.driver_internal_info['deploy_steps'])).not.toContain('"type"');
  });
});

describe('consoles', () => {
  it('stop with an instance, and start again with the next one', async () => {
    const one = await start();
    const { uuid } = await one.enrol({ ...active, console_enabled: true });
    expect(await through(one, uuid, 'deleted')).toMatchObject({ console_enabled: true });
    expect(await through(one, uuid, 'active')).toMatchObject({ provision_state: 'active', console_enabled: true });
    expect(one.machine.orders.filter((what) => what.endsWith('console'))).toEqual(['stop console', 'start console']);
  });
  it('that cannot start are disabled', async () => {
    const one = await start();
    one.machine.broken.set('start console', new Error('no port'));
    const deployed = await one.enrol({ ...available, console_enabled: true });
    expect(await through(one, deployed.uuid, 'active')).toMatchObject({
      provision_state: 'active',
      console_enabled: false,
      last_error: `Failed to start console while deploying the node ${deployed.uuid}: no port.`,
    });
    const adopted = await one.enrol({ ...manageable, console_enabled: true });
    expect(await through(one, adopted.uuid, 'adopt')).toMatchObject({
      provision_state: 'active',
      console_enabled: false,
      last_error: `Failed to start console while taking over the node ${adopted.uuid}: no port.`,
    });
    expect(await one.store.history.list({ where: { node_uuid: adopted.uuid } })).toMatchObject([{ event_type: 'takeover' }]);
  });
});
