/** The pure parts of the page: filters, order, URLs, the rows of the window, events, actions and patches. */
import { stackedAreas, beginOf, withSample, withServerCounts } from '../../ui/lib/fleet-history';
import { differencesOf, neighboursOf, partsOf } from '../../ui/lib/inventory';
import { isAllowed } from '../../ui/lib/rights';
import { countsOf, rowsOf, searchOf, viewOf, windowOf } from '../../ui/lib/filters';
import { applyEvent, classOf, progressText, rowOf, sizeText, worstOf } from '../../ui/lib/rows';
import { ACTIONS, runAction, type Outcome } from '../../ui/lib/actions';
import { messageIn, type Api } from '../../ui/lib/api';
import { acceptMachine, addMachine, machineIn } from '../../ui/lib/machines';
import { chartOf, lineOf, rangeOf, withReadings } from '../../ui/lib/sensors';
import { patchOf } from '../../ui/lib/patch';
import { durationText, placeOf, spansOf } from '../../ui/lib/steps';

const row = (name: string, fields: Readonly<Record<string, unknown>> = {}) =>
  rowOf({ uuid: `uuid-${name}`, name, provision_state: 'available', power_state: 'power off', driver: 'ipmi', ...fields });
const ROWS = [
  row('rack1-10'),
  row('rack1-2', { provision_state: 'active', owner: 'ann' }),
  row('b', { last_error: 'No fan', maintenance: true, out_of_service: { reason: 'no fan', until: '2020-01-02T00:00:00Z' } }),
];
const names = (search: string): readonly (string | null)[] => rowsOf(ROWS, viewOf(search)).map(({ name }) => name);

it.each([
  ['', ['b', 'rack1-2', 'rack1-10']],
  ['order=-name', ['rack1-10', 'rack1-2', 'b']],
  ['order=nothing', ['b', 'rack1-2', 'rack1-10']],
  ['state=active', ['rack1-2']],
  ['state=active,available&text=RACK', ['rack1-2', 'rack1-10']],
  ['text=fan+no', ['b']],
  ['text=fan+ann', []],
  ['maintenance=true', ['b']],
  ['owner=ann', ['rack1-2']],
  ['out+of+service=overdue', ['b']],
  ['out+of+service=yes', []],
  ['text=2020-01-02', ['b']],
])('rowsOf with the view %j are %j', (search, expected) => expect(names(search)).toEqual(expected));

it.each(['', 'text=a+b&state=active%2Cavailable&order=-power', 'columns=name%2Cuuid'])('searchOf(viewOf(%j)) is unchanged', (search) =>
  expect(searchOf(viewOf(search))).toBe(search),
);
it('viewOf ignores unknown columns', () => expect(viewOf('columns=evil').columns).toEqual(viewOf('').columns));
it('countsOf sorts by descending count', () =>
  expect(countsOf(ROWS, ({ state }) => state)).toEqual([
    ['available', 2],
    ['active', 1],
  ]));

it.each([
  [{ top: 0, height: 300 }, 10_000, { first: 0, end: 20 }],
  [{ top: 150_000, height: 300 }, 10_000, { first: 4990, end: 5020 }],
  [{ top: 299_700, height: 300 }, 10_000, { first: 9980, end: 10_000 }],
  [{ top: 5000, height: 300 }, 3, { first: 2, end: 3 }],
  [{ top: 0, height: 300 }, 0, { first: 0, end: 0 }],
])('windowOf(%j) of %i rows is %j', (scroll, count, expected) => expect(windowOf(scroll, 30, count)).toEqual(expected));

