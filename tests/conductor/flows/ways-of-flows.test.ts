/** Requests that flows accept, and flows that continue by themselves: what they write, and what follows. */
import { FLOWS } from '../../../conductor/flows';
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
import { CLEANINGS, DEPLOYMENTS } from '../../../conductor/core/concurrency';
import { fakeDeploy, fakeInspect, fakePower, fakeRescue } from '../../../drivers/fake/fake';
import { done, failed, wait, type Driver, type Outcome } from '../../../drivers/interfaces';
import { noopManagement, noopNetwork } from '../../../drivers/network/noop';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { flowTask } from '../../support/flow-task';
import { foreign, NODE_UUID } from '../../support/task';
import { no, step, withDeploy, type Given } from './parts';

const NOW = '2026-02-03T04:05:06.000000+00:00';

it.each<[keyof typeof FLOWS, Flow, string, object]>([
  ['adopt', adopt, 'adoption', { adopt: undefined }],
  ['clean', clean, 'cleaning', { provide: undefined, clean: CLEANINGS }],
  ['deploy', deploy, 'deploying', { deploy: DEPLOYMENTS, rebuild: DEPLOYMENTS }],
  ['inspect', inspect, 'introspection', { inspect: undefined }],
  ['rescue', rescue, 'rescue', { rescue: undefined }],
  ['service', service, 'servicing', { service: undefined }],
  ['undeploy', undeploy, 'unprovision', { delete: { ...CLEANINGS, action: 'unprovisioning' } }],
  ['unrescue', unrescue, 'rescue', { unrescue: undefined }],
  ['verify', verify, 'verify', { manage: undefined }],
])('%s has the expected error type, verbs and concurrency limits', (name, flow, errorType, limits) => {
  expect(FLOWS[name]).toBe(flow);
  expect(flow.errorType).toBe(errorType);
  expect(Object.fromEntries(Object.entries(flow.admit).map(([verb, { limit }]) => [verb, limit]))).toEqual(limits);
});

describe('an accepted request', () => {
  const AGENT = { agent_url: 'x', agent_secret_token: 's', agent_verify_ca: 'c', a: 1 };
  const admitted = async (flow: Flow, verb: keyof Flow['admit'], given: Given, args: object = {}) => {
    const { task } = flowTask({ ...given, node: { driver_internal_info: AGENT, last_error: 'old', ...given.node } });
    const { changes, internal = {} } = await flow.admit[verb]!.check(task, args);
    return { changes, internal };
  };
  const steps = [{ interface: 'deploy', step: 'a' }];
  const offered: Given = { driver: withDeploy({ steps: [step('a')] }) };
  const FORGOTTEN = { agent_url: undefined, agent_secret_token: undefined, agent_verify_ca: undefined };
  it.each<[string, Flow, keyof Flow['admit'], Given, object, object, object]>([
    [
      'cleaning',
      clean,
      'clean',
      offered,
      { clean_steps: steps, disable_ramdisk: true },
      { last_error: null, clean_step: {}, target_provision_state: 'manageable' },
      { ...FORGOTTEN, clean_steps: steps, cleaning_disable_ramdisk: true, declarative_cleaning: true },
    ],
    [
      'cleaning in the ramdisk',
      clean,
      'clean',
      offered,
      { clean_steps: steps },
      { last_error: null, clean_step: {}, target_provision_state: 'manageable' },
      { clean_steps: steps, cleaning_disable_ramdisk: false, declarative_cleaning: true },
    ],
    [
      'automated cleaning',
      clean,
      'provide',
      {},
      {},
      { last_error: null, clean_step: {} },
      { ...FORGOTTEN, clean_steps: null, declarative_cleaning: undefined },
    ],
    [
      'servicing',
      service,
      'service',
      offered,
      { service_steps: steps, disable_ramdisk: true },
      { last_error: null, service_step: {} },
      { ...FORGOTTEN, service_steps: steps, service_disable_ramdisk: true },
    ],
    [
      'servicing without steps',
      service,
      'service',
      {},
      {},
      { last_error: null, service_step: {} },
      { service_steps: [], service_disable_ramdisk: false },
    ],
    ['an inspection', inspect, 'inspect', {}, {}, { last_error: null, inspection_started_at: NOW, inspection_finished_at: null }, {}],
    ['a tear-down', undeploy, 'delete', {}, {}, { last_error: null }, FORGOTTEN],
    ['an unrescue', unrescue, 'unrescue', {}, {}, { last_error: null }, FORGOTTEN],
    ['a verification', verify, 'manage', {}, {}, { last_error: null }, {}],
    ['an adoption', adopt, 'adopt', {}, {}, { last_error: null }, {}],
    [
      'an adoption with an image',
      adopt,
      'adopt',
      { node: { instance_info: { image_source: 'x', kernel: 'k' } } },
      {},
      { last_error: null, instance_info: { image_source: 'x', kernel: 'k', image_type: 'partition' } },
      { is_whole_disk_image: false },
    ],
  ])('of %s writes the expected fields', async (_, flow, verb, given, args, changes, internal) => {
    const written = await admitted(flow, verb, given, args);
    expect(written.changes).toEqual(changes);
    expect(written.internal).toMatchObject(internal);
    for (const key of Object.keys(internal)) expect(Object.hasOwn(written.internal, key)).toBe(true);
  });
  it('of a rescue writes the password and its hash', async () => {
    const instance_info = { a: 1, rescue_password: 'old', hashed_rescue_password: 'old' };
    const { changes, internal } = await admitted(rescue, 'rescue', { node: { instance_info } }, { rescue_password: 'new' });
    expect(changes).toEqual({
      last_error: null,
      instance_info: { a: 1, rescue_password: 'new', hashed_rescue_password: expect.stringMatching(/^\$[56]\$/) as unknown },
    });
    expect(internal).toMatchObject(FORGOTTEN);
  });
  it('of a rescue is refused when the rescue interface refuses the password', async () => {
    const seen: unknown[] = [];
    const driver: Partial<Driver> = {
      rescue: { ...fakeRescue, validate: async ({ node }) => void seen.push(node.instance_info['rescue_password']) },
    };
    await admitted(rescue, 'rescue', { driver }, { rescue_password: 'new' });
    expect(seen).toEqual(['new']);
    await expect(
      admitted(
        rescue,
        'rescue',
        { driver: { rescue: { ...fakeRescue, validate: no('weak') } }, node: { instance_uuid: 'i' } },
        { rescue_password: 'new' },
      ),
    ).rejects.toMatchObject({ name: 'InstanceRescueFailure', message: expect.stringContaining('instance i') as unknown });
  });
});

