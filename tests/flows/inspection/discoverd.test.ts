/**
 * An external introspection service inspects: how its node waits, continues, fails, is aborted, times out, and changes conductors
 * meanwhile.
 */
import { discoverdInspect, discoverdService } from '../../../drivers/agent/discoverd';
import type { NodeRecord } from '../../../model/records';
import { testClock } from '../../support/clock';
import { conductorOptions, HARDWARE, started, type Started } from '../../support/conductor';
import { interfacesOf, newMachine, type Machine } from '../../support/machine';
import { useDatabase } from '../../support/database';
import { startIntrospectionService, type IntrospectionService, type ServiceReply } from '../../support/introspection-service';
import { settled } from '../../support/settled';
import { until } from '../../support/until';
import { servicesOf } from '../../support/services';

const clock = testClock();
const database = useDatabase({ clock });
const ends: (() => Promise<void>)[] = [];
let service: IntrospectionService;
beforeEach(async () => {
  service = await startIntrospectionService();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await service.shut();
  await database.clear();
});

async function start(given: Readonly<Record<string, unknown>> = {}, machine: Machine = newMachine()): Promise<Started> {
  const options = {
    ...conductorOptions({
      'DEFAULT.enabled_inspect_interfaces': ['discoverd', 'test'],
      'DEFAULT.enabled_hardware_types': ['test-hardware'],
    }),
    'discoverd.enabled': true,
    'discoverd.service_url': service.url,
    // The power synchronisation would clear the errors of nodes whose BMC answers.
    'conductor.sync_power_state_interval': 0,
    ...given,
  };
  const introspection = discoverdService(options);
  ends.push(async () => introspection?.close());
  const interfaces = interfacesOf(machine);
  const nowhere = { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} };
  const one = await started(database.store(), clock, {
    machine,
    options,
    rooms: {
      connections: { ipmi: nowhere, redfish: nowhere, services: servicesOf(), ...(introspection ? { introspection } : {}) },
      interfaces: { ...interfaces, inspect: { ...interfaces.inspect, discoverd: discoverdInspect } },
      hardwareTypes: { ...HARDWARE, 'test-hardware': { ...HARDWARE['test-hardware']!, inspect: ['discoverd', 'test'] } },
    },
  });
  ends.push(() => one.conductor.stop());
  return one;
}
const now = (uuid: string): Promise<NodeRecord> => database.store().nodes.find(uuid);
const manageable = { provision_state: 'manageable', power_state: 'power off' } as const;
/** A node whose inspection was requested from the service, if the service answers. */
async function inspecting(value: Started, changes: Parameters<Started['enrol']>[0] = {}): Promise<string> {
  const { uuid } = await value.enrol({ ...manageable, ...changes });
  await value.conductor.provision(uuid, 'inspect', {});
  await settled(value.conductor);
  return uuid;
}
/** Lets so many seconds pass, a round of periodic work at a time. */
async function pass(value: Started, seconds: number): Promise<void> {
  for (let gone = 0; gone < seconds; gone += 66) {
    await clock.advance(66);
    await settled(value.conductor);
  }
}

it('starts the introspection at once, waits without a reservation, finishes with the service, and does not touch the machine', async () => {
  const one = await start();
  const uuid = await inspecting(one);
  expect(service.asked).toEqual([`start ${uuid}`]);
  const waiting = await now(uuid);
  expect(waiting).toMatchObject({ provision_state: 'inspect wait', target_provision_state: 'manageable', reservation: null });
  expect(waiting.driver_internal_info).toMatchObject({ discoverd_asked: waiting.inspection_started_at });
  await pass(one, 66);
  expect(service.asked).toEqual([`start ${uuid}`, `status ${uuid}`]);
  expect(await now(uuid)).toMatchObject({ provision_state: 'inspect wait', reservation: null, revision: waiting.revision });
  service.answers.set('status', { body: { finished: true, error: null } });
  await pass(one, 66);
  const after = await now(uuid);
  expect(after).toMatchObject({ provision_state: 'manageable', target_provision_state: null, last_error: null, reservation: null });
  expect(after.inspection_started_at).toBeNull();
  expect(after.inspection_finished_at).not.toBeNull();
  expect(Object.keys(after.driver_internal_info)).not.toContain('discoverd_asked');
  expect(one.machine.orders).toEqual([]);
  await pass(one, 132);
  expect(service.asked).toHaveLength(3);
});

