/** Which steps cleaning, servicing and deployments run, in which order, and with what preparation. */
import { clean } from '../../../conductor/flows/clean';
import { deploy } from '../../../conductor/flows/deploy';
import type { Flow } from '../../../conductor/flows/flow';
import { service } from '../../../conductor/flows/service';
import type { Outcome, Step } from '../../../drivers/interfaces';
import { done, wait } from '../../../drivers/interfaces';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { flowTask, type FlowTask } from '../../support/flow-task';
import { NODE_UUID } from '../../support/task';
import { no, running, step, withDeploy, type Given } from './parts';

const asked = (name: string, changes: JsonObject = {}): JsonObject => ({ interface: 'deploy', step: name, ...changes });
const LISTED = [
  ['clean', clean],
  ['service', service],
] as const;
/** The key of driver_internal_info. */
const withoutRamdisk = (kind: 'clean' | 'service') => (kind === 'clean' ? 'cleaning_disable_ramdisk' : 'service_disable_ramdisk');
/** A node whose client named these steps. */
const listing = (kind: 'clean' | 'service', steps: readonly JsonObject[], more: JsonObject = {}): Partial<NodeRecord> => ({
  target_provision_state: kind === 'clean' ? 'manageable' : 'active',
  driver_internal_info: { [`${kind}_steps`]: steps, ...(kind === 'clean' ? { declarative_cleaning: true } : {}), ...more },
});

/** A flow begins: what it does in order, with its outcome or its error last. */
async function begun(flow: Flow, given: Given, prepared: Outcome = done, offered: readonly Step[] = []) {
  const order: string[] = [];
  const prepare = async (): Promise<Outcome> => (order.push('prepare'), prepared);
  const steps = offered.map((item) => ({
    ...item,
    run: async (...parts: Parameters<Step['run']>): Promise<Outcome> => (order.push(item.step), item.run(...parts)),
  }));
  const flown = flowTask({
    driver: withDeploy({ steps, prepareCleaning: prepare, prepareService: prepare }),
    ...given,
  });
  const end = await flow.begin(flown.task).then(
    (outcome) => (outcome.kind === 'failed' ? `failed: ${outcome.reason}` : outcome.kind),
    (error: unknown) => `error: ${(error as Error).message}`,
  );
  return { ...flown, order: [...order, end], internal: flown.node().driver_internal_info };
}
const without = (name: string, changes: Partial<Step> = {}): Step => step(name, changes);
const inRamdisk = (name: string): Step => step(name, { requiresRamdisk: true });