describe('an inspection', () => {
  const begin = async (outcome: Outcome, more: Partial<Driver> = {}) => {
    const flown = flowTask({
      node: { driver_internal_info: { agent_url: 'x', ...foreign({ a: 1 }) } },
      driver: { inspect: { ...fakeInspect, inspect: async () => outcome }, ...more },
    });
    return { ...flown, outcome: await inspect.begin(flown.task) };
  };
  it.each([wait, failed('x')])('begins with the outcome of the driver: %j', async (outcome) => {
    const flown = await begin(outcome);
    expect(flown.outcome).toBe(outcome);
    expect(flown.node().driver_internal_info).toEqual({ a: 1 });
  });
  it('reads MAC addresses from the BMC for ports only if it is in-band', async () => {
    const looked: string[] = [];
    const management = { ...noopManagement, macAddresses: async () => (looked.push('BMC'), []) };
    const contents = { store: { ports: { byMacs: async () => [] } } } as unknown as Given['contents'];
    for (const parts of [{ inBand: true }, {}] as const) {
      const { task } = flowTask({ driver: { management, inspect: { inspect: async () => wait, ...parts } }, contents: contents! });
      await inspect.begin(task);
    }
    expect(looked).toEqual(['BMC']);
  });
  it.each<[Outcome | undefined, readonly string[]]>([
    [undefined, []],
    [wait, []],
    [done, ['event done']],
    [failed('x'), ['event fail']],
  ])('that waits handles the outcome %j of its service', async (outcome, expected) => {
    const { task, events } = flowTask();
    await inspect.waiting!.wake(task, 'poll', outcome);
    expect(events).toEqual(expected);
  });
  it.each([
    [{ byService: true }, true],
    [{}, false],
  ] as const)('with the interface %j is checked when its node is released: %p', (parts, expected) => {
    const { task } = flowTask({ driver: { inspect: { ...fakeInspect, ...parts } } });
    expect(inspect.lookWhenReleased!(task)).toBe(expected);
  });
  it('that failed cleans up the boot of the ramdisk if the driver cannot abort', async () => {
    const { task, node } = flowTask({
      node: { inspection_started_at: 'x', driver_internal_info: { agent_url: 'x', lookup_bmc_addresses: [], ...foreign({ a: 1 }) } },
      driver: { inspect: { inspect: async () => done }, boot: { ...flowTask().task.driver.boot, cleanUpRamdisk: no('no way') } },
    });
    await inspect.fail(task, 'it broke.');
    expect(node()).toMatchObject({
      last_error: `it broke. Also Failed to abort inspection on node ${NODE_UUID}, reason: no way`,
      inspection_started_at: null,
      driver_internal_info: { a: 1 },
    });
    expect(Object.keys(node().driver_internal_info)).toEqual(['a']);
  });
});

