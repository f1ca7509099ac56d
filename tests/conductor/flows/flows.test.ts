/** The flows without conductor and database: what they check, how they begin, fail, end, and clean up after an abort. */
import { adopt } from '../../../conductor/flows/adopt';
import { clean } from '../../../conductor/flows/clean';
import { deploy } from '../../../conductor/flows/deploy';
import type { Flow } from '../../../conductor/flows/flow';
import { inspect } from '../../../conductor/flows/inspect';
import { applyOutcome } from '../../../conductor/flows/outcome';
import { rescue } from '../../../conductor/flows/rescue';
import { service } from '../../../conductor/flows/service';
import { undeploy } from '../../../conductor/flows/undeploy';
import { unrescue } from '../../../conductor/flows/unrescue';
import { verify } from '../../../conductor/flows/verify';
import { fakeBoot, fakeDeploy, fakeInspect, fakePower, fakeRescue } from '../../../drivers/fake/fake';
import { done, failed, wait, type DeployInterface, type Driver, type Outcome, type Step } from '../../../drivers/interfaces';
import { noopNetwork } from '../../../drivers/noop';
import { Fault } from '../../../model/errors';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { flowTask, type FlowTask } from '../../support/flow-task';
import { foreign, NODE_UUID } from '../../support/task';
import { no, running, said, step, withDeploy, type Given } from './parts';

const check = (flow: Flow, event: keyof Flow['admit'], given: Given, args: object = {}) =>
  flow.admit[event]!.check(flowTask(given).task, args);
const message = async (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'accepted',
    (error: unknown) => (error as Error).message,
  );

describe('the check of a request', () => {
  const maintenance: Given = { node: { maintenance: true } };
  const badPower: Given = { driver: { power: { ...fakePower, validate: no('no BMC') } } };
  const badNetwork: Given = { driver: { network: { ...noopNetwork, validate: no('no network') } } };
  it.each<[string, Flow, keyof Flow['admit'], Given, object, RegExp]>([
    ['deploy in maintenance', deploy, 'deploy', maintenance, {}, /provisioning.*maintenance/i],
    ['rebuild of a protected node', deploy, 'rebuild', { node: { protected: true } }, {}, /protected/],
    [
      'deploy without a BMC',
      deploy,
      'deploy',
      badPower,
      {},
      new RegExp(`^Failed to validate deploy or power info for node ${NODE_UUID}: .*no BMC`),
    ],
    [
      'a boot mode that is not allowed',
      deploy,
      'deploy',
      { node: { properties: { boot_mode: ' BIOS' } }, options: { 'conductor.disallowed_deployment_boot_modes': ['bios'] } },
      {},
      /bios.*provisioning|provisioning.*bios/,
    ],
    ['clean in maintenance', clean, 'clean', maintenance, {}, /cleaning.*maintenance/i],
    [
      'provide in maintenance',
      clean,
      'provide',
      { ...maintenance, options: { 'conductor.allow_provisioning_in_maintenance': false } },
      {},
      /providing/,
    ],
    ['provide of a retired node', clean, 'provide', { node: { retired: true } }, {}, /providing.*retired|retired/i],
    ['clean without a BMC', clean, 'clean', badPower, {}, new RegExp(`^Validation of node ${NODE_UUID} for cleaning failed: .*no BMC`)],
    ['clean without a network', clean, 'clean', badNetwork, {}, /for cleaning failed: .*no network/],
    ['clean without a network and without a ramdisk', clean, 'clean', badNetwork, { disable_ramdisk: true }, /^accepted$/],
    ['service in maintenance', service, 'service', maintenance, {}, /service.*maintenance/i],
    ['service without a network', service, 'service', badNetwork, {}, /for servicing failed: .*no network/],
    [
      'a step that the driver does not have',
      clean,
      'clean',
      {},
      { clean_steps: [{ interface: 'deploy', step: 'nothing' }], disable_ramdisk: true },
      new RegExp(`^Cannot clean node ${NODE_UUID}: .*nothing`),
    ],
    ['undeploy of a protected node', undeploy, 'delete', { node: { protected: true } }, {}, /protected/],
    [
      'undeploy without a BMC',
      undeploy,
      'delete',
      badPower,
      {},
      /^Failed to validate power driver interface. Can not delete instance. Error: .*no BMC/,
    ],
    ['rescue in maintenance', rescue, 'rescue', maintenance, { rescue_password: 'x' }, /rescuing/],
    ['rescue without a network', rescue, 'rescue', badNetwork, { rescue_password: 'x' }, /Validation failed: .*no network/],
    ['unrescue in maintenance', unrescue, 'unrescue', maintenance, {}, /unrescuing/],
    ['unrescue without a BMC', unrescue, 'unrescue', badPower, {}, /Validation failed: .*no BMC/],
    ['inspection without a BMC', inspect, 'inspect', badPower, {}, /no BMC/],
  ])('refuses %s', async (_, flow, event, given, args, expected) => {
    expect(await message(check(flow, event, given, args))).toMatch(expected);
  });
  it('accepts a rebuild of an unprotected node, a deploy of a protected one, and an allowed provide in maintenance', async () => {
    expect(await message(check(deploy, 'rebuild', { driver: withDeploy({}) }))).toBe('accepted');
    expect(await message(check(deploy, 'deploy', { node: { protected: true }, driver: withDeploy({}) }))).toBe('accepted');
    expect(
      await message(
        check(clean, 'provide', { node: { maintenance: true }, options: { 'conductor.allow_provisioning_in_maintenance': true } }),
      ),
    ).toBe('accepted');
  });
  it('passes on errors that are not faults unchanged', async () => {
    const broken: Given = { driver: { power: { ...fakePower, validate: async () => Promise.reject(new Error('a mistake')) } } };
    expect(await message(check(deploy, 'deploy', broken))).toBe('a mistake');
    expect(await message(check(undeploy, 'delete', broken))).toBe('a mistake');
    expect(await message(check(rescue, 'rescue', broken, { rescue_password: 'x' }))).toBe('a mistake');
  });
});

