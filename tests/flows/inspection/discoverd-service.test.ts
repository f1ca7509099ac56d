/** The inspect interface discoverd and our introspection service in one process: each takes the node when the other does not hold it. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createIntrospectionApi } from '../../../api/introspection/server';
import { createRouter } from '../../../conductor/rpc/router';
import { discoverdInspect, discoverdService } from '../../../drivers/agent/discoverd';
import { silentLog } from '../../../model/log';
import { silentMetrics } from '../../../model/metrics';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { testClock } from '../../support/clock';
import { conductorOptions, HARDWARE, started, type Started } from '../../support/conductor';
import { interfacesOf, newMachine } from '../../support/machine';
import { useDatabase } from '../../support/database';
import { settled } from '../../support/settled';
import { servicesOf } from '../../support/services';

const clock = testClock();
const database = useDatabase({ clock });
const MAC = '52:54:00:00:00:01';
const REPORT = {
  inventory: {
    interfaces: [{ name: 'e', mac_address: MAC, ipv4_address: '192.0.2.5' }],
    cpu: { architecture: 'x86_64', count: 4 },
    memory: { physical_mb: 2048 },
  },
};

let one: Started;
let server: Server;
let client: ReturnType<typeof discoverdService>;
let uuid = '';
beforeEach(async () => {
  server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const options = {
    ...conductorOptions({ 'DEFAULT.enabled_inspect_interfaces': ['discoverd'], 'DEFAULT.enabled_hardware_types': ['test-hardware'] }),
    'discoverd.enabled': true,
    'discoverd.service_url': `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    'conductor.inspect_wait_timeout': 300,
    'conductor.sync_power_state_interval': 0,
  };
  client = discoverdService(options);
  const machine = newMachine();
  const interfaces = interfacesOf(machine);
  const nowhere = { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} };
  one = await started(database.store(), clock, {
    machine,
    options,
    rooms: {
      connections: { ipmi: nowhere, redfish: nowhere, services: servicesOf(), introspection: client! },
      interfaces: { ...interfaces, inspect: { discoverd: discoverdInspect } },
      hardwareTypes: { 'test-hardware': { ...HARDWARE['test-hardware']!, inspect: ['discoverd'] } },
    },
  });
  const { conductor, store } = one;
  const rooms = { store, options, log: silentLog, clock, metrics: silentMetrics };
  const answer = createIntrospectionApi({ ...rooms, conductor: createRouter({ ...rooms, options, here: conductor }) });
  server.on('request', (request, response) => {
    answer(request, response);
  });
  ({ uuid } = await one.enrol({ provision_state: 'manageable', power_state: 'power off' }));
  await conductor.createPort({ uuid: '00000000-0000-4000-8000-00000000000a', node_uuid: uuid, address: MAC });
  await conductor.provision(uuid, 'inspect', {});
  await settled(conductor);
  expect(await introspection()).toMatchObject({ state: 'waiting' });
  expect(machine.orders).toEqual(['boot device pxe once', 'power on']);
});
afterEach(async () => {
  await one.conductor.stop();
  await client!.close();
  await new Promise((done) => {
    server.close(done);
    server.closeAllConnections();
  });
  await database.clear();
});

const node = (): Promise<NodeRecord> => one.node(uuid);
const introspection = async (): Promise<JsonObject> => (await one.store.introspections.find(uuid)) as unknown as JsonObject;
async function pass(seconds: number): Promise<void> {
  for (let gone = 0; gone < seconds; gone += 66) {
    await clock.advance(66);
    await settled(one.conductor);
  }
}

it('a finished introspection makes the node manageable', async () => {
  expect(await one.conductor.continueIntrospection(REPORT)).toEqual({ uuid });
  await settled(one.conductor);
  await pass(66);
  expect(await introspection()).toMatchObject({ state: 'finished', error: null });
  expect(await node()).toMatchObject({ provision_state: 'manageable', last_error: null, reservation: null, power_state: 'power off' });
  expect((await node()).properties).toMatchObject({ cpu_arch: 'x86_64', cpus: 4 });
});

it('an abort of the inspection aborts the introspection, which powers the machine off once the node is free', async () => {
  await one.conductor.provision(uuid, 'abort', {});
  await settled(one.conductor);
  await pass(66);
  expect(await introspection()).toMatchObject({ state: 'error', error: 'Canceled by operator' });
  expect(await node()).toMatchObject({ provision_state: 'inspect failed', reservation: null, power_state: 'power off' });
  expect(one.machine.power).toBe('power off');
  expect((await one.store.history.list({ where: { node_uuid: uuid } })).map(({ event }) => event)).toContain(
    'Inspection was aborted by request.',
  );
  await one.conductor.provision(uuid, 'inspect', {});
  await settled(one.conductor);
  expect(await node()).toMatchObject({ provision_state: 'inspect wait' });
  expect(await introspection()).toMatchObject({ state: 'waiting', error: null });
});

it('an inspection that times out is aborted at the service, too', async () => {
  await pass(396);
  expect(await introspection()).toMatchObject({ state: 'error', error: 'Canceled by operator' });
  expect(await node()).toMatchObject({ provision_state: 'inspect failed', reservation: null });
  expect(one.machine.power).toBe('power off');
  expect(one.complaints.join('\n')).not.toContain('did not abort');
});
