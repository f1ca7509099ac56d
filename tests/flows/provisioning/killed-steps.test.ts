/**
 * The conductor's process is killed (SIGKILL) while lists of steps wait for an operator, pause before an attempt, wait before the ramdisk
 * boots, run, and boot the ramdisk. It starts again, and each list goes on. What is out of service stays so. The API and the boot service
 * are a process of their own, since a machine that finds no boot service does not boot.
 */
import { type Body, useKilledServer } from '../../support/killed-server';
import { until } from '../../support/until';

const { call, database, enrol, kill, machine, start } = useKilledServer({
  machines: 5,
  hosts: { front: 'api,boot', 'conductor-1': 'conductor' },
  options: () => ({
    DEFAULT: { enabled_inspect_interfaces: 'agent' },
    conductor: { heartbeat_timeout: 5 },
    redfish: { connection_attempts: 1, connection_retry_interval: 0 },
  }),
});
const CONDUCTOR = 'conductor-1';
const node = (uuid: string): Promise<Body> => call('GET', `/v1/nodes/${uuid}`);
const order = (uuid: string, target: string, more: object = {}) => call('PUT', `/v1/nodes/${uuid}/states/provision`, { target, ...more });
async function reach(uuid: string, state: string, more: (found: Body) => boolean = () => true): Promise<void> {
  let found: Body = {};
  const isThere = async (): Promise<boolean> => {
    found = await node(uuid);
    const { provision_state: now, last_error: error } = found;
    if (typeof error === 'string' && (now as string).endsWith('failed')) throw new Error(`${uuid} is ${now as string}: ${error}`);
    return now === state && found['reservation'] === null && more(found);
  };
  await until(`${uuid} in ${state}`, isThere).catch((error: unknown) => {
    const { provision_state: now, reservation, clean_step: at, power_state: power, driver_internal_info: info } = found;
    throw new Error(`it stays so: ${JSON.stringify({ now, reservation, at, power, info })}`, { cause: error });
  });
}
async function manageable(index: number): Promise<string> {
  const uuid = await enrol(machine(index), { automated_clean: false });
  await order(uuid, 'manage');
  await reach(uuid, 'manageable');
  return uuid;
}
const step = (name: string, more: object = {}) => ({ interface: 'power', step: name, ...more });
const METADATA = { interface: 'deploy', step: 'erase_devices_metadata' };
async function stepsOf(uuid: string): Promise<readonly string[]> {
  await database.eventsReadable();
  const { events } = (await call('GET', `/v1/events?node=${uuid}&kind=step&limit=500`)) as {
    readonly events: readonly { readonly payload: { readonly step: string } }[];
  };
  return [...new Set(events.map(({ payload }) => payload.step))];
}
const internal = ({ driver_internal_info: info }: Body): Body => info as Body;

it('lists of steps go on after kill -9, wherever it comes', async () => {
  const [confirms, retries, waits, runs, rests] = await Promise.all([0, 1, 2, 3, 4].map(manageable));
  const [broken, slow] = [machine(1), machine(3)];
  const clean = (uuid: string | undefined, ...steps: readonly object[]) => order(uuid!, 'clean', { clean_steps: steps });

  broken.faults.now = { redfish_error: ['*'] };
  await clean(confirms, step('power_off'), step('power_on', { confirm: 'Is the cable in port 2?' }), METADATA);
  await clean(retries, step('power_off', { on_failure: 'retry(20, 2)' }), METADATA);
  await clean(waits, step('power_off'), step('wait', { args: { seconds: 6 } }), METADATA);
  const until6 = { reason: 'a fan is replaced', until: new Date(Date.now() + 3_600_000).toISOString() };
  await call('PUT', `/v1/nodes/${rests!}/out_of_service`, until6);
  await reach(confirms!, 'clean hold');
  await reach(retries!, 'clean wait', ({ clean_step: at }) => (at as Body)['waits_for'] === 'retry');
  await reach(waits!, 'clean wait', ({ clean_step: at }) => (at as Body)['step'] === 'wait');
  slow.faults.now = { latency: 3000 };
  await clean(runs, step('power_on'), METADATA);
  await until('the step runs', async () => ((await node(runs!))['clean_step'] as Body)['step'] === 'power_on');
  await kill(CONDUCTOR);

  broken.faults.now = {};
  slow.faults.now = {};
  await start(CONDUCTOR);
  expect(await node(rests!)).toMatchObject({
    maintenance: true,
    maintenance_reason: expect.stringContaining('a fan is replaced') as unknown,
  });
  expect(await node(confirms!)).toMatchObject({ provision_state: 'clean hold', clean_step: { confirm: 'Is the cable in port 2?' } });
  await order(confirms!, 'unhold');
  // The ramdisk boots: killed again.
  await reach(waits!, 'clean wait', (found) => internal(found)['ramdisk_boot'] !== 'later');
  await kill(CONDUCTOR);
  await start(CONDUCTOR);
  for (const uuid of [confirms, retries, waits, runs]) {
    await reach(uuid!, 'manageable');
    expect(await node(uuid!)).toMatchObject({ last_error: null, clean_step: {}, maintenance: false });
  }
  expect(await stepsOf(confirms!)).toEqual(['power.power_off', 'power.power_on', 'deploy.erase_devices_metadata']);
  expect(await stepsOf(retries!)).toEqual(['power.power_off', 'deploy.erase_devices_metadata']);
  expect(await stepsOf(waits!)).toEqual(['power.power_off', 'power.wait', 'deploy.erase_devices_metadata']);
  expect(await stepsOf(runs!)).toEqual(['power.power_on', 'deploy.erase_devices_metadata']);
  // The agent may erase while no conductor runs: there is one certificate for each time.
  await clean(waits, METADATA);
  await reach(waits!, 'clean wait');
  await kill(CONDUCTOR);
  await start(CONDUCTOR);
  await reach(waits!, 'manageable');
  const certified = async (uuid: string | undefined) => (await call('GET', `/v1/erasures?node=${uuid!}`))['erasures'];
  for (const [uuid, count] of [[confirms, 1] as const, [retries, 1] as const, [runs, 1] as const, [waits, 2] as const])
    expect(await certified(uuid)).toHaveLength(count);
  await call('DELETE', `/v1/nodes/${rests!}/out_of_service`);
  expect(await node(rests!)).toMatchObject({ maintenance: false, maintenance_reason: null, provision_state: 'manageable' });
}, 600_000);
