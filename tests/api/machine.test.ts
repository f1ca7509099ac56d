/** Requests that go through the conductor to a driver: what the API accepts, what it asks of the conductor, and what it answers. */
import { useApi } from '../support/api';
import { NEWEST } from '../support/newest';

const api = useApi({ 'api.disallow_clean_steps': ['bios.factory_reset'] });
const ONE = 'aaaaaaaa-0000-4000-8000-000000000001';
const at = `/v1/nodes/${ONE}`;

beforeEach(async () => {
  await api.database.query('DELETE FROM nodes');
  await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', uuid: ONE, name: 'one' } });
});
const call = () => api.conductor.calls.at(-1);

it.each<[method: string, path: string, body: unknown, status: number, asked: string, args: readonly unknown[]]>([
  ['PUT', '/states/raid', {}, 204, 'setRaidConfig', [ONE, {}, "RAID config validation error: 'logical_disks' is a required property"]],
  ['PUT', '/states/boot_mode', { target: 'uefi' }, 202, 'setBootMode', [ONE, 'uefi']],
  ['PUT', '/states/secure_boot', { target: 'on' }, 202, 'setSecureBoot', [ONE, true]],
  ['PUT', '/states/console', { enabled: 'off' }, 202, 'setConsole', [ONE, false]],
  ['PUT', '/states/console', { enabled: null }, 202, 'setConsole', [ONE, false]],
  ['PUT', '/management/inject_nmi', {}, 204, 'injectNmi', [ONE]],
  ['GET', '/management/indicators/led@system', undefined, 200, 'getIndicator', [ONE, 'system', 'led']],
  ['PUT', '/management/indicators/a@b@c', { state: 'on' }, 204, 'setIndicator', [ONE, 'b@c', 'a', 'on']],
  ['POST', '/vendor_passthru/x', { a: 1 }, 202, 'callVendor', [ONE, 'x', 'POST', { a: 1 }]],
  ['DELETE', '/vendor_passthru?method=sync', undefined, 200, 'callVendor', [ONE, 'sync', 'DELETE', {}]],
  ['DELETE', '/vendor_passthru/sync', { id: '1' }, 200, 'callVendor', [ONE, 'sync', 'DELETE', { id: '1' }]],
  ['GET', '/vendor_passthru?method=sync', { id: '1' }, 200, 'callVendor', [ONE, 'sync', 'GET', { id: '1' }]],
  [
    'POST',
    '/vmedia',
    { device_type: 'cdrom', image_url: 'HTTPS://h/x' },
    204,
    'attachVirtualMedia',
    [ONE, 'cdrom', 'HTTPS://h/x', 'local'],
  ],
  [
    'POST',
    '/vmedia',
    { device_type: 'disk', image_url: 'nfs://h/x', image_download_source: 'http' },
    204,
    'attachVirtualMedia',
    [ONE, 'disk', 'nfs://h/x', 'http'],
  ],
  ['DELETE', '/vmedia', undefined, 204, 'detachVirtualMedia', [ONE, null]],
  ['DELETE', '/vmedia?device_types=disk,cdrom', undefined, 204, 'detachVirtualMedia', [ONE, ['disk', 'cdrom']]],
])('%s %s %j calls the conductor', async (method, path, body, status, asked, args) => {
  if (asked === 'setRaidConfig') api.conductor.fail('setRaidConfig', new Error('not reached'));
  const answer = await api.ask(method, at + path, NEWEST, body === undefined ? {} : { body });
  expect(call()).toEqual({ name: asked, arguments: args });
  if (asked !== 'setRaidConfig') expect(answer.status).toBe(status);
});

it.each<[method: string, path: string, minor: number, body: unknown, status: number, fault: string]>([
  ['PUT', '/states/raid', 11, {}, 406, 'Request not acceptable.'],
  ['PUT', '/states/raid', 12, [], 400, "Expected types <class 'dict'> for target_raid_config: []"],
  ['PUT', '/states/boot_mode', 75, { target: 'x' }, 404, 'This endpoint is supported starting with the API version 1.76'],
  ['PUT', '/states/boot_mode', 76, { target: 'x' }, 400, 'Invalid boot mode x requested for node. Allowed boot modes are: bios, uefi'],
  [
    'PUT',
    '/states/secure_boot',
    76,
    { target: null },
    400,
    'Invalid secure_boot None requested for node. Allowed secure_boot states are: True, False) ',
  ],
  ['PUT', '/management/inject_nmi', 28, {}, 404, 'Resource could not be found.'],
  ['GET', '/management/indicators/led', 63, undefined, 400, 'Malformed indicator name "led"'],
  ['PUT', '/management/indicators', 63, {}, 400, 'Missing mandatory parameter: indicator'],
  ['POST', '/vendor_passthru', 1, {}, 400, 'Missing mandatory parameter: method'],
  ['POST', '/vendor_passthru?method=', 1, {}, 400, 'Method not specified'],
  ['POST', '/vendor_passthru/x', 1, [1], 400, "Expected types <class 'dict'> for data: [1]"],
  ['POST', '/vmedia', 89, { device_type: 'cdrom', image_url: '/x' }, 400, 'Unsupported or missing URL scheme: '],
  ['DELETE', '/vmedia?device_types=x,disk', 89, undefined, 400, 'Invalid device type(s) x (valid are disk, cdrom, floppy)'],
  ['GET', '/vmedia', 92, undefined, 404, 'The resource could not be found.'],
  [
    'GET',
    '/bios?fields=name&detail=true',
    73,
    undefined,
    400,
    "Schema error: Additional properties are not allowed ('detail', 'fields' were unexpected)",
  ],
  ['GET', '/bios?fields=name&detail=true', 74, undefined, 400, 'Can not specify ?detail=True and fields in the same request.'],
  ['GET', '/bios/a%20b', 74, undefined, 400, "Schema error: 'a b' does not match '(?i)^[A-Z0-9-._~]+$'"],
  ['GET', '/bios/nosuch', 74, undefined, 404, `Node ${ONE} doesn't have a BIOS setting 'nosuch'`],
  ['GET', '/firmware?detail=true', 86, undefined, 400, "Schema error: 'true' is not of type 'boolean'"],
  [
    'GET',
    '/firmware?fields=vendor',
    113,
    undefined,
    400,
    'Fields vendor are not allowed in this API version. They require at least API version 1.114.',
  ],
])('%s %s at 1.%i: %j is refused', async (method, path, minor, body, status, fault) => {
  expect(await api.ask(method, at + path, minor, body === undefined ? {} : { body })).toMatchObject({ status, fault });
});