describe('a deployment writes', () => {
  const asked = async (
    node: Partial<NodeRecord>,
    options: Given['options'] = {},
    args: object = {},
    event: 'deploy' | 'rebuild' = 'deploy',
  ) => check(deploy, event, { node, options, driver: withDeploy({}) }, args);
  it.each<[JsonObject, string, boolean]>([
    [{ image_source: 'x' }, 'whole-disk', true],
    [{ image_source: 'x', kernel: 'k' }, 'partition', false],
    [{ image_source: 'x', ramdisk: 'r' }, 'partition', false],
    [{ image_source: 'x', image_type: 'partition' }, 'partition', false],
    [{ image_source: 'x', image_type: 'whole-disk', kernel: 'k' }, 'whole-disk', true],
  ])('the image type of %j: %s', async (info, type, whole) => {
    const { changes, internal } = await asked({ instance_info: info });
    expect(changes.instance_info).toEqual({ ...info, image_type: type });
    expect(internal).toMatchObject({ is_whole_disk_image: whole });
  });
  it('no image type of an image in Glance, whose properties decide', async () => {
    const info = { image_source: '3a1f0b5c-0000-4000-8000-000000000000' };
    const { changes, internal } = await asked({ instance_info: info });
    expect(changes.instance_info).toEqual(info);
    expect(Object.hasOwn(internal!, 'is_whole_disk_image')).toBe(false);
    expect((await asked({ instance_info: { ...info, image_type: 'partition' } })).internal).toMatchObject({ is_whole_disk_image: false });
  });
  it('the config drive and the steps that the client sends', async () => {
    const { changes, internal } = await asked({ instance_info: { a: 1 } }, {}, { configdrive: 'CD' });
    expect(changes).toEqual({ deploy_step: {}, last_error: null, instance_info: { a: 1, configdrive: 'CD' } });
    expect(internal).toMatchObject({ user_deploy_steps: undefined, deploy_steps: null });
    expect(Object.hasOwn(internal!, 'is_whole_disk_image')).toBe(false);
    const steps = [{ interface: 'power', step: 'reboot', args: {}, priority: 5 }];
    expect((await asked({}, {}, { deploy_steps: steps })).internal).toMatchObject({ user_deploy_steps: steps });
  });
  const ON = { 'conductor.automatic_lessee': true, 'conductor.automatic_lessee_source': 'instance' } as const;
  it.each<[string, Partial<NodeRecord>, Given['options'], 'deploy' | 'rebuild', string | undefined]>([
    ['the project of the instance', { instance_info: { project_id: 'p' } }, ON, 'deploy', 'p'],
    ['nobody at a rebuild', { instance_info: { project_id: 'p' } }, ON, 'rebuild', undefined],
    ['unchanged if the node has one', { lessee: 'q', instance_info: { project_id: 'p' } }, ON, 'deploy', undefined],
    ['nobody for an empty project', { instance_info: { project_id: '' } }, ON, 'deploy', undefined],
    ['nobody for a project that is not a text', { instance_info: { project_id: 5 } }, ON, 'deploy', undefined],
    [
      'nobody if automatic_lessee is off',
      { instance_info: { project_id: 'p' } },
      { ...ON, 'conductor.automatic_lessee': false },
      'deploy',
      undefined,
    ],
  ])('the lessee: %s', async (_, node, options, event, lessee) => {
    const { changes, internal } = await asked(node, options, {}, event);
    expect([changes.lessee, internal!['automatic_lessee']]).toEqual([lessee, lessee === undefined ? undefined : true]);
  });
});

