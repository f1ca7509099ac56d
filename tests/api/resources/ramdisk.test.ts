import { shortened } from '../../../model/text';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../model/records';
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi({
  'oslo_middleware.enable_proxy_headers_parsing': true,
  'agent.callback_hosts': ['198.51.100.0/24', 'Agents.example'],
  'conductor.permitted_image_formats': ['raw', 'qcow2'],
  'agent_containers.allowed_containers': ['docker://r.example/a:1'],
  'agent_containers.runner': 'docker',
  'agent.tls_minimum_version': '1.2',
});
const ONE = 'aaaaaaaa-0000-4000-8000-000000000001';
const MAC = '52:54:00:00:00:01';
/** Recorded reports of agents. */
const RECORDED = join(__dirname, '../../reference/inspection/inventories');
const recordings = readdirSync(RECORDED, { encoding: 'utf8', recursive: true }).filter((file) => file.endsWith('.json'));
const store = () => api.database.store();
const SECRET = 'secret-of-the-agent';
/** The requests of an agent at this address. */
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
const beat = (body: object, minor = NEWEST, address = '10.0.0.2', uuid = ONE) =>
  api.ask('POST', `/v1/heartbeat/${uuid}`, minor, {
    ...from(address),
    body: { callback_url: 'https://10.0.0.2:9999', agent_version: '1.0', agent_token: SECRET, ...body },
  });

/** A node without earlier reports, whose agent has a token. */
async function newNode(): Promise<string> {
  const { body } = await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware' } });
  await store().nodes.update(body.uuid, { provision_state: 'wait call-back' });
  await store().nodes.mergeInternal(body.uuid, { agent_secret_token: SECRET });
  return body.uuid;
}
const historyOf = (uuid: string) => store().history.list({ where: { node_uuid: uuid } });

beforeEach(async () => {
  await api.database.query('DELETE FROM nodes');
  await api.database.query('DELETE FROM leases');
  await api.ask('POST', '/v1/nodes', NEWEST, {
    body: { driver: 'fake-hardware', uuid: ONE, name: 'one', properties: { cpus: 2 }, instance_info: { configdrive: 'x' } },
  });
  await api.ask('POST', '/v1/ports', NEWEST, { body: { node_uuid: ONE, address: MAC } });
  await store().nodes.update(ONE, { provision_state: 'wait call-back' });
});

