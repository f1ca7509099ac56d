import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { loadDocument } from '../../../api/schema/document';
import { startOwnServer, type OwnServer } from '../../support/cluster';
import { startWholeServer, type Answer, type WholeServer } from '../../support/whole-server';

let database: OwnServer;
let whole: WholeServer;
let node: string;

beforeAll(async () => {
  database = await startOwnServer();
  whole = await startWholeServer(database.connection, {
    machines: 2,
    options: {
      'DEFAULT.enabled_hardware_types': ['redfish', 'fake-hardware'],
      'recorder.enabled': true,
      'healthcheck.enabled': true,
      'conductor.heartbeat_interval': 1,
      'conductor.heartbeat_timeout': 20,
    },
  });
  node = await whole.enrol(whole.fleet.machines[0]!);
});
afterAll(async () => {
  await whole.close();
  await database.close();
});

const UUID = randomUUID();
const PATCH = [{ op: 'replace', path: '/extra/x', value: 1 }];
const DESCRIBE = [{ op: 'replace', path: '/description', value: 'x' }];
/** Bodies that get as far as the database. */
const BODIES: Readonly<Record<string, unknown>> = {
  createImage: { name: 'debian', image_source: 'http://192.0.2.1/debian.qcow2' },
  createDefaultConfig: { resource_class: 'x', steps: [{ interface: 'deploy', step: 'erase_devices', args: {} }] },
  updateDefaultConfig: DESCRIBE,
  updateSnapshot: DESCRIBE,
  createNode: { driver: 'fake-hardware' },
  createPort: { node_uuid: UUID, address: '52:54:00:99:99:99' },
  createPortgroup: { node_uuid: UUID },
  createVolumeConnector: { node_uuid: UUID, type: 'iqn', connector_id: 'iqn.2026-01.test:a' },
  createVolumeTarget: { node_uuid: UUID, volume_type: 'iscsi', volume_id: 'a', boot_index: 0 },
  createAllocation: { resource_class: 'x' },
  createDeployTemplate: { name: 'CUSTOM_A', steps: [{ interface: 'deploy', step: 'deploy', args: {}, priority: 10 }] },
  createRunbook: { name: 'CUSTOM_A', steps: [{ interface: 'bios', step: 'x', args: {}, order: 1 }] },
  createInspectionRule: { actions: [{ op: 'set-attribute', args: { path: '/extra/x', value: 'y' } }] },
  setPower: { target: 'power on' },
  setProvision: { target: 'manage' },
  setRaidConfig: { logical_disks: [{ size_gb: 1, raid_level: '1' }] },
  setBootMode: { target: 'uefi' },
  setSecureBoot: { target: 'on' },
  setConsole: { enabled: true },
  setBootDevice: { boot_device: 'pxe' },
  setIndicator: { state: 'ON' },
  attachVirtualMedia: { device_type: 'cdrom', image_url: 'http://127.0.0.1/x' },
  attachVif: { id: UUID },
  replaceTraits: { traits: ['CUSTOM_A'] },
  replaceRunbookTraits: { traits: ['CUSTOM_A'] },
  heartbeat: { callback_url: 'http://127.0.0.1:9999', agent_token: 'x', agent_version: '10.0' },
  registerResidentAgent: { url: 'https://192.0.2.7:9998', certificate: 'x', version: 'x', boot_id: 'x' },
  registerRecorder: { addresses: ['52:54:00:99:99:99'], system_uuid: UUID },
  continueInspection: { inventory: { bmc_address: '127.0.0.1', interfaces: [{ name: 'e', mac_address: '52:54:00:99:99:99' }] } },
  postEvents: { events: [{ event: 'network.bind_port', port_id: UUID, mac_address: '52:54:00:99:99:99', status: 'ACTIVE' }] },
};
const QUERIES: Readonly<Record<string, string>> = {
  lookup: '?addresses=52:54:00:99:99:99',
  validateNode: `?node=${UUID}`,
};
/** Answers that need no database. */
const WITHOUT: Readonly<Record<string, number>> = {
  showRoot: 200,
  showVersion: 200,
  showDocument: 200,
  showDocsPage: 200,
  showDocsAsset: 404,
  showVolume: 200,
  showNodeVolume: 200,
  postEvents: 204,
  listHealthRules: 200,
  // The stream begins, then ends; its client connects again.
  streamEvents: 200,
  // A push without a token is refused before the database is asked. A push with a token is tested below.
  pushHardware: 403,
  checkSnapshotPart: 403,
  receiveRedfishEvents: 403,
  registerResidentAgent: 403,
  putSnapshotPart: 403,
};
const PARAMETERS: Readonly<Record<string, string>> = {
  driver_name: 'redfish',
  trait: 'CUSTOM_A',
  hostname: 'conductor-1',
  asset: 'none',
  method: 'none',
};

