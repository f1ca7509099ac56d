/** Failures in flows: the state in which the flow ends, its `last_error`, and that the usual verb gets the node out of that state. */
import { randomUUID } from 'node:crypto';
import { done, type Step } from '../../../drivers/interfaces';
import type { NodeChanges } from '../../../model/records';
import { conductorOptions, type Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { like } from '../../support/expect';
import { settled } from '../../support/settled';
import { useConductor } from '../../support/use-conductor';

const { clock, start } = useConductor();
const down = new Error('the BMC does not answer');

interface FailureCase {
  readonly name: string;
  readonly from: NodeChanges;
  readonly verb: string;
  readonly args?: Parameters<Started['conductor']['provision']>[2];
  readonly machine?: Partial<Machine>;
  readonly breaks: readonly string[];
  /** The number of heartbeats, each of which comes after the work of the one before. */
  readonly beats?: number;
  readonly ends: NodeChanges;
  readonly error: RegExp;
  /** The usual verb that gets the node out. */
  readonly out: string;
}
const manageable: NodeChanges = { provision_state: 'manageable' };
const instance = { image_source: 'http://192.0.2.1/image' };
const active: NodeChanges = { provision_state: 'active', instance_info: instance };
const available: NodeChanges = { provision_state: 'available' };
const clean = { clean_steps: [{ interface: 'deploy', step: 'erase' }] };
const eraser = [{ interface: 'deploy', step: 'erase', priority: 10 }];
const eraseStep: Step = { step: 'erase', priority: { deploy: 0 }, run: async () => done };
const ROWS: readonly FailureCase[] = [
  {
    name: 'a BMC that does not answer, at verification',
    from: {},
    verb: 'manage',
    breaks: ['get power'],
    ends: { provision_state: 'enroll', target_provision_state: null },
    error: /^Failed to get power state for node \S+\. Error: the BMC does not answer$/,
    out: 'manage',
  },
  {
    name: 'a missing BMC address, at verification',
    from: { driver_info: {} },
    verb: 'manage',
    breaks: [],
    ends: { provision_state: 'enroll' },
    error: /^Failed to validate power driver interface for node \S+\. Error: .*driver_info: bmc$/,
    out: 'manage',
  },
  {
    name: 'a BMC that does not answer, at inspection',
    from: manageable,
    verb: 'inspect',
    breaks: ['get power'],
    ends: { provision_state: 'inspect failed', target_provision_state: 'manageable', inspection_started_at: null, maintenance: false },
    error: /the BMC does not answer/,
    out: 'inspect',
  },
  {
    name: 'a ramdisk that cannot be prepared, at cleaning',
    from: manageable,
    verb: 'provide',
    breaks: ['prepareCleaning'],
    ends: { provision_state: 'clean failed', target_provision_state: 'available', maintenance: false, fault: null },
    error: /^Failed to prepare node \S+ for cleaning: the BMC does not answer$/,
    out: 'manage',
  },
  {
    name: 'cleaning that cannot be torn down either',
    from: manageable,
    verb: 'provide',
    breaks: ['prepareCleaning', 'tearDownCleaning'],
    ends: { provision_state: 'clean failed' },
    error: /does not answer\. Also Failed to tear down cleaning on node \S+, reason: the BMC does not answer$/,
    out: 'manage',
  },
  {
    name: 'an agent that cannot be asked for its steps',
    from: manageable,
    verb: 'provide',
    breaks: ['agentSteps'],
    beats: 1,
    ends: { provision_state: 'clean failed', maintenance: false },
    error: /^Node failed to start the first cleaning step: the BMC does not answer$/,
    out: 'manage',
  },
  {
    name: 'an unknown clean step',
    from: manageable,
    verb: 'clean',
    args: { clean_steps: [{ interface: 'deploy', step: 'nope' }] },
    breaks: [],
    beats: 1,
    ends: { provision_state: 'clean failed', target_provision_state: 'manageable', maintenance: false, fault: null, clean_step: {} },
    error: /^Cannot clean node \S+: node does not support this clean step: \{'interface': 'deploy', 'step': 'nope'\}$/,
    out: 'manage',
  },
  {
    name: 'a clean step that cannot be started',
    from: manageable,
    verb: 'clean',
    args: clean,
    machine: { agentSteps: eraser },
    breaks: ['step deploy.erase'],
    beats: 1,
    ends: { provision_state: 'clean failed', maintenance: true, fault: 'clean failure', clean_step: {} },
    error: /^Node \S+ failed step \{'interface': 'deploy', 'step': 'erase', 'abortable': False, 'priority': 10\}: the BMC does not answer$/,
    out: 'manage',
  },
  {
    name: 'a clean step that fails in the agent',
    from: manageable,
    verb: 'clean',
    args: clean,
    machine: { agentSteps: eraser, stepOutcome: { kind: 'failed', reason: 'Clean step deploy.erase failed on node X. No space' } },
    breaks: [],
    beats: 2,
    ends: {
      provision_state: 'clean failed',
      maintenance: true,
      fault: 'clean failure',
      maintenance_reason: like(/No space/),
    },
    error: /^Clean step deploy\.erase failed on node X\. No space$/,
    out: 'manage',
  },
  {
    name: 'a deployment that cannot be prepared',
    from: available,
    verb: 'active',
    breaks: ['prepare'],
    ends: { provision_state: 'deploy failed', target_provision_state: 'active', power_state: null, deploy_step: {} },
    error: /^Failed to prepare to deploy: the BMC does not answer$/,
    out: 'active',
  },
  {
    name: 'a deployment that cannot be cleaned up either',
    from: available,
    verb: 'active',
    breaks: ['prepare', 'cleanUp'],
    ends: { provision_state: 'deploy failed' },
    error: /^Failed to prepare to deploy: the BMC does not answer\. Also failed to clean up due to: the BMC does not answer$/,
    out: 'active',
  },
  {
    name: 'a machine that cannot be booted',
    from: available,
    verb: 'active',
    breaks: ['power on'],
    ends: { provision_state: 'deploy failed', target_power_state: null },
    error: /^Deploy step deploy\.deploy failed: the BMC does not answer\.$/,
    out: 'deleted',
  },
  {
    name: 'an image that the agent cannot write',
    from: available,
    verb: 'active',
    machine: {
      stepOutcome: ({ step }) =>
        step === 'write_image' ? { kind: 'failed', reason: 'Deploy step deploy.write_image failed on node X. Checksum' } : { kind: 'done' },
    },
    breaks: [],
    beats: 2,
    ends: { provision_state: 'deploy failed', power_state: 'power off', deploy_step: {}, maintenance: false },
    error: /^Deploy step deploy\.write_image failed on node X\. Checksum$/,
    out: 'rebuild',
  },
  {
    name: 'a step of the client that the agent does not know',
    from: available,
    verb: 'active',
    args: { deploy_steps: [{ interface: 'raid', step: 'nope', priority: 50, args: {} }] },
    breaks: [],
    beats: 1,
    ends: { provision_state: 'deploy failed' },
    error:
      /^Failed to validate the final deploy steps list for node \S+: Validation of deploy steps from .*node does not support this deploy step: /,
    out: 'active',
  },
  {
    name: 'an instance that cannot be torn down',
    from: { provision_state: 'active', instance_info: { image_source: 'x' } },
    verb: 'deleted',
    breaks: ['tearDown'],
    ends: { provision_state: 'error', target_provision_state: null, instance_info: {} },
    error: /^Failed to tear down: the BMC does not answer$/,
    out: 'deleted',
  },
  {
    name: 'a rescue system that does not boot',
    from: { ...active, power_state: 'power on' },
    verb: 'rescue',
    args: { rescue_password: 'secret' },
    breaks: ['rescue'],
    ends: { provision_state: 'rescue failed', target_provision_state: 'rescue', power_state: 'power off', instance_info: instance },
    error: /^Failed to rescue: the BMC does not answer$/,
    out: 'unrescue',
  },
  {
    name: 'a rescue system whose agent refuses the command',
    from: active,
    verb: 'rescue',
    args: { rescue_password: 'secret' },
    breaks: ['finish rescue'],
    beats: 1,
    ends: { provision_state: 'rescue failed', instance_info: instance },
    error: /^Node failed to perform rescue operation: the BMC does not answer$/,
    out: 'unrescue',
  },
  {
    name: 'a rescue that cannot be cleaned up either',
    from: active,
    verb: 'rescue',
    args: { rescue_password: 'secret' },
    breaks: ['rescue', 'clean up rescue'],
    ends: { provision_state: 'rescue failed' },
    error: /^Rescue operation was unsuccessful, clean up failed for node: the BMC does not answer$/,
    out: 'deleted',
  },
  {
    name: 'an instance that cannot be unrescued',
    from: { ...active, provision_state: 'rescue' },
    verb: 'unrescue',
    breaks: ['unrescue'],
    ends: { provision_state: 'unrescue failed', target_provision_state: 'active' },
    error: /^Failed to unrescue: the BMC does not answer$/,
    out: 'unrescue',
  },
  {
    name: 'a ramdisk for servicing that does not boot',
    from: active,
    verb: 'service',
    args: { service_steps: [{ interface: 'deploy', step: 'burnin_cpu' }] },
    breaks: ['prepareService'],
    ends: { provision_state: 'service failed', target_provision_state: 'active', maintenance: false },
    error: /^Failed to prepare node \S+ for service: the BMC does not answer$/,
    out: 'abort',
  },
  {
    name: 'a service step that the agent does not know',
    from: active,
    verb: 'service',
    args: { service_steps: [{ interface: 'deploy', step: 'burnin_cpu' }] },
    breaks: [],
    beats: 1,
    ends: { provision_state: 'service failed', maintenance: false },
    error: /^Cannot service node \S+: node does not support this service step: \{'interface': 'deploy', 'step': 'burnin_cpu'\}$/,
    out: 'abort',
  },
  {
    name: 'an instance that cannot be adopted',
    from: manageable,
    verb: 'adopt',
    breaks: ['prepare'],
    ends: { provision_state: 'adopt failed', target_provision_state: 'active', power_state: null },
    error: /^Error while attempting to adopt node \S+: the BMC does not answer\.$/,
    out: 'adopt',
  },
];

it.each(ROWS.map((row) => [row.name, row] as const))(
  '%s: the flow fails with a reason, and the usual verb gets the node out',
  async (_name, row) => {
    const machine = newMachine(row.machine);
    const { conductor, enrol, node, speak, store } = await start({ machine });
    const { uuid } = await enrol(row.from);
    for (const what of row.breaks) machine.broken.set(what, down);
    await conductor.provision(uuid, row.verb, row.args ?? {});
    await conductor.idle();
    for (let beat = 0; beat < (row.beats ?? 0); beat++) {
      await speak(uuid);
      await conductor.idle();
    }
    const failed = await node(uuid);
    expect(failed).toMatchObject({ ...row.ends, last_error: like(row.error), reservation: null });
    expect(failed.driver_internal_info).not.toHaveProperty('agent_url');

    machine.broken.clear();
    machine.ramdisk = false;
    await store.nodes.update(uuid, { driver_info: { bmc: '192.0.2.9' }, maintenance: false });
    await conductor.provision(uuid, row.out, {});
    await conductor.idle();
    const { provision_state: state, last_error: error } = await node(uuid);
    expect(['manageable', 'available', 'active']).toContain(state);
    if (row.out === 'abort') expect(error).toBe('By request, the service operation was aborted');
    else if (row.out !== 'manage' || state !== 'manageable') expect(error).toBeNull();
  },
);

it.each<[string, NodeChanges, string, Parameters<Started['conductor']['provision']>[2], number, RegExp]>([
  [
    'wrong state',
    {},
    'provide',
    {},
    400,
    /^The requested action "provide" can not be performed on node "\S+" while it is in state "enroll"\.$/,
  ],
  ['unknown verb', {}, 'dance', {}, 400, /"dance" can not be performed/],
  [
    'maintenance',
    { ...available, maintenance: true },
    'active',
    {},
    400,
    /^The provisioning operation can't be performed on node \S+ because it's in maintenance mode\.$/,
  ],
  ['maintenance, at manual cleaning', { ...manageable, maintenance: true }, 'clean', clean, 400, /^The cleaning operation can't/],
  [
    'protected',
    { provision_state: 'active', protected: true },
    'rebuild',
    {},
    403,
    /is protected and cannot be undeployed, rebuilt or deleted$/,
  ],
  ['protected', { provision_state: 'active', protected: true }, 'deleted', {}, 403, /is protected/],
  ['no BMC', { ...available, driver_info: {} }, 'active', {}, 400, /^Failed to validate deploy or power info for node \S+: .*bmc/],
  ['no BMC', { ...manageable, driver_info: {} }, 'clean', clean, 400, /^Validation of node \S+ for cleaning failed: /],
  [
    'no BMC',
    { provision_state: 'active', driver_info: {} },
    'deleted',
    {},
    400,
    /^Failed to validate power driver interface\. Can not delete instance\. Error: /,
  ],
  ['missing traits', { ...available, instance_info: { traits: ['CUSTOM_A'] } }, 'active', {}, 400, /is missing traits CUSTOM_A$/],
  [
    'a core step with another priority',
    available,
    'active',
    { deploy_steps: [{ interface: 'deploy', step: 'deploy', priority: 50, args: {} }] },
    400,
    /argument failed\.deploy step deploy on interface deploy is a core step/,
  ],
  ['in maintenance', { ...active, maintenance: true }, 'rescue', { rescue_password: 'x' }, 400, /^The rescuing operation can't/],
  ['in maintenance', { ...active, maintenance: true, provision_state: 'rescue' }, 'unrescue', {}, 400, /^The unrescuing operation can't/],
  ['in maintenance', { ...active, maintenance: true }, 'service', {}, 400, /^The service operation can't/],
  ['without a BMC', { ...active, driver_info: {} }, 'rescue', {}, 400, /^Failed to rescue instance None for node \S+: Validation failed: /],
  ['without a BMC', { ...active, driver_info: {} }, 'service', {}, 400, /^Validation of node \S+ for servicing failed: /],
  ['abort in maintenance', { provision_state: 'service failed', maintenance: true }, 'abort', {}, 409, /^Can not abort service on node/],
  [
    'an inspect interface that cannot abort',
    { provision_state: 'inspect wait', inspect_interface: 'other' },
    'abort',
    {},
    400,
    /^Driver other does not support abort/,
  ],
])('refuses a verb before anything changes: %s', async (_name, from, verb, args, status, text) => {
  const { conductor, enrol, node, machine } = await start();
  const { uuid } = await enrol(from);
  const before = await node(uuid);
  await expect(conductor.provision(uuid, verb, args)).rejects.toMatchObject({ status, message: like(text) });
  const after = await node(uuid);
  expect({ ...after, revision: 0, lock_fence: 0, updated_at: null }).toEqual({ ...before, revision: 0, lock_fence: 0, updated_at: null });
  expect(machine.orders.filter((order) => order !== 'validate deploy')).toEqual([]);
});

describe('deploy and validate refuse', () => {
  const step = { interface: 'vendor', step: 'erase', args: { speed: 1 }, priority: 5 };
  it.each<[string, NodeChanges, RegExp]>([
    ['missing traits', { instance_info: { traits: ['CUSTOM_A'] } }, /is missing traits CUSTOM_A$/],
    [
      'an invalid step of a deploy template',
      { traits: ['CUSTOM_T'], instance_info: { traits: ['CUSTOM_T'] } },
      /Matching deploy templates: CUSTOM_T\. Errors: deploy step .* has these unexpected arguments: speed$/,
    ],
  ])('%s', async (_name, from, reason) => {
    const { conductor, enrol, store } = await start({ machine: newMachine({ steps: [eraseStep] }) });
    await store.deployTemplates.create({ uuid: randomUUID(), name: 'CUSTOM_T', steps: [step] });
    const { uuid } = await enrol({ ...available, ...from });
    expect(await conductor.validate(uuid)).toMatchObject({ power: { result: true }, deploy: { result: false, reason: like(reason) } });
    await expect(conductor.provision(uuid, 'active', {})).rejects.toMatchObject({ status: 400, message: like(reason) });
  });

  it('a boot volume if the deployment would overwrite the local disk, and so does rebuild', async () => {
    const { conductor, enrol, store, node } = await start();
    const { uuid } = await enrol(available);
    const volume = { node_uuid: uuid, volume_type: 'iscsi', volume_id: 'v-1', properties: {}, extra: {} };
    await store.volumeTargets.create({ ...volume, uuid: randomUUID(), boot_index: 1 });
    expect(await conductor.validate(uuid)).toMatchObject({ deploy: { result: true } });
    const { uuid: target } = await store.volumeTargets.create({ ...volume, uuid: randomUUID(), volume_id: 'v-0', boot_index: 0 });
    const reason = /has the boot volume v-0 .* would overwrite the local disk/;
    expect(await conductor.validate(uuid)).toMatchObject({ deploy: { result: false, reason: like(reason) } });
    await expect(conductor.provision(uuid, 'active', {})).rejects.toMatchObject({ status: 400, message: like(reason) });
    await store.nodes.update(uuid, active);
    await expect(conductor.provision(uuid, 'rebuild', {})).rejects.toMatchObject({ status: 400, message: like(reason) });
    expect(await node(uuid)).toMatchObject({ provision_state: 'active', reservation: null });
    await store.volumeTargets.remove(target);
    expect(await conductor.validate(uuid)).toMatchObject({ deploy: { result: true } });
  });
});

it('limits concurrent cleanings, deployments and workers', async () => {
  const { conductor, enrol, machine } = await start({
    options: { 'conductor.max_concurrent_clean': 1, 'conductor.max_concurrent_deploy': 1, 'conductor.workers_pool_size': 3 },
  });
  const [a, b, c] = await Promise.all([enrol(manageable), enrol({ provision_state: 'active' }), enrol(available)]);
  const d = await enrol(available);
  await conductor.provision(a.uuid, 'clean', clean);
  await conductor.provision(c.uuid, 'active', {});
  await conductor.idle();
  await expect(conductor.provision(b.uuid, 'deleted', {})).rejects.toMatchObject({ name: 'ConcurrentActionLimit', status: 503 });
  await expect(conductor.provision(d.uuid, 'active', {})).rejects.toThrow('The concurrent action limit for provisioning has been reached.');
  machine.stuck.set('power off', new Promise(() => {}));
  const many = await Promise.all([1, 2, 3, 4].map(() => enrol(manageable)));
  machine.power = 'power on';
  for (const { uuid } of many.slice(0, 3)) await conductor.setPower(uuid, 'power off');
  await expect(conductor.setPower(many[3]!.uuid, 'power off')).rejects.toMatchObject({ name: 'NoFreeConductorWorker', status: 503 });
});

it('aborts cleaning, inspection and deployment at once, or after a step that is not abortable', async () => {
  const { conductor, machine, enrol, node, speak } = await start();
  machine.agentSteps = [
    { interface: 'deploy', step: 'erase', priority: 20, abortable: true },
    { interface: 'deploy', step: 'flash', priority: 10 },
  ];
  const { uuid } = await enrol(manageable);
  const toFirstStep = async (): Promise<void> => {
    await conductor.provision(uuid, 'provide', {});
    await conductor.idle();
    await speak(uuid);
    await conductor.idle();
  };
  await toFirstStep();
  await conductor.provision(uuid, 'abort', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'clean failed',
    target_provision_state: 'available',
    clean_step: {},
    maintenance: false,
    power_state: 'power off',
    last_error: 'By request, the clean operation was aborted during or after the completion of step "deploy.erase"',
  });
  await conductor.provision(uuid, 'manage', {});
  machine.agentSteps = [
    { interface: 'deploy', step: 'flash', priority: 20 },
    { interface: 'deploy', step: 'erase', priority: 10, abortable: true },
  ];
  await toFirstStep();
  await conductor.provision(uuid, 'abort', {});
  expect(await node(uuid)).toMatchObject({ provision_state: 'clean wait', clean_step: { step: 'flash', abort_after: true } });
  await speak(uuid);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'clean failed', last_error: like(/step "deploy\.flash"$/) });
  expect(machine.orders.filter((order) => order === 'step deploy.erase')).toHaveLength(1);

  await conductor.provision(uuid, 'manage', {});
  await conductor.provision(uuid, 'inspect', {});
  await conductor.idle();
  await conductor.provision(uuid, 'abort', {});
  expect(await node(uuid)).toMatchObject({ provision_state: 'inspect failed', last_error: 'Inspection was aborted by request.' });

  const deployed = await enrol(available);
  await conductor.provision(deployed.uuid, 'active', {});
  await conductor.idle();
  await conductor.provision(deployed.uuid, 'abort', {});
  await conductor.idle();
  expect(await node(deployed.uuid)).toMatchObject({
    provision_state: 'deploy failed',
    deploy_step: {},
    power_state: 'power on',
    last_error: 'By request, the deploy operation was aborted during or after the completion of step "deploy.deploy"',
  });
});

it.each<[string, string, NodeChanges, RegExp]>([
  ['active', 'conductor.deploy_callback_timeout', { ...available }, /^Timeout reached while waiting for callback for node \S+$/],
  [
    'provide',
    'conductor.clean_callback_timeout',
    manageable,
    /^Timeout reached while cleaning the node\. Please check .* Failed on step \{\}\.$/,
  ],
  ['inspect', 'conductor.inspect_wait_timeout', manageable, /^Timeout reached while inspecting the node\. Please check/],
])('a machine that never calls back fails %s after the timeout, but not in maintenance', async (verb, option, from, text) => {
  // The power synchronisation would clear the errors of nodes whose BMC answers.
  const { conductor, enrol, node, machine } = await start({ options: { [option]: 100, 'conductor.sync_power_state_interval': 0 } });
  const { uuid } = await enrol(from);
  const held = await enrol(from);
  await conductor.provision(uuid, verb, {});
  await conductor.provision(held.uuid, verb, {});
  await conductor.idle();
  await conductor.setMaintenance(held.uuid, true);
  const waiting = (await node(uuid)).provision_state;
  await clock.advance(80);
  await settled(conductor);
  expect((await node(uuid)).provision_state).toBe(waiting);
  await clock.advance(40);
  await settled(conductor);
  const late = await node(uuid);
  expect(late).toMatchObject({ last_error: like(text), reservation: null, maintenance: false });
  expect(late.provision_state).toMatch(/ failed$/);
  expect(late.target_provision_state).toBe({ active: 'active', provide: 'available', inspect: 'manageable' }[verb]);
  expect(machine.orders.some((order) => ['cleanUp', 'tearDownCleaning', 'abort inspection'].includes(order))).toBe(true);
  expect((await node(held.uuid)).provision_state).toBe(waiting);
});

it('an inspection that the hooks refuse leaves no ports and no inventory', async () => {
  const { conductor, enrol, node, store } = await start();
  const { uuid } = await enrol(manageable);
  const inspectWith = async (inventory: object, data: object): Promise<void> => {
    await conductor.provision(uuid, 'inspect', {});
    await conductor.idle();
    await conductor.continueInspection({ macs: [], nodeUuid: uuid }, inventory as never, data as never);
    await conductor.idle();
  };
  const eth0 = { name: 'eth0', mac_address: '52:54:00:00:00:01' };
  await inspectWith({ interfaces: [eth0], cpu: { architecture: 'x86_64' } }, { error: 'no disk' });
  expect(await node(uuid)).toMatchObject({
    provision_state: 'inspect failed',
    last_error:
      'Failed to finish inspection: Failed to inspect hardware. Reason: failed to run inspection hooks: Failed to inspect hardware. ' +
      `Reason: The following failures happened while running preprocess hooks for node ${uuid}:\n` +
      'Error in preprocess hook ramdisk-error: Failed to inspect hardware. Reason: Ramdisk reported error: no disk',
  });
  await inspectWith({ interfaces: [eth0] }, {});
  expect((await node(uuid)).last_error).toMatch(/Inventory for node \S+ is invalid: Inventory has malformed or missing CPU architecture/);
  await inspectWith({ interfaces: [] }, {});
  expect((await node(uuid)).last_error).toMatch(/no valid network interfaces$/);
  expect(await store.ports.ofNode(uuid)).toEqual([]);
  expect(await store.inventories.find(uuid)).toBeUndefined();
});

it('does not start with invalid options', async () => {
  const bad = async (options: Partial<ReturnType<typeof conductorOptions>>): Promise<void> => {
    await start({ options });
  };
  await expect(bad({ 'inspector.hooks': ['ports'] })).rejects.toThrow('[inspector]hooks: ports needs validate-interfaces before it');
  await expect(bad({ 'redfish.inspection_hooks': ['nope'] })).rejects.toThrow('[redfish]inspection_hooks: unknown hook nope');
  await expect(bad({ 'inspector.hooks': ['nope'] })).rejects.toThrow('[inspector]hooks: unknown hook nope');
  await expect(bad({ 'DEFAULT.enabled_hardware_types': ['nope'] })).rejects.toThrow('unknown hardware types: nope');
  await expect(bad({ 'DEFAULT.enabled_power_interfaces': ['nope'] })).rejects.toThrow('would have no power interface');
});