describe.each(LISTED)('a list of %s steps', (kind, flow) => {
  const saved = (name: string): JsonObject => ({ interface: 'deploy', step: name, abortable: true, priority: 0 });
  it('runs in the order of the client, without a ramdisk if no step needs one', async () => {
    const { order, internal, node } = await begun(flow, { node: listing(kind, [asked('b'), asked('a')]) }, done, [
      without('a'),
      without('b'),
      without('c'),
    ]);
    expect(order).toEqual(['b', 'a', 'done']);
    expect(internal).toMatchObject({
      [`${kind}_steps`]: [saved('b'), saved('a')],
      [`${kind}_step_index`]: 2,
      [withoutRamdisk(kind)]: true,
    });
    expect(node()[`${kind}_step`]).toEqual({});
  });
  it.each<[string, Outcome, readonly string[]]>([
    ['runs before the ramdisk boots, up to the first step that needs it', wait, ['a', 'prepare', 'wait']],
    ['continues if the ramdisk is already running', done, ['a', 'prepare', 'r', 'done']],
  ])('%s', async (_, prepared, expected) => {
    const steps = [without('a'), inRamdisk('r')];
    const { order, internal } = await begun(flow, { node: listing(kind, [asked('a'), asked('r')]) }, prepared, steps);
    expect(order).toEqual(expected);
    expect(internal[withoutRamdisk(kind)] ?? false).toBe(false);
  });
  it('leaves out steps that the operator disallows', async () => {
    const options = { [`api.disallow_${kind}_steps`]: ['deploy.a'] };
    const { order } = await begun(flow, { node: listing(kind, [asked('a'), asked('b')]), options }, done, [without('a'), without('b')]);
    expect(order).toEqual(['b', 'done']);
  });
  it('stops at a hold', async () => {
    const { order, internal } = await begun(
      flow,
      { node: listing(kind, [asked('a'), { interface: 'power', step: 'hold' }, asked('b')]) },
      done,
      [without('a'), without('b')],
    );
    expect(order).toEqual(['a', 'hold']);
    expect(internal[`${kind}_step_index`]).toBe(1);
  });
  it.each<[string, readonly JsonObject[], JsonObject, readonly string[]]>([
    [
      'an unknown step',
      [asked('x')],
      { [withoutRamdisk(kind)]: true },
      [`error: Cannot ${kind} node ${NODE_UUID}: node does not support this ${kind} step: {'interface': 'deploy', 'step': 'x'}`],
    ],
    [
      'a step in the ramdisk',
      [asked('r')],
      { [withoutRamdisk(kind)]: true },
      [`error: Cannot ${kind} node ${NODE_UUID}: ${kind} step {'interface': 'deploy', 'step': 'r'} requires booting a ramdisk`],
    ],
  ])('with disable_ramdisk refuses %s', async (_, steps, internal, expected) => {
    const { order } = await begun(flow, { node: listing(kind, steps, internal) }, done, [inRamdisk('r')]);
    expect(order).toEqual(expected);
  });
  it('runs a step that needs the ramdisk if the driver boots none', async () => {
    const driver = withDeploy({ steps: [inRamdisk('r')], prepareCleaning: async () => done });
    expect((await begun(flow, { node: listing(kind, [asked('r')]), driver })).order).toEqual(['done']);
  });
  it('with disable_ramdisk runs without a valid network', async () => {
    const network = { ...flowTask().task.driver.network, validate: no('no network') };
    const steps = [without('a')];
    const given = { node: listing(kind, [asked('a')], { [withoutRamdisk(kind)]: true }), driver: { ...withDeploy({ steps }), network } };
    expect((await begun(flow, given)).order).toEqual(['done']);
  });
  it('fails with its step, which the reason names only once', async () => {
    const failing = (reason: string) => begun(flow, { node: listing(kind, [asked('a')]) }, done, [without('a', { run: no(reason) })]);
    const { order } = await failing('x');
    expect(order).toEqual([
      'a',
      `failed: Node ${NODE_UUID} failed step {'interface': 'deploy', 'step': 'a', 'abortable': True, 'priority': 0}: x`,
    ]);
    expect((await failing('deploy.a: x')).order).toEqual(['a', 'failed: deploy.a: x']);
  });

  const wakeUp = async (given: FlowTask): Promise<FlowTask> => {
    await flow.waiting!.wake(given.task, 'heartbeat');
    return given;
  };
  it("runs a step of the agent at the agent's first heartbeat", async () => {
    const agentSteps = async () => [{ interface: 'deploy', step: 'of_agent', priority: 5, argsinfo: {} }];
    const ran: string[] = [];
    const runAgentStep = async (_: unknown, __: unknown, { step: name }: { readonly step: string }) => (ran.push(name), wait);
    const { events, node } = await wakeUp(
      flowTask({ node: listing(kind, [asked('of_agent')]), driver: withDeploy({ agentSteps, runAgentStep }) }),
    );
    expect([events, ran]).toEqual([['event resume', 'event wait'], ['of_agent']]);
    expect(node()).toMatchObject({ [`${kind}_step`]: { step: 'of_agent' }, driver_internal_info: { [`${kind}_step_index`]: 0 } });
  });
  it('fails when the agent does not report its steps', async () => {
    const { node } = await wakeUp(flowTask({ node: listing(kind, []), driver: withDeploy({ agentSteps: no('x') }) }));
    expect(node().last_error).toBe(`Node failed to start the first ${kind === 'clean' ? 'cleaning' : 'service'} step: x`);
  });
  it('asks the agent for its steps only once', async () => {
    const { events } = await wakeUp(
      flowTask({
        node: { ...listing(kind, [running('a')], { [`${kind}_step_index`]: 0 }), [`${kind}_step`]: running('a') },
        driver: withDeploy({ steps: [step('a')], agentSteps: no('x') }),
      }),
    );
    expect(events).toEqual(
      ['stop polling', 'event resume', 'event done'].map((item) => (kind === 'clean' ? item.replace('done', 'manage') : item)),
    );
  });
});

