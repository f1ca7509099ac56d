/**
 * The tests of sweep.test.ts and whole-sweep.test.ts. Every operation as callers: the answers must follow from the rows of policy/rules.ts.
 * Nothing is changed: where an allowed request would write or call a conductor, it is stopped.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request as httpRequest, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { createIntrospectionApi, PUBLIC_OPERATIONS as PUBLIC_INTROSPECTION } from '../../../api/introspection/server';
import { PUBLIC_OPERATIONS } from '../../../api/pipeline/access';
import { loadDocument } from '../../../api/schema/document';
import { createApi } from '../../../api/server';
import { createAuth } from '../../../api/auth/auth';
import { createSessions } from '../../../api/auth/sessions';
import { createProbes } from '../../../api/http/probes';
import { createPage } from '../../../api/ui/page';
import { rightsOf } from '../../../api/ui/rights';
import type { Options } from '../../../config/options';
import type { Conductor, ConductorApi } from '../../../conductor/conductor';
import { systemClock } from '../../../model/clock';
import { Fault } from '../../../model/errors';
import { silentLog } from '../../../model/log';
import { silentMetrics } from '../../../model/metrics';
import type { Store } from '../../../store/store';
import { answerUpgrades, type UpgradeListener } from '../../../wire/http/upgrades';
import { createEnforcer } from '../../../policy/enforcer';
import { createFakeConductor, FAKE_HARDWARE } from '../../support/fakes/fake-conductor';
import { useDatabase } from '../../support/database';
import { optionsOf } from '../../support/options';
import { CALLERS, LESSEE, OWNER, rolesFile, SERVICES, type TestCaller } from './callers';
import { may } from './expected';
import { rowsOf, thingsOf, type Kind, type Row } from './requests';

/** One of so many callers of each operation is tried: another one with the next operation. A test file sets it. */
export const sample = { of: 1 };

const database = useDatabase();
const document = loadDocument();
const folder = mkdtempSync(join(tmpdir(), 'bloomery-access-'));
const REACHED = 'reached what would change something';
const reached = (): never => {
  throw new Fault('Conflict', { message: REACHED });
};
const WRITES = /^(?:add|create|lock|merge|put|record|release|remove|reserve|revoke|set|touch|update|write)/;
/** The store without its writes. */
const sealed = (store: Store): Store =>
  new Proxy(store, {
    get: (tables, name: keyof Store) =>
      name === 'transaction'
        ? reached
        : new Proxy(tables[name], {
            get: (table, method) => (WRITES.test(String(method)) ? reached : (Reflect.get(table, method) as unknown)),
          }),
  });
const conductor = { from: () => new Proxy({} as Conductor, { get: () => reached }) } as unknown as ConductorApi;

const agent = new Agent({ keepAlive: true, maxSockets: 16 });
const servers: Server[] = [];
const stopping = new AbortController();
const portOf = (server: Server): number => (server.address() as AddressInfo).port;
async function serve(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}
let options: Options;
let api: Server;
let introspection: Server;
beforeAll(async () => {
  const [users, roles] = [join(folder, 'htpasswd'), join(folder, 'roles')];
  const digest = hashSync('secret', 4);
  writeFileSync(users, CALLERS.map((_, index) => `caller-${index}:${digest}`).join('\n'));
  writeFileSync(roles, rolesFile());
  options = optionsOf({
    'DEFAULT.auth_strategy': 'http_basic',
    'DEFAULT.http_basic_auth_user_file': users,
    'DEFAULT.http_basic_roles_file': roles,
    'DEFAULT.rbac_service_role_elevated_access': true,
    'DEFAULT.rbac_service_project_name': SERVICES,
    'api.log_requests': 'none',
    'conductor.heartbeat_timeout': 3600,
    'events.max_listeners': 1000,
    'events.max_listeners_per_source': 1000,
    'recorder.enabled': true,
  });
  await seed();
  const parts = {
    store: sealed(database.store()),
    conductor,
    options,
    log: silentLog,
    clock: systemClock,
    metrics: silentMetrics,
    document,
    signal: stopping.signal,
  };
  let console: UpgradeListener | undefined;
  const probes = createProbes({ scrape: async () => ({ type: 'text/plain', text: 'metrics' }) });
  api = await serve(
    createApi({ ...parts, probes, consoles: { portOf: async () => undefined, upgrade: (listener) => (console = listener) } }),
  );
  answerUpgrades(api, 'connection', console!);
  introspection = await serve(createIntrospectionApi(parts));
});
afterAll(async () => {
  stopping.abort();
  agent.destroy();
  for (const server of servers) server.closeAllConnections();
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  rmSync(folder, { recursive: true, force: true });
});