describe('events', () => {
  const deploying = row('a', { provision_state: 'deploying', last_error: 'old' });
  it.each([
    ['state', { provision_state: 'active', target_provision_state: null }, { state: 'active', target: null, error: null }],
    ['state', { provision_state: 'deploy failed', target_provision_state: 'active' }, { state: 'deploy failed', error: 'old' }],
    ['power', { power_state: 'power on' }, { power: 'power on' }],
    ['maintenance', { maintenance: true, maintenance_reason: 'fan' }, { maintenance: true, reason: 'fan' }],
    [
      'out_of_service',
      { out_of_service: true, reason: 'fan', ticket: null, until: '2020-01-02T00:00:00Z', declared_by: 'jo' },
      { outage: { reason: 'fan', ticket: null, until: '2020-01-02T00:00:00Z', by: 'jo' } },
    ],
    ['health', { health: 'critical', change: 'raised' }, { alert: 'critical' }],
    ['error', { last_error: 'new' }, { error: 'new' }],
    ['step', { step: 'deploy.write_image', number: 2, of: 6 }, { progress: { step: 'deploy.write_image', number: 2, of: 6 } }],
    [
      'progress',
      { step: 'deploy.write_image', percent: 40, bytes: 4, bytes_of: 10 },
      { progress: { step: 'deploy.write_image', percent: 40, bytes: { done: 4, of: 10 } } },
    ],
    ['progress', { step: 'deploy.write_image', percent: 40 }, { progress: { step: 'deploy.write_image', percent: 40 } }],
  ])('%s event %j changes %j', (kind, payload, expected) => expect(applyEvent(deploying, { kind, payload })).toMatchObject(expected));
  it('an event that changes no shown field returns the same row', () =>
    expect(applyEvent(deploying, { kind: 'hardware', payload: { count: 1 } })).toBe(deploying));
  it.each([
    ['deploying', 'deploy.write_image'],
    ['clean wait', 'bios.factory_reset'],
    ['rescuing', undefined],
    ['active', undefined],
  ])('a row of a node in "%s" shows the step %s, and none that another flow left', (state, step) => {
    const steps = {
      deploy_step: { interface: 'deploy', step: 'write_image' },
      clean_step: { interface: 'bios', step: 'factory_reset' },
    };
    expect(row('a', { provision_state: state, ...steps }).progress?.step).toBe(step);
  });
  it('a state of another flow ends the progress', () => {
    const busy = row('a', { provision_state: 'wait call-back', deploy_step: { interface: 'deploy', step: 'write_image' } });
    expect(busy.progress).toMatchObject({ step: 'deploy.write_image' });
    const after = (state: string) => applyEvent(busy, { kind: 'state', payload: { provision_state: state } }).progress;
    expect(after('deploying')).toEqual(busy.progress);
    for (const state of ['deleting', 'cleaning', 'deploy failed', 'active', 'unknown'])
      expect([state, after(state)]).toEqual([state, null]);
  });
  it('a stable state ends the progress', () => {
    const busy = applyEvent(deploying, { kind: 'step', payload: { step: 'deploy.deploy', number: 1, of: 6 } });
    expect(progressText(busy)).toBe('deploy.deploy 1/6');
    expect(applyEvent(busy, { kind: 'state', payload: { provision_state: 'active' } }).progress).toBeNull();
  });
  it.each([
    ['deploy failed', 'failed'],
    ['active', 'active'],
    ['clean wait', 'waiting'],
    ['cleaning', 'working'],
    ['enroll', 'idle'],
  ])('classOf state "%s" is "%s"', (state, expected) => expect(classOf({ state })).toBe(expected));
});

it.each([
  ['active', 'available', undefined],
  ['active', 'enroll', 'its state is enroll'],
  ['deleted', 'active', undefined],
  ['power off', 'available', 'it is in power off already'],
  ['delete', 'active', 'its state is active'],
  ['delete', 'inspect failed', 'its state is inspect failed'],
  ['delete', 'clean failed', 'its state is clean failed'],
  ['delete', 'enroll', undefined],
  ['delete', 'adopt failed', undefined],
  ['delete', 'available', undefined],
  ['no maintenance', 'active', 'it is not in maintenance'],
  ['in service', 'active', 'it is in service'],
  ['out of service', 'active', undefined],
])('refusal of the action "%s" for a node in "%s": %s', (id, state, refusal) =>
  expect(ACTIONS.find((action) => action.id === id)!.refusal(row('a', { provision_state: state }))).toBe(refusal),
);
it('the action "delete" is offered for a node in maintenance in every state', () =>
  expect(ACTIONS.find(({ id }) => id === 'delete')!.refusal(row('a', { provision_state: 'active', maintenance: true }))).toBeUndefined());
it.each([
  ['active', 'it is out of service'],
  ['no maintenance', 'it is out of service'],
  ['manage', undefined],
  ['in service', undefined],
])('refusal of the action "%s" for a node out of service: %s', (id, refusal) =>
  expect(ACTIONS.find((action) => action.id === id)!.refusal(ROWS[2]!)).toBe(refusal),
);
it('an event ends the time out of service', () =>
  expect(applyEvent(ROWS[2]!, { kind: 'out_of_service', payload: { out_of_service: false } }).outage).toBeNull());
