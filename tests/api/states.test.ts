import { gzipSync } from 'node:zlib';
import type { ProvisionState } from '../../model/states';
import { matching, useApi } from '../support/api';
import { NEWEST } from '../support/newest';

const api = useApi();
const ONE = 'aaaaaaaa-0000-4000-8000-000000000001';
const STEP = { interface: 'deploy', step: 's', args: {}, priority: 1 };
const provision = (body: unknown, minor = NEWEST) => api.ask('PUT', '/v1/nodes/one/states/provision', minor, { body });
const power = (body: unknown, minor = NEWEST) => api.ask('PUT', '/v1/nodes/one/states/power', minor, { body });
const be = (provision_state: ProvisionState, more: object = {}) => api.database.store().nodes.update(ONE, { provision_state, ...more });

beforeEach(async () => {
  await api.database.query('DELETE FROM nodes');
  await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', uuid: ONE, name: 'one' } });
});

it('shows the states with the fields of the version', async () => {
  expect(Object.keys((await api.ask('GET', '/v1/nodes/one/states', 11)).body)).not.toContain('raid_config');
  expect(Object.keys((await api.ask('GET', '/v1/nodes/one/states', 75)).body)).toEqual(
    expect.arrayContaining(['raid_config', 'boot_mode']),
  );
});

it.each([
  // verb, since, a state in which it is possible, what the body needs
  ['active', 1, 'available', {}],
  ['deploy', 73, 'available', {}],
  ['rebuild', 1, 'active', {}],
  ['deleted', 1, 'active', {}],
  ['manage', 4, 'enroll', {}],
  ['provide', 4, 'manageable', {}],
  ['inspect', 6, 'manageable', {}],
  ['abort', 13, 'clean wait', {}],
  ['abort', 41, 'inspect wait', {}],
  ['abort', 110, 'wait call-back', {}],
  ['clean', 15, 'manageable', { clean_steps: [{ interface: 'power', step: 'x' }] }],
  ['adopt', 17, 'manageable', {}],
  ['rescue', 38, 'active', { rescue_password: 'x' }],
  ['unrescue', 38, 'rescue', {}],
  ['unhold', 85, 'clean hold', {}],
  ['service', 87, 'active', { service_steps: [{ interface: 'power', step: 'x' }] }],
] as const)('accepts %s since 1.%p from %s', async (target, since, state, args) => {
  await be(state);
  const ask = (minor: number) => api.ask('PUT', `/v1/nodes/${ONE}/states/provision`, minor, { body: { target, ...args } });
  if (since > 1) expect((await ask(since - 1)).status).toBe(406);
  const { status, headers, text } = await ask(since);
  expect([status, text, headers['location'], headers['content-type']]).toEqual([202, '', `${api.url()}/v1/nodes/${ONE}/states`, undefined]);
  expect(api.conductor.calls.at(-1)).toEqual({ name: 'provision', arguments: [ONE, target, args] });
});

it('refuses a verb that the state does not allow with 400, or with 409 while the node is reserved', async () => {
  expect(await provision({ target: 'active' })).toMatchObject({
    status: 400,
    fault: `The requested action "active" can not be performed on node "${ONE}" while it is in state "enroll".`,
  });
  await api.database.store().nodes.reserve(ONE, 'elsewhere');
  expect(await provision({ target: 'active' })).toMatchObject({
    status: 409,
    fault: `Node ${ONE} is locked by host elsewhere, please retry after the current operation is completed.`,
  });
});
it.each(['active', 'rebuild'])('refuses %s for nodes in maintenance', async (target) => {
  await be('active', { maintenance: true });
  expect(await provision({ target })).toMatchObject({
    status: 400,
    fault: `The provisioning operation can't be performed on node ${ONE} because it's in maintenance mode.`,
  });
});

it.each([
  [{ configdrive: 'x' }, NEWEST, 400, 'Adding a config drive is only supported when setting provision state to active, rebuild'],
  [{ configdrive: 5 }, NEWEST, 400, "Expected types <class 'NoneType'>, <class 'dict'>, <class 'str'> for configdrive: 5"],
  [{ clean_steps: [STEP] }, NEWEST, 400, '"clean_steps" is only valid when setting target provision state to clean'],
  [{ clean_steps: 5 }, NEWEST, 400, "Expected types <class 'NoneType'>, <class 'list'> for clean_steps: 5"],
  [{ deploy_steps: [STEP] }, 68, 406, 'Request not acceptable. The minimal required API version should be 1.69'],
  [{ deploy_steps: [STEP] }, 69, 400, '"deploy_steps" is only valid when setting target provision state to active or rebuild'],
  [{ service_steps: [STEP] }, NEWEST, 400, '"service_steps" is only valid when setting target provision state to service'],
  [{ rescue_password: 'x' }, NEWEST, 400, '"rescue_password" is only valid when setting target provision state to rescue'],
  [{ disable_ramdisk: true }, NEWEST, 400, 'disable_ramdisk is supported only with manual cleaning or servicing'],
  [{ disable_ramdisk: 'zz' }, NEWEST, 400, /^Invalid disable_ramdisk: Unrecognized value 'zz'/],
  [{ runbook: 'x' }, 91, 406, 'Request not acceptable.'],
  [{ runbook: 'x' }, 92, 404, 'Runbook x could not be found.'],
  [{ nosuch: 1 }, NEWEST, 400, 'Unexpected arguments: nosuch'],
])('refuses manage with %j at 1.%p with %p', async (args, minor, status, sentence) => {
  const asked = api.conductor.calls.length;
  const answer = await provision({ target: 'manage', ...args }, minor);
  expect(answer.status).toBe(status);
  expect(answer.fault).toEqual(typeof sentence === 'string' ? sentence : matching(sentence));
  expect(api.conductor.calls.length).toBe(asked);
});