it.each([
  [
    'when it refuses',
    'start',
    { status: 400, body: { error: { message: 'Failed validation of power interface' } } },
    'Failed to start inspection: Failed validation of power interface',
  ],
  [
    'when it fails',
    'status',
    { body: { finished: true, error: 'The following problems encountered: no disks' } },
    'discoverd inspection failed: The following problems encountered: no disks',
  ],
] as const)('records the reason of the service %s, and does not abort there', async (_, verb, answer, text) => {
  service.answers.set('status', { status: 404, body: { error: { message: 'not found' } } });
  service.answers.set(verb, answer);
  const one = await start();
  const uuid = await inspecting(one);
  if (verb === 'status') await pass(one, 66);
  expect(await now(uuid)).toMatchObject({
    provision_state: 'inspect failed',
    last_error: text,
    reservation: null,
    inspection_started_at: null,
  });
  expect(service.asked.filter((what) => what.startsWith('abort'))).toEqual([]);
  // The node can be inspected again, whatever the last inspection left.
  service.answers.clear();
  await one.conductor.provision(uuid, 'inspect', {});
  await settled(one.conductor);
  expect(await now(uuid)).toMatchObject({ provision_state: 'inspect wait', last_error: null });
  expect(service.asked.at(-1)).toBe(`start ${uuid}`);
});

it('asks an unavailable service again, at the start and later', async () => {
  await service.shut();
  const one = await start();
  const uuid = await inspecting(one);
  await pass(one, 132);
  expect(await now(uuid)).toMatchObject({ provision_state: 'inspect wait', last_error: null, reservation: null });
  await service.open();
  await pass(one, 66);
  expect(service.asked).toEqual([`start ${uuid}`]);
  await service.shut();
  await pass(one, 132);
  expect(await now(uuid)).toMatchObject({ provision_state: 'inspect wait', last_error: null });
  await service.open();
  service.answers.set('status', { body: { finished: true, error: null } });
  await pass(one, 66);
  expect(await now(uuid)).toMatchObject({ provision_state: 'manageable', last_error: null });
  expect(service.asked).toEqual([`start ${uuid}`, `status ${uuid}`]);
});

it('asks an unavailable service about one node only, and an available one about all nodes', async () => {
  const one = await start({ 'conductor.periodic_max_workers': 1 });
  const uuids = [await inspecting(one), await inspecting(one), await inspecting(one)];
  await service.shut();
  const complaints = one.complaints.length;
  await pass(one, 66);
  expect(one.complaints.length).toBe(complaints + 1);
  await service.open();
  service.answers.set('status', { body: { finished: true, error: null } });
  await pass(one, 66);
  for (const uuid of uuids) expect(await now(uuid)).toMatchObject({ provision_state: 'manageable' });
});

it.each([
  ['aborts', { status: 202 }, ''],
  ['does not know it', { status: 404, body: { error: { message: 'not found' } } }, ''],
  [
    'does not abort',
    { status: 500, body: { error: { message: 'oops' } } },
    /\. Also Failed to abort inspection on node .*, reason: .*did not abort: HTTP status 500: oops/,
  ],
])('fails an inspection that takes too long, with a service that %s', async (_, answer, also) => {
  service.answers.set('abort', answer);
  const one = await start({ 'conductor.inspect_wait_timeout': 300 });
  const uuid = await inspecting(one);
  await pass(one, 396);
  const { provision_state: state, last_error: text } = await now(uuid);
  expect(state).toBe('inspect failed');
  expect(text).toMatch(/^Timeout reached while inspecting the node\./);
  if (also !== '') expect(text).toMatch(also);
  else expect(text).not.toContain('Also');
  expect(service.asked.filter((what) => what.startsWith('abort'))).toEqual([`abort ${uuid}`]);
});

describe('abort', () => {
  it('ends the inspection at the service too', async () => {
    const one = await start();
    const uuid = await inspecting(one);
    await one.conductor.provision(uuid, 'abort', {});
    await settled(one.conductor);
    expect(service.asked.at(-1)).toBe(`abort ${uuid}`);
    expect(await now(uuid)).toMatchObject({ provision_state: 'inspect failed', last_error: 'Inspection was aborted by request.' });
    const asked = service.asked.length;
    await pass(one, 66);
    expect(service.asked).toHaveLength(asked);
  });
  it('is refused while the service does not abort, and the node still waits', async () => {
    const one = await start();
    const uuid = await inspecting(one);
    await service.shut();
    await expect(one.conductor.provision(uuid, 'abort', {})).rejects.toThrow(/the introspection service did not abort/);
    expect(await now(uuid)).toMatchObject({ provision_state: 'inspect wait', reservation: null });
  });
});

