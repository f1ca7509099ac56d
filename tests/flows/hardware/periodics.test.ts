/** Periodic work: silent agents, polled steps, sensors, and the periodic functions of interfaces. */
import { PERIODICS } from '../../../conductor/periodic/periodics';
import type { Interfaces, Outcome, Step } from '../../../drivers/interfaces';
import { done } from '../../../drivers/interfaces';
import { createMetrics } from '../../../server/metrics';
import type { Notification } from '../../../model/notifications';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { conductorOptions, type Started } from '../../support/conductor';
import { newMachine, type Machine } from '../../support/machine';
import { settled } from '../../support/settled';
import { useConductor } from '../../support/use-conductor';

const { after, clock, start } = useConductor();
const inState =
  ({ node }: Started, uuid: string, state: NodeRecord['provision_state']) =>
  async (): Promise<boolean> => {
    const { provision_state: now, reservation } = await node(uuid);
    return now === state && reservation === null;
  };
const times = (machine: Machine, what: string): number => machine.orders.filter((order) => order === what).length;

it('each periodic function has a unique name and its interval', () => {
  const names = PERIODICS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(Object.fromEntries(PERIODICS.map(({ name, every }) => [name, every(conductorOptions())]))).toMatchObject({
    'power synchronisation': 120,
    'power failure recovery': 300,
    'node history': 86400,
    'unfinished allocations': 60,
    'timeout of wait call-back': 60,
    'timeout of clean wait': 60,
    'timeout of service wait': 60,
    'timeout of inspect wait': 60,
    'timeout of rescue wait': 60,
    'silent agents': 60,
    sensors: 0,
  });
});

describe('a silent agent', () => {
  const erase = [{ interface: 'deploy', step: 'erase', priority: 10 }];
  const erasing = async (): Promise<{ one: Started; uuid: string }> => {
    const one = await start({ machine: newMachine({ agentSteps: erase }), options: { 'conductor.clean_callback_timeout': 700 } });
    const { uuid } = await one.enrol({ provision_state: 'manageable' });
    await one.conductor.provision(uuid, 'provide', {});
    await one.conductor.idle();
    await one.speak(uuid);
    await one.conductor.idle();
    expect(await one.node(uuid)).toMatchObject({ provision_state: 'clean wait', clean_step: { step: 'erase' } });
    return { one, uuid };
  };
  it('is asked for the status of its command', async () => {
    const { one, uuid } = await erasing();
    await after(400, inState(one, uuid, 'available'));
    expect(times(one.machine, 'outcome of erase')).toBe(1);
  });
  it('does not fail its step if it does not answer, and the timeout still applies', async () => {
    const { one, uuid } = await erasing();
    one.machine.broken.set('outcome of erase', new Error('no route'));
    const { provision_updated_at: since } = await one.node(uuid);
    await after(600, async () => times(one.machine, 'outcome of erase') >= 2);
    await one.conductor.idle();
    expect(await one.node(uuid)).toMatchObject({ provision_state: 'clean wait', provision_updated_at: since, last_error: null });
    await after(800, inState(one, uuid, 'clean failed'));
    expect((await one.node(uuid)).last_error).toContain('Timeout reached while cleaning the node');
  });
  it('is asked only at its heartbeats as long as it sends them', async () => {
    const { one, uuid } = await erasing();
    one.machine.stepOutcome = { kind: 'wait' };
    await clock.advance(250);
    await one.speak(uuid);
    await one.conductor.idle();
    await clock.advance(100);
    await one.conductor.idle();
    expect(times(one.machine, 'outcome of erase')).toBe(1);
  });
});