describe('servicing without an agent', () => {
  it('fails at an unknown step only when it reaches that step', async () => {
    const node = listing('service', [asked('a'), { ...asked('x'), args: { b: 1 } }]);
    const { order, internal } = await begun(service, { node, driver: withDeploy({ steps: [without('a')] }) });
    expect(order).toEqual([
      `failed: Node ${NODE_UUID} failed step {'interface': 'deploy', 'step': 'x', 'args': {'b': 1}, 'abortable': False, 'priority': 0}: ` +
        'neither the driver nor an agent has such a step',
    ]);
    expect(internal).toMatchObject({ service_disable_ramdisk: true, service_step_index: 1 });
  });
});

describe('automated cleaning', () => {
  const node: Partial<NodeRecord> = { target_provision_state: 'available', automated_clean: true };
  const offered = [
    step('low', { priority: { clean: 1 } }),
    step('off', { priority: { clean: 0 } }),
    step('high', { priority: { clean: 9 } }),
  ];
  it.each<[string, Given['options'], readonly string[]]>([
    ['by their priorities', {}, ['prepare', 'high', 'low', 'done']],
    [
      'by the operator’s priorities',
      { 'conductor.clean_step_priority_override': { 'deploy.off': '5' } },
      ['prepare', 'high', 'off', 'low', 'done'],
    ],
    ['except those that are disallowed', { 'api.disallow_clean_steps': ['deploy.high'] }, ['prepare', 'low', 'done']],
  ])('runs the steps of the driver %s', async (_, options, expected) => {
    expect((await begun(clean, { node, options: options! }, done, offered)).order).toEqual(expected);
  });
  it('does nothing to the machine if it is off', async () => {
    const { order, internal } = await begun(clean, { node: { ...node, automated_clean: false } }, done, offered);
    expect([order, internal]).toEqual([['done'], { cleaning_disable_ramdisk: true }]);
  });
  it.each<[string, readonly JsonObject[] | undefined, readonly string[]]>([
    [
      'asks an agent that is already running for its steps',
      [{ interface: 'deploy', step: 'of_agent', priority: 5, argsinfo: {} }],
      ['of_agent', 'wait'],
    ],
    ['waits for a busy agent', undefined, ['wait']],
  ])('%s', async (_, agentSteps, expected) => {
    const ran: string[] = [];
    const driver = withDeploy({
      prepareCleaning: async () => ({ kind: 'done', agentRunning: true }),
      agentSteps: (async () => agentSteps) as never,
      runAgentStep: async (_task, _kind, { step: name }) => (ran.push(name), wait),
    });
    const { order } = await begun(clean, { node, driver });
    expect([...ran, ...order]).toEqual(expected);
  });
});

describe('a deployment', () => {
  it('inserts the steps of an agent that is already running after the current step', async () => {
    const ran: string[] = [];
    const driver = withDeploy({
      steps: [
        step('boot', { priority: { deploy: 9 }, run: async () => ({ kind: 'done', agentRunning: true }) }),
        step('last', { priority: { deploy: 1 }, run: async () => (ran.push('last'), done) }),
      ],
      agentSteps: async () => [{ interface: 'deploy', step: 'of_agent', priority: 5, argsinfo: {} }],
      runAgentStep: async (_task, _kind, { step: name }) => (ran.push(name), done),
    });
    const { order, internal } = await begun(deploy, { driver });
    expect([...ran, ...order]).toEqual(['of_agent', 'last', 'done']);
    expect(internal).toMatchObject({ steps_validated: true, deploy_step_index: 3 });
  });
  it('waits for a busy agent', async () => {
    const driver = withDeploy({
      steps: [step('boot', { priority: { deploy: 9 }, run: async () => ({ kind: 'done', agentRunning: true }) })],
      agentSteps: async () => undefined,
    });
    expect((await begun(deploy, { driver })).order).toEqual(['wait']);
  });
  it('fails when neither driver nor agent has a step that the client requested', async () => {
    const node = { driver_internal_info: { user_deploy_steps: [{ interface: 'deploy', step: 'x', args: {}, priority: 5 }] } };
    const flown = flowTask({
      node: {
        ...node,
        deploy_step: running('a'),
        driver_internal_info: { ...node.driver_internal_info, deploy_steps: [running('a')], deploy_step_index: 0 },
      },
      driver: withDeploy({ steps: [step('a', { priority: { deploy: 9 } })], agentSteps: async () => [] }),
    });
    await deploy.waiting!.wake(flown.task, 'heartbeat');
    expect(flown.node().last_error).toMatch(
      new RegExp(`^Failed to validate the final deploy steps list for node ${NODE_UUID}: .*node does not support this deploy step.*'x'`),
    );
    expect(flown.events.at(-1)).toBe('event fail');
  });
});