const GZIPPED = gzipSync('a config drive').toString('base64');
it.each([
  [`${GZIPPED.slice(0, 8)}\n ${GZIPPED.slice(8)}\n`, 1, 202],
  ['H4sIAAAA=\n', 1, 400],
  [Buffer.from('no gzip, but long enough to be some').toString('base64'), NEWEST, 400],
  [Buffer.concat([gzipSync('x').subarray(0, -4), Buffer.from([1, 0, 0, 4])]).toString('base64'), NEWEST, 400],
  ['file:///etc/passwd', NEWEST, 400],
  ['http://', NEWEST, 400],
  ['http://x/y', 1, 202],
  ['{"a": 1}', NEWEST, 400],
  [{ meta_data: {} }, 55, 400],
  [{ meta_data: {} }, 56, 202],
  [{ vendor_data: {} }, 58, 400],
  [{ vendor_data: {} }, 59, 202],
  [{ user_data: ['a'] }, 56, 202],
  [{ user_data: { ignition: { version: '3.4.0' } } }, NEWEST, 202],
  [{ user_data: { ignition: { version: '1' } } }, NEWEST, 400],
  [{ bogus: 1 }, NEWEST, 400],
  [{ meta_data: 5 }, NEWEST, 400],
])('answers the config drive %j at 1.%p with %p', async (configdrive, minor, status) => {
  await be('available');
  expect((await api.ask('PUT', `/v1/nodes/${ONE}/states/provision`, minor, { body: { target: 'active', configdrive } })).status).toBe(
    status,
  );
});

it.each([
  ['clean', [{}], "Invalid clean_steps: 'interface' is a required property"],
  ['clean', [5], "Invalid clean_steps: 5 is not of type 'object'"],
  [
    'clean',
    [{ interface: 'nosuch', step: 'x' }],
    "Invalid clean_steps: 'nosuch' is not one of ['vendor', 'power', 'management', 'firmware', 'deploy', 'bios', 'raid']",
  ],
  [
    'clean',
    [{ interface: 'vendor', step: 'send_raw' }],
    "clean step 'vendor.send_raw' is not allowed. Disallowed by operator configuration [api]disallow_clean_steps.",
  ],
  [
    'clean',
    [{ interface: 'power', step: 'x', execute_on_child_nodes: true, limit_child_node_execution: ['zz'] }],
    'Invalid entry detected for execute_on_child_node parameter in step x.',
  ],
  ['clean', [], '"clean_steps" is required when setting target provision state to clean'],
])('refuses the %s steps %j', async (kind, steps, sentence) => {
  await be('manageable');
  const { status, fault } = await provision({ target: kind, [`${kind}_steps`]: steps });
  // The rest of the message shows the schema and the step.
  expect([status, fault?.split('\n\n')[0]]).toEqual([400, sentence]);
});

it('explains a refused step with its schema as Ironic does', async () => {
  await be('manageable');
  const { fault } = await provision({ target: 'clean', clean_steps: [{ interface: 'power', step: 'x', bogus: 1 }] });
  // As the validator of Ironic, jsonschema 4.26, prints it.
  expect(fault?.split('\n\n').slice(1)).toEqual([
    [
      "Failed validating 'additionalProperties' in schema['items']:",
      "    {'type': 'object',",
      "     'required': ['interface', 'step'],",
      "     'properties': {'interface': {'description': 'driver interface',",
      "                                  'enum': ['vendor',",
      "                                           'power',",
      "                                           'management',",
      "                                           'firmware',",
      "                                           'deploy',",
      "                                           'bios',",
      "                                           'raid']},",
      "                    'step': {'description': 'name of clean step',",
      "                             'type': 'string',",
      "                             'minLength': 1},",
      "                    'args': {'description': 'additional args',",
      "                             'type': 'object',",
      "                             'properties': {}},",
      "                    'order': {'anyOf': [{'type': 'integer', 'minimum': 0},",
      "                                        {'type': 'string',",
      "                                         'minLength': 1,",
      "                                         'pattern': '^[0-9]+$'}]},",
      "                    'execute_on_child_nodes': {'description': 'Boolean if '",
      "                                                              'the step '",
      "                                                              'should be '",
      "                                                              'executed on '",
      "                                                              'child '",
      "                                                              'nodes.',",
      "                                               'type': 'boolean'},",
      "                    'limit_child_node_execution': {'description': 'List of '",
      "                                                                  'nodes '",
      "                                                                  'upon '",
      "                                                                  'which '",
      "                                                                  'to '",
      "                                                                  'execute '",
      "                                                                  'child '",
      "                                                                  'node '",
      "                                                                  'steps '",
      "                                                                  'on.',",
      "                                                   'type': 'array'}},",
      "     'additionalProperties': False}",
    ].join('\n'),
    "On instance[0]:\n    {'interface': 'power', 'step': 'x', 'bogus': 1}",
  ]);
});

