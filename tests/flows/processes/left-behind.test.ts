/**
 * Work that a conductor left unfinished, because it ended or could not write, is found by periodic checks, without any message about it.
 */
import { Fault } from '../../../model/errors';
import { createOwnership } from '../../../conductor/runtime/ownership';
import { type Started } from '../../support/conductor';
import { useConductor } from '../../support/use-conductor';

const { after, clock, start } = useConductor();
let one: Started;
beforeEach(async () => {
  one = await start();
});
/** Waits for periodic work that has 25 minutes of the clock. */
const eventually = (is: () => boolean | Promise<boolean>): Promise<void> => after(1500, is);

it('a power change that nobody continues is ended with an error', async () => {
  const { uuid } = await one.enrol({ provision_state: 'active', target_power_state: 'power off' });
  const left = async (): Promise<boolean> => (await one.node(uuid)).target_power_state === null;
  await eventually(left);
  expect(await one.node(uuid)).toMatchObject({
    target_power_state: null,
    last_error: 'Pending power operation was aborted due to conductor restart',
  });
});

it('a resumed flow ends a pending power change without an error', async () => {
  const { uuid } = await one.enrol({ provision_state: 'unrescuing', target_provision_state: 'active', target_power_state: 'power on' });
  await eventually(async () => (await one.node(uuid)).provision_state === 'active');
  expect(await one.node(uuid)).toMatchObject({ provision_state: 'active', target_power_state: null, last_error: null });
});

it.each([
  ['deploying', 'active', '{"step":"write"}'],
  ['unrescuing', 'active', '{}'],
] as const)('the log of a resumed flow in %s names no step that an earlier flow left', async (from, to, fields) => {
  await one.enrol({
    provision_state: from,
    target_provision_state: to,
    clean_step: { step: 'erase', interface: 'deploy' },
    deploy_step: from === 'deploying' ? { step: 'write', interface: 'deploy' } : {},
  });
  const line = (): string | undefined => one.complaints.find((text) => text.includes('its flow resumes here'));
  await eventually(() => line() !== undefined);
  expect(line()).toBe(`a conductor left the node in the state ${from}: its flow resumes here ${fields}`);
});

it.each([
  ['clean', 'clean failed', 'clean failed', 'tearDownCleaning'],
  ['deploy', 'deploy failed', 'deploy failed', 'cleanUp'],
  ['rescue', 'rescue failed', 'rescue failed', 'clean up rescue'],
  ['service', 'service failed', 'service failed', 'tearDownService'],
  ['service, active again', 'service failed', 'active', 'tearDownService'],
  ['service', 'active', 'active', 'tearDownService'],
  ['deploy', 'active', 'active', undefined],
] as const)('an unfinished abort of %s in "%s" is cleaned up', async (flow, from, to, order) => {
  const { uuid } = await one.enrol({ provision_state: from, power_state: 'power on', driver_internal_info: { abort_unfinished: flow } });
  one.machine.power = 'power on';
  await eventually(async () => (await one.node(uuid)).driver_internal_info.abort_unfinished === undefined);
  expect(await one.node(uuid)).toMatchObject({ provision_state: to, reservation: null });
  if (order) expect(one.machine.orders).toContain(order);
  else expect(one.machine.orders).toEqual([]);
});

it('a step that is no longer polled is polled again', async () => {
  const running = { step: 'wait', interface: 'power', priority: 10, args: { seconds: 20 } };
  const { uuid } = await one.enrol({
    provision_state: 'clean wait',
    target_provision_state: 'manageable',
    provision_updated_at: new Date(clock.now()).toISOString(),
    clean_step: running,
    driver_internal_info: { clean_steps: [running], clean_step_index: 0, step_poll_every: 20, cleaning_disable_ramdisk: true },
  });
  await eventually(async () => (await one.node(uuid)).provision_state === 'manageable');
  expect(await one.node(uuid)).toMatchObject({ provision_state: 'manageable', last_error: null });
});

it('a share that could not be taken over is taken over at the next call', async () => {
  const share = createOwnership(
    'here',
    async () => ({ version: '1:1', conductors: [] }),
    () => false,
  );
  let done = 0;
  const take = async (): Promise<void> => {
    done++;
  };
  await expect(share.whenConductorsChange(() => Promise.reject(new Fault('TemporaryFailure', { message: 'away' })))).rejects.toThrow(
    'away',
  );
  await share.whenConductorsChange(take);
  await share.whenConductorsChange(take);
  expect(done).toBe(1);
});
