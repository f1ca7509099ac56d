/** Lists of steps with controls on a conductor: order, conditions, retries, limits of time, words of operators, and dead conductors. */
import { done, failed, wait, type Outcome, type Step } from '../../../drivers/interfaces';
import type { JsonObject, NodeChanges, NodeRecord } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';
import { until } from '../../support/until';

const { after, clock, database, start: startWith } = useConductor();
const manageable: NodeChanges = { provision_state: 'manageable', power_state: 'power off' };
/** Steps of the vendor interface, with a record of their runs. */
function steps(behaviour: Readonly<Record<string, () => Promise<Outcome>>>, changes: Partial<Step> = {}) {
  const ran: string[] = [];
  const offered = Object.entries(behaviour).map(([name, run]): Step => ({
    step: name,
    priority: { clean: 0, service: 0 },
    requiresRamdisk: false,
    run: async () => (ran.push(name), run()),
    ...changes,
  }));
  return { ran, offered };
}
const asked = (step: string, more: JsonObject = {}): JsonObject => ({ interface: 'vendor', step, ...more });
const start = (offered: readonly Step[], machine: Partial<Machine> = {}): Promise<Started> =>
  startWith({ options: {}, machine: newMachine({ ramdisk: false, steps: offered, ...machine }) });
async function cleaning(one: Started, list: readonly JsonObject[], changes: NodeChanges = {}): Promise<string> {
  const { uuid } = await one.enrol({ ...manageable, ...changes });
  await one.conductor.provision(uuid, 'clean', { clean_steps: list });
  return uuid;
}
const rests = (one: Started, uuid: string, state: NodeRecord['provision_state']) => async (): Promise<boolean> =>
  (await one.node(uuid)).provision_state === state;
async function eventsOf(uuid: string): Promise<readonly JsonObject[]> {
  const { events } = await database.store().events.read('0-0', 500);
  return events
    .filter(({ node_uuid: node, kind }) => node === uuid && (kind === 'step' || kind === 'progress'))
    .map(({ payload }) => payload);
}
const failingTimes = (times: number) => {
  let left = times;
  return async (): Promise<Outcome> => (left-- > 0 ? failed('the BMC is busy') : done);
};

it('a step that fails runs again after a pause, and the timeline shows its attempts', async () => {
  const { ran, offered } = steps({ flaky: failingTimes(2), last: async () => done });
  const one = await start(offered);
  const uuid = await cleaning(one, [asked('flaky', { on_failure: 'retry(2, 30)' }), asked('last')]);
  await until('it waits for its next attempt', rests(one, uuid, 'clean wait'));
  expect(await one.node(uuid)).toMatchObject({ clean_step: { step: 'flaky', attempt: 2, waits_for: 'retry' } });
  await after(300, rests(one, uuid, 'manageable'));
  expect(ran).toEqual(['flaky', 'flaky', 'flaky', 'last']);
  expect(await one.node(uuid)).toMatchObject({ last_error: null, clean_step: {}, maintenance: false });
  expect((await eventsOf(uuid)).filter(({ next }) => next === 'retry')).toMatchObject([{ attempt: 1 }, { attempt: 2 }]);
});
it('a step that fails in all its attempts ends the list', async () => {
  const { ran, offered } = steps({ flaky: failingTimes(9), last: async () => done });
  const one = await start(offered);
  const uuid = await cleaning(one, [asked('flaky', { on_failure: 'retry(1, 0)' }), asked('last')]);
  await after(300, rests(one, uuid, 'clean failed'));
  expect(ran).toEqual(['flaky', 'flaky']);
  expect((await one.node(uuid)).last_error).toContain('the BMC is busy');
});
it('the list goes on after a step that may fail, and says so', async () => {
  const { ran, offered } = steps({ flaky: failingTimes(1), last: async () => done });
  const one = await start(offered);
  const uuid = await cleaning(one, [asked('flaky', { on_failure: 'continue' }), asked('last')]);
  await until('the list ends', rests(one, uuid, 'manageable'));
  expect(ran).toEqual(['flaky', 'last']);
  expect(await eventsOf(uuid)).toContainEqual({ flow: 'clean', done: 1, of: 2, step: 'vendor.flaky', result: 'failed', next: 'continue' });
});
it('a step whose condition does not hold is skipped', async () => {
  const { ran, offered } = steps({ first: async () => done, last: async () => done });
  const one = await start(offered);
  const uuid = await cleaning(
    one,
    [
      asked('first', { when: [{ field: 'traits', op: 'eq', value: 'CUSTOM_B' }] }),
      asked('last', { when: [{ field: 'traits', op: 'eq', value: 'CUSTOM_A' }] }),
    ],
    { traits: ['CUSTOM_A'] },
  );
  await until('the list ends', rests(one, uuid, 'manageable'));
  expect(ran).toEqual(['last']);
  expect(await eventsOf(uuid)).toContainEqual(
    expect.objectContaining({ step: 'vendor.first', result: 'skipped', condition: "traits eq 'CUSTOM_B'" }),
  );
});
it('a condition on a field that the node does not have is refused before anything happens', async () => {
  const { ran, offered } = steps({ first: async () => done });
  const one = await start(offered);
  const { uuid } = await one.enrol(manageable);
  const list = [asked('first', { when: [{ field: 'inventory.cpu.count', op: 'gt', value: 4 }] })];
  await expect(one.conductor.provision(uuid, 'clean', { clean_steps: list })).rejects.toMatchObject({
    status: 400,
    message: `Cannot clean node ${uuid}: clean step vendor.first: when[0].field: the node has no inventory.cpu.count`,
  });
  expect(await one.node(uuid)).toMatchObject({ provision_state: 'manageable', last_error: null });
  expect(ran).toEqual([]);
});
it('a step waits for the word of an operator, who may also abort', async () => {
  const { ran, offered } = steps({ first: async () => done, risky: async () => done });
  const one = await start(offered);
  const list = [asked('first'), asked('risky', { confirm: 'Is the backup done?' })];
  const [agreed, refused] = [await cleaning(one, list), await cleaning(one, list)];
  for (const uuid of [agreed, refused]) await until('it is on hold', rests(one, uuid, 'clean hold'));
  expect(ran).toEqual(['first', 'first']);
  expect(await one.node(agreed)).toMatchObject({ clean_step: { step: 'risky', confirm: 'Is the backup done?', waits_for: 'operator' } });
  await one.conductor.provision(agreed, 'unhold', {});
  await until('the list ends', rests(one, agreed, 'manageable'));
  expect(ran).toEqual(['first', 'first', 'risky']);
  await one.conductor.provision(refused, 'abort', {});
  await until('it is aborted', rests(one, refused, 'clean failed'));
  expect(ran).toHaveLength(3);
});
it('the conductor stops its own step after the timeout', async () => {
  const stuck: Step = {
    step: 'stuck',
    priority: { clean: 0 },
    requiresRamdisk: false,
    run: async (task) => {
      await task.clock.sleep(3_600_000, task.signal);
      return done;
    },
  };
  const { ran, offered } = steps({ last: async () => done });
  const one = await start([stuck, ...offered]);
  const uuid = await cleaning(one, [asked('stuck', { timeout: 60, on_failure: 'continue' }), asked('last')]);
  await after(300, rests(one, uuid, 'manageable'));
  expect(ran).toEqual(['last']);
});
it('a step that the machine does not end in time ends the list', async () => {
  const { offered } = steps({ slow: async () => ({ kind: 'wait', pollEvery: 10 }) }, { poll: async () => wait });
  const one = await start(offered);
  const uuid = await cleaning(one, [asked('slow', { timeout: 60, on_failure: 'retry(3)' })]);
  await after(300, rests(one, uuid, 'clean failed'));
  expect((await one.node(uuid)).last_error).toContain('it did not end within its timeout of 60 seconds, and may still run');
});

