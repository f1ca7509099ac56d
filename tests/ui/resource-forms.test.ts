/** The forms of templates, runbooks and rules: conversion of texts to values and back, mistakes with their place, and patches. */
import {
  fieldsNamedIn,
  FORMS,
  newRow,
  resourcePatch,
  ruleMistakes,
  textsOf,
  valueOf,
  withoutServerFields,
} from '../../ui/lib/resource-forms';

const TEMPLATE = {
  name: 'CUSTOM_X',
  steps: [{ interface: 'bios', step: 'apply_configuration', args: { settings: [] }, priority: 150 }],
  extra: { a: 1 },
};
const RULE = {
  description: 'Example',
  priority: 5,
  sensitive: false,
  conditions: [{ op: '!eq', args: ['{inventory[x]}', 'ACME'], loop: ['a'], multiple: 'all' }],
  actions: [{ op: 'set-attribute', args: { path: '/owner', value: 'acme' } }],
};
it.each([
  ['deploy_templates', TEMPLATE],
  ['runbooks', { name: 'r', steps: [{ interface: 'deploy', step: 's', args: {}, order: 1 }], public: true, disable_ramdisk: false }],
  ['inspection_rules', RULE],
])('valueOf returns the entry of %s that textsOf converted', (id, entry) => {
  const fields = FORMS[id]!;
  expect(valueOf(fields, textsOf(fields, entry))).toEqual({ value: entry, mistakes: {} });
});
it('valueOf reports mistakes with their fields', () => {
  const fields = FORMS['deploy_templates']!;
  const rows = [
    { interface: 'deploy', step: ' ', args: '{', priority: '-1' },
    { interface: 'console', step: 's', args: '{}', priority: '9'.repeat(16) },
  ];
  expect(valueOf(fields, { fields: { name: '', extra: 'x' }, rows: { steps: rows } }).mistakes).toEqual({
    name: 'is required',
    'steps 1 step': 'is required',
    'steps 1 args': 'is not valid JSON',
    'steps 1 priority': 'must be a whole number',
    'steps 2 interface': 'must be one of bios, deploy, firmware, management, power, raid, vendor',
    'steps 2 priority': 'must be a whole number',
    extra: 'is not valid JSON',
  });
  expect(valueOf(fields, { fields: { name: 'x' }, rows: {} }).mistakes).toEqual({ steps: 'needs at least one row' });
});
it('newRow contains default values', () =>
  expect(newRow(FORMS['runbooks']!.find(({ name }) => name === 'steps')!)).toEqual({
    interface: 'deploy',
    step: '',
    args: '{}',
    order: '',
  }));
it('ruleMistakes reports the same problems as the API', () => {
  expect(ruleMistakes(RULE)).toEqual([]);
  expect(ruleMistakes({ ...RULE, actions: [{ op: 'fail', args: {} }], priority: 10_000 })).toEqual([
    'Priority must be between 0 and 9999 for user-defined rules.',
    'Invalid parameters for action operator fail: missing required argument(s): msg',
  ]);
});
it('fieldsNamedIn finds the fields in an error message', () => {
  const fields = FORMS['deploy_templates']!;
  expect(fieldsNamedIn(fields, "Schema error for steps: [] should be non-empty, named 'x'")).toEqual(['steps']);
  expect(fieldsNamedIn(fields, 'Deploy template name must be a trait')).toEqual(['name']);
});
it.each([
  ['no change', TEMPLATE, TEMPLATE, []],
  ['a new value', { a: 1 }, { a: 2 }, [{ op: 'replace', path: '/a', value: 2 }]],
  ['a removed value', { a: 1 }, {}, [{ op: 'remove', path: '/a' }]],
  ['a missing member that is empty now', { conditions: null, extra: null }, { conditions: [], uuid: 'x' }, []],
])('resourcePatch for %s', (_, before, after, patch) => expect(resourcePatch(before, after)).toEqual(patch));
it('resourcePatch considers only the given members', () =>
  expect(resourcePatch({ a: 1, b: 1 }, { b: 2 }, ['b'])).toEqual([{ op: 'replace', path: '/b', value: 2 }]));
it('withoutServerFields omits the fields that the server sets', () =>
  expect(withoutServerFields({ uuid: 'u', links: [], name: 'n' })).toEqual({ name: 'n' }));