describe('lookup', () => {
  it("returns the node and the agent's configuration, and the token only once", async () => {
    const first = await api.ask('GET', `/v1/lookup?addresses=zz,${MAC.toUpperCase()}`, 62);
    expect(first.body.node).toMatchObject({ uuid: ONE, properties: { cpus: 2 }, instance_info: { configdrive: '******' } });
    expect(Object.keys(first.body.node).sort()).toEqual(['driver_internal_info', 'instance_info', 'links', 'properties', 'uuid']);
    expect(first.body.config).toMatchObject({
      heartbeat_timeout: 300,
      agent_token: expect.stringMatching(/^[\w-]{43}$/) as unknown,
      agent_token_required: true,
      tls_min_version: '1.2',
      permitted_image_formats: ['raw', 'qcow2'],
      agent_skip_bmc_detect: false,
      metrics: { backend: 'noop', prepend_host: false, prepend_uuid: false, prepend_host_reverse: true, global_prefix: null },
      metrics_statsd: { statsd_host: 'localhost', statsd_port: 8125 },
      agent_containers: {
        allow_arbitrary_containers: false,
        allowed_containers: ['docker://r.example/a:1'],
        container_steps_file: '/etc/ironic-python-agent.d/mysteps.yaml',
        runner: 'docker',
        pull_options: [],
        run_options: ['--rm', '--network=host'],
      },
    });
    expect(first.body.node.driver_internal_info).toMatchObject({ agent_secret_token: '******' });
    const token = first.body.config['agent_token'] as string;
    const second = await api.ask('GET', `/v1/lookup?node_uuid=${ONE}`, 62);
    expect(second.body.config.agent_token).toBe('******');
    expect(second.text).not.toContain(token);
    expect((await api.ask('GET', `/v1/lookup?node_uuid=${ONE}`, 61)).text).not.toContain(token);
    // An agent gets its token also while no conductor answers.
    expect(api.conductor.calls.map(({ name }) => name)).not.toContain('heartbeat');
  });
  it('removes credentials from URLs', async () => {
    const instance_info = { image_source: 'http://user:hush@images/x', kernel: 'https://images/k' };
    await store().nodes.update(ONE, { instance_info, properties: { note: 'see http://user:hush@wiki/' } });
    const { text, body } = await api.ask('GET', `/v1/lookup?node_uuid=${ONE}`);
    expect(text).not.toContain('hush');
    expect(body.node).toMatchObject({ instance_info: { ...instance_info, image_source: 'http://images/x' } });
    expect((await api.ask('GET', `/v1/nodes/${ONE}`)).body['instance_info']).toEqual(instance_info);
  });
  it('makes no token for agents before 1.62', async () => {
    expect((await api.ask('GET', `/v1/lookup?node_uuid=${ONE}`, 61)).body.config.agent_token).toBeNull();
  });
  it.each([
    ['', 400, "At least one of 'addresses' and 'node_uuid' parameters is required"],
    ['?addresses=zz', 400, "At least one of 'addresses' and 'node_uuid' parameters is required"],
    ['?addresses=52:54:00:00:00:99', 404, 'Resource could not be found.'],
    ['?node_uuid=bbbbbbbb-0000-4000-8000-000000000001', 404, 'Resource could not be found.'],
  ])('answers the query "%s" with %p', async (query, status, sentence) =>
    expect(await api.ask('GET', `/v1/lookup${query}`)).toMatchObject({ status, fault: sentence }),
  );
  it('finds nothing when the addresses are of two nodes', async () => {
    const { body } = await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware' } });
    await api.ask('POST', '/v1/ports', NEWEST, { body: { node_uuid: body.uuid, address: '52:54:00:00:00:02' } });
    expect((await api.ask('GET', `/v1/lookup?addresses=${MAC},52:54:00:00:00:02`)).status).toBe(404);
  });
  it.each([
    ['active', {}, 404],
    ['enroll', {}, 404],
    ['enroll', { fast_track: true }, 200],
    ['clean wait', {}, 200],
    ['inspect wait', {}, 200],
    ['service wait', {}, 200],
  ] as const)('answers for a node in %s with %j with %p', async (provision_state, driver_info, status) => {
    await store().nodes.update(ONE, { provision_state, driver_info });
    expect((await api.ask('GET', `/v1/lookup?addresses=${MAC}`)).status).toBe(status);
  });
  it('does not exist before 1.22', async () => expect((await api.ask('GET', `/v1/lookup?addresses=${MAC}`, 21)).status).toBe(404));
});