describe('after the conductor was killed', () => {
  const saved = (step: JsonObject, progress: JsonObject, internal: JsonObject = {}): NodeChanges => ({
    target_provision_state: 'manageable',
    provision_updated_at: new Date(clock.now()).toISOString(),
    clean_step: { priority: 0, abortable: true, ...step, ...progress },
    driver_internal_info: {
      clean_steps: [step, asked('last')],
      clean_step_index: 0,
      declarative_cleaning: true,
      cleaning_disable_ramdisk: true,
      ...internal,
    },
  });
  const flaky = asked('flaky', { on_failure: 'retry(2, 30)' });
  const risky = asked('risky', { confirm: 'Go on?' });
  it.each<[string, NodeRecord['provision_state'], NodeChanges, NodeRecord['provision_state'], readonly string[]]>([
    [
      'a pause before an attempt goes on',
      'clean wait',
      saved(flaky, { attempt: 2, waits_for: 'retry' }, { step_poll_every: 30 }),
      'manageable',
      ['flaky', 'last'],
    ],
    [
      'an attempt that was about to wait goes on',
      'cleaning',
      saved(flaky, { attempt: 2, waits_for: 'retry' }),
      'manageable',
      ['flaky', 'last'],
    ],
    ['an attempt that must not run twice says so', 'cleaning', saved(flaky, { attempt: 2 }), 'clean failed', []],
    ['a step that was about to ask is on hold', 'cleaning', saved(risky, { waits_for: 'operator' }), 'clean hold', []],
    [
      'a step to which an operator agreed runs',
      'clean wait',
      saved(risky, { waits_for: 'operator' }, { step_poll_every: 1 }),
      'manageable',
      ['risky', 'last'],
    ],
  ])('%s', async (_, state, changes, to, expected) => {
    const { ran, offered } = steps({ flaky: async () => done, risky: async () => done, last: async () => done });
    const one = await start(offered);
    const { uuid } = await one.enrol({ provision_state: state, ...changes });
    await after(1500, rests(one, uuid, to));
    expect(ran).toEqual(expected);
  });
  it('a conditional step is evaluated again', async () => {
    const skipped = asked('flaky', { when: [{ field: 'traits', op: 'eq', value: 'CUSTOM_B' }] });
    const { ran, offered } = steps({ flaky: async () => done, last: async () => done });
    const one = await start(offered);
    const { uuid } = await one.enrol({ provision_state: 'cleaning', ...saved(skipped, {}), clean_step: {} });
    await after(1500, rests(one, uuid, 'manageable'));
    expect(ran).toEqual(['last']);
  });
});