/** `last_error`, the events before, and what a flow leaves behind. */
async function failure(flow: Flow, given: Given, reason = 'it broke.', how?: { readonly late: true }) {
  const flown = flowTask(given);
  await flow.fail(flown.task, reason, how);
  return { ...flown, error: flown.node().last_error };
}
describe('a failure', () => {
  it.each<[string, Flow, Given, string, readonly string[]]>([
    ['of a deployment', deploy, { driver: withDeploy({}) }, 'it broke.', ['event fail']],
    [
      'of a deployment whose clean-up fails',
      deploy,
      { driver: withDeploy({ cleanUp: no('no way') }) },
      'it broke. Also failed to clean up due to: no way',
      ['event fail'],
    ],
    ['of cleaning', clean, {}, 'it broke.', ['event fail']],
    [
      'of cleaning whose tear-down fails',
      clean,
      { driver: withDeploy({ tearDownCleaning: no('no way') }) },
      `it broke. Also Failed to tear down cleaning on node ${NODE_UUID}, reason: no way`,
      ['event fail'],
    ],
    ['of servicing', service, {}, 'it broke.', ['event fail']],
    [
      'of servicing whose tear-down fails',
      service,
      { driver: withDeploy({ tearDownService: no('no way') }) },
      'it broke.. Also failed to tear down servicing.',
      ['event fail'],
    ],
    [
      'of servicing without a ramdisk',
      service,
      { node: { driver_internal_info: { service_disable_ramdisk: true } }, driver: withDeploy({ tearDownService: no('no way') }) },
      'it broke.',
      ['event fail'],
    ],
    ['of an inspection', inspect, {}, 'it broke.', ['event fail']],
    [
      'of an inspection whose clean-up fails',
      inspect,
      {
        driver: {
          inspect: { ...fakeInspect, abort: no('busy') },
          network: { ...noopNetwork, removeInspectionNetwork: no('gone') },
        },
      },
      `it broke. Also Failed to abort inspection on node ${NODE_UUID}, reason: busy` +
        `. Also Failed to remove inspection network for node ${NODE_UUID}, reason: gone`,
      ['event fail'],
    ],
    ['of a rescue', rescue, {}, 'it broke.', ['power: power off', 'event fail']],
    [
      'of a rescue whose clean-up fails',
      rescue,
      { driver: { rescue: { ...fakeRescue, cleanUp: no('no way') } } },
      'Rescue operation was unsuccessful, clean up failed for node: no way',
      ['power: power off', 'event fail'],
    ],
    ['of a rescue of a machine that stays on', rescue, { node: { disable_power_off: true } }, 'it broke.', ['event fail']],
    ['of an unrescue', unrescue, {}, 'it broke.', ['event fail']],
    ['of a verification', verify, {}, 'it broke.', ['event fail']],
    ['of an adoption', adopt, {}, 'it broke.', ['event fail']],
  ])('%s sets last_error, and causes the expected events', async (_, flow, given, text, expected) => {
    const { error, events } = await failure(flow, given);
    expect([error, events]).toEqual([text, expected]);
  });

  const AGENT = withDeploy({ agentSteps: async () => [] });
  const OFF = { 'deploy.power_off_after_deploy_failure': true } as const;
  it.each<[string, Given, { readonly late: true } | undefined, boolean]>([
    ['after a failed step', { node: { deploy_step: running('a') }, driver: AGENT, options: OFF }, undefined, true],
    [
      'not if power_off_after_deploy_failure is off',
      { node: { deploy_step: running('a') }, driver: AGENT, options: { 'deploy.power_off_after_deploy_failure': false } },
      undefined,
      false,
    ],
    [
      'not with disable_power_off',
      { node: { deploy_step: running('a'), disable_power_off: true }, driver: AGENT, options: OFF },
      undefined,
      false,
    ],
    ['not before the first step', { driver: AGENT, options: OFF }, undefined, false],
    ['not if no agent runs the steps', { node: { deploy_step: running('a') }, driver: withDeploy({}), options: OFF }, undefined, false],
    ['not after a timeout', { node: { deploy_step: running('a') }, driver: AGENT, options: OFF }, { late: true }, false],
  ])('of a deployment powers the machine off: %s', async (_, given, how, isOff) => {
    const { events } = await failure(deploy, given, 'x', how);
    expect(events).toEqual([...(isOff ? ['power: power off'] : []), 'event fail']);
  });
  it('of a deployment detaches volumes, and keeps the list of steps', async () => {
    const steps = [running('a')];
    const given = flowTask({
      node: { driver_internal_info: { deploy_steps: steps, deploy_step_index: 0, agent_url: 'x', step_poll_every: 5 } },
    });
    const detached = said(given, 'detached');
    const task = { ...given.task, driver: { ...given.task.driver, storage: { ...given.task.driver.storage, detachVolumes: detached } } };
    await deploy.fail(Object.defineProperty(task, 'node', { get: given.node }), 'x');
    expect(given.events).toEqual(['detached', 'event fail']);
    expect(given.node()).toMatchObject({ deploy_step: {}, driver_internal_info: { deploy_steps: steps } });
    expect(Object.keys(given.node().driver_internal_info)).toEqual(['deploy_steps']);
  });
  it.each<['clean' | 'service', Flow]>([
    ['clean', clean],
    ['service', service],
  ])('in a running %s step takes the node into maintenance, and powers it off if the option says so', async (kind, flow) => {
    const column = `${kind}_step` as const;
    const node = { [column]: running('a'), driver_internal_info: { [`${kind}_steps`]: [running('a')], [`${kind}_step_index`]: 0 } };
    const broken = await failure(flow, { node, options: { [`conductor.poweroff_in_${kind}fail`]: true } });
    expect(broken.node()).toMatchObject({ maintenance: true, fault: `${kind} failure`, maintenance_reason: 'it broke.', [column]: {} });
    expect(broken.node().driver_internal_info).toEqual({ [`${kind}_steps`]: [running('a')] });
    expect(broken.events).toEqual(['power: power off', 'event fail']);
    const known = await failure(flow, {
      node: { ...node, maintenance_reason: 'known' },
      options: { [`conductor.poweroff_in_${kind}fail`]: false },
    });
    expect(known.node().maintenance_reason).toBe('known');
    expect(known.events).toEqual(['event fail']);
    const before = await failure(flow, {});
    expect(before.node()).toMatchObject({ maintenance: false, fault: null });
  });
  it('of a rescue removes its passwords and the data of its agent', async () => {
    const info = { rescue_password: 'p', hashed_rescue_password: 'h', image_source: 'x' };
    const { node } = await failure(rescue, {
      node: { instance_info: info, driver_internal_info: { agent_url: 'x', step_poll_every: 2, ...foreign({ a: 1 }) } },
    });
    expect(node()).toMatchObject({ instance_info: { image_source: 'x' }, driver_internal_info: { a: 1 } });
    expect(Object.keys(node().instance_info)).toEqual(['image_source']);
    expect(Object.keys(node().driver_internal_info)).toEqual(['a']);
  });
  it('of an adoption clears power_state', async () => {
    const { node } = await failure(adopt, { node: { power_state: 'power on' } });
    expect(node().power_state).toBeNull();
  });
  it('of a tear-down still removes the instance and its automatic lessee', async () => {
    const instance = { instance_uuid: 'i', instance_name: 'n', instance_info: { a: 1 }, protected_reason: 'r', allocation_uuid: null };
    const own = await failure(undeploy, {
      node: { ...instance, lessee: 'l', driver_internal_info: { automatic_lessee: true, instance: {}, ...foreign({ b: 2 }) } },
    });
    expect(own.node()).toMatchObject({ instance_uuid: null, instance_name: null, instance_info: {}, protected_reason: null, lessee: null });
    expect(own.node().driver_internal_info).toEqual({ b: 2, deploy_steps: null });
    const kept = await failure(undeploy, { node: { ...instance, lessee: 'l' } });
    expect(kept.node().lessee).toBe('l');
  });
});