it('polls a step that has poll(), on any conductor; heartbeats do not end the step', async () => {
  const machine = newMachine({ ramdisk: false });
  let outcome: Outcome = { kind: 'wait' };
  const flash: Step = {
    step: 'flash',
    priority: { clean: 5 },
    resumable: true,
    run: async () => ({ kind: 'wait', pollEvery: 30 }),
    poll: async () => {
      machine.orders.push('poll');
      return outcome;
    },
  };
  machine.steps = [flash];
  const one = await start({ machine });
  const { uuid } = await one.enrol({ provision_state: 'manageable' });
  await one.conductor.provision(uuid, 'provide', {});
  await one.conductor.idle();
  await one.speak(uuid);
  await one.conductor.idle();
  expect(times(machine, 'poll')).toBe(0);
  await after(31, async () => times(machine, 'poll') === 1);
  await one.conductor.stop();
  const other = await start({ machine });
  outcome = done;
  await after(31, inState(other, uuid, 'available'));
  expect(times(machine, 'poll')).toBe(2);
});

it('runs the periodic functions of an interface on the nodes that they select', async () => {
  const machine = newMachine({ ramdisk: false, steps: [{ step: 'flash', priority: { clean: 5 }, run: async () => ({ kind: 'wait' }) }] });
  const standings: Outcome[] = [{ kind: 'wait' }, done];
  const periodics: Interfaces['vendor'][string]['periodics'] = [
    {
      name: 'flashing',
      every: () => 45,
      states: ['clean wait'],
      only: ({ clean_step: { step } }) => step === 'flash',
      run: async () => standings.shift(),
    },
  ];
  const one = await start({ machine, periodics: { vendor: periodics } });
  const { uuid } = await one.enrol({ provision_state: 'manageable' });
  const idle = await one.enrol({ provision_state: 'clean wait', target_provision_state: 'available' });
  await one.conductor.provision(uuid, 'provide', {});
  await one.conductor.idle();
  await after(50, async () => standings.length === 1);
  await one.conductor.idle();
  expect((await one.node(uuid)).provision_state).toBe('clean wait');
  await after(50, inState(one, uuid, 'available'));
  expect((await one.node(idle.uuid)).provision_state).toBe('clean wait');
});

