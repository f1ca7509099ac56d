/** The fields of nodes that callers may read, and the keys under which their JSON is shared. */
import { nodeAccess } from '../../../api/pipeline/node-access';
import { loadDocument } from '../../../api/schema/document';
import { NOBODY, type Caller } from '../../../policy/caller';
import { createEnforcer, type FileRules } from '../../../policy/enforcer';
import { parseRule } from '../../../policy/language';
import { optionsOf } from '../../support/options';

const rows = loadDocument().fields('Node');
const of = (roles: readonly string[], project: string | null): Caller => ({
  ...NOBODY,
  user: `${project} ${roles[0]}`,
  roles,
  project,
  system: project === null,
});
const READER = ['reader'];
const node = { owner: 'red', lessee: 'blue' };

const accessOf = (caller: Caller, isList = true, files: FileRules = new Map()) =>
  nodeAccess({ caller }, { auth: { identify: async () => caller, ...createEnforcer(optionsOf({}), files) } }, rows, isList);
const unreadable = (caller: Caller, isList?: boolean, files?: FileRules): readonly string[] =>
  [...accessOf(caller, isList, files).to(node).unreadable].sort();
const GUARDED = ['driver_info', 'driver_internal_info', 'last_error', 'reservation'];

it.each([
  ['a reader of the system', of(READER, null), []],
  ['a reader of the owner', of(READER, 'red'), []],
  ['a reader of the lessee', of(READER, 'blue'), GUARDED],
  ['a reader of another project', of(READER, 'green'), GUARDED],
  ['nobody', NOBODY, GUARDED],
])('hides the expected fields from %s', (_, caller, expected) => {
  for (const isList of [true, false]) expect(unreadable(caller, isList)).toEqual(expected);
});

it('shares cached JSON between callers that may read the same fields', () => {
  const key = (caller: Caller): string => accessOf(caller).to(node).key;
  expect(key(of(READER, 'red'))).toBe(key(of(READER, null)));
  expect(key(of(['admin', 'reader'], 'blue'))).toBe(key(of(READER, 'green')));
  expect(key(of(READER, 'red'))).not.toBe(key(of(READER, 'blue')));
});
it('depends on the node for a caller of a project', () => {
  const access = accessOf(of(READER, 'blue'));
  expect(access.isUniform).toBe(false);
  expect(access.to({ owner: 'blue', lessee: null }).key).not.toBe(access.to(node).key);
  expect(accessOf(of(READER, null)).isUniform).toBe(true);
});
it('evaluates filter_threshold without the node in lists, and with the node for a single one', () => {
  const files = new Map([['baremetal:node:get:filter_threshold', parseRule('project_id:%(node.lessee)s')]]);
  expect(unreadable(of(READER, 'blue'), true, files)).toEqual(GUARDED);
  expect(unreadable(of(READER, 'blue'), false, files)).toEqual([]);
});
it('shows secrets to callers that show_password allows, under a separate cache key', () => {
  const files = new Map([['show_password', parseRule('user_id:%(user_id)s and role:admin')]]);
  const [one, other] = [accessOf(of(['admin', 'reader'], null), true, files).to(node), accessOf(of(READER, null), true, files).to(node)];
  expect([...one.unmasked]).toEqual(['driver_info', 'driver_internal_info']);
  expect([...other.unmasked]).toEqual([]);
  expect(one.key).not.toBe(other.key);
});
