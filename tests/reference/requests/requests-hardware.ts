/**
 * Requests that go through the conductor to a driver: RAID, boot mode, console, indicators, passthru, BIOS settings, firmware, virtual
 * media.
 */
import { get, send, type Sent, type Step } from './steps';
import { NEWEST } from '../../support/newest';

/** A node with all interfaces of fake hardware, and one with as few as possible. */
const FAKE = 'aaaaaaaa-0000-4000-8000-0000000000d1';
const BARE = 'aaaaaaaa-0000-4000-8000-0000000000d2';
const fake = `/v1/nodes/${FAKE}`;
const bare = `/v1/nodes/${BARE}`;
const settled = (node: string): Step => ({ settle: node });

const start = (): Step[] => [
  send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: FAKE, name: 'faked' }),
  send('POST', '/v1/nodes', {
    driver: 'fake-hardware',
    uuid: BARE,
    ...Object.fromEntries(
      ['bios', 'console', 'firmware', 'inspect', 'raid', 'rescue', 'vendor'].map((kind) => [`${kind}_interface`, `no-${kind}`]),
    ),
  }),
];

const disk = { size_gb: 1, raid_level: '1' };
const CONFIGS: readonly unknown[] = [
  {},
  undefined,
  null,
  [],
  'x',
  5,
  { x: 1 },
  { logical_disks: [] },
  { logical_disks: {} },
  { logical_disks: [5] },
  { logical_disks: [{}] },
  { logical_disks: [{ size_gb: -1, raid_level: '77' }] },
  { logical_disks: [{ size_gb: 'all', raid_level: '1' }] },
  { logical_disks: [{ size_gb: 1.5, raid_level: '1' }] },
  { logical_disks: [{ size_gb: 1, raid_level: 1 }] },
  {
    logical_disks: [
      { ...disk, is_root_volume: true },
      { ...disk, is_root_volume: true },
    ],
  },
  { logical_disks: [{ ...disk, is_root_volume: 'yes' }] },
  { logical_disks: [{ ...disk, physical_disks: ['a'] }] },
  { logical_disks: [{ ...disk, controller: 'c', physical_disks: [{}] }] },
  { logical_disks: [{ ...disk, controller: 'c', physical_disks: [{}, {}] }] },
  { logical_disks: [{ ...disk, number_of_physical_disks: 0 }] },
  { logical_disks: [{ ...disk, disk_type: 'tape' }] },
  { logical_disks: [{ ...disk, bogus: 1, other: 2 }] },
  { logical_disks: [disk], bogus: 1 },
  { logical_disks: [{ size_gb: 'MAX', raid_level: '1+0', is_root_volume: true, interface_type: 'sas', disk_type: 'ssd' }] },
];
const raid = (): Step[] => [
  ...[fake, bare].flatMap((node) =>
    CONFIGS.flatMap((config) => [send('PUT', `${node}/states/raid`, config), get(`${node}?fields=target_raid_config,raid_config`)]),
  ),
  ...[11, 12, 31, 96].flatMap((minor) => [
    send('PUT', `${fake}/states/raid`, {}, minor),
    send('PUT', `${fake}/states/raid`, [], minor),
    send('PUT', '/v1/nodes/nobody/states/raid', {}, minor),
    get(`${fake}/states`, minor),
    ...['fake-hardware', 'nobody'].map((driver) => get(`/v1/drivers/${driver}/raid/logical_disk_properties`, minor)),
  ]),
  send('PUT', `${fake}/states/raid?x=1`, {}),
  get('/v1/drivers/fake-hardware/raid/logical_disk_properties?x=1'),
  get('/v1/drivers/fake-hardware/raid'),
  get('/v1/drivers/manual-management/raid/logical_disk_properties'),
];