describe('heartbeat', () => {
  beforeEach(() => store().nodes.mergeInternal(ONE, { agent_secret_token: SECRET }));
  it('is passed to the conductor', async () => {
    expect(await beat({ agent_verify_ca: 'pem' })).toMatchObject({ status: 202, text: '' });
    expect(api.conductor.calls.at(-1)).toEqual({
      name: 'heartbeat',
      arguments: [ONE, { callbackUrl: 'https://10.0.0.2:9999', agentVersion: '1.0', agentToken: SECRET, agentVerifyCa: 'pem' }],
    });
  });
  it('is passed to the conductor with texts that the database accepts', async () => {
    expect((await beat({ agent_status: 'error', agent_status_message: 'no\0', agent_version: '1\ud800' })).status).toBe(202);
    const passed = { agentStatusMessage: 'no\ufffd', agentVersion: '1\ufffd' };
    expect(api.conductor.calls.at(-1)!.arguments[1]).toMatchObject(passed);
  });
  it('is passed to the conductor with both ends of a long message', async () => {
    expect((await beat({ agent_status: 'error', agent_status_message: 'x'.repeat(900_000) })).status).toBe(202);
    expect(api.conductor.calls.at(-1)!.arguments[1]).toMatchObject({ agentStatusMessage: shortened('x'.repeat(900_000), 2 ** 16) });
  });
  it.each([
    [{ callback_url: undefined }, NEWEST, 'Missing mandatory parameter: callback_url'],
    [{ callback_url: 'http://x' }, NEWEST, 'TLS is required by configuration'],
    [{ agent_token: undefined }, NEWEST, 'Agent token is required for heartbeat processing.'],
    [{ agent_token: 'wrong' }, NEWEST, 'Invalid or missing agent token received.'],
    [{ agent_token: 'x'.repeat(SECRET.length) }, NEWEST, 'Invalid or missing agent token received.'],
    [
      { agent_version: undefined },
      NEWEST,
      'Agent did not transmit a version, and a version is required. Please update the agent being used.',
    ],
    [{}, 35, 'Field "agent_version" not recognised'],
    [{ agent_verify_ca: 'x' }, 67, 'Field "agent_verify_ca" not recognised in this version'],
    [{ agent_status: 'end' }, 71, 'Fields "agent_status" and "agent_status_message" not recognised.'],
    [{ agent_status: 'nosuch' }, 72, 'Agent status is invalid. Valid states are start,end,error.'],
    [{ nosuch: 1 }, NEWEST, 'Unexpected arguments: nosuch'],
  ])('with %j at 1.%p is refused', async (body, minor, sentence) => {
    const asked = api.conductor.calls.length;
    expect(await beat(body, minor)).toMatchObject({ status: 400, fault: sentence });
    expect(api.conductor.calls.length).toBe(asked);
  });
  it.each(['ftp://x', 'https:x', 'https://', 'https://[::1', 'https://u:p@x', 'https://x?y', 'https://x#y', `https://${'x'.repeat(2048)}`])(
    'with the callback URL %s is refused',
    async (callback_url) => {
      const fault = 'An issue with the supplied "callback_url" has been detected.';
      expect(await beat({ callback_url })).toMatchObject({ status: 400, fault });
    },
  );
  it('that is refused is logged', async () => {
    api.logged.length = 0;
    await beat({ callback_url: 'http://x' });
    expect(api.logged).toEqual(['heartbeat refused']);
  });
  it('with another callback URL than before is refused', async () => {
    await store().nodes.mergeInternal(ONE, { agent_url: 'https://10.0.0.3:9999' });
    expect(await beat({})).toMatchObject({ status: 400, fault: 'Detected change in ramdisk provided "callback_url"' });
  });
  it('of an unknown node, or of a node without a token, is refused', async () => {
    expect(
      (await api.ask('POST', '/v1/heartbeat/nobody', NEWEST, { body: { callback_url: 'https://x', agent_token: 'x', agent_version: '1' } }))
        .status,
    ).toBe(404);
    await store().nodes.mergeInternal(ONE, { agent_secret_token: undefined });
    expect((await beat({})).fault).toBe('Invalid or missing agent token received.');
  });
});