it('shows the worst alert of each node, until an event says that it is well', () => {
  const worst = worstOf([
    { node_uuid: 'a', severity: 'critical' },
    { node_uuid: 'a', severity: 'warning' },
    { node_uuid: 'b', severity: 'warning' },
  ]);
  expect([...worst]).toEqual([
    ['a', 'critical'],
    ['b', 'warning'],
  ]);
  expect(applyEvent({ ...ROWS[0]!, alert: 'critical' }, { kind: 'health', payload: { health: 'ok' } }).alert).toBeNull();
});
it('runAction reports the outcome for each node', async () => {
  const outcomes: Outcome[] = [];
  const send = async (_: string, path: string): Promise<never> => {
    if (path.includes('uuid-b')) throw new Error('locked');
    return undefined as never;
  };
  const manage = ACTIONS.find(({ id }) => id === 'manage')!;
  await runAction(manage, ROWS, {
    api: { send, get: async () => undefined as never },
    values: {},
    report: (outcome) => outcomes.push(outcome),
  });
  expect(outcomes.map(({ row: { name }, error }) => [name, error])).toEqual([
    ['rack1-10', undefined],
    ['rack1-2', undefined],
    ['b', 'locked'],
  ]);
});

it.each([
  ['{"error_message": "{\\"faultstring\\": \\"Node is locked\\"}"}', 'Node is locked'],
  ['{"error_message": "406 Not Acceptable"}', '406 Not Acceptable'],
  ['{"error": {"message": "no"}}', 'no'],
  ['{"faultstring": "too large"}', 'too large'],
  ['<html>', '<html>'],
])('messageIn(%s) is "%s"', (text, expected) => expect(messageIn(text)).toBe(expected));

it('machineIn builds a node and ports from a form, without empty fields', () => {
  const form = { name: 'a', driver: 'redfish', redfish_address: ' https://x ', redfish_password: '', owner: '', macs: '52:54:00:00:00:01' };
  expect(machineIn(form)).toEqual({
    node: { name: 'a', driver: 'redfish', driver_info: { redfish_address: 'https://x' } },
    macs: ['52:54:00:00:00:01'],
  });
  expect(() => machineIn({ ...form, macs: 'x' })).toThrow('x is not a MAC address');
});
it.each(['52:54:00:AB:cd:01', '52-54-00-ab-cd-01', '5254.00ab.cd01', '525400ABCD01', '525400abcd01; 52:54:00:ab:cd:01'])(
  'machineIn takes the MAC addresses %s',
  (macs) => expect(machineIn({ macs }).macs).toEqual(['52:54:00:ab:cd:01']),
);
it.each(['52:54:00:ab:cd', '52:54-00:ab:cd:01', '52:54:00:ab:cd:0g', '5254.00ab.cd0'])('machineIn refuses the MAC address %s', (macs) =>
  expect(() => machineIn({ macs })).toThrow(`MAC addresses: ${macs} is not a MAC address`),
);
it.each([
  ['v1/ports', undefined, 'refused'],
  ['v1/nodes/u/states/provision', undefined, 'refused'],
  ['v1/ports', 'locked', 'refused The node u is left, since it cannot be removed: locked'],
])('addMachine leaves no half machine when %s is refused (removal: %s)', async (path, removal, message) => {
  const sent: string[] = [];
  const send = async (method: string, at: string): Promise<unknown> => {
    sent.push(`${method} ${at}`);
    if (at === path) throw new Error('refused');
    if (method === 'DELETE' && removal !== undefined) throw new Error(removal);
    return { uuid: 'u' };
  };
  await expect(addMachine({ send } as unknown as Api, { node: {}, macs: ['52:54:00:ab:cd:01'] })).rejects.toThrow(message);
  expect(sent.at(-1)).toBe('DELETE v1/nodes/u');
});

it('patchOf contains only changed members', () => {
  const before = { name: 'a', owner: 'ann', description: '', driver_info: { user: 'x', password: '******', 'a/b': 1, gone: 2 } };
  const after = { name: 'b', owner: null, description: null, driver_info: { user: 'x', password: '******', 'a/b': 3 } };
  expect(patchOf(before, after)).toEqual([
    { op: 'add', path: '/name', value: 'b' },
    { op: 'remove', path: '/owner' },
    { op: 'add', path: '/driver_info/a~1b', value: 3 },
    { op: 'remove', path: '/driver_info/gone' },
  ]);
});