describe('a rescue', () => {
  const wake = async (finish: () => Promise<void>) => {
    const flown = flowTask({ driver: { rescue: { ...fakeRescue, finish } }, node: { driver_internal_info: { step_poll_every: 3 } } });
    await rescue.waiting!.wake(flown.task, 'heartbeat');
    return flown;
  };
  it('ends at the heartbeat of its agent', async () => {
    const called: string[] = [];
    const { events, node } = await wake(async () => void called.push('finish'));
    expect([called, events, node().driver_internal_info]).toEqual([['finish'], ['event resume', 'event done'], {}]);
  });
  it('fails with the reason of its agent when that refuses', async () => {
    const { node } = await wake(no('x'));
    expect(node().last_error).toBe('Node failed to perform rescue operation: x');
  });
  it('is the only flow whose timeout is checked at [conductor]check_rescue_state_interval', () => {
    expect(rescue.waiting!.timeout.interval).toBe('conductor.check_rescue_state_interval');
    for (const flow of [clean, deploy, service, inspect]) expect(flow.waiting!.timeout.interval).toBeUndefined();
  });
  it.each<[string, Flow, Partial<Driver>]>([
    ['rescue', rescue, { rescue: { ...fakeRescue, rescue: async () => wait } }],
    ['unrescue', unrescue, { rescue: { ...fakeRescue, unrescue: async () => wait } }],
  ])('begins with the outcome of the driver: %s', async (_, flow, driver) => {
    expect(await flow.begin(flowTask({ driver }).task)).toBe(wait);
  });
  it('keeps the data of its agent until the unrescue has ended', async () => {
    const node = { driver_internal_info: { agent_url: 'x', a: 1 } };
    const rescued = flowTask({ node });
    await rescue.finish(rescued.task);
    expect(rescued.node().driver_internal_info).toEqual(node.driver_internal_info);
    const after = flowTask({ node });
    await unrescue.finish(after.task);
    expect(after.node().driver_internal_info).toEqual({ a: 1 });
  });
});

describe('servicing that was aborted', () => {
  it.each<[string | undefined, NodeRecord['provision_state'], readonly string[]]>([
    ['active again', 'service failed', ['event abort']],
    ['active again', 'active', []],
    [undefined, 'service failed', []],
  ])('is cleaned up (variant %s, state %s)', async (variant, state, expected) => {
    const { task, events, node } = flowTask({
      node: { provision_state: state, driver_internal_info: { agent_url: 'x', ...foreign({ a: 1 }) } },
    });
    await service.afterAbort!.work(task, variant);
    expect(events).toEqual(expected);
    expect(node()).toMatchObject({ last_error: 'By request, the service operation was aborted', service_step: {} });
    expect(node().driver_internal_info).toEqual({ a: 1, service_steps: null });
  });
});
it('a hold causes the event hold, and at unhold only servicing continues at once', async () => {
  const { task, events } = flowTask();
  await applyOutcome(task, clean, async () => ({ kind: 'hold' }));
  expect(events).toEqual(['event hold']);
  expect([service.wakeAtUnhold, clean.wakeAtUnhold, deploy.wakeAtUnhold]).toEqual([true, undefined, undefined]);
});