const bootMode = (): Step[] =>
  [fake, bare]
    .flatMap((node) => [
      ...['boot_mode', 'secure_boot', 'console'].flatMap((what) =>
        [
          {},
          { target: 'uefi' },
          { target: 'x' },
          { target: 5 },
          { target: null },
          { target: true },
          { target: 'on' },
          { enabled: true },
          { enabled: 'zz' },
          { enabled: 'off' },
          { enabled: 0 },
          { target: 'bios', x: 1 },
          [],
          undefined,
        ]
          .flatMap((body) =>
            [1, 75, 76, NEWEST]
              .filter((minor) => body !== undefined || minor > 75)
              .flatMap((minor): Step[] => [send('PUT', `${node}/states/${what}`, body, minor), settled(node.split('/').at(-1)!)]),
          )
          .concat([get(`${node}/states`), get(`${node}/states`, 74), get(`${node}/states`, 75)]),
      ),
      get(`${node}/states/console`),
      get(`${node}/states/console?x=1`),
      send('PUT', `${node}/states/console`, { enabled: true }),
      settled(node.split('/').at(-1)!),
      get(`${node}/states/console`),
      get(`${node}?fields=console_enabled,last_error`),
      send('PUT', `${node}/states/console`, { enabled: true }),
      send('PUT', `${node}/states/console`, { enabled: false }),
      settled(node.split('/').at(-1)!),
      get(`${node}/states/console`, 1),
      get(`${node}/states`),
    ])
    .concat(
      ['boot_mode', 'secure_boot', 'console'].flatMap((what) =>
        [75, NEWEST].flatMap((minor) => [
          send('PUT', `/v1/nodes/nobody/states/${what}`, { target: true }, minor),
          send('PUT', `/v1/nodes/nobody/states/${what}`, { target: 'uefi' }, minor),
          send('PUT', `/v1/nodes/nobody/states/${what}`, { enabled: true }, minor),
          get(`/v1/nodes/nobody/states/${what}`, minor),
          send('PUT', `/v1/nodes/faked/states/${what}`, { target: 'zz' }, minor),
        ]),
      ),
      [get(`${bare}?fields=boot_mode,secure_boot`, 74), get(`${bare}?fields=boot_mode,secure_boot`, 75)],
    );

const indicators = (): Step[] => [
  ...[fake, bare, '/v1/nodes/nobody', '/v1/nodes/faked', '/v1/nodes/cccccccc-0000-4000-8000-000000000000'].flatMap((node) =>
    [1, 5, 28, 29, 63, NEWEST].flatMap((minor) => [
      get(`${node}/management/indicators`, minor),
      ...['led@system', 'led-0@chassis', 'led', 'x@system', 'x@y', '@', 'led@'].map((name) =>
        get(`${node}/management/indicators/${name}`, minor),
      ),
      send('PUT', `${node}/management/inject_nmi`, {}, minor),
      send('PUT', `${node}/management/inject_nmi`, { x: 1 }, minor),
    ]),
  ),
  ...[fake, bare].flatMap((node) => [
    ...[{ state: 'on' }, { state: 5 }, { state: 'zz' }, {}, { x: 1 }, undefined, []].flatMap((body) => [
      send('PUT', `${node}/management/indicators/led@system`, body),
      send('PUT', `${node}/management/indicators/led`, body),
    ]),
    send('PUT', `${node}/management/inject_nmi`, undefined),
    send('PUT', `${node}/management/indicators`, { state: 'on' }),
    get(`${node}/management/inject_nmi`),
  ]),
];

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const passthru = (): Step[] => {
  const bodies = [{}, { bar: 'meow' }, { bar: 'kazoo' }, { bar: 5 }, { bar: '' }, undefined];
  return [
    ...[fake, '/v1/nodes/faked', '/v1/nodes/nobody'].flatMap((node) =>
      ['second_method', 'third_method_sync', 'fourth_method_shared_lock', 'log_passthrough', 'nosuch', 'methods', 'first_method'].flatMap(
        (name) => [
          ...bodies.flatMap((body) =>
            [1, NEWEST].flatMap((minor): Step[] => [send('POST', `${node}/vendor_passthru/${name}`, body, minor), settled(FAKE)]),
          ),
          send('POST', `${node}/vendor_passthru?method=${name}`, { bar: 'meow' }),
          settled(FAKE),
          ...methods.filter((method) => method !== 'POST').map((method) => send(method, `${node}/vendor_passthru/${name}`, undefined)),
          ...methods
            .filter((method) => method !== 'POST')
            .map((method) => send(method, `${node}/vendor_passthru?method=${name}`, undefined)),
        ],
      ),
    ),
    // The reference caches the methods by driver, so the node without methods is not asked for them.
    get(`${fake}/vendor_passthru/methods?x=1`),
    ...['x', 'methods'].map((name) => send('POST', `${bare}/vendor_passthru/${name}`, {})),
    ...methods.flatMap((method) => [
      send(method, `${fake}/vendor_passthru`, undefined),
      send(method, `${fake}/vendor_passthru?method=`, undefined),
      send(method, `${fake}/vendor_passthru?method=a&method=b`, undefined),
      send(method, `${fake}/vendor_passthru/third_method_sync?x=1`, undefined),
      send(method, '/v1/drivers/fake-hardware/vendor_passthru', undefined),
      send(method, '/v1/drivers/fake-hardware/vendor_passthru?method=x', undefined),
      send(method, '/v1/drivers/fake-hardware/vendor_passthru/x', undefined),
      send(method, '/v1/drivers/fake-hardware/vendor_passthru/x?y=1', undefined),
      send(method, '/v1/drivers/fake-hardware/vendor_passthru/methods', undefined),
      send(method, '/v1/drivers/nobody/vendor_passthru/x', undefined),
      send(method, '/v1/drivers/nobody/vendor_passthru/methods', undefined),
    ]),
    send('POST', `${fake}/vendor_passthru/third_method_sync`, { bar: 'x', baz: 1 }),
    send('POST', `${fake}/vendor_passthru/third_method_sync`, []),
    send('POST', `${fake}/vendor_passthru/third_method_sync`, 'x'),
    send('POST', `${fake}/vendor_passthru/third_method_sync/x`, {}),
    get('/v1/drivers/fake-hardware/properties'),
    get('/v1/drivers/manual-management/properties'),
  ];
};