describe('sensors', () => {
  const readings = { Temperature: { cpu: { reading_celsius: 40 } }, Fan: { one: { reading: 5, reading_units: 'RPM', health: 'OK' } } };
  const collecting = async (options: object, machine = newMachine({ sensors: readings })) => {
    const sent: Notification[] = [];
    const measured = createMetrics();
    const one = await start({
      options: { 'sensor_data.send_sensor_data': true, ...options },
      machine,
      rooms: { notifier: { wants: () => false, send: (message) => void sent.push(message) }, metrics: measured.metrics },
    });
    const scraped = async (name: string): Promise<readonly string[]> =>
      (await measured.scrape(undefined)).text.split('\n').filter((line) => line.startsWith(`${name}{`));
    const ofNodes = (): readonly JsonObject[] =>
      sent.filter(({ eventType }) => eventType.startsWith('hardware.')).map(({ payload }) => payload);
    return { one, sent, scraped, ofNodes };
  };
  it.each([
    [{}, ['active'], readings],
    [
      { 'sensor_data.enable_for_undeployed_nodes': true, 'sensor_data.data_types': ['temperature'] },
      ['active', 'idle'],
      { Temperature: readings.Temperature },
    ],
    [{ 'sensor_data.enable_for_nodes': false }, [], {}],
    [{ 'sensor_data.data_types': ['Voltage'] }, [], {}],
  ])('are sent as notifications with %j', async (options, names, payload) => {
    const { one, ofNodes, sent } = await collecting(options);
    await one.enrol({ provision_state: 'active', name: 'active' });
    await one.enrol({ provision_state: 'available', name: 'idle' });
    await one.enrol({ provision_state: 'active', name: 'kept', maintenance: true });
    await after(70, async () => sent.length >= names.length + 1);
    await settled(one.conductor);
    expect(
      ofNodes()
        .map((message) => message['node_name'])
        .sort(),
    ).toEqual(names);
    for (const message of ofNodes()) expect(message).toMatchObject({ event_type: 'hardware.test-hardware.metrics.update', payload });
    const own = sent.filter(({ eventType }) => eventType === 'ironic.metrics').map(({ payload: item }) => item);
    expect(own).toEqual([expect.objectContaining({ event_type: 'ironic.metrics.update', hostname: expect.any(String) as unknown })]);
  });

  it('are read at intervals by kind, sent once per interval, and exposed until they are unavailable or the node is deleted', async () => {
    const machine = newMachine({ sensors: readings });
    const asked = (): readonly string[] => machine.orders.filter((what) => what.startsWith('sensors')).map((what) => what.slice(9));
    const { one, ofNodes, scraped } = await collecting({}, machine);
    const { uuid } = await one.enrol({ provision_state: 'active', name: 'one' });
    for (let round = 1; round <= 12; round++) await after(66, async () => asked().length === round);
    expect(asked()[0]).toBe('Temperature,Fan');
    expect(
      asked()
        .slice(1)
        .filter((kinds) => kinds === 'Temperature').length,
    ).toBeGreaterThanOrEqual(8);
    expect(
      asked()
        .slice(1)
        .filter((kinds) => kinds === 'Temperature,Fan').length,
    ).toBeGreaterThanOrEqual(1);
    expect(ofNodes().map(({ payload }) => payload)).toEqual([readings, readings]);
    const labels = `node_uuid="${uuid}",node_name="one",instance_uuid=""`;
    expect(await scraped('baremetal_sensor_reading')).toEqual([
      `baremetal_sensor_reading{${labels},kind="fan",entity_id="",sensor_id="one",unit="rpm"} 5`,
      `baremetal_sensor_reading{${labels},kind="temperature",entity_id="",sensor_id="cpu",unit="celsius"} 40`,
    ]);
    expect(await scraped('baremetal_fan_status')).toEqual([`baremetal_fan_status{${labels},entity_id="",sensor_id="one"} 0`]);

    for (const kinds of ['Temperature', 'Temperature,Fan']) machine.broken.set(`sensors: ${kinds}`, new Error('no answer'));
    await after(66, async () => (await scraped('baremetal_sensor_reading')).length < 2);
    expect((await scraped('baremetal_sensor_reading')).join()).not.toContain('celsius');
    expect(one.complaints.join()).toContain(`During get_sensors_data, could not get sensor data for node ${uuid}. Error: `);
    await one.store.nodes.remove(uuid);
    await after(66, async () => (await scraped('baremetal_last_payload_timestamp_seconds')).length === 0);
  });

  it('of a new machine, or of one that failed, are read completely in the next round', async () => {
    const machine = newMachine({ sensors: { ...readings, Drive: { d: { health: 'OK' } } } });
    const { one, ofNodes } = await collecting({}, machine);
    const all = 'sensors: Temperature,Fan,Drive';
    machine.broken.set(all, new Error('no answer'));
    await one.enrol({ provision_state: 'active', name: 'first' });
    await after(66, async () => times(machine, all) === 1);
    machine.broken.clear();
    await after(66, async () => ofNodes().length === 1);
    expect(times(machine, all)).toBe(2);
    await one.enrol({ provision_state: 'active', name: 'second' });
    await after(66, async () => ofNodes().length === 2);
    expect(ofNodes()[1]).toMatchObject({ node_name: 'second', payload: machine.sensors });
  });

  it('of machines that were skipped at the timeout are read first in the next round; a slow machine is abandoned', async () => {
    const machine = newMachine({ sensors: readings });
    const { one, ofNodes } = await collecting({ 'sensor_data.workers': 1, 'sensor_data.wait_timeout': 30 }, machine);
    machine.stuck.set('sensors: Temperature,Fan', new Promise(() => {}));
    for (const name of ['slow', 'a', 'b']) await one.enrol({ provision_state: 'active', name });
    await after(66, async () => times(machine, 'sensors: Temperature,Fan') === 1);
    await after(34, async () => one.complaints.some((text) => text.includes('it was not read within [sensor_data]wait_timeout')));
    expect(ofNodes()).toEqual([]);
    machine.stuck.clear();
    await after(140, async () => ofNodes().length === 3);
    expect(ofNodes().map(({ node_name: name }) => name)).toEqual(['a', 'b', 'slow']);
  });
});