describe('the beginning of a flow', () => {
  const begin = async (flow: Flow, given: Given): Promise<unknown> => {
    const { task } = flowTask(given);
    return flow.begin(task).catch((error: unknown) => (error as Error).message);
  };
  it.each<[string, Flow, Given, unknown]>([
    ['a deployment without steps', deploy, { driver: withDeploy({}) }, failed('No deploy steps returned by the driver')],
    ['a deployment that cannot be prepared', deploy, { driver: withDeploy({ prepare: no('x') }) }, 'Failed to prepare to deploy: x'],
    [
      'a deployment with wrong steps',
      deploy,
      {
        driver: withDeploy({}),
        node: { driver_internal_info: { user_deploy_steps: [{ interface: 'power', step: 'wait', args: { days: 1 }, priority: 9 }] } },
      },
      expect.stringMatching(/^Cannot get deploy steps; failed to deploy: .*days/),
    ],
    ['a tear-down', undeploy, {}, done],
    ['a tear-down that fails', undeploy, { driver: withDeploy({ tearDown: async () => failed('x') }) }, 'Failed to tear down: x'],
    [
      'a tear-down that waits',
      undeploy,
      { driver: withDeploy({ tearDown: async () => wait }) },
      'Failed to tear down: the deploy interface cannot wait here',
    ],
    ['a rescue that fails', rescue, { driver: { rescue: { ...fakeRescue, rescue: no('x') } } }, 'Failed to rescue: x'],
    ['an unrescue that fails', unrescue, { driver: { rescue: { ...fakeRescue, unrescue: no('x') } } }, 'Failed to unrescue: x'],
    ['an adoption', adopt, {}, done],
    [
      'an adoption that fails',
      adopt,
      { driver: withDeploy({ prepare: no('no image.') }) },
      `Error while attempting to adopt node ${NODE_UUID}: no image.`,
    ],
    [
      'an adoption of an instance in memory',
      adopt,
      { driver: { ...withDeploy({ inMemory: true }), boot: { ...fakeBoot, validate: no('no kernel') } } },
      done,
    ],
    ['an adoption of an instance on disk', adopt, { driver: { boot: { ...fakeBoot, validate: no('no kernel') } } }, done],
    [
      'automated cleaning that is off for the node',
      clean,
      { node: { target_provision_state: 'available', automated_clean: false }, driver: withDeploy({ prepareCleaning: no('x') }) },
      done,
    ],
    [
      'automated cleaning that is off for all',
      clean,
      {
        node: { target_provision_state: 'available' },
        options: { 'conductor.automated_clean': false },
        driver: withDeploy({ prepareCleaning: no('x') }),
      },
      done,
    ],
    [
      'automated cleaning that is on for the node',
      clean,
      {
        node: { target_provision_state: 'available', automated_clean: true },
        options: { 'conductor.automated_clean': false },
        driver: withDeploy({ prepareCleaning: no('x') }),
      },
      `Failed to prepare node ${NODE_UUID} for cleaning: x`,
    ],
    [
      'cleaning in maintenance',
      clean,
      { node: { maintenance: true }, options: { 'conductor.allow_provisioning_in_maintenance': false } },
      failed('Cleaning a node in maintenance mode is not allowed'),
    ],
    [
      'allowed cleaning in maintenance',
      clean,
      {
        node: { maintenance: true },
        options: { 'conductor.allow_provisioning_in_maintenance': true },
        driver: withDeploy({ prepareCleaning: async () => wait }),
      },
      wait,
    ],
    [
      'cleaning without a network',
      clean,
      { driver: { network: { ...noopNetwork, validate: no('x') } } },
      `Validation of node ${NODE_UUID} for cleaning failed: x`,
    ],
    [
      'cleaning without a BMC',
      clean,
      { driver: { power: { ...fakePower, validate: no('x') } } },
      `Validation of node ${NODE_UUID} for cleaning failed: x`,
    ],
    [
      'servicing that cannot be prepared',
      service,
      {
        node: { driver_internal_info: { service_steps: [{ interface: 'deploy', step: 'agent_step' }] } },
        driver: withDeploy({ prepareService: no('x') }),
      },
      `Failed to prepare node ${NODE_UUID} for service: x`,
    ],
    ['a verification', verify, {}, done],
    [
      'a verification without a BMC',
      verify,
      { driver: { power: { ...fakePower, validate: no('x') } } },
      `Failed to validate power driver interface for node ${NODE_UUID}. Error: x`,
    ],
    [
      'a verification of a BMC that does not answer',
      verify,
      { driver: { power: { ...fakePower, get: no('x') } } },
      `Failed to get power state for node ${NODE_UUID}. Error: x`,
    ],
  ])('has the expected outcome: %s', async (_, flow, given, expected) => {
    expect(await begin(flow, given)).toEqual(expected);
  });
  it('runs verify steps by descending priority, and fails with a step that fails or waits', async () => {
    const order: string[] = [];
    const verifyStep = (name: string, priority: number, outcome: Outcome = done): Step =>
      step(name, { priority: { verify: priority }, run: async () => (order.push(name), outcome) });
    const management = (...steps: readonly Step[]): Given => ({ driver: { deploy: { ...fakeDeploy, steps } } });
    expect(await begin(verify, management(verifyStep('low', 1), verifyStep('off', 0), verifyStep('high', 9)))).toEqual(done);
    expect(order).toEqual(['high', 'low']);
    const explained = (reason: string): Outcome => failed(`Node ${NODE_UUID} failed verify step a with unexpected error: ${reason}`);
    expect(await begin(verify, management(verifyStep('a', 1, failed('x'))))).toEqual(explained('x'));
    expect(await begin(verify, management(verifyStep('a', 1, wait)))).toEqual(explained('a verify step cannot wait'));
    const throwing = management(step('a', { priority: { verify: 1 }, run: no('x') }));
    expect(await begin(verify, throwing)).toBe(`Node ${NODE_UUID} failed verify step a with unexpected error: x`);
  });
  it('of a tear-down first ends the rescue and the console of the instance', async () => {
    const events: string[] = [];
    const driver: Partial<Driver> = {
      rescue: { ...fakeRescue, cleanUp: async () => void events.push('rescue') },
      console: { get: async () => ({}), start: async () => {}, stop: async () => void events.push('console') },
      deploy: { ...fakeDeploy, cleanUp: async () => void events.push('clean up'), tearDown: async () => (events.push('tear down'), done) },
    };
    await begin(undeploy, { driver });
    expect(events.splice(0)).toEqual(['clean up', 'tear down']);
    await begin(undeploy, { driver, node: { instance_info: { rescue_password: 'x' }, console_enabled: true } });
    expect(events.splice(0)).toEqual(['rescue', 'console', 'clean up', 'tear down']);
    await begin(undeploy, { driver, node: { instance_info: { hashed_rescue_password: 'x' } } });
    expect(events.splice(0)).toEqual(['rescue', 'clean up', 'tear down']);
  });
});

