/** Older spellings of the paths below a node, bodies of DELETE, and values of properties and filters that both refuse. */
import { at, get, MAX, quietly, send, type Sent, type Step } from './steps';
import { NOBODY, op } from './requests-world';

const NODE = 'aaaaaaaa-0000-4000-8000-0000000000f1';
const NAME = 'older';
const node = `/v1/nodes/${NODE}`;
const older = (path: string): string => `/v1/nodes/${path}`;

/** The versions before and after names of nodes, and the newest one. */
const VERSIONS = [4, 5, MAX];
const everywhere = (path: string): Sent[] => VERSIONS.map((minor) => get(older(path), minor));

/** The sub-controllers, each with the node behind it, between its parts, as an argument, and without a node. */
const CONTROLLERS = [
  'states',
  'states/console',
  'management/boot_device',
  'management/boot_device/supported',
  'management/indicators',
  'vendor_passthru',
  'vendor_passthru/methods',
  'validate',
];
const reads = (): Sent[] => [
  ...CONTROLLERS.flatMap((controller) => [
    ...everywhere(controller),
    ...[NODE, NAME, NOBODY, 'a%20b'].flatMap((ident) => [
      ...everywhere(`${controller}/${ident}`),
      ...everywhere(`${controller}?node_ident=${ident}`),
    ]),
    get(older(`${controller}?node_ident=`)),
    // Both servers refuse two mistakes, for indicators the other one first.
    ...(controller === 'management/indicators' ? [] : [get(older(`${controller}?node=${NODE}`))]),
  ]),
  ...[
    `states/${NODE}/console`,
    `management/${NODE}/boot_device`,
    `management/boot_device/${NODE}/supported`,
    `management/indicators/${NODE}/led@system`,
    `vendor_passthru/${NODE}/methods`,
    `vendor_passthru/${NODE}?method=first_method`,
    `validate?node_uuid=${NODE}`,
    'states/power',
    'management',
    'maintenance',
  ].flatMap(everywhere),
];

const writes = (): Step[] =>
  (
    [
      ['PUT', `states/power/${NODE}`, { target: 'power off' }],
      ['PUT', 'states/power', { target: 'power on', node_ident: NODE }],
      ['PUT', `states/power?node_ident=${NODE}&target=power%20off`, undefined],
      ['PUT', `states/provision/${NODE}`, { target: 'manage' }],
      ['PUT', `states/provision?node_ident=${NODE}`, { target: 'nosuch' }],
      ['PUT', `states/console/${NODE}`, { enabled: false }],
      ['PUT', `states/${NODE}/console`, { enabled: false }],
      ['PUT', `states/${NODE}/power`, { target: 'power on' }],
      ['PUT', 'states', { target: 'power on' }],
      ['PUT', `management/boot_device/${NODE}`, { boot_device: 'pxe' }],
      ['PUT', 'management/boot_device', { boot_device: 'pxe', node_ident: NODE }],
      ['PUT', `management/inject_nmi/${NODE}`, {}],
      ['PUT', `maintenance/${NODE}`, { reason: 'x' }],
      ['DELETE', `maintenance/${NODE}`, undefined],
      ['PUT', `maintenance?node_ident=${NODE}`, { reason: 'x' }],
      ['DELETE', `maintenance?node_ident=${NODE}`, undefined],
      ['DELETE', 'maintenance', undefined],
      ['DELETE', `states/console/${NODE}`, undefined],
      ['POST', `vendor_passthru/${NODE}/first_method`, { bar: 'x' }],
      ['POST', `vendor_passthru/${NODE}?method=first_method`, { bar: 'x' }],
      ['POST', `vendor_passthru?node_ident=${NODE}&method=first_method`, { bar: 'x' }],
    ] as const
  ).flatMap(([method, path, body]) => [
    { method, path: older(path), version: at(MAX), ...(body === undefined ? {} : { body }) },
    { settle: NODE },
    get(`${node}/states`),
  ]);

const SIZES = ['memory_mb', 'local_gb', 'cpus'];
/** Sizes in properties, at a PATCH and at a POST. */
const sizes = (): Step[] =>
  SIZES.flatMap((name) =>
    [-1, '-1', 0, '8', 'x', null, 1.5, ''].flatMap((value): Step[] => [
      send('PATCH', node, [op('add', `/properties/${name}`, value)]),
      get(node),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: 'aaaaaaaa-0000-4000-8000-0000000000f2', properties: { [name]: value } }),
      quietly(send('DELETE', '/v1/nodes/aaaaaaaa-0000-4000-8000-0000000000f2', undefined)),
    ]),
  );

const filters = (): Sent[] =>
  ['provision_state=', 'fault=', 'provision_state=nosuch'].flatMap((query) =>
    [9, 42, MAX].flatMap((minor) => [get(`/v1/nodes?${query}`, minor), get(`/v1/nodes/detail?${query}`, minor)]),
  );

/** A body of DELETE whose members are arguments, and bodies without members. */
const deletions = (): Step[] =>
  [{ a: 1 }, { a: 1, b: 2 }, [1], '{}', '"x"', 'null', '{bad'].flatMap((body): Step[] => [
    { method: 'DELETE', path: `/v1/nodes/${NODE}`, version: at(MAX), body },
    quietly(send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: NODE, name: NAME })),
  ]);

export const OLDER_PATH_GROUPS: Readonly<Record<string, () => readonly Step[]>> = {
  'older spellings of paths': () => [
    send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: NODE, name: NAME }),
    ...reads(),
    ...writes(),
  ],
  'sizes in properties': sizes,
  'empty filters': filters,
  'bodies of DELETE': () => [
    quietly(send('PUT', `${node}/maintenance`, {})),
    quietly(send('DELETE', node, undefined)),
    send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: NODE, name: NAME }),
    ...deletions(),
    quietly(send('DELETE', node, undefined)),
  ],
};