const STEP = { interface: 'deploy', step: 'erase_devices', args: {}, order: 1 };
async function seed(): Promise<void> {
  const store = database.store();
  const registered = { hostname: 'here', conductor_group: '', drivers: { 'fake-hardware': FAKE_HARDWARE }, address: null, instance: 'i' };
  await store.conductors.register(registered, null);
  const fake = createFakeConductor(() => database.store());
  const shared = thingsOf('owned');
  await store.chassis.create({ uuid: shared.chassis });
  await store.deployTemplates.create({
    uuid: shared.template,
    name: 'CUSTOM_T',
    steps: [{ interface: 'deploy', step: 'erase_devices', args: {}, priority: 1 }],
  });
  await store.inspectionRules.create({
    uuid: shared.rule,
    conditions: [],
    actions: [{ op: 'fail', args: { msg: 'x' } }],
    phase: 'main',
  });
  await store.defaultConfigs.create({
    uuid: shared.config,
    resource_class: 'large',
    steps: [{ interface: 'deploy', step: 'erase_devices', args: {} }],
  });
  await store.images.create({ uuid: shared.image, name: 'image', image_source: 'http://192.0.2.1/i' });
  for (const kind of ['owned', 'unowned'] as const) {
    const { node, port, portgroup, connector, target, allocation, runbook, snapshot, erasure, history, alert } = thingsOf(kind);
    const [owner, lessee] = kind === 'owned' ? [OWNER, LESSEE] : [null, null];
    await fake.createNode({ uuid: node, driver: 'fake-hardware', provision_state: 'enroll', owner, lessee, name: kind });
    await fake.declareOutOfService(node, { reason: 'x', ticket: null, until: '2099-01-01T00:00:00.000000+00:00' }, null);
    await store.ports.create({ uuid: port, node_uuid: node, address: `52:54:00:00:01:0${kind.length - 5}` });
    await store.portgroups.create({ uuid: portgroup, node_uuid: node, mode: 'active-backup' });
    await store.volumeConnectors.create({ uuid: connector, node_uuid: node, type: 'ip', connector_id: node });
    await store.volumeTargets.create({ uuid: target, node_uuid: node, volume_type: 'iscsi', volume_id: node, boot_index: 0 });
    await store.allocations.create({ uuid: allocation, state: 'active', resource_class: 'small', owner, node_uuid: node });
    await database
      .query('UPDATE nodes SET allocation_uuid = $2, traits = $3 WHERE uuid = $1', [node, allocation, '{CUSTOM_A}'])
      .catch(() => []);
    await store.runbooks.create({
      uuid: runbook,
      name: `CUSTOM_${kind.toUpperCase()}`,
      owner,
      steps: [STEP],
      traits: ['CUSTOM_B'],
    });
    await store.snapshots.create({ uuid: snapshot, node_uuid: node, owner, state: 'available' });
    await store.erasures.issue({
      uuid: erasure,
      node_uuid: node,
      node_name: kind,
      owner,
      lessee,
      instance_uuid: null,
      step: 'deploy.erase_devices',
      erased: 1,
      skipped: 0,
      serials: ['S1'],
      command: 'command',
      document: '{}',
      signature: 's',
      public_key: 'p',
      key_fingerprint: 'f',
    });
    await store.history.create({
      uuid: history,
      node_uuid: node,
      conductor: null,
      user: null,
      event_type: 'x',
      severity: 'INFO',
      event: 'e',
    });
    await store.biosSettings.put(node, [{ name: 'setting', value: 'on' }]);
    await store.inventories.put(node, { inventory: { interfaces: [] }, plugin_data: {} });
    const report = { source: 'report', rule: 'x', subject: '', severity: 'warning', text: 'x', until: null, reported_by: null } as const;
    await store.healthAlerts.put([{ ...report, uuid: alert, node_uuid: node }], false);
    await store.hardware.putToken(node, 'hash', 'operator');
    await store.residentAgents.putToken(node, 'token', 'operator');
    const record = (await import('node:zlib')).gzipSync('{}');
    await store.hardware.put(node, { digest: 'd', record, bootId: null }, false);
  }
}