describe('the end of a flow', () => {
  it.each<[string, Flow, Partial<NodeRecord>, readonly string[]]>([
    ['a deployment', deploy, {}, ['event done']],
    ['manual cleaning', clean, { target_provision_state: 'manageable' }, ['event manage']],
    ['automated cleaning', clean, { target_provision_state: 'available' }, ['event done']],
    ['cleaning of a retired node', clean, { target_provision_state: 'available', retired: true }, ['event manage']],
    ['servicing', service, {}, ['event done']],
    ['a rescue', rescue, {}, ['event done']],
    ['an unrescue', unrescue, {}, ['event done']],
    ['a verification', verify, {}, ['event done']],
    ['an adoption', adopt, {}, ['event done']],
    ['an inspection', inspect, { inspection_started_at: 'x' }, ['event done']],
  ])('causes the expected event: %s', async (_, flow, node, expected) => {
    const given = flowTask({ node });
    await flow.finish(given.task);
    expect(given.events).toEqual(expected);
  });
  it.each<[string, Flow, Given, string]>([
    [
      'cleaning that cannot be torn down',
      clean,
      { driver: withDeploy({ tearDownCleaning: no('x') }) },
      `Failed to tear down from cleaning for node ${NODE_UUID}, reason: x`,
    ],
    [
      'servicing that cannot be torn down',
      service,
      { driver: withDeploy({ tearDownService: no('x') }) },
      `Failed to tear down from service for node ${NODE_UUID}, reason: x`,
    ],
    [
      'cleaning without a ramdisk, which has nothing to tear down',
      clean,
      { node: { driver_internal_info: { cleaning_disable_ramdisk: true } }, driver: withDeploy({ tearDownCleaning: no('x') }) },
      'accepted',
    ],
  ])('fails only if there is a tear-down that fails: %s', async (_, flow, given, expected) => {
    expect(await message(flow.finish(flowTask(given).task))).toBe(expected);
  });
  it('of an inspection records its time, and removes the data of the lookup', async () => {
    const { task, node } = flowTask({
      node: { inspection_started_at: 'x', driver_internal_info: { lookup_bmc_addresses: [], ...foreign({ a: 1 }) } },
    });
    await inspect.finish(task);
    expect(node()).toMatchObject({ inspection_started_at: null, inspection_finished_at: '2026-02-03T04:05:06.000000+00:00' });
    expect(node().driver_internal_info).toEqual({ a: 1 });
  });
});