const RIGHTS = { any: ['a'], owned: ['a', 'b'], leased: ['c'] };
it.each<[string, string | null, string, object, boolean]>([
  ['a right for all nodes', null, 'a', {}, true],
  ["a right for owners, on the project's own node", 'p', 'b', { owner: 'p' }, true],
  ['no right for owners, on a leased node', 'p', 'b', { owner: 'q', lessee: 'p' }, false],
  ['a right for lessees, on a leased node', 'p', 'c', { owner: 'q', lessee: 'p' }, true],
  ['no right for owners without a project, on a node without an owner', null, 'b', { owner: null }, false],
  ['no right for owners, on a resource without an owner field', 'p', 'b', {}, false],
])('isAllowed: %s', (_, project, policy, resource, expected) => {
  expect(isAllowed(RIGHTS, project, policy, resource)).toBe(expected);
});

const FOUND = {
  inventory: {
    system_vendor: { product_name: 'R1', manufacturer: 'ACME', serial_number: '7' },
    cpu: { model_name: 'CPU', count: 8, architecture: 'x86_64' },
    memory: { physical_mb: 4096 },
    disks: [{ name: '/dev/sda', size: 10 * 2 ** 30, model: 'Disk' }, 'no disk'],
    interfaces: [{ name: 'eth0', mac_address: '52:54:00:00:00:01', speed_mbps: 1000 }],
  },
  plugin_data: { parsed_lldp: { eth0: { switch_system_name: 'leaf1', switch_port_id: 'Ethernet1' }, eth1: null } },
};
it('partsOf lists the parts of an inventory', () =>
  expect(partsOf(FOUND)).toEqual([
    { part: 'system', name: 'R1', details: 'ACME, 7' },
    { part: 'processor', name: 'CPU', details: '8 CPUs, x86_64' },
    { part: 'memory', name: '', details: '4096 MiB' },
    { part: 'disk', name: '/dev/sda', details: '10 GiB, Disk' },
    { part: 'interface', name: 'eth0', details: '52:54:00:00:00:01, 1000 Mb/s' },
  ]));
it('neighboursOf lists the LLDP neighbours of interfaces', () =>
  expect(neighboursOf(FOUND)).toEqual([{ interface: 'eth0', switch_system_name: 'leaf1', switch_port_id: 'Ethernet1' }]));
it.each([{}, { inventory: null, plugin_data: null }, { inventory: [], plugin_data: { parsed_lldp: [] } }])(
  'partsOf and neighboursOf are empty for %j',
  (found) => {
    expect([partsOf(found), neighboursOf(found)]).toEqual([[], []]);
  },
);
it.each([
  [{ size: 1, model: 'a' }, { size: 2, model: 'a' }, [{ field: 'size', before: '1', after: '2' }]],
  [null, { model: 'a' }, [{ field: 'model', after: 'a' }]],
  [{ model: 'a' }, null, [{ field: 'model', before: 'a' }]],
  ['1.0', '1.1', [{ field: 'value', before: '1.0', after: '1.1' }]],
  [null, null, []],
])('differencesOf(%j, %j) is %j', (before, after, expected) => expect(differencesOf(before, after)).toEqual(expected));