it('asks the conductor for RAID support before it refuses an invalid RAID configuration', async () => {
  const disk = { size_gb: 1, raid_level: '1', is_root_volume: true };
  const put = (config: object) => api.ask('PUT', `${at}/states/raid`, NEWEST, { body: config });
  expect((await put({ logical_disks: [disk] })).status).toBe(204);
  expect(call()?.arguments).toEqual([ONE, { logical_disks: [disk] }, undefined]);
  expect(await put({ logical_disks: [disk, disk] })).toMatchObject({
    status: 400,
    fault: 'Raid config cannot have more than one root volume. 2 root volumes were specified',
  });
  expect(await put({ logical_disks: [{ ...disk, number_of_physical_disks: 0 }] })).toMatchObject({
    fault: 'RAID config validation error: 0 is less than or equal to the minimum of 0',
  });
  expect(await put({ logical_disks: [{ ...disk, physical_disks: ['a'] }] })).toMatchObject({
    fault: "RAID config validation error: 'controller' is a dependency of 'physical_disks'",
  });
});

it.each(['cleaning', 'clean wait', 'inspect wait', 'servicing'] as const)(
  'refuses a change of boot mode and secure boot while the node is in "%s"',
  async (provision_state) => {
    await api.database.store().nodes.update(ONE, { provision_state });
    for (const [what, target] of [
      ['boot_mode', 'uefi'],
      ['secure_boot', true],
    ] as const)
      expect(await api.ask('PUT', `${at}/states/${what}`, NEWEST, { body: { target } })).toMatchObject({ status: 409 });
  },
);

it('refuses the steps of [api]disallow_clean_steps', async () => {
  await api.database.store().nodes.update(ONE, { provision_state: 'manageable' });
  const steps = [{ interface: 'bios', step: 'factory_reset' }];
  expect(await api.ask('PUT', `${at}/states/provision`, NEWEST, { body: { target: 'clean', clean_steps: steps } })).toMatchObject({
    status: 400,
    fault: "clean step 'bios.factory_reset' is not allowed. Disallowed by operator configuration [api]disallow_clean_steps.",
  });
});

it('shows BIOS settings with the fields of the version', async () => {
  await api.database.store().biosSettings.put(ONE, [
    { name: 'virt', value: 'on', unique: true },
    { name: 'Boot', value: null },
  ]);
  const keys = async (query: string, minor: number) =>
    Object.keys(((await api.ask('GET', `${at}/bios${query}`, minor)).body.bios as object[])[0]!);
  expect(await keys('', 40)).toEqual(['created_at', 'updated_at', 'name', 'value', 'links']);
  expect(await keys('?detail=true', 74)).toContain('upper_bound');
  expect(await keys('?fields=unique,node_uuid', 74)).toEqual(['created_at', 'updated_at', 'unique', 'node_uuid', 'links']);
  expect((await api.ask('GET', `${at}/bios/virt`, 74)).body).toMatchObject({ virt: { value: 'on', unique: true, allowable_values: [] } });
  expect((await api.ask('GET', `${at}/bios/virt`, 73)).body.virt).not.toHaveProperty('unique');
});

it('shows firmware with the fields of the version', async () => {
  await api.database.store().firmwareComponents.put(ONE, [{ component: 'bmc', initial_version: '1', vendor: 'v' }]);
  const shown = async (query: string, minor: number) => (await api.ask('GET', `${at}/firmware${query}`, minor)).body.firmware as object[];
  expect((await shown('', 86))[0]).not.toHaveProperty('vendor');
  expect((await shown('', 114))[0]).toMatchObject({ component: 'bmc', initial_version: '1', current_version: null, vendor: 'v' });
  expect(Object.keys((await shown('?fields=model', 114))[0]!)).toEqual(['created_at', 'updated_at', 'model']);
});

it('shows the console state, indicators, RAID properties and vendor methods', async () => {
  const get = async (path: string) => (await api.ask('GET', path, NEWEST)).body;
  expect(await get(`${at}/states/console`)).toEqual({ console_enabled: false, console_info: null });
  expect(await get(`${at}/management/indicators`)).toMatchObject({
    indicators: [
      {
        name: 'led@system',
        component: 'system',
        readonly: false,
        links: [{ href: `${api.url()}${at}/management/indicators/led@system` }, {}],
      },
    ],
  });
  expect(Object.keys(await get('/v1/drivers/fake-hardware/raid/logical_disk_properties'))).toContain('raid_level');
  expect(await api.ask('GET', '/v1/drivers/nobody/raid/logical_disk_properties', NEWEST)).toMatchObject({
    status: 404,
    fault: "The driver 'nobody' is unknown.",
  });
  expect(await get('/v1/drivers/fake-hardware/vendor_passthru/methods')).toEqual({});
});
