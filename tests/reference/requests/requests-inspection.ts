/** Inspection by an agent, as clients and agents see it: the node that a callback finds, at which versions; abort, inventories, history. */
import { get, MAX, quietly, send, type Sent, type Step } from './steps';

const id = (last: string): string => `aaaaaaaa-0000-4000-8000-0000000001${last}`;
const [ONE, TWO, BMC_ONLY, SIX, FAKE, NONE, AWAY, BUSY] = ['01', '02', '03', '04', '05', '06', '07', '08'].map(id) as [
  string,
  string,
  string,
  string,
  string,
  string,
  string,
  string,
];
const NOBODY = 'cccccccc-0000-4000-8000-000000000000';
const mac = (last: number): string => `52:54:00:00:01:0${last}`;
const STRANGER = '52:54:00:00:01:ff';
const node = (uuid: string): string => `/v1/nodes/${uuid}`;
const provision = (uuid: string, target: string, minor = MAX): Sent => send('PUT', `${node(uuid)}/states/provision`, { target }, minor);
const BECOMES: Readonly<Record<string, string>> = { manage: 'manageable', inspect: 'inspect wait', abort: 'inspect failed' };
const moved = (uuid: string, target: string, minor = MAX): Step[] => [
  provision(uuid, target, minor),
  { settle: uuid, state: BECOMES[target]! },
];
const settled = (uuid: string, state = 'manageable'): Step => ({ settle: uuid, state });

const agents: readonly (readonly [uuid: string, bmc: string, port?: string])[] = [
  [ONE, '192.0.2.1', mac(1)],
  [TWO, '192.0.2.1', mac(2)],
  [BMC_ONLY, '192.0.2.3'],
  [SIX, '2001:db8::4', mac(4)],
];
const start = (): Step[] => [
  ...agents.flatMap(([uuid, address, port]): Step[] => [
    send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid, inspect_interface: 'agent', driver_info: { ipmi_address: address } }),
    ...(port ? [send('POST', '/v1/ports', { node_uuid: uuid, address: port })] : []),
    ...moved(uuid, 'manage'),
  ]),
  ...[
    { uuid: FAKE, name: 'inspected', inspect_interface: 'fake' },
    { uuid: NONE, inspect_interface: 'no-inspect' },
  ].flatMap((more): Step[] => [send('POST', '/v1/nodes', { driver: 'fake-hardware', ...more }), ...moved(more.uuid, 'manage')]),
];