it('withSample keeps samples for a day, and thins out older ones', () => {
  const [one, two] = [ROWS.slice(0, 2), ROWS];
  const samples = withSample(withSample(withSample([], 20_000, one), 29_999, two), 30_000, one);
  expect(samples.map(({ at, counts }) => [at, counts.active, counts.available])).toEqual([
    [29_999, 1, 2],
    [30_000, 1, 1],
  ]);
  let many = samples;
  for (let at = 40_000; at <= 90_000_000; at += 10_000) many = withSample(many, at, one);
  // A sample each ten seconds for 10 minutes, each minute for two hours, each five minutes for the rest, and the one before.
  expect(many.length).toBeGreaterThan(60 + 110 + 264 - 3);
  expect(many.length).toBeLessThanOrEqual(450);
  expect(many.filter(({ at }) => at <= 90_000_000 - 86_400_000)).toHaveLength(1);
  expect(beginOf(many, 90_000_000)).toBe(90_000_000 - 86_400_000);
});
it("withServerCounts merges the server's counts with own samples by the browser's clock", () => {
  const own = withSample([], 1_000_000, ROWS);
  const joined = withServerCounts(own, 1_002_000, {
    now: '2026-03-01T10:00:02+00:00',
    state_counts: [
      { at: '2026-03-01T09:58:00+00:00', counts: { active: 2, 'deploy failed': 1, deploying: 4, 'clean wait': 3 } },
      { at: '2026-03-01T09:59:00+00:00', counts: {} },
    ],
  });
  const none = { active: 0, available: 0, failed: 0, idle: 0, waiting: 0, working: 0 };
  expect(joined).toEqual([
    { at: 880_000, counts: { ...none, active: 2, failed: 1, working: 4, waiting: 3 } },
    { at: 940_000, counts: none },
    ...own,
  ]);
  // A second time, as after a lost connection.
  expect(withServerCounts(joined, 1_002_000, { now: '2026-03-01T10:00:02+00:00', state_counts: [] })).toEqual(joined);
});
it('stackedAreas starts at the beginning of the shown day with the last earlier counts', () => {
  const [active, available] = [ROWS.slice(1, 2), ROWS.slice(0, 1)];
  const samples = withSample(withSample([], 0, active), 129_600_000, available);
  expect(stackedAreas(samples, 172_800_000)[0]!.path).toBe(
    'M0.00 0.00 L50.00 0.00 L50.00 100.00 L100.00 100.00 L100.00 100.00 L50.00 100.00 L50.00 100.00 L0.00 100.00 Z',
  );
});
it('stackedAreas stacks the kinds of states', () => {
  const samples = withSample(withSample([], 0, ROWS.slice(1, 2)), 50_000, ROWS.slice(0, 2));
  const areas = Object.fromEntries(stackedAreas(samples, 100_000).map(({ name, path }) => [name, path]));
  expect(areas['active']).toBe(
    'M0.00 50.00 L50.00 50.00 L50.00 50.00 L100.00 50.00 L100.00 100.00 L50.00 100.00 L50.00 100.00 L0.00 100.00 Z',
  );
  expect(areas['available']).toBe(
    'M0.00 50.00 L50.00 50.00 L50.00 0.00 L100.00 0.00 L100.00 50.00 L50.00 50.00 L50.00 50.00 L0.00 50.00 Z',
  );
  expect(stackedAreas([], 1)).toEqual([]);
});
it('acceptMachine patches the node with the values of the form and requests "manage"', async () => {
  const sent: unknown[] = [];
  const api = { get: () => Promise.reject(new Error('no')), send: async (...words: unknown[]) => void sent.push(words) } as unknown as Api;
  await acceptMachine(api, 'u', { name: ' a ', ipmi_address: '192.0.2.1', ipmi_password: '' });
  expect(sent).toEqual([
    [
      'PATCH',
      'v1/nodes/u',
      [
        { op: 'add', path: '/name', value: 'a' },
        { op: 'add', path: '/driver_info/ipmi_address', value: '192.0.2.1' },
      ],
    ],
    ['PUT', 'v1/nodes/u/states/provision', { target: 'manage' }],
  ]);
});

it('withReadings keeps up to an hour of values of each sensor', () => {
  const reading = (sensor: string, value: number) => ({ kind: 'fan', sensor, entity: 'CPU', unit: 'rpm', value });
  const first = withReadings([], 0, [reading('a', 1), reading('b', 2)]);
  const second = withReadings(first, 10, [reading('b', 4), reading('c', 5)]);
  expect(second.map(({ sensor, values }) => [sensor, values])).toEqual([
    [
      'b',
      [
        { at: 0, value: 2 },
        { at: 10, value: 4 },
      ],
    ],
    ['c', [{ at: 10, value: 5 }]],
  ]);
  expect(second.map(({ values }) => lineOf(values))).toEqual(['0.0,90.0 100.0,10.0', '0,50 100.0,50.0']);
  expect(second.map(({ values }) => rangeOf(values))).toEqual(['2 … 4', '5 … 5']);
  let many = first;
  for (let at = 1; at < 400; at++) many = withReadings(many, at, [reading('a', at)]);
  expect(many[0]!.values).toHaveLength(360);
});