describe('an abort by a client', () => {
  const abort = async (flow: Flow, state: NodeRecord['provision_state'], given: Given) => {
    const flown = flowTask({ ...given, node: { provision_state: state, ...given.node } });
    const refusal = await message(flow.abort![state]!(flown.task));
    return { ...flown, refusal };
  };
  it.each<['deploy' | 'clean', NodeRecord['provision_state'], Flow]>([
    ['deploy', 'wait call-back', deploy],
    ['deploy', 'deploy hold', deploy],
    ['clean', 'clean wait', clean],
    ['clean', 'clean hold', clean],
  ])('of %s in %s ends the flow at once, or after a step that is not abortable', async (kind, state, flow) => {
    const { events, node } = await abort(flow, state, { node: { driver_internal_info: { agent_url: 'x' } } });
    expect(events).toEqual(['event abort']);
    expect(node().last_error).toBe(`By request, the ${kind} operation was aborted`);
    expect(node().driver_internal_info).toEqual({ abort_unfinished: kind, ...(kind === 'deploy' ? {} : { agent_url: 'x' }) });
    const during = await abort(flow, state, { node: { [`${kind}_step`]: running('a', { abortable: true }) } });
    expect(during.node().last_error).toBe(
      `By request, the ${kind} operation was aborted during or after the completion of step "deploy.a"`,
    );
    const later = await abort(flow, state, { node: { [`${kind}_step`]: running('a', { abortable: false }) } });
    expect(later.events).toEqual([]);
    expect(later.node()[`${kind}_step`]).toEqual(running('a', { abortable: false, abort_after: true }));
  });
  it('of servicing makes the node active again', async () => {
    const { events, node } = await abort(service, 'service wait', { node: { last_error: 'x' } });
    expect(events).toEqual(['event fail', 'event abort']);
    expect([node().last_error, node().driver_internal_info]).toEqual([null, { abort_unfinished: 'service, active again' }]);
    const later = await abort(service, 'service hold', { node: { service_step: running('a', { abortable: false }) } });
    expect(later.events).toEqual([]);
  });
  it('of failed servicing is accepted, but not in maintenance', async () => {
    const { events, node } = await abort(service, 'service failed', { node: { last_error: 'x' } });
    expect([events, node().last_error, node().driver_internal_info]).toEqual([['event abort'], null, { abort_unfinished: 'service' }]);
    const { refusal } = await abort(service, 'service failed', { node: { maintenance: true } });
    expect(refusal).toBe(
      `Can not abort service on node "${NODE_UUID}" while it is in maintenance mode. ` +
        'Please remove the node from maintenance prior to issuing the request to abort the service operation.',
    );
  });
  it('of a rescue removes its password', async () => {
    const { events, node } = await abort(rescue, 'rescue wait', {
      node: { last_error: 'x', instance_info: { rescue_password: 'p', a: 1 } },
    });
    expect([events, node().last_error, node().instance_info]).toEqual([['event abort'], null, { a: 1 }]);
    expect(node().driver_internal_info).toEqual({ abort_unfinished: 'rescue' });
  });
  it('of an inspection asks the driver, and is refused if that fails or cannot abort', async () => {
    const node = { inspection_started_at: 'x', driver_internal_info: { agent_url: 'x', lookup_bmc_addresses: [], a: 1 } };
    const good = await abort(inspect, 'inspect wait', { node, driver: { inspect: { ...fakeInspect, abort: async () => {} } } });
    expect(good.events).toEqual(['record introspection: Inspection was aborted by request.', 'event abort']);
    expect([good.node().inspection_started_at, good.node().driver_internal_info]).toEqual([null, { a: 1 }]);
    const bad = await abort(inspect, 'inspect wait', { node, driver: { inspect: { ...fakeInspect, abort: no('x') } } });
    expect([bad.events, bad.refusal]).toEqual([['record introspection: Failed to abort inspection: x'], 'x']);
    const never = await abort(inspect, 'inspect wait', { node, driver: { inspect: { inspect: async () => done } } });
    expect([never.events, never.refusal]).toEqual([[], expect.stringMatching(/abort/)]);
  });
});

describe('the clean-up after an abort', () => {
  const cleanUp = async (flow: Flow, given: Given, variant?: string) => {
    const flown = flowTask(given);
    await flow.afterAbort!.work(flown.task, variant);
    return flown;
  };
  it.each<[string, Flow, Given, string]>([
    ['a deployment', deploy, { driver: withDeploy({}) }, 'By request, the deploy operation was aborted'],
    [
      'a deployment that cannot be cleaned up',
      deploy,
      { driver: withDeploy({ cleanUp: no('x') }) },
      'Failed to clean up deploying after aborting the operation',
    ],
    ['cleaning', clean, { driver: withDeploy({}) }, 'By request, the clean operation was aborted'],
    [
      'cleaning that cannot be torn down',
      clean,
      { driver: withDeploy({ tearDownCleaning: no('x') }) },
      'Failed to tear down cleaning after aborting the operation',
    ],
  ])('sets last_error, and removes the steps and the data of the agent: %s', async (_, flow, given, text) => {
    const { node, events } = await cleanUp(flow, { ...given, node: { driver_internal_info: { agent_url: 'x', ...foreign({ a: 1 }) } } });
    expect([node().last_error, events]).toEqual([text, []]);
    expect(node().driver_internal_info).toEqual({ a: 1, [`${flow.kind}_steps`]: null });
  });
  it('of a rescue is recorded, and takes the node into maintenance if it fails', async () => {
    const good = await cleanUp(rescue, { node: { driver_internal_info: { agent_url: 'x', ...foreign({ a: 1 }) } } });
    expect(good.events).toEqual(['record rescue: By request, the rescue operation was aborted.']);
    expect([good.node().last_error, good.node().driver_internal_info]).toEqual([null, { a: 1 }]);
    const bad = await cleanUp(rescue, { driver: { rescue: { ...fakeRescue, cleanUp: no('x') } } });
    const text = 'Failed to clean up rescue after aborting the operation';
    expect(bad.events).toEqual([`record rescue: ${text}`]);
    expect(bad.node()).toMatchObject({ last_error: text, maintenance: true, maintenance_reason: text, fault: 'rescue abort failure' });
  });
  it.each<[readonly string[], Flow]>([
    [['deploy failed'], deploy],
    [['clean failed'], clean],
    [['service failed', 'active'], service],
    [['rescue failed'], rescue],
  ])('runs only in the states %j', (states, flow) => {
    expect(flow.afterAbort!.states).toEqual(states);
  });
});

describe("an outcome of a flow's work", () => {
  it.each<[string, () => Promise<Outcome>, readonly string[], string | null]>([
    ['done', async () => done, ['event done'], null],
    ['wait', async () => wait, ['event wait'], null],
    ['wait with polls', async () => ({ kind: 'wait', pollEvery: 5 }), ['event wait', 'poll in 5'], null],
    ['failed', async () => failed('x'), ['event fail'], 'x'],
    ['a refusal', no('x'), ['event fail'], 'x'],
    ['a mistake', async () => Promise.reject(new Error('x')), ['event fail'], 'x'],
  ])('"%s" causes the expected events', async (what, work, events, error) => {
    const given = flowTask({ node: { driver_internal_info: { step_poll_every: 9 } } });
    await applyOutcome(given.task, verify, work);
    expect([given.events, given.node().last_error]).toEqual([events, error]);
    if (events[0] === 'event wait') expect(given.node().driver_internal_info).toEqual(what === 'wait' ? {} : { step_poll_every: 5 });
    expect(given.complaints.length).toBe(what === 'a mistake' ? 1 : 0);
  });
  it('is not applied if the database is unavailable', async () => {
    const given = flowTask();
    const away = new Fault('TemporaryFailure', { message: 'The database is away.' });
    await expect(applyOutcome(given.task, verify, async () => Promise.reject(away))).rejects.toBe(away);
    expect(given.events).toEqual([]);
  });
});