const inventory = (macs: readonly unknown[], more: object = {}): object => ({
  interfaces: macs.map((address, index) => ({ name: `eth${index}`, mac_address: address, ipv4_address: '192.0.2.77', has_carrier: true })),
  cpu: { architecture: 'x86_64', count: 2 },
  memory: { physical_mb: 1024 },
  disks: [],
  boot: { current_boot_mode: 'uefi', pxe_interface: String(macs.at(-1)) },
  ...more,
});
const callback = (macs: readonly unknown[], more: object = {}, query = '', version: string | null = `1.${MAX}`): Sent => ({
  method: 'POST',
  path: `/v1/continue_inspection${query}`,
  version,
  body: { inventory: inventory(macs, more), root_disk: null },
});
const bmc = (address: unknown): object => ({ bmc_address: address });
/** Callbacks that match no node, or more than one. */
const refused = (): Step[] => [
  callback([STRANGER]),
  callback([mac(1), mac(2)]),
  callback([STRANGER], bmc('192.0.2.1')),
  callback([STRANGER], bmc('192.0.2.99')),
  callback([mac(1)], bmc('192.0.2.3')),
  callback([mac(1)], bmc('192.0.2.3'), `?node_uuid=${ONE}`),
  callback([mac(2)], {}, `?node_uuid=${ONE}`),
  callback([mac(1)], {}, `?node_uuid=${BMC_ONLY}`),
  callback([mac(1)], {}, `?node_uuid=${NOBODY}`),
  callback([mac(1)], {}, `?node_uuid=${ONE}`, '1.1'),
  callback([mac(1)], {}, `?node_uuid=${ONE}`, null),
  callback([mac(1)], {}, '', '1.2'),
  callback([mac(1)], {}, '', '1.83'),
  callback([mac(1)], {}, '?x=1'),
  callback([mac(1)], {}, `?node_uuid=${ONE}&x=1`),
  callback([mac(1)], {}, '?node_uuid=inspected'),
  callback(['zz']),
  callback(['zz', ''], bmc('')),
  callback(['zz'], bmc(null)),
  callback([mac(1)], bmc(5)),
  callback([mac(1)], { bmc_v6address: {} }),
  callback([STRANGER], { bmc_v6address: '2001:db8::5' }),
  callback([STRANGER], { bmc_v6address: '2001:0DB8:0::4' }),
  callback([], {}),
  callback([5]),
  callback([null]),
  { ...callback([mac(1)]), body: { inventory: inventory([mac(1)], { interfaces: {} }) } },
  { ...callback([mac(1)]), body: { inventory: null } },
  { ...callback([mac(1)]), body: { data: { inventory: inventory([mac(1)]) } } },
  { ...callback([mac(1)]), body: null },
  { ...callback([mac(1)]), body: 'x' },
  { ...callback([mac(1)]), body: '[]' },
  ...['GET', 'PUT', 'PATCH', 'DELETE'].map((method): Sent => ({ method, path: '/v1/continue_inspection', version: `1.${MAX}` })),
];
const looks = (uuid: string): Step[] => [
  ...[1, 5, 6, 38, 39, MAX].map((minor) =>
    get(`${node(uuid)}?fields=provision_state,target_provision_state,last_error,uuid`, Math.max(8, minor)),
  ),
  ...[1, 38, 39, MAX].map((minor) => get(`${node(uuid)}/states`, minor)),
  get(`/v1/nodes?provision_state=inspect%20wait&fields=uuid`, 38),
  get(`/v1/nodes?provision_state=inspect%20wait&fields=uuid`),
];
/** Reads what the inspection has changed. */
const learnt = (uuid: string): Step[] => [
  get(`${node(uuid)}?fields=provision_state,target_provision_state,last_error,properties,power_state,maintenance,driver_info`),
  get(`/v1/ports?node=${uuid}&fields=address,pxe_enabled,extra,local_link_connection`),
  get(`${node(uuid)}/inventory`),
];