it.each([
  [[20], [100], [18, 19, 20, 21, 22], [50]],
  [
    [0, 0],
    [0, 25, 50, 75, 100],
    [-1, -0.5, 0, 0.5, 1],
    [50, 50],
  ],
  [
    [1, 3],
    [0, 25, 50, 75, 100],
    [1, 1.5, 2, 2.5, 3],
    [0, 100],
  ],
  [
    [-0.3, 0.3],
    [0, 25, 50, 75, 100],
    [-0.4, -0.2, 0, 0.2, 0.4],
    [12.5, 87.5],
  ],
  [
    [4000, 11_000],
    [0, 25, 50, 75, 100],
    [4000, 6000, 8000, 10_000, 12_000],
    [0, 87.5],
  ],
])('chartOf(%j) has axes with round values', (numbers, times, values, heights) => {
  const { points, horizontal, vertical } = chartOf(numbers.map((value, index) => ({ at: 1000 + index * 400, value })));
  expect(horizontal.map(({ place }) => place)).toEqual(times);
  expect(horizontal.map(({ place, value }) => (numbers.length === 1 ? value : value - place * 4))).toEqual(times.map(() => 1000));
  expect(vertical.map(({ value }) => value)).toEqual(values);
  expect([vertical[0]!.place, vertical.at(-1)!.place]).toEqual([0, 100]);
  for (const [index, height] of heights.entries()) expect(points[index]!.y).toBeCloseTo(height, 9);
});

describe('spans of states and steps', () => {
  const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
  const state = (seconds: number, before: string, now: string) => ({
    at: at(seconds),
    kind: 'state',
    payload: { provision_state: now, previous_provision_state: before },
  });
  const step = (seconds: number, name: string) => ({
    at: at(seconds),
    kind: 'step',
    payload: { flow: 'deploy', step: name, number: 1, of: 2 },
  });
  const progress = (seconds: number, name: string, percent: number, more = {}) => ({
    at: at(seconds),
    kind: 'progress',
    payload: { step: name, percent, ...more },
  });
  const events = [
    state(0, 'available', 'deploying'),
    step(1, 'deploy.deploy'),
    state(2, 'deploying', 'wait call-back'),
    state(60, 'wait call-back', 'deploying'),
    step(61, 'deploy.write_image'),
    progress(70, 'deploy.write_image', 50, { bytes: 5, bytes_of: 10 }),
    progress(71, 'another', 99),
  ];
  it('spansOf: a step lasts until the next one, including waits', () =>
    expect(spansOf(events).filter(({ kind }) => kind === 'step')).toEqual([
      { kind: 'step', name: 'deploy.deploy', from: 1000, to: 61_000 },
      { kind: 'step', name: 'deploy.write_image', from: 61_000, percent: 50, bytes: { done: 5, of: 10 } },
    ]));
  it('spansOf: a stable state ends states and steps', () => {
    const spans = spansOf([...events, state(80, 'deploying', 'active')]);
    expect(spans.slice(-3)).toEqual([
      { kind: 'state', name: 'deploying', from: 60_000, to: 80_000 },
      { kind: 'step', name: 'deploy.write_image', from: 61_000, to: 80_000, percent: 50, bytes: { done: 5, of: 10 } },
      { kind: 'state', name: 'active', from: 80_000 },
    ]);
  });
  it('spansOf ignores events without a state or step', () =>
    expect(
      spansOf([
        { at: at(0), kind: 'progress', payload: {} },
        { at: at(0), kind: 'power', payload: { power_state: 'power on' } },
      ]),
    ).toEqual([]));
  it('placeOf returns position and width of a span in percent', () => {
    expect(placeOf({ kind: 'step', name: 'x', from: 50, to: 75 }, { from: 0, to: 100 })).toEqual({ x: 50, width: 25 });
    expect(placeOf({ kind: 'step', name: 'x', from: 100 }, { from: 0, to: 100 })).toEqual({ x: 100, width: 0 });
  });
});
it.each([
  [5600, '5.6 s'],
  [184_000, '3 min 4 s'],
  [3_720_000, '1 h 2 min'],
  [-5, '0.0 s'],
])('durationText(%i) is "%s"', (milliseconds, text) => expect(durationText(milliseconds)).toBe(text));
it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [2 ** 31, '2.0 GiB'],
  [2 ** 62, '4194304.0 TiB'],
])('sizeText(%d) is "%s"', (bytes, text) => expect(sizeText(bytes)).toBe(text));