interface Reply {
  readonly status: number;
  readonly text: string;
}
function ask(
  server: Server,
  { method, path, body }: Pick<Row, 'method' | 'path' | 'body'>,
  caller?: TestCaller,
  more = {},
): Promise<Reply> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    ...(caller ? { authorization: `Basic ${Buffer.from(`caller-${CALLERS.indexOf(caller)}:secret`).toString('base64')}` } : {}),
    ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    'x-openstack-ironic-api-version': `1.${document.max}`,
    ...more,
  };
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ agent, host: '127.0.0.1', port: portOf(server), method, path, headers }, (response) => {
      const {
        statusCode: status = 0,
        headers: { 'content-type': type = '' },
      } = response;
      if (type.startsWith('text/event-stream')) {
        resolve({ status, text: '' });
        response.destroy();
        return;
      }
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status, text: Buffer.concat(chunks).toString() }));
    });
    sent.on('upgrade', ({ statusCode }, socket) => {
      socket.destroy();
      resolve({ status: statusCode ?? 0, text: '' });
    });
    sent.on('error', reject);
    sent.end(text);
  });
}
const outcomeOf = ({ status, text }: Reply, also: readonly number[] = []): string | number => {
  if (status < 300 || text.includes(REACHED) || also.includes(status)) return 'allowed';
  return status === 403 || status === 404 ? status : `${status} ${text}`;
};
/** The requests of the cells, some at a time. @returns the cells that differ */
async function differences<Cell>(cells: readonly Cell[], check: (cell: Cell) => Promise<string | undefined>): Promise<readonly string[]> {
  const rest = [...cells];
  const found: string[] = [];
  const work = async (): Promise<void> => {
    for (let cell = rest.pop(); cell !== undefined; cell = rest.pop()) {
      const difference = await check(cell);
      if (difference !== undefined) found.push(difference);
    }
  };
  await Promise.all(Array.from({ length: 12 }, work));
  return found.sort();
}
/** Samples of callers: a node without projects gives nothing to projects, and without a node all projects are equal. */
const OF_UNOWNED = CALLERS.filter(({ name }) => /the system$|^admin of (?:the owner|the project None|no project|a domain)/.test(name));
const WITHOUT_NODE = CALLERS.filter(({ name }) => !/the lessee|another project|None/.test(name));
const callersOf = (kind: Kind, hasTarget: boolean): readonly TestCaller[] =>
  kind === 'unowned' ? OF_UNOWNED : hasTarget ? CALLERS : WITHOUT_NODE;
const TABLES = [
  'nodes',
  'ports',
  'portgroups',
  'chassis',
  'images',
  'default_configs',
  'runbooks',
  'snapshots',
  'erasures',
  'allocations',
  'deploy_templates',
  'inspection_rules',
  'health_alerts',
];
const contents = async (): Promise<string> => {
  const all: unknown[] = [];
  for (const table of TABLES) all.push(await database.query(`SELECT * FROM ${table} ORDER BY uuid`));
  return JSON.stringify(all);
};

it('answers every operation to callers as the rules say', async () => {
  const before = await contents();
  const all = (['owned', 'unowned'] as const).flatMap((kind: Kind) =>
    rowsOf(document, kind)
      .filter(({ hasTarget }) => kind === 'owned' || hasTarget)
      .flatMap((row) => callersOf(kind, row.hasTarget).map((caller) => ({ kind, row, caller }))),
  );
  const cells = all.filter((_, at) => at % sample.of === 0);
  for (const member of ['row', 'caller'] as const)
    expect(new Set(cells.map((cell) => cell[member].name))).toEqual(new Set(all.map((cell) => cell[member].name)));
  const found = await differences(cells, async ({ kind, row, caller }) => {
    const expected = row.expected(caller, kind);
    const answer = outcomeOf(await ask(api, row, caller), expected === 'allowed' ? row.also : []);
    return answer === expected ? undefined : `${row.name} (${kind}) as ${caller.name}: ${answer}, but the rules say ${expected}`;
  });
  expect(found).toEqual([]);
  expect(await contents()).toBe(before);
}, 900_000);

const get = (path: string): Pick<Row, 'method' | 'path'> => ({ method: 'GET', path });
/** The operations of ramdisks, and the discovery of versions. */
const UNIDENTIFIED = ['continueInspection', 'heartbeat', 'lookup', 'showRoot', 'showVersion'];
it('needs a login for every operation but those of ramdisks, recorders and version discovery', async () => {
  const rows = rowsOf(document, 'owned').filter(({ name }) => !name.includes(' '));
  const open: string[] = [];
  for (const row of rows) {
    const { status, text } = await ask(api, row);
    // Recorders, and agents that send snapshots, have tokens in place of a login, and the handlers check them.
    if (['pushHardware', 'checkSnapshotPart', 'registerResidentAgent', 'receiveRedfishEvents', 'putSnapshotPart'].includes(row.name))
      expect([status, text]).toEqual([403, expect.stringContaining('Not authorized')]);
    else if (status !== 401) open.push(row.name);
  }
  expect(open.sort()).toEqual(UNIDENTIFIED);
  expect((await ask(api, get('/metrics'))).status).toBe(200);
});
it('everybody with a login may use five operations without a policy', () => {
  expect([...PUBLIC_OPERATIONS].sort()).toEqual(['showDocsAsset', 'showDocsPage', 'showDocument', 'showRoot', 'showVersion']);
});