describe('a flow that waits', () => {
  it.each<[string, Flow, string, Partial<NodeRecord>]>([
    ['Deploy aborted as node is in maintenance mode', deploy, `Timeout reached while waiting for callback for node ${NODE_UUID}`, {}],
    [
      'Cleaning aborted as node is in maintenance mode',
      clean,
      'Timeout reached while cleaning the node. Please check if the ramdisk responsible for the cleaning is running on the node. Failed on step {}.',
      {},
    ],
    [
      'Service aborted as node is in maintenance mode',
      service,
      'Timeout reached while servicing the node. Please check if the ramdisk responsible for the servicing is running on the node. Failed on step {}.',
      {},
    ],
    ['Rescue aborted as node is in maintenance mode', rescue, 'Timeout reached while waiting for rescue ramdisk callback for node', {}],
    [
      'Inspection aborted as node is in maintenance mode',
      inspect,
      'Timeout reached while inspecting the node. Please check if the ramdisk responsible for the inspection is running on the node.',
      {},
    ],
  ])('ends with "%s", and has a reason of its own for its timeout', (inMaintenance, flow, timeout, node) => {
    expect([flow.waiting!.inMaintenance, flow.waiting!.timeout.text({ ...flowTask({ node }).node() })]).toEqual([inMaintenance, timeout]);
  });

  const LIST = [running('a'), running('b')];
  const waiting = (given: Given = {}, at: JsonObject = running('a')): FlowTask =>
    flowTask({
      ...given,
      node: {
        deploy_step: at,
        driver_internal_info: { deploy_steps: LIST, deploy_step_index: 0, steps_validated: true, step_poll_every: 7 },
        ...given.node,
      },
      driver: given.driver ?? withDeploy({ steps: [step('a'), step('b')] }),
    });
  const GOES_ON = ['stop polling', 'event resume', 'event done'];
  const wake = async (given: FlowTask, why: 'heartbeat' | 'poll' | 'silence' | 'unhold', outcome?: Outcome) => {
    await deploy.waiting!.wake(given.task, why, outcome);
    return given;
  };
  it('continues when the step has ended', async () => {
    const { events, node } = await wake(waiting(), 'heartbeat');
    expect(events).toEqual(GOES_ON);
    expect(node().deploy_step).toEqual({});
  });
  it('fails when the step fails', async () => {
    const { node, events } = await wake(waiting(), 'poll', failed('x'));
    expect([node().last_error, events]).toEqual(['x', ['event fail']]);
  });
  it.each<[string, 'heartbeat' | 'poll' | 'silence', Outcome, readonly string[]]>([
    ['a heartbeat', 'heartbeat', wait, ['step checked']],
    ['a poll', 'poll', wait, ['step checked', 'poll in 7']],
    ['a poll that changes the interval', 'poll', { kind: 'wait', pollEvery: 3 }, ['step checked', 'poll in 3']],
  ])('still waits after %s', async (_, why, outcome, expected) => {
    const { events } = await wake(waiting(), why, outcome);
    expect(events).toEqual(expected);
  });
  it('updates provision_updated_at only at polls that find progress', async () => {
    expect((await wake(waiting(), 'poll', { kind: 'wait', quiet: true })).node().provision_updated_at).toBeNull();
    expect((await wake(waiting(), 'poll', wait)).node().provision_updated_at).toBe('2026-02-03T04:05:06.000000+00:00');
    expect((await wake(waiting(), 'heartbeat', wait)).node().provision_updated_at).toBeNull();
  });
  const polled = (poll: () => Promise<Outcome>, changes: Partial<Step> = {}): FlowTask =>
    waiting({ driver: withDeploy({ steps: [step('a', { poll, ...changes }), step('b')] }) });
  it.each<[string, FlowTask, 'heartbeat' | 'poll' | 'silence', readonly string[], string | null]>([
    ['has ended', polled(async () => done), 'poll', GOES_ON, null],
    ['failed', polled(async () => failed('x')), 'poll', ['event fail'], 'x'],
    ['waits for its poll', polled(no('x')), 'heartbeat', ['step checked'], null],
    ['is polled at heartbeats too', polled(async () => done, { pollAtHeartbeat: true }), 'heartbeat', GOES_ON, null],
    ['is not polled for a silent agent', polled(no('x'), { pollAtHeartbeat: true }), 'silence', ['step checked'], null],
    ['cannot be polled', polled(no('x')), 'poll', ['event fail'], 'Deploy step deploy.a failed: x.'],
    ['runs in an agent that is silent', waiting({ driver: withDeploy({ onHeartbeat: no('x') }) }), 'silence', ['step checked'], null],
    [
      'runs in the agent, and fails',
      waiting({ driver: withDeploy({ onHeartbeat: no('deploy.a: x') }) }),
      'heartbeat',
      ['event fail'],
      'deploy.a: x',
    ],
  ])('handles a step that %s', async (_, given, why, events, error) => {
    const after = await wake(given, why);
    expect([after.events, after.node().last_error]).toEqual([events, error]);
  });
  it.each<[string, 'heartbeat' | 'poll' | 'silence', object, string | null]>([
    ['fails after a boot request', 'silence', { HTTP: '2026-02-03T04:01:00.000Z' }, 'The machine booted again while the step ran'],
    ['fails after a request by TFTP', 'silence', { TFTP: '2026-02-03T04:01:00.000Z' }, 'The machine booted again while the step ran'],
    ['waits after its own boot', 'silence', { HTTP: '2026-02-03T03:59:00.000Z' }, null],
    ['waits after a renewal of its lease', 'silence', { DHCP: '2026-02-03T04:01:00.000Z' }, null],
    ['waits if it was asked because a step is timed', 'poll', { HTTP: '2026-02-03T04:01:00.000Z' }, null],
  ])('a step in an agent that does not answer %s', async (_, why, requests, error) => {
    const contents = { store: { defaultConfigs: { ofNode: async () => [] }, boots: { requestsOf: async () => requests } } };
    const given = waiting({
      driver: withDeploy({ onHeartbeat: no('x') }),
      contents: contents as never,
      node: {
        driver_internal_info: {
          deploy_steps: LIST,
          deploy_step_index: 0,
          steps_validated: true,
          agent_last_heartbeat: '2026-02-03T04:00:00.000000',
        },
      },
    });
    const { last_error: said } = (await wake(given, why)).node();
    if (error === null) expect(said).toBeNull();
    else expect(said).toContain(error);
  });
  const reserved = (args?: object) =>
    waiting(
      { node: { driver_internal_info: { deploy_steps: [], deploy_step_index: 0, steps_validated: true } } },
      { interface: 'power', step: 'wait', priority: 0, argsinfo: {}, ...(args ? { args } : {}) },
    );
  it.each<[string, FlowTask, 'heartbeat' | 'poll' | 'silence' | 'unhold', boolean]>([
    ['for a heartbeat, at a heartbeat', reserved(), 'heartbeat', true],
    ['for a heartbeat, while the agent is silent', reserved(), 'silence', false],
    ['for some seconds, at a heartbeat', reserved({ seconds: 5 }), 'heartbeat', false],
    ['for some seconds, when they are over', reserved({ seconds: 5 }), 'poll', true],
    ['for some seconds, while the agent is silent', reserved({ seconds: 5 }), 'silence', false],
    ['for unhold, at unhold', reserved(), 'unhold', true],
  ])('handles a step that waits %s', async (_, given, why, isOver) => {
    expect((await wake(given, why)).events).toEqual(isOver ? GOES_ON : ['step checked']);
  });
  it('aborts after the end of a step that is not abortable', async () => {
    const given = waiting({ node: { provision_state: 'deploy failed' } }, running('a', { abort_after: true }));
    await wake(given, 'heartbeat');
    expect(given.events).toEqual(['event fail']);
    expect(given.node().last_error).toBe('By request, the deploy operation was aborted during or after the completion of step "deploy.a"');
    expect(Object.hasOwn(given.node().driver_internal_info, 'abort_unfinished')).toBe(false);
  });
  const agent = (agentSteps: DeployInterface['agentSteps']): FlowTask =>
    waiting({
      node: { driver_internal_info: { deploy_steps: LIST, deploy_step_index: 0 } },
      driver: withDeploy({ steps: [step('a', { priority: { deploy: 9 } })], agentSteps: agentSteps! }),
    });
  it('adds the steps of the agent', async () => {
    const given = await wake(
      agent(async () => [{ interface: 'deploy', step: 'of_agent', priority: 5, argsinfo: {} }]),
      'heartbeat',
      wait,
    );
    const { deploy_steps: steps, steps_validated: validated, deploy_step_index: index } = given.node().driver_internal_info;
    expect([(steps as { step: string }[]).map((item) => item.step), validated, index]).toEqual([['a', 'of_agent'], true, 0]);
    expect(given.events).toEqual(['step checked']);
  });
  it('asks a busy agent for its steps only at heartbeats', async () => {
    expect(
      (
        await wake(
          agent(async () => undefined),
          'heartbeat',
        )
      ).events,
    ).toEqual([]);
    expect((await wake(agent(no('x')), 'poll', wait)).events).toEqual(['step checked']);
  });
  it('fails when the agent does not report its steps', async () => {
    const { node, events } = await wake(agent(no('x')), 'heartbeat');
    expect([node().last_error, events]).toEqual(['Failed to load in-band deploy steps: x', ['power: power off', 'event fail']]);
  });
});

