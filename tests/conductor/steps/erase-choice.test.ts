import type { PlannedStep } from '../../../drivers/interfaces';
import type { JsonObject } from '../../../model/json';
import { runbookWithErase, withChosenErase } from '../../../conductor/steps/erase-choice';

const step = (name: string, priority: number, owner = 'deploy'): PlannedStep => ({
  interface: owner,
  step: name,
  priority,
  abortable: true,
});
const OFFERED = [step('erase_devices_metadata', 99), step('erase_devices_express', 0), step('erase_devices', 10)];
const BIOS = step('apply_configuration', 50, 'bios');
const AT_LAST = step('update', 0, 'firmware');
const node = (erase: string | undefined, driverInfo: JsonObject = {}) =>
  ({ driver_info: driverInfo, driver_internal_info: erase === undefined ? {} : { erase_choice: { erase } } }) as Parameters<
    typeof withChosenErase
  >[0];
const names = (steps: readonly { readonly step: string }[]): readonly string[] => steps.map(({ step: name }) => name);

it.each<[string, Parameters<typeof withChosenErase>[0], readonly string[]]>([
  ['no choice', node(undefined), ['erase_devices_metadata', 'apply_configuration', 'erase_devices', 'update']],
  ['none', node('none'), ['apply_configuration', 'update']],
  ['metadata', node('metadata'), ['erase_devices_metadata', 'apply_configuration', 'update']],
  ['express', node('express'), ['erase_devices_express', 'apply_configuration', 'update']],
  ['full', node('full'), ['apply_configuration', 'erase_devices', 'update']],
  ["the node's, without a choice", node(undefined, { cleaning_erase: 'none' }), ['apply_configuration', 'update']],
  ["a choice before the node's", node('full', { cleaning_erase: 'none' }), ['apply_configuration', 'erase_devices', 'update']],
  [
    'a word that was stored unchecked',
    node(undefined, { cleaning_erase: 'x' }),
    ['erase_devices_metadata', 'apply_configuration', 'erase_devices', 'update'],
  ],
])('the steps of automated cleaning: %s', (_, given, expected) => {
  const steps = [step('erase_devices_metadata', 99), BIOS, step('erase_devices', 10), AT_LAST];
  expect(names(withChosenErase(given, steps, OFFERED))).toEqual(expected);
});
it('keeps the arguments of the chosen step, and runs it where its priority is 0', () => {
  const withArguments = { ...step('erase_devices', 10), args: { iterations: 3 } };
  expect(withChosenErase(node('full'), [withArguments], OFFERED)).toEqual([withArguments]);
  expect(withChosenErase(node('express'), [], OFFERED)).toEqual([step('erase_devices_express', 99)]);
});
it('refuses a step that the agent does not have', () => {
  expect(() => withChosenErase(node('express'), [BIOS], [step('erase_devices', 10)])).toThrow(
    'express was chosen, and the agent has no step deploy.erase_devices_express',
  );
});

const asked = (owner: string, name: string, args: JsonObject = {}): JsonObject => ({ interface: owner, step: name, args });
const RUNBOOK = [
  asked('bios', 'reset'),
  asked('deploy', 'erase_devices_metadata'),
  asked('raid', 'x'),
  asked('deploy', 'erase_devices', { iterations: 2 }),
];
it.each<[string, readonly string[]]>([
  ['none', ['reset', 'x']],
  ['metadata', ['reset', 'erase_devices_metadata', 'x']],
  ['full', ['reset', 'erase_devices', 'x']],
])('the steps of a runbook: %s', (erase, expected) => {
  const { steps = [] } = runbookWithErase(node(erase), { steps: RUNBOOK, disableRamdisk: false }) ?? {};
  expect(steps.map((each) => each['step'])).toEqual(expected);
});
it('boots the ramdisk for a chosen erasure', () => {
  const without = { steps: [asked('bios', 'reset')], disableRamdisk: true };
  expect(runbookWithErase(node('full'), without)).toMatchObject({
    disableRamdisk: false,
    steps: [{ step: 'reset' }, { step: 'erase_devices' }],
  });
  expect(runbookWithErase(node('none'), without)).toEqual(without);
  expect(runbookWithErase(node(undefined), without)).toBe(without);
  expect(runbookWithErase(node('full'), undefined)).toBeUndefined();
});