it('does not ask about a node in maintenance', async () => {
  const one = await start();
  const uuid = await inspecting(one);
  await database.store().nodes.update(uuid, { maintenance: true });
  service.answers.set('status', { body: { finished: true, error: 'x' } });
  await pass(one, 132);
  expect(service.asked).toEqual([`start ${uuid}`]);
  await database.store().nodes.update(uuid, { maintenance: false });
  await pass(one, 66);
  expect(await now(uuid)).toMatchObject({ provision_state: 'inspect failed' });
});

it('refuses a callback that comes to the API itself', async () => {
  const one = await start();
  const uuid = await inspecting(one);
  const inventory = { interfaces: [{ name: 'e', mac_address: '52:54:00:00:00:01' }], cpu: { architecture: 'x86_64', count: 1 } };
  await expect(one.conductor.continueInspection({ nodeUuid: uuid, macs: [] }, inventory, {})).rejects.toThrow(
    'Resource could not be found.',
  );
  expect(await now(uuid)).toMatchObject({ provision_state: 'inspect wait', reservation: null, properties: {} });
});

it.each([
  ['asked', true],
  ['not yet asked', false],
])('continues at another conductor after one died, with the service %s', async (_, isAsked) => {
  if (!isAsked) await service.shut();
  const first = await start({ 'DEFAULT.host': 'a' });
  const uuid = await inspecting(first);
  await ends.pop()!();
  const second = await start({ 'DEFAULT.host': 'b' });
  if (!isAsked) await service.open();
  await pass(second, 66);
  expect(service.asked).toEqual(isAsked ? [`start ${uuid}`, `status ${uuid}`] : [`start ${uuid}`]);
  service.answers.set('status', { body: { finished: true, error: null } });
  await pass(second, 66);
  expect(await now(uuid)).toMatchObject({ provision_state: 'manageable' });
});

it('ignores a late status of an inspection that has ended', async () => {
  const one = await start();
  const uuid = await inspecting(one);
  let answer: (said: ServiceReply) => void = () => {};
  const late = new Promise<ServiceReply>((resolve) => {
    answer = resolve;
  });
  service.answers.set('status', late);
  await clock.advance(66);
  await until('a question for its status', () => service.asked.includes(`status ${uuid}`));
  await one.conductor.provision(uuid, 'abort', {});
  await one.conductor.provision(uuid, 'inspect', {});
  answer({ body: { finished: true, error: 'of the one before' } });
  await settled(one.conductor);
  expect(await now(uuid)).toMatchObject({ provision_state: 'inspect wait', last_error: null });
});

it('runs many inspections at once with a limited number of concurrent requests', async () => {
  const one = await start();
  const uuids: string[] = [];
  for (let count = 0; count < 100; count++) uuids.push((await one.enrol(manageable)).uuid);
  for (const uuid of uuids)
    await one.conductor
      .provision(uuid, 'inspect', {})
      .catch(() => one.conductor.idle().then(() => one.conductor.provision(uuid, 'inspect', {})));
  await settled(one.conductor);
  expect(new Set(service.asked)).toEqual(new Set(uuids.map((uuid) => `start ${uuid}`)));
  expect(service.most()).toBeLessThanOrEqual(16);
  service.answers.set('status', { body: { finished: true, error: null } });
  await pass(one, 66);
  const states = await Promise.all(uuids.map(async (uuid) => (await now(uuid)).provision_state));
  expect([...new Set(states)]).toEqual(['manageable']);
});

it('is refused if [discoverd] is disabled; an invalid service_url prevents the start', async () => {
  const one = await start({ 'discoverd.enabled': false });
  const { uuid } = await one.enrol(manageable);
  await expect(one.conductor.provision(uuid, 'inspect', {})).rejects.toThrow(
    /Inspection by discoverd is disabled: it needs \[discoverd\]enabled = true/,
  );
  expect(await now(uuid)).toMatchObject({ provision_state: 'manageable', reservation: null });
  for (const url of [null, 'nowhere', 'ftp://192.0.2.1'])
    await expect(start({ 'DEFAULT.host': 'other', 'discoverd.service_url': url })).rejects.toThrow(
      /^Driver, hardware type or interface discoverd could not be loaded\. Reason: \[discoverd\]/,
    );
  // Without the interface among the enabled ones, its options are not read.
  await start({ 'DEFAULT.host': 'other', 'discoverd.service_url': null, 'DEFAULT.enabled_inspect_interfaces': ['test'] });
});