const clean = (steps: readonly unknown[], node = FAKE): Step[] => [
  send('PUT', `/v1/nodes/${node}/states/provision`, { target: 'clean', clean_steps: steps }),
  settled(node),
  get(`/v1/nodes/${node}?fields=provision_state,last_error,maintenance,fault`),
  // Brings the node back from a failed state.
  { ...send('PUT', `/v1/nodes/${node}/states/provision`, { target: 'manage' }), quiet: true },
  settled(node),
  { ...send('DELETE', `/v1/nodes/${node}/maintenance`, undefined), quiet: true },
];
const apply = (settings: unknown) => ({ interface: 'bios', step: 'apply_configuration', args: { settings } });
const looks = (): Sent[] => [
  ...[39, 40, 73, 74, NEWEST].flatMap((minor) => [
    get(`${fake}/bios`, minor),
    get(`${fake}/bios/virt`, minor),
    get('/v1/nodes/faked/bios/virt', minor),
  ]),
  ...[
    'detail=true',
    'detail=false',
    'detail=zz',
    'fields=name',
    'fields=',
    'fields=nosuch',
    'fields=created_at,value',
    'fields=name&detail=true',
    'fields=name&detail=false',
    'fields=unique,lower_bound',
    'fields=upper_bound',
    'x=1',
  ].flatMap((query) => [73, 74, NEWEST].map((minor) => get(`${fake}/bios?${query}`, minor))),
  ...['VIRT', 'vi%20rt', 'sriov', 'nosuch', 'a@b'].map((name) => get(`${fake}/bios/${name}`)),
  get(`${fake}/bios/virt?x=1`),
  get('/v1/nodes/nobody/bios', 39),
  get('/v1/nodes/nobody/bios'),
  get('/v1/nodes/nobody/bios/x'),
  get('/v1/nodes/faked/bios'),
  get(`${bare}/bios`),
];
const settings = (): Step[] => [
  send('PUT', `${fake}/states/provision`, { target: 'manage' }),
  settled(FAKE),
  ...clean([
    apply([
      { name: 'virt', value: 'on' },
      { name: 'sriov', value: 'off' },
      { name: 'five', value: 5 },
    ]),
  ]),
  ...looks(),
  ...clean([
    apply([
      { name: 'virt', value: 'off' },
      { name: 'new', value: null },
    ]),
  ]),
  get(`${fake}/bios?detail=true`),
  ...clean([{ interface: 'bios', step: 'cache_bios_settings' }]),
  get(`${fake}/bios`),
  ...clean([{ interface: 'firmware', step: 'update', args: { settings: [{ component: 'bmc', url: 'http://x' }] } }]),
  ...clean([{ interface: 'bios', step: 'nosuch' }]),
  ...clean([{ interface: 'raid', step: 'create_configuration' }]),
  ...clean([{ interface: 'vendor', step: 'trigger_servicewait' }]),
  ...clean([{ interface: 'bios', step: 'factory_reset' }]),
  get(`${fake}/bios`),
  ...[85, 86, 113, 114, NEWEST].flatMap((minor) => [
    ...[
      '',
      '?fields=component',
      '?fields=vendor',
      '?fields=vendor,model',
      '?fields=nosuch',
      '?fields=',
      '?detail=true',
      '?detail=',
      '?x=1',
    ].map((query) => get(`${fake}/firmware${query}`, minor)),
    get('/v1/nodes/nobody/firmware', minor),
    get('/v1/nodes/faked/firmware', minor),
  ]),
  get(`${fake}/firmware/x`),
];