describe('the host of callback_url', () => {
  beforeEach(() => store().nodes.mergeInternal(ONE, { agent_secret_token: SECRET }));
  const lease = (address: string, expires_at = Date.now() + 60_000) => store().leases.put({ mac: MAC, address, expires_at });
  const refusal = (reason: string): string => `The agent cannot be called at the supplied "callback_url": ${reason}`;
  const UNKNOWN = "and the host is neither in [agent]callback_hosts nor an address of the node's leases or network_data";

  it.each([
    ['10.0.0.2', 'https://10.0.0.2:9999'],
    ['::ffff:10.0.0.2', 'https://10.0.0.2'],
    ['2001:db8::2', 'https://[2001:DB8:0::2]:9999/'],
    ['10.0.0.2', 'https://198.51.100.9:1'],
    ['10.0.0.2', 'https://agents.example'],
  ])('of an agent at %s may be that of %s', async (address, callback_url) =>
    expect((await beat({ callback_url }, NEWEST, address)).status).toBe(202),
  );
  it('may not be an address that an inventory claims', async () => {
    const interfaces = [{ name: 'eth1', mac_address: MAC, ipv4_address: '10.0.9.2', ipv6_address: '2001:db8::9' }];
    await store().inventories.put(ONE, { inventory: { interfaces, bmc_address: '10.0.9.3', hostname: 'agent' }, plugin_data: {} });
    for (const host of ['10.0.9.2', '[2001:db8::9]', '10.0.9.3', '[2001:db8::5054:ff:fe00:1]', 'agent'])
      expect([host, (await beat({ callback_url: `https://${host}:9999` })).status]).toEqual([host, 400]);
    // Where the request comes from is no claim.
    expect((await beat({ callback_url: 'https://10.0.9.2:9999' }, NEWEST, '10.0.9.2')).status).toBe(202);
  });
  it('may be an address of network_data', async () => {
    await store().nodes.update(ONE, { network_data: { networks: [{ ip_address: '10.0.8.2/24' }] } });
    expect((await beat({ callback_url: 'https://10.0.8.2:9999' })).status).toBe(202);
    expect((await beat({ callback_url: 'https://10.0.8.3:9999' })).status).toBe(400);
  });
  it('may be the address of a lease', async () => {
    await lease('10.0.0.7');
    expect((await beat({ callback_url: 'https://10.0.0.7' }, NEWEST, '10.0.0.7')).status).toBe(202);
    expect((await beat({ callback_url: 'https://10.0.0.7' }, NEWEST, '2001:db8::5054:ff:fe00:1')).status).toBe(202);
    await lease('10.0.0.7', Date.now() - 1);
    expect((await beat({ callback_url: 'https://10.0.0.7' }, NEWEST, '2001:db8::5054:ff:fe00:1')).status).toBe(400);
  });
  it.each([
    ['10.0.0.2', 'https://10.0.0.3:9999', `the request came from 10.0.0.2, ${UNKNOWN}`],
    ['unknown', 'https://10.0.0.3:9999', `the request came from an unknown address, ${UNKNOWN}`],
    ['10.0.0.2', 'https://localhost:9999', 'it is a name, which [agent]callback_hosts does not contain'],
    ['10.0.0.2', 'https://127.1:9999', 'it is an address of this server'],
    ['127.0.0.1', 'https://127.0.0.2:9999', 'it is an address of this server'],
    ['10.0.0.2', 'https://[::ffff:127.0.0.1]:9999', 'it is an address of this server'],
    ['10.0.0.2', 'https://0.0.0.0:9999', 'agents have no such address'],
    ['169.254.169.254', 'https://169.254.169.254', 'agents have no such address'],
    ['fe80::1', 'https://[fe80::1]:9999', 'agents have no such address'],
    ['127.0.0.1', 'https://127.0.0.1:6385', 'this server listens there'],
  ])('of an agent at %s may not be that of %s', async (address, callback_url, reason) => {
    const calls = api.conductor.calls.length;
    expect(await beat({ callback_url }, NEWEST, address)).toMatchObject({ status: 400, fault: refusal(reason) });
    expect(api.conductor.calls.length).toBe(calls);
  });
  it('is logged at each refusal, and recorded in the history only once in some minutes', async () => {
    const uuid = await newNode();
    api.logged.length = 0;
    await beat({ callback_url: 'https://10.0.0.3' }, NEWEST, '10.0.0.2', uuid);
    await beat({ callback_url: 'https://10.0.0.4' }, NEWEST, '10.0.0.2', uuid);
    expect(api.logged).toEqual(['heartbeat refused', 'heartbeat refused']);
    expect((await historyOf(uuid)).map(({ event }) => event)).toEqual([
      `A heartbeat was refused: the agent cannot be called at 10.0.0.3, since the request came from 10.0.0.2, ${UNKNOWN}`,
    ]);
  });
  it('is not checked again while the callback URL stays the same', async () => {
    await store().nodes.mergeInternal(ONE, { agent_url: 'https://10.0.0.3:9999' });
    expect((await beat({ callback_url: 'https://10.0.0.3:9999' })).status).toBe(202);
  });
});

