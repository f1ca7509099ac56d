import { isTrait, missingTraits } from '../../model/traits';

it.each([
  ['CUSTOM_A', true],
  ['CUSTOM_A_1', true],
  ['CUSTOM_', false],
  ['CUSTOM_a', false],
  ['CUSTOM_A-B', false],
  ['X_CUSTOM_A', false],
  [`CUSTOM_${'A'.repeat(248)}`, true],
  [`CUSTOM_${'A'.repeat(249)}`, false],
  // The first, one at the end of a line, and the last of the standard names.
  ['COMPUTE_ACCELERATORS', true],
  ['COMPUTE_ARCH_X86_64', true],
  ['STORAGE_DISK_SSD', true],
  ['STORAGE_DISK', false],
  ['', false],
])('isTrait(%p) is %p', (name, expected) => expect(isTrait(name)).toBe(expected));

it.each<[unknown, readonly string[] | undefined]>([
  [['CUSTOM_A'], []],
  [
    ['CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C'],
    ['CUSTOM_B', 'CUSTOM_C'],
  ],
  [undefined, []],
  [null, []],
  ['', []],
  [0, []],
  [[], []],
  [{}, []],
  ['CUSTOM_A', undefined],
  [{ CUSTOM_A: true }, undefined],
  [5, undefined],
  [['CUSTOM_A', 5], undefined],
])('missingTraits of instance_info.traits %p is %p', (traits, missing) => {
  expect(missingTraits({ instance_info: { traits }, traits: ['CUSTOM_A'] })).toEqual(missing);
});