it.each([
  [{ target: 'power on' }, NEWEST, 202, undefined],
  [{ target: 'power on', timeout: '5' }, 27, 202, undefined],
  [{ target: 'power on', timeout: 5 }, 26, 406, 'Request not acceptable.'],
  [{ target: 'soft power off' }, 26, 406, 'Request not acceptable.'],
  [{ target: 'soft rebooting' }, 27, 202, undefined],
  [{ target: 'power on', timeout: 0 }, NEWEST, 400, 'timeout has to be positive integer'],
  [{ target: 'nosuch' }, NEWEST, 400, 'The requested action "nosuch" can not be performed on node "one" while it is in state "None".'],
  [{}, NEWEST, 400, 'Missing mandatory parameter: target'],
  [{ target: 5 }, NEWEST, 400, 'Expected string for target: 5'],
])('answers the power request %j at 1.%p with %p', async (body, minor, status, sentence) =>
  expect(await power(body, minor)).toMatchObject({ status, fault: sentence }),
);
it('refuses power changes during cleaning, and power off with disable_power_off', async () => {
  await be('clean wait');
  expect((await power({ target: 'power off' })).status).toBe(400);
  await be('manageable', { disable_power_off: true });
  expect(await power({ target: 'power off' })).toMatchObject({ status: 409, fault: 'Failed to set node power state to power off.' });
  expect((await power({ target: 'power on' })).status).toBe(202);
});

it('sets and clears maintenance, by the body and by the query', async () => {
  const put = (path: string, body?: unknown) =>
    api.ask('PUT', `/v1/nodes/one/maintenance${path}`, NEWEST, body === undefined ? {} : { body });
  expect(await put('', { reason: 'broken' })).toMatchObject({ status: 202, text: '' });
  expect((await api.ask('GET', '/v1/nodes/one')).body).toMatchObject({ maintenance: true, maintenance_reason: 'broken' });
  expect((await put('?reason=other')).status).toBe(202);
  expect((await put('', { reason: 5 })).fault).toBe('Expected string for reason: 5');
  expect((await api.ask('DELETE', '/v1/nodes/one/maintenance')).status).toBe(202);
  expect(api.conductor.calls.at(-1)).toEqual({ name: 'setMaintenance', arguments: [ONE, false, null] });
});
it('returns the sensor readings of the conductor', async () => {
  const { status, body } = await api.ask('GET', '/v1/nodes/one/sensors');
  expect(status).toBe(200);
  expect(body).toEqual({ sensors: [{ kind: 'fan', sensor: 'Fan 1', entity: 'CPU', unit: 'rpm', value: 4200 }] });
  expect((await api.ask('GET', '/v1/nodes/none/sensors')).status).toBe(404);
});
it('returns what a machine said on its serial line, in bounded parts', async () => {
  const log = '/v1/nodes/one/console_log';
  expect(await api.ask('GET', log)).toMatchObject({
    status: 200,
    body: { start: 0, end: 9, offset: 0, next_offset: 9, text: 'login: \u001b' },
  });
  expect(api.conductor.calls.at(-1)).toEqual({ name: 'readConsoleLog', arguments: [ONE, null, 65_536] });
  expect((await api.ask('GET', `${log}?offset=5&limit=262144`)).status).toBe(200);
  expect(api.conductor.calls.at(-1)).toEqual({ name: 'readConsoleLog', arguments: [ONE, 5, 262_144] });
  for (const query of ['offset=-1', 'offset=x', 'offset=1.5', 'limit=0', 'limit=262145', 'limit=1e99', 'offset=99999999999999999999'])
    expect([query, (await api.ask('GET', `${log}?${query}`)).status]).toEqual([query, 400]);
  expect((await api.ask('GET', '/v1/nodes/none/console_log')).status).toBe(404);
});
it('reads and sets boot devices through the conductor', async () => {
  const device = '/v1/nodes/one/management/boot_device';
  expect((await api.ask('GET', device)).body).toEqual({ boot_device: 'pxe', persistent: false });
  expect((await api.ask('GET', `${device}/supported`)).body).toEqual({ supported_boot_devices: ['pxe', 'disk'] });
  expect((await api.ask('PUT', device, NEWEST, { body: { boot_device: 'disk', persistent: 'yes' } })).status).toBe(204);
  expect(api.conductor.calls.at(-1)).toEqual({ name: 'setBootDevice', arguments: [ONE, 'disk', true] });
});