describe('a deployment that a conductor resumes', () => {
  const resume = async (node: Partial<NodeRecord>, steps: readonly Step[] = [step('a')]) => {
    const given = flowTask({ node, driver: withDeploy({ steps }) });
    return { given, outcome: await deploy.resume!(given.task).catch((error: unknown) => (error as Error).message) };
  };
  const lost = failed("The deploying state can't be resumed by conductor here. Moving to fail state.");
  const at = (name: string, changes: JsonObject = {}): Partial<NodeRecord> => ({
    deploy_step: running(name, changes),
    driver_internal_info: { deploy_steps: [running(name)], deploy_step_index: 0 },
  });
  it.each<[string, Partial<NodeRecord>, readonly Step[], unknown]>([
    ['which has not begun', {}, [], failed('No deploy steps returned by the driver')],
    ['between two steps', { driver_internal_info: { deploy_steps: [running('a')], deploy_step_index: 0 } }, [step('a')], done],
    ['in a resumable step', at('a'), [step('a')], done],
    ['in a step that is not resumable', at('a'), [step('a', { resumable: false })], lost],
    ['in a step of the agent', at('x'), [], wait],
    ['in a step on child nodes', at('a', { execute_on_child_nodes: true }), [step('a')], lost],
  ])('has the expected outcome: %s', async (_, node, steps, expected) => {
    expect((await resume(node, steps)).outcome).toEqual(expected);
  });
});