describe('a tear-down', () => {
  const INSTANCE: Partial<NodeRecord> = {
    provision_state: 'deleting',
    target_provision_state: 'available',
    automated_clean: false,
    instance_uuid: 'i',
    instance_info: { a: 1 },
    protected: true,
    protected_reason: 'r',
    driver_internal_info: { is_whole_disk_image: true, ...foreign({ a: 1 }) },
  };
  it('removes the instance, and continues with cleaning', async () => {
    const { task, events, node } = flowTask({ node: INSTANCE });
    await undeploy.finish(task);
    expect(events).toEqual(['event clean', 'event done']);
    expect(node()).toMatchObject({ instance_uuid: null, instance_info: {}, protected: false, protected_reason: null });
    expect(node().driver_internal_info['is_whole_disk_image']).toBeUndefined();
    expect(node().driver_internal_info).toMatchObject({ a: 1 });
  });
  it('continues with a cleaning that fails if its runbook is missing', async () => {
    const { task, events, node } = flowTask({ node: INSTANCE, options: { 'conductor.automated_cleaning_step_source': 'runbook' } });
    await undeploy.finish(task);
    expect(events).toEqual(['event clean', 'event fail']);
    expect(node().last_error).toMatch(/requires runbook for automated cleaning and none was configured/);
    expect(node().instance_uuid).toBeNull();
  });
  it('continues with a cleaning by its runbook', async () => {
    const steps = [{ interface: 'deploy', step: 'a', args: {}, order: 1 }];
    const runbook = { name: 'CUSTOM_R', traits: ['CUSTOM_R'], steps, disable_ramdisk: true };
    const contents = { store: { runbooks: { find: async () => runbook } } } as unknown as NonNullable<Given['contents']>;
    const ran: string[] = [];
    const { task, events } = flowTask({
      node: { ...INSTANCE, automated_clean: true, traits: ['CUSTOM_R'] },
      options: { 'conductor.automated_cleaning_step_source': 'runbook', 'conductor.automated_cleaning_runbook': 'CUSTOM_R' },
      driver: withDeploy({ steps: [step('a', { run: async () => (ran.push('a'), done) })], prepareCleaning: no('x') }),
      contents,
    });
    await undeploy.finish(task);
    expect([events, ran]).toEqual([['event clean', 'event done'], ['a']]);
  });
  it('detaches VIFs even if the deploy interface fails', async () => {
    const detached: string[] = [];
    const network = {
      ...noopNetwork,
      vifList: async () => [{ id: 'v1' }, { id: 'v2' }],
      vifDetach: async (_: unknown, id: string) => void detached.push(id),
    };
    const { task } = flowTask({ driver: { network, deploy: { ...fakeDeploy, tearDown: no('x') } } });
    await expect(undeploy.begin(task)).rejects.toThrow('Failed to tear down: x');
    expect(detached).toEqual(['v1', 'v2']);
  });
});

describe('a verification', () => {
  const verified = async (driver: Partial<Driver>, node: Partial<NodeRecord> = {}) => {
    const flown = flowTask({ driver, node });
    return { ...flown, outcome: await verify.begin(flown.task) };
  };
  it('records the power state, the boot mode and secure boot', async () => {
    const management = {
      ...noopManagement,
      bootMode: { get: async () => 'uefi' as const, set: no('x') },
      secureBoot: { get: async () => true, set: no('x') },
    };
    const { outcome, node } = await verified({ management, power: { ...fakePower, get: async () => 'power on' } });
    expect(outcome).toEqual(done);
    expect(node()).toMatchObject({ power_state: 'power on', boot_mode: 'uefi', secure_boot: true });
  });
  it('succeeds without the boot mode and secure boot if the BMC does not report them', async () => {
    const management = { ...noopManagement, bootMode: { get: no('x'), set: no('x') }, secureBoot: { get: no('x'), set: no('x') } };
    const { outcome, node, complaints } = await verified({ management });
    expect([outcome, node().boot_mode, node().secure_boot]).toEqual([done, null, null]);
    expect(complaints.map((line) => line.split(' {')[0])).toEqual([
      expect.stringMatching(/boot mode/),
      expect.stringMatching(/secure boot/),
    ]);
  });
  it.each<[JsonObject, boolean]>([
    [{}, false],
    [{ 'deploy.a': '5' }, true],
  ])('runs steps by the priorities of verify_step_priority_override: %j', async (override, isRun) => {
    const ran: string[] = [];
    const steps = [step('a', { priority: { verify: 0 }, run: async () => (ran.push('a'), done) })];
    const { task } = flowTask({
      driver: withDeploy({ steps }),
      options: { 'conductor.verify_step_priority_override': override as Readonly<Record<string, string>> },
    });
    await verify.begin(task);
    expect(ran).toEqual(isRun ? ['a'] : []);
  });
});
