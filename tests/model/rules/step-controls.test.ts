/** Controls of steps: which values are refused, with the field's name, and how conditions are evaluated. */
import type { Inventory } from '../../../model/records';
import { failurePolicy, missingField, unmetCondition, wrongControls, type ConditionFacts } from '../../../model/rules/step-controls';

const when = (field: unknown, op: unknown, value: unknown) => ({ when: [{ field, op, value }] });
const fieldsOf = (controls: object, step = 'deploy.erase_devices'): readonly string[] => {
  const [owner, name] = step.split('.');
  return wrongControls({ interface: owner, step: name, ...controls }).map(({ field }) => field);
};
it.each<[object]>([
  [{}],
  [{ timeout: 1 }],
  [{ timeout: 604_800 }],
  [{ on_failure: 'abort' }],
  [{ on_failure: 'continue' }],
  [{ on_failure: 'retry(1)' }],
  [{ on_failure: 'retry(20, 600)' }],
  [{ confirm: 'Is the cable in port 2?' }],
  [when('traits', 'eq', 'CUSTOM_A')],
  [when('inventory.memory.physical_mb', '!lt', 65_536)],
  [when('inventory.disks.rotational', 'eq', true)],
  [when('properties.rack', 'one-of', ['a', 3, false])],
  [when('properties.cpus', 'gt', 3)],
])('%j is accepted', (controls) => {
  expect(fieldsOf(controls)).toEqual([]);
});
it.each<[object, readonly string[], string?]>([
  [{ timeout: 'soon' }, ['timeout']],
  [{ timeout: '60' }, ['timeout']],
  [{ timeout: 0 }, ['timeout']],
  [{ timeout: 1.5 }, ['timeout']],
  [{ timeout: 604_801 }, ['timeout']],
  [{ timeout: null }, ['timeout']],
  [{ on_failure: 'retry' }, ['on_failure']],
  [{ on_failure: 'retry(0)' }, ['on_failure']],
  [{ on_failure: 'retry(21)' }, ['on_failure']],
  [{ on_failure: 'retry(3, 601)' }, ['on_failure']],
  [{ on_failure: 3 }, ['on_failure']],
  [{ confirm: '' }, ['confirm']],
  [{ confirm: 'x'.repeat(256) }, ['confirm']],
  [{ when: [] }, ['when']],
  [{ when: Array(17).fill({ field: 'traits', op: 'eq', value: 'A' }) }, ['when']],
  [{ when: ['x'] }, ['when[0]']],
  [when('inventory.memory.colour', 'eq', 1), ['when[0].field']],
  [when('__proto__', 'eq', 1), ['when[0].field']],
  [when(7, 'eq', 1), ['when[0].field']],
  [when('traits', 'like', 'A'), ['when[0].op']],
  [when('traits', 'lt', 3), ['when[0].op']],
  [when('inventory.memory.physical_mb', 'lt', '3'), ['when[0].value']],
  [when('inventory.memory.physical_mb', 'eq', 'many'), ['when[0].value']],
  [when('traits', 'one-of', 'A'), ['when[0].value']],
  [when('traits', 'one-of', []), ['when[0].value']],
  [{ when: [{ field: 'traits', op: 'eq', value: 'A', also: 1 }] }, ['when[0].also']],
  [{ timeout: 0, on_failure: 'x' }, ['timeout', 'on_failure']],
  [{ confirm: 'Go on?', timeout: 5 }, ['confirm', 'timeout'], 'power.hold'],
  [{ timeout: 5 }, ['timeout'], 'power.wait'],
])('%j is refused at %j', (...[controls, fields, step]) => {
  expect(fieldsOf(controls, step)).toEqual(fields);
});

it.each([
  [undefined, { retries: 0, pause: 10, goesOn: false }],
  ['abort', { retries: 0, pause: 10, goesOn: false }],
  ['continue', { retries: 0, pause: 10, goesOn: true }],
  ['retry(3)', { retries: 3, pause: 10, goesOn: false }],
  ['retry(2, 0)', { retries: 2, pause: 0, goesOn: false }],
])('on_failure %s', (text, policy) => {
  expect(failurePolicy(text === undefined ? {} : { on_failure: text })).toEqual(policy);
});

const facts = {
  node: { traits: ['CUSTOM_A'], resource_class: null, conductor_group: '', driver: 'redfish', properties: { cpus: '8', rack: 'r1' } },
  inventory: {
    interfaces: [],
    memory: { physical_mb: 2048 },
    disks: [
      { name: '/dev/sda', size: 10, rotational: true },
      { name: '/dev/nvme0n1', size: 20, rotational: false },
    ],
  } as Inventory,
} satisfies ConditionFacts;
it.each<[string, string, unknown, 'holds' | 'does not hold' | 'missing']>([
  ['traits', 'eq', 'CUSTOM_A', 'holds'],
  ['traits', 'eq', 'CUSTOM_B', 'does not hold'],
  ['traits', '!eq', 'CUSTOM_B', 'holds'],
  ['traits', 'one-of', ['CUSTOM_B', 'CUSTOM_A'], 'holds'],
  ['driver', '!one-of', ['redfish'], 'does not hold'],
  ['properties.cpus', 'eq', 8, 'holds'],
  ['properties.cpus', 'gt', 8, 'does not hold'],
  ['properties.shelf', 'eq', 1, 'missing'],
  ['resource_class', 'eq', 'x', 'missing'],
  ['inventory.memory.physical_mb', 'lt', 4096, 'holds'],
  ['inventory.memory.physical_mb', '!lt', 2048, 'holds'],
  ['inventory.cpu.count', 'gt', 1, 'missing'],
  ['inventory.disks.rotational', 'eq', false, 'holds'],
  ['inventory.disks.size', 'gt', 15, 'holds'],
  ['inventory.disks.size', '!gt', 15, 'does not hold'],
  ['inventory.disks.vendor', 'eq', 'x', 'missing'],
  ['inventory.interfaces.has_carrier', 'eq', true, 'does not hold'],
])('%s %s %j %s', (field, op, value, expected) => {
  const controls = when(field, op, value) as { when: readonly { field: string; op: string; value: unknown }[] };
  const missing = missingField(controls, facts);
  expect(missing ? 'missing' : unmetCondition(controls, facts) === undefined ? 'holds' : 'does not hold').toBe(expected);
  if (missing) expect(missing).toEqual({ field: 'when[0].field', problem: `the node has no ${field}` });
});
it('without an inventory, its fields are missing', () => {
  expect(missingField({ when: [{ field: 'inventory.disks.size', op: 'gt', value: 1 }] }, { ...facts, inventory: undefined })).toBeDefined();
});
