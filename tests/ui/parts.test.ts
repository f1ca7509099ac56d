/** The pure parts of the page: filters, order, URLs, the rows of the window, events, actions and patches. */
import { isAllowed } from '../../ui/lib/rights';
import { countsOf, NO_VIEW, rowsOf, searchOf, viewOf, windowOf } from '../../ui/lib/filters';
import { applyEvent, classOf, progressText, rowOf } from '../../ui/lib/rows';
import { ACTIONS, runAction, type Outcome } from '../../ui/lib/actions';
import { messageIn } from '../../ui/lib/api';
import { machineIn } from '../../ui/lib/machines';
import { patchOf } from '../../ui/lib/patch';

const row = (name: string, fields: Readonly<Record<string, unknown>> = {}) =>
  rowOf({ uuid: `uuid-${name}`, name, provision_state: 'available', power_state: 'power off', driver: 'ipmi', ...fields });
const ROWS = [
  row('rack1-10'),
  row('rack1-2', { provision_state: 'active', owner: 'ann' }),
  row('b', { last_error: 'No fan', maintenance: true }),
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
])('the view %j shows %j', (search, expected) => expect(names(search)).toEqual(expected));

it.each(['', 'text=a+b&state=active%2Cavailable&order=-power', 'columns=name%2Cuuid'])('the URL %j is the view that it names', (search) =>
  expect(searchOf(viewOf(search))).toBe(search),
);
it('ignores columns that do not exist', () => expect(viewOf('columns=evil').columns).toEqual(NO_VIEW.columns));
it('counts, the most frequent first', () =>
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
])('at %j of %i rows it draws %j', (scroll, count, expected) => expect(windowOf(scroll, 30, count)).toEqual(expected));

describe('events', () => {
  const deploying = row('a', { provision_state: 'deploying', last_error: 'old' });
  it.each([
    ['state', { provision_state: 'active', target_provision_state: null }, { state: 'active', target: null, error: null }],
    ['state', { provision_state: 'deploy failed', target_provision_state: 'active' }, { state: 'deploy failed', error: 'old' }],
    ['power', { power_state: 'power on' }, { power: 'power on' }],
    ['maintenance', { maintenance: true, maintenance_reason: 'fan' }, { maintenance: true, reason: 'fan' }],
    ['error', { last_error: 'new' }, { error: 'new' }],
    ['step', { step: 'deploy.write_image', number: 2, of: 6 }, { progress: { step: 'deploy.write_image', number: 2, of: 6 } }],
    ['progress', { step: 'deploy.write_image', percent: 40 }, { progress: { step: 'deploy.write_image', percent: 40 } }],
  ])('%s %j changes %j', (kind, payload, expected) => expect(applyEvent(deploying, { kind, payload })).toMatchObject(expected));
  it('leaves the row as it is when nothing of it changes', () =>
    expect(applyEvent(deploying, { kind: 'hardware', payload: { count: 1 } })).toBe(deploying));
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
  ])('%s is %s', (state, expected) => expect(classOf({ state })).toBe(expected));
});

it.each([
  ['active', 'available', undefined],
  ['active', 'enroll', 'its state is enroll'],
  ['deleted', 'active', undefined],
  ['power off', 'available', 'it is in power off already'],
  ['delete', 'active', 'its state is active'],
  ['no maintenance', 'active', 'it is not in maintenance'],
])('the action %s on a node in %s: %s', (id, state, refusal) =>
  expect(ACTIONS.find((action) => action.id === id)!.refusal(row('a', { provision_state: state }))).toBe(refusal),
);
it('reports the outcome for each node', async () => {
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
])('the message in %s is %s', (text, expected) => expect(messageIn(text)).toBe(expected));

it('makes a node of a form, without empty fields', () => {
  const form = { name: 'a', driver: 'redfish', redfish_address: ' https://x ', redfish_password: '', owner: '', macs: '52:54:00:00:00:01' };
  expect(machineIn(form)).toEqual({
    node: { name: 'a', driver: 'redfish', driver_info: { redfish_address: 'https://x' } },
    macs: ['52:54:00:00:00:01'],
  });
  expect(() => machineIn({ ...form, macs: 'x' })).toThrow('x is no MAC address');
});

it('sends the members that changed, and no others', () => {
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
  ['what is allowed everywhere', null, 'a', {}, true],
  ['what is allowed to owners, of an own node', 'p', 'b', { owner: 'p' }, true],
  ['what is allowed to owners, of a leased node', 'p', 'b', { owner: 'q', lessee: 'p' }, false],
  ['what is allowed to lessees, of a leased node', 'p', 'c', { owner: 'q', lessee: 'p' }, true],
  ['what is allowed to owners, of what nobody owns', null, 'b', { owner: null }, false],
  ['what is allowed to owners, of what has no owner', 'p', 'b', {}, false],
])('offers %s', (_, project, policy, resource, expected) => {
  expect(isAllowed(RIGHTS, project, policy, resource)).toBe(expected);
});