const operations = loadDocument().paths.flatMap(({ operations: all }) => [...all.values()]);
const callOf = ({ operationId, path, method }: (typeof operations)[number]): readonly [string, string, unknown] => {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => (name === 'node_ident' ? node : (PARAMETERS[name] ?? UUID)));
  const query = QUERIES[operationId] ?? (path.endsWith('/vendor_passthru') ? '?method=none' : '');
  return [method, filled + query, BODIES[operationId] ?? (method === 'PATCH' ? PATCH : undefined)];
};
const faultOf = ({ body }: Answer): string => (JSON.parse(String(body['error_message'])) as { faultstring: string }).faultstring;

describe('while the database is stopped', () => {
  beforeAll(() => database.stop());
  afterAll(() => database.start());

  it('every operation that needs the database answers 503, and asks the client to retry', async () => {
    const wrong: unknown[] = [];
    for (const operation of operations) {
      const answer = await whole.call(...callOf(operation));
      const expected = WITHOUT[operation.operationId] ?? 503;
      if (answer.status !== expected || (expected === 503 && !/^The database .* please retry\.$/.test(faultOf(answer))))
        wrong.push([operation.operationId, answer]);
    }
    expect(wrong).toEqual([]);
  });
  it('a push of a recorder gets 503', async () => {
    const path = `${whole.server.apiUrl!}/v1/nodes/${UUID}/hardware`;
    const answer = await fetch(path, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', 'x-recorder-token': 'x' },
      body: '{}',
    });
    expect(answer.status).toBe(503);
  });
  it('200 concurrent requests get 503', async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, () => whole.call('GET', `/v1/nodes/${node}`)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
  });
  it('the health check still answers 200', async () => {
    const { status } = await fetch(`${whole.server.apiUrl!}/healthcheck`);
    expect(status).toBe(200);
  });
});

it('requests and flows succeed again when the database is back', async () => {
  expect((await whole.call('GET', `/v1/nodes/${node}`)).status).toBe(200);
  await whole.order(node, 'manage');
  await whole.reach(node, 'manageable');
});

it('a deployment continues without errors after several interruptions of the database', async () => {
  const machine = whole.fleet.machines[1]!;
  const uuid = await whole.enrol(machine, { instance_info: whole.deployable(), automated_clean: false });
  await whole.provide(uuid);
  await whole.order(uuid, 'active');
  // The database is away three times, at any point of the deployment, and once for longer than a conductor's lease.
  for (const [run, away] of [
    [30, 300],
    [200, 2200],
    [400, 300],
  ] as const) {
    await delay(run);
    await database.stop();
    await delay(away);
    await database.start();
  }
  const now = await whole.reach(uuid, 'active');
  expect(now['last_error']).toBeNull();
  const { body } = await whole.call('GET', '/v1/conductors');
  expect(body['conductors']).toMatchObject([{ hostname: 'conductor-1', alive: true }]);
  const { body: history } = await whole.call('GET', `/v1/nodes/${uuid}/history`);
  expect((history['history'] as { severity: string }[]).filter(({ severity }) => severity === 'ERROR')).toEqual([]);
});