describe('a request from another address than DHCP gave', () => {
  const OTHER = '52:54:00:00:00:07';
  /** Formed from the MAC address, as SLAAC does (RFC 4291 Appendix A). */
  const OF_MAC = '2001:db8::5054:ff:fe00:7';
  const lease = (mac: string, address: string, expires_at = Date.now() + 60_000) => store().leases.put({ mac, address, expires_at });
  const lookup = (address: string) => api.ask('GET', `/v1/lookup?addresses=${MAC}`, NEWEST, from(address));
  const inspected = (address: string) =>
    api.ask('POST', '/v1/continue_inspection', 84, {
      ...from(address),
      body: { inventory: { interfaces: [{ name: 'eth0', mac_address: MAC }] } },
    });
  beforeEach(async () => {
    await store().nodes.mergeInternal(ONE, { agent_secret_token: SECRET });
    await api.ask('POST', '/v1/ports', NEWEST, { body: { node_uuid: ONE, address: OTHER } });
    await lease(MAC, '10.0.0.2');
    await lease(OTHER, '10.0.0.7');
  });
  it.each(['10.0.0.2', '10.0.0.7', OF_MAC, 'unknown'])('is not refused from %s, which may belong to the machine', async (address) => {
    expect([(await lookup(address)).status, (await inspected(address)).status]).toEqual([200, 202]);
  });
  it('is refused from an IPv6 address that does not belong to the machine', async () => {
    expect([(await lookup('2001:db8::2')).status, (await inspected('2001:db8::5054:ff:fe00:9')).status]).toEqual([404, 404]);
  });
  it('is refused and logged, and gets no token', async () => {
    api.logged.length = 0;
    const calls = api.conductor.calls.length;
    expect(await lookup('10.0.0.66')).toMatchObject({ status: 404, fault: 'Resource could not be found.' });
    expect(await inspected('10.0.0.66')).toMatchObject({ status: 404, fault: 'Resource could not be found.' });
    expect(await beat({ callback_url: 'https://10.0.0.66' }, NEWEST, '10.0.0.66')).toMatchObject({
      status: 400,
      fault: "The heartbeat did not come from an address of the node's machine.",
    });
    expect(api.conductor.calls.length).toBe(calls);
    expect(api.logged).toEqual(['request of an agent refused', 'request of an agent refused', 'heartbeat refused']);
  });
  it('is recorded in the history', async () => {
    const uuid = await newNode();
    const mac = '52:54:00:00:00:08';
    await api.ask('POST', '/v1/ports', NEWEST, { body: { node_uuid: uuid, address: mac } });
    await lease(mac, '10.0.0.8');
    await api.ask('GET', `/v1/lookup?node_uuid=${uuid}`, NEWEST, from('10.0.0.66'));
    await beat({}, NEWEST, '10.0.0.66', uuid);
    expect(await historyOf(uuid)).toMatchObject([
      { severity: 'ERROR', event: 'A request of an agent was refused: the request came from 10.0.0.66, but DHCP gave the node 10.0.0.8' },
    ]);
  });
  it('is refused for a report that matches the node only by the address of its BMC', async () => {
    await store().nodes.mergeInternal(ONE, { lookup_bmc_addresses: ['10.9.9.9'] });
    const report = { inventory: { interfaces: [{ name: 'eth0', mac_address: '52:54:00:99:00:01' }], bmc_address: '10.9.9.9' } };
    const post = (address: string) => api.ask('POST', '/v1/continue_inspection', 84, { ...from(address), body: report });
    await store().nodes.update(ONE, { provision_state: 'inspect wait' });
    const calls = api.conductor.calls.length;
    expect((await post('10.0.0.66')).status).toBe(404);
    expect(api.conductor.calls.length).toBe(calls);
    await post('10.0.0.2');
    expect(api.conductor.calls.length).toBe(calls + 1);
  });
  it('is answered when the leases have expired', async () => {
    await lease(MAC, '10.0.0.2', Date.now() - 1);
    await lease(OTHER, '10.0.0.7', Date.now() - 1);
    expect((await lookup('10.0.0.66')).status).toBe(200);
  });
});