it('opens consoles in the browser for whom the rules say', async () => {
  const cells = (['owned', 'unowned'] as const).flatMap((kind) => [undefined, ...CALLERS].map((caller) => ({ kind, caller })));
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    origin: `http://127.0.0.1:${portOf(api)}`,

    'sec-websocket-version': '13',
    'sec-websocket-key': Buffer.alloc(16).toString('base64'),
    'sec-websocket-protocol': 'bloomery.console',
  };
  const found: string[] = [];
  for (const { kind, caller } of cells) {
    const projects = kind === 'owned' ? ([OWNER, LESSEE] as const) : ([null, null] as const);
    const sees = caller && may(caller, 'node:get', ...projects);
    const expected = !caller ? 401 : !sees ? 404 : may(caller, 'node:get_console', ...projects) ? 101 : 403;
    const { status } = await ask(api, get(`/ui/console/${thingsOf(kind).node}`), caller, headers);
    if (status !== expected) found.push(`${kind} as ${caller?.name}: ${status}, but the rules say ${expected}`);
  }
  expect(found).toEqual([]);
});

const authOf = () =>
  createAuth({
    options,
    log: silentLog,
    clock: systemClock,
    metrics: silentMetrics,
    service: 'baremetal',
    enforcer: createEnforcer(options),
    store: database.store(),
  });
it('the page gives the machines of the demonstration to whom the rules say', async () => {
  const path = join(folder, 'machines');
  writeFileSync(path, '[]');
  const auth = authOf();
  const page = createPage({
    options: { ...options, 'api.demo_machines': path },
    assets: new Map(),
    log: silentLog,
    random: randomBytes,
    auth,
    sessions: createSessions(auth, systemClock, randomBytes),
    logIns: { kinds: [], open: reached },
  });
  for (const [index, caller] of CALLERS.entries()) {
    const authorization = `Basic ${Buffer.from(`caller-${index}:secret`).toString('base64')}`;
    const request = { method: 'GET', headers: { authorization } } as IncomingMessage;
    const bare = '/ui/demo-machines';
    const answer = page.answer({ request, bare, path: bare, search: '', source: 's', body: Buffer.alloc(0) });
    const status = await answer.then(
      (item) => item.status,
      (error: unknown) => (error as { readonly status: number }).status,
    );
    expect([caller.name, status]).toEqual([caller.name, may(caller, 'node:create') ? 200 : 403]);
  }
});

it('the page offers to each caller what the rules allow', async () => {
  const auth = authOf();
  const found: string[] = [];
  for (const [index, caller] of CALLERS.entries()) {
    const authorization = `Basic ${Buffer.from(`caller-${index}:secret`).toString('base64')}`;
    const rights = rightsOf(await auth.identify({ authorization }, '/v1/nodes', 'GET', 's'), auth, options);
    const own = caller.project ?? null;
    const targets = { any: [null, null], owned: [own, null], leased: [null, own] } as const;
    for (const [kind, [owner, lessee]] of Object.entries(targets))
      for (const policy of rights[kind as keyof typeof rights])
        if (!may(caller, policy, owner, lessee) && !may(caller, `${policy}:self_owned_node`, owner))
          found.push(`${policy} (${kind}) as ${caller.name}`);
  }
  expect(found).toEqual([]);
});

/** The policies of ironic-inspector's operations. */
const INTROSPECTION: Readonly<Record<string, string>> = {
  listIntrospections: 'status',
  showIntrospection: 'status',
  startIntrospection: 'start',
  abortIntrospection: 'abort',
  showData: 'data',
  showUnprocessed: 'data',
  reapply: 'reapply',
  listRules: 'rule:get',
  showRule: 'rule:get',
  createRule: 'rule:create',
  removeRules: 'rule:delete',
  removeRule: 'rule:delete',
};
it('answers every operation of the introspection service to every caller as the rules say', async () => {
  expect(PUBLIC_INTROSPECTION).toEqual(['showRoot', 'showVersion', 'showDocument', 'continueIntrospection']);
  const operations = loadDocument('introspection').paths.flatMap((path) => [...path.operations.values()]);
  const cells = operations.flatMap(({ operationId, method, path }) =>
    [undefined, ...CALLERS].map((caller) => ({
      caller,
      operationId,
      isPublic: PUBLIC_INTROSPECTION.includes(operationId),
      row: { method, path: path.replace(/\{\w+\}/g, thingsOf('owned').node), ...(method === 'POST' ? { body: {} } : {}) },
    })),
  );
  const found = await differences(cells, async ({ caller, operationId, isPublic, row }) => {
    const { status, text } = await ask(introspection, row, caller);
    const answer = status === 401 || text.includes('Access was denied') ? status : 'allowed';
    const expected = isPublic ? 'allowed' : !caller ? 401 : may(caller, `introspection:${INTROSPECTION[operationId]}`) ? 'allowed' : 403;
    return answer === expected ? undefined : `${operationId} as ${caller?.name}: ${answer}, but the rules say ${expected}`;
  });
  expect(found).toEqual([]);
});