const waiting = (): Step[] => [
  ...refused(),
  ...[5, 6, MAX].map((minor) => provision(NONE, 'inspect', minor)),
  { settle: NONE },
  get(`${node(NONE)}?fields=provision_state,last_error`),
  ...[ONE, TWO, BMC_ONLY, SIX].flatMap((uuid) => moved(uuid, 'inspect', 6)),
  ...looks(ONE),
  ...refused(),
  // Requests during the inspection.
  provision(ONE, 'inspect'),
  provision(ONE, 'provide'),
  provision(ONE, 'manage'),
  ...[6, 38, 39, MAX].flatMap((minor) => [
    send('PATCH', node(ONE), [{ op: 'add', path: '/extra/minor', value: minor }], minor),
    send('PATCH', node(ONE), [{ op: 'add', path: '/inspect_interface', value: 'fake' }], Math.max(31, minor)),
    send('PATCH', node(ONE), [{ op: 'replace', path: '/inspect_interface', value: 'agent' }], Math.max(31, minor)),
  ]),
  send('DELETE', node(ONE), undefined),
  send('PUT', `${node(ONE)}/states/raid`, {}),
  send('PUT', `${node(ONE)}/states/boot_mode`, { target: 'uefi' }),
  send('PUT', `${node(ONE)}/states/secure_boot`, { target: true }),
  { settle: ONE },
  ...[21, 22, 61, 62, MAX].flatMap((minor) => [
    get(`/v1/lookup?node_uuid=${ONE}`, minor),
    get(`/v1/lookup?addresses=${mac(1)},${STRANGER}`, minor),
    get(`/v1/lookup?addresses=${mac(1)},${mac(2)}`, minor),
    get(`/v1/lookup?addresses=${mac(1)}&node_uuid=${TWO}`, minor),
  ]),
  send('POST', `/v1/heartbeat/${ONE}`, { callback_url: 'http://127.0.0.1:1', agent_version: '10.0', agent_token: 'wrong' }),
  send('POST', `/v1/heartbeat/${ONE}`, { callback_url: 'http://127.0.0.1:1', agent_version: '10.0' }),
];
const finishing = (): Step[] => [
  // As old agents send it: without a version.
  callback([mac(1)], bmc('192.0.2.1'), '', null),
  settled(ONE),
  ...learnt(ONE),
  ...[79, 80, 81, MAX].flatMap((minor) => [
    get(`${node(ONE)}/inventory`, minor),
    get(`${node(FAKE)}/inventory`, minor),
    get(`${node(NOBODY)}/inventory`, minor),
    get('/v1/nodes/inspected/inventory', minor),
  ]),
  get(`${node(ONE)}/inventory?x=1`),
  get(`${node(ONE)}/inventory?fields=inventory`),
  get(`${node(ONE)}/inventory/x`),
  ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => send(method, `${node(ONE)}/inventory`, {})),
  callback([mac(1)]),
  // By now, this BMC address belongs to one node.
  callback([STRANGER.toUpperCase()], bmc('192.0.2.1'), '', '1.84'),
  settled(TWO),
  ...learnt(TWO),
  callback(['not one', '52:54:00:00:01:AA'], bmc('192.0.2.3')),
  settled(BMC_ONLY),
  ...learnt(BMC_ONLY),
  callback([mac(4).toUpperCase()], { bmc_address: '', bmc_v6address: '2001:db8::4' }, `?node_uuid=${SIX}`),
  settled(SIX),
  ...learnt(SIX),
];
const failing = (): Step[] => [
  ...moved(ONE, 'inspect'),
  { ...callback([mac(1)]), body: { inventory: inventory([mac(1)]), error: 'the ramdisk has no disk driver' } },
  settled(ONE, 'inspect failed'),
  get(`${node(ONE)}?fields=provision_state,target_provision_state,maintenance`),
  callback([mac(1)]),
  provision(ONE, 'provide'),
  provision(ONE, 'abort'),
  { settle: ONE },
  get(`${node(ONE)}?fields=provision_state,target_provision_state,maintenance`),
  ...moved(ONE, 'inspect'),
  ...[12, 13, 38, 39, 40].map((minor) => provision(ONE, 'abort', minor)),
  get(`${node(ONE)}?fields=provision_state`),
  ...moved(ONE, 'abort', 41),
  get(`${node(ONE)}?fields=provision_state,target_provision_state,last_error,maintenance,power_state`),
  callback([mac(1)]),
  // The earlier inventory is kept.
  get(`${node(ONE)}/inventory`),
  ...moved(ONE, 'manage'),
  get(`${node(ONE)}?fields=provision_state,last_error`),
  ...[5, 6].flatMap((minor): Step[] => [provision(FAKE, 'inspect', minor), { settle: FAKE }]),
  provision(FAKE, 'abort'),
  get(`${node(FAKE)}?fields=provision_state,last_error`),
];
/** Callbacks for nodes that do something else, found by their UUID or by their port. */
const elsewhere = (): Step[] => {
  const late = (last: number, uuid: string): Step[] => [callback([mac(last)], {}, `?node_uuid=${uuid}`), callback([mac(last)])];
  const then = (target: string, state: string, more: object = {}): Step[] => [
    send('PUT', `${node(AWAY)}/states/provision`, { target, ...more }),
    { settle: AWAY, state },
    ...late(7, AWAY),
  ];
  const made = { driver: 'fake-hardware', inspect_interface: 'agent', rescue_interface: 'fake' };
  return [
    send('POST', '/v1/nodes', { ...made, uuid: AWAY }),
    send('POST', '/v1/ports', { node_uuid: AWAY, address: mac(7) }),
    ...late(7, AWAY),
    ...then('manage', 'manageable'),
    ...then('provide', 'available'),
    ...then('active', 'active'),
    ...then('rescue', 'rescue', { rescue_password: 'x' }),
    ...learnt(AWAY),
    send('POST', '/v1/nodes', {
      ...made,
      uuid: BUSY,
      deploy_interface: 'direct',
      driver_info: { deploy_kernel: 'http://192.0.2.1/kernel', deploy_ramdisk: 'http://192.0.2.1/ramdisk' },
    }),
    send('POST', '/v1/ports', { node_uuid: BUSY, address: mac(8) }),
    ...moved(BUSY, 'manage'),
    provision(BUSY, 'provide'),
    settled(BUSY, 'clean wait'),
    ...late(8, BUSY),
    ...learnt(BUSY),
    provision(BUSY, 'abort'),
    settled(BUSY, 'clean failed'),
    ...late(8, BUSY),
    ...moved(BUSY, 'manage'),
  ];
};
/** Which token a heartbeat needs before and after the callback. The callback itself needs none. */
const tokens = (): Step[] => {
  const beat = (more: object = {}): Sent =>
    send('POST', `/v1/heartbeat/${BUSY}`, { callback_url: 'http://127.0.0.1:1', agent_version: '10.0', ...more });
  return [
    ...moved(BUSY, 'inspect'),
    beat(),
    beat({ agent_token: 'wrong' }),
    get(`/v1/lookup?node_uuid=${BUSY}`),
    get(`/v1/lookup?node_uuid=${BUSY}`),
    beat(),
    beat({ agent_token: 'wrong' }),
    { ...callback([mac(8)]), body: { inventory: inventory([mac(8)]), agent_token: 'wrong' } },
    settled(BUSY),
    beat(),
    beat({ agent_token: 'wrong' }),
    get(`/v1/lookup?node_uuid=${BUSY}`),
    ...learnt(BUSY),
  ];
};
const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
const bounded = (): Step[] => [
  ...moved(ONE, 'inspect'),
  ...[20, 23, 24, 25, 60].map((depth): Sent => ({
    ...callback([STRANGER]),
    body: { inventory: inventory([STRANGER]), deep: nested(depth) },
  })),
  { ...callback([STRANGER]), body: { inventory: inventory([STRANGER]), large: 'x'.repeat(2 << 20) } },
  ...moved(ONE, 'abort'),
];
const histories = (): Step[] =>
  [ONE, NONE, AWAY, BUSY].flatMap((uuid) =>
    [77, 78, 112, 113, 114, MAX].flatMap((minor) =>
      ['', '?detail=true', '?limit=1000', '?sort_dir=desc', '?sort_key=event', '?sort_key=event&sort_dir=desc'].map((query) =>
        get(`${node(uuid)}/history${query}`, minor),
      ),
    ),
  );
const end = (): Step[] => [
  quietly(provision(AWAY, 'deleted')),
  { settle: AWAY },
  ...[ONE, TWO, BMC_ONLY, SIX, FAKE, NONE, AWAY, BUSY].map((uuid) => quietly(send('DELETE', node(uuid), undefined))),
];

export const inspectionGroups: Readonly<Record<string, () => readonly Step[]>> = {
  'inspection: start': start,
  'inspection: a callback': waiting,
  'inspection: the end': finishing,
  'inspection: failures': failing,
  'inspection: callbacks that nobody waits for': elsewhere,
  'inspection: tokens': tokens,
  'inspection: bounds': bounded,
  'inspection: history': histories,
  'inspection: clean up': end,
};