describe('continue_inspection', () => {
  const inventory = { interfaces: [{ name: 'eth0', mac_address: MAC }], bmc_address: '10.0.0.9' };
  const send = (body: unknown, minor: number | null = 84, query = '') =>
    api.ask('POST', `/v1/continue_inspection${query}`, minor, { body });
  it.each([
    [{ bmc_address: '::FFFF:10.0.0.9' }, ['10.0.0.9']],
    [{ bmc_address: '', bmc_v6address: '2001:DB8:0::5' }, ['2001:db8::5']],
    [{ bmc_address: '10.0.0.9', bmc_v6address: '::/0' }, ['10.0.0.9', '::/0']],
  ])('passes the addresses of the BMC in one form: %j', async (bmc, addresses) => {
    await send({ inventory: { ...inventory, ...bmc } });
    expect(api.conductor.calls.at(-1)).toMatchObject({ arguments: [{ bmcAddresses: addresses }, {}, {}] });
  });
  it('passes the inventory to the conductor, and the rest as plugin data', async () => {
    const { status, body } = await send({ inventory, root_disk: { name: 'sda' } }, 84, `?node_uuid=${ONE}`);
    expect(status).toBe(202);
    expect(body.node.uuid).toBe(ONE);
    expect(api.conductor.calls.at(-1)).toEqual({
      name: 'continueInspection',
      arguments: [{ macs: [MAC], bmcAddresses: ['10.0.0.9'], nodeUuid: ONE, wantsToken: true }, inventory, { root_disk: { name: 'sda' } }],
    });
  });
  it('answers agents that send no version as ironic-inspector did', async () => {
    expect((await send({ inventory }, null)).body).toEqual({ uuid: ONE });
    expect((await send({ inventory }, null, `?node_uuid=${ONE}`)).status).toBe(404);
    expect((await send({ inventory }, 2)).fault).toBe('API version 1.84 or newer is required');
  });
  it.each(recordings)('accepts the recorded report %s', async (file) => {
    const { callback } = JSON.parse(readFileSync(join(RECORDED, file), 'utf8')) as { readonly callback: JsonObject };
    await send(callback);
    expect(api.conductor.calls.at(-1)).toMatchObject({ name: 'continueInspection', arguments: [{}, callback['inventory'], {}] });
  });
  it('accepts null for values that an agent could not find, and unknown members', async () => {
    const nulls = (...names: readonly string[]): JsonObject => Object.fromEntries([...names, 'unknown'].map((name) => [name, null]));
    const body = {
      inventory: {
        interfaces: [
          { mac_address: MAC, ...nulls('name', 'ipv4_address', 'ipv6_address', 'lldp', 'client_id', 'speed_mbps', 'pci_address') },
        ],
        cpu: { architecture: '', count: 1, ...nulls('model_name', 'frequency', 'socket_count') },
        memory: nulls('total', 'physical_mb'),
        disks: [
          { name: '/dev/sda', size: 0, ...nulls('model', 'wwn', 'serial', 'vendor', 'rotational', 'hctl', 'logical_sectors', 'tran') },
        ],
        boot: nulls('current_boot_mode', 'pxe_interface'),
        system_vendor: nulls('product_name', 'firmware'),
        ...nulls('bmc_address', 'bmc_v6address', 'bmc_mac', 'hostname'),
      },
      ...nulls('error', 'boot_interface', 'root_disk', 'logs'),
      burnin_cpu: 7,
    };
    expect((await send(body)).status).toBe(202);
  });
  it.each([
    [{}, "Schema error for data: 'inventory' is a required property"],
    [{ inventory: { interfaces: [] } }, 'Schema error for data: [] should be non-empty'],
    [{ inventory: { interfaces: [{ mac_address: 5 }] } }, "Schema error for data: 5 is not of type 'string'"],
    [{ inventory: { interfaces: [{ mac_address: 'zz' }] } }, 'No lookup information provided'],
    [{ inventory: { ...inventory, memory: { physical_mb: '1' } } }, "Schema error for data: '1' is not of type 'integer', 'null'"],
  ])('refuses %j', async (body, sentence) => expect(await send(body)).toMatchObject({ status: 400, fault: sentence }));
});

describe('with enable_ramdisk_endpoints = false', () => {
  const off = useApi({ 'api.enable_ramdisk_endpoints': false });
  it.each([
    ['GET', '/v1/lookup?node_uuid=' + ONE, undefined],
    ['POST', `/v1/heartbeat/${ONE}`, { callback_url: 'https://x' }],
    ['POST', '/v1/continue_inspection', { inventory: { interfaces: [{ mac_address: MAC }] } }],
  ])('%s %s is refused', async (method, path, body) =>
    expect((await off.ask(method, path, NEWEST, body ? { body } : {})).status).toBe(403),
  );
});
