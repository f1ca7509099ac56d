/** Fast track after a failure: the failed flow has forgotten its agent, whose heartbeats are refused. The next flow must boot it again. */
import { clean } from '../../../conductor/flows/clean';
import { deploy } from '../../../conductor/flows/deploy';
import type { Flow } from '../../../conductor/flows/flow';
import { inspect } from '../../../conductor/flows/inspect';
import { rescue } from '../../../conductor/flows/rescue';
import { service } from '../../../conductor/flows/service';
import { isFastTrack } from '../../../drivers/agent/fast-track';
import { done } from '../../../drivers/interfaces';
import { noopNetwork } from '../../../drivers/noop';
import type { NodeRecord } from '../../../model/records';
import type { ProvisionState } from '../../../model/states';
import { flowTask, type FlowTask } from '../../support/flow-task';
import { step, withDeploy } from './parts';

const JUST_NOW = '2026-02-03T04:05:00.000000+00:00';
const internal = { agent_url: 'https://192.0.2.9:9999', agent_secret_token: 'held', agent_last_heartbeat: '2026-02-03T04:05:00.000000' };
/** A machine that was inspected a moment ago, whose agent works. */
const nodeWith = (changes: Partial<NodeRecord>): FlowTask =>
  flowTask({
    options: { 'deploy.fast_track': true, 'conductor.automated_clean': true },
    node: {
      power_state: 'power on',
      inspection_finished_at: JUST_NOW,
      driver_internal_info: internal,
      last_error: null,
      instance_info: { rescue_password: 'a password' },
      ...changes,
    },
    driver: {
      ...withDeploy({ steps: [step('a')], tearDownCleaning: async () => {}, tearDownService: async () => {} }),
      network: { ...noopNetwork },
      power: { get: async () => 'power on', on: async () => {}, off: async () => {}, reset: async () => {} },
    },
    contents: { store: { runbooks: { find: async () => undefined } } as never },
  });

interface Failure {
  readonly state: ProvisionState;
  readonly run: (task: FlowTask['task']) => Promise<unknown>;
}
const FAILURES: Readonly<Record<string, Failure>> = {
  'a failed cleaning': { state: 'cleaning', run: (task) => clean.fail(task, 'no such file') },
  'an aborted cleaning': { state: 'clean failed', run: (task) => clean.afterAbort!.work(task) },
  'a failed deployment': { state: 'deploying', run: (task) => deploy.fail(task, 'no such image') },
  'an aborted deployment': { state: 'deploy failed', run: (task) => deploy.afterAbort!.work(task) },
  'a failed inspection': { state: 'inspecting', run: (task) => inspect.fail(task, 'a hook failed') },
  'a failed service': { state: 'servicing', run: (task) => service.fail(task, 'no such file') },
};
interface Next {
  readonly flow: Flow;
  readonly verb: keyof Flow['admit'];
  readonly state: ProvisionState;
  readonly args?: object;
}
const steps = [{ interface: 'deploy', step: 'a' }];
const FLOWS: Readonly<Record<string, Next>> = {
  clean: { flow: clean, verb: 'clean', state: 'cleaning', args: { clean_steps: steps } },
  provide: { flow: clean, verb: 'provide', state: 'cleaning' },
  deploy: { flow: deploy, verb: 'deploy', state: 'deploying' },
  inspect: { flow: inspect, verb: 'inspect', state: 'inspecting' },
  rescue: { flow: rescue, verb: 'rescue', state: 'rescuing', args: { rescue_password: 'a password' } },
  service: { flow: service, verb: 'service', state: 'servicing', args: { service_steps: steps } },
};
/** The node as the next flow finds it when it prepares the ramdisk. */
async function begun(value: FlowTask, { flow, verb, state, args = {} }: Next): Promise<void> {
  await value.task.save({ provision_state: 'manageable', maintenance: false, fault: null });
  const { changes, internal: forgotten = {} } = await flow.admit[verb]!.check(value.task, args);
  await value.task.save({ ...changes, provision_state: state });
  await value.task.saveInternal(forgotten);
}

describe.each(Object.entries(FAILURES))('after %s', (_, { state, run }) => {
  it.each(Object.entries(FLOWS))('%s boots the agent', async (_name, next) => {
    const one = nodeWith({ provision_state: state });
    await run(one.task);
    await begun(one, next);
    expect(one.node().driver_internal_info).not.toHaveProperty('agent_secret_token');
    expect(await isFastTrack(one.task)).toBe(false);
  });
});

it.each<[string, boolean]>([
  ['clean', true],
  ['provide', true],
  ['deploy', true],
  ['inspect', false],
  ['rescue', false],
  ['service', false],
])('without a failure, %s uses the running agent: %s', async (name, expected) => {
  const one = nodeWith({ provision_state: 'manageable' });
  await begun(one, FLOWS[name]!);
  if (name === 'inspect')
    await inspect.begin(Object.assign(one.task, { driver: { ...one.task.driver, inspect: { inspect: async () => done } } }));
  expect(await isFastTrack(one.task)).toBe(expected);
});