const vmedia = (): Step[] =>
  [fake, bare, '/v1/nodes/nobody'].flatMap((node) => {
    const rest = (): Step[] =>
      [FAKE, BARE].filter((candidate) => node.endsWith(candidate)).flatMap((item): Step[] => [settled(item), get(`${node}/states`)]);
    return [
      ...[88, 89, 92, 93, NEWEST].flatMap((minor): Step[] => [
        get(`${node}/vmedia`, minor),
        send('POST', `${node}/vmedia`, {}, minor),
        send('DELETE', `${node}/vmedia`, undefined, minor),
        ...rest(),
      ]),
      ...[
        undefined,
        [],
        'x',
        { device_type: 'x', image_url: 'http://x' },
        { device_type: 'cdrom', image_url: 'x' },
        { device_type: 'cdrom', image_url: '' },
        { device_type: 'cdrom', image_url: 'ftp://x' },
        { device_type: 'cdrom', image_url: 'HTTP://x' },
        { device_type: 'floppy', image_url: 'nfs://x/y' },
        { device_type: 'cdrom', image_url: 'http://x', image_download_source: 'swift' },
        { device_type: 'cdrom', image_url: 'http://x', image_download_source: 'zz' },
        { device_type: 'cdrom', image_url: 'http://x', x: 1 },
        { device_type: 'cdrom', image_url: 5 },
        { device_type: 5, image_url: 'http://x' },
        { image_url: 'http://x' },
        { device_type: 'cdrom' },
      ].flatMap((body) => [send('POST', `${node}/vmedia`, body), ...rest()]),
      ...['device_types=x', 'device_types=x,y,cdrom', 'device_types=cdrom', 'device_types=', 'device_types=disk,cdrom', 'x=1'].flatMap(
        (query) => [send('DELETE', `${node}/vmedia?${query}`, undefined), ...rest()],
      ),
      get(`${node}/vmedia?x=1`),
      send('PUT', `${node}/vmedia`, {}),
    ];
  });

const end = (): Step[] => [FAKE, BARE].map((node) => send('DELETE', `/v1/nodes/${node}`, undefined));

export const HARDWARE_GROUPS: Readonly<Record<string, () => readonly Step[]>> = {
  hardwareStart: start,
  hardwareRaid: raid,
  hardwareBootMode: bootMode,
  hardwareIndicators: indicators,
  hardwarePassthru: passthru,
  hardwareSettings: settings,
  hardwareVirtualMedia: vmedia,
  hardwareEnd: end,
};
