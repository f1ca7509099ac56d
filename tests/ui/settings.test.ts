/** Changes of a machine by the page: BIOS settings with their bounds, firmware, RAID, and the image of a deployment. */
import { stepsAction, ACTIONS } from '../../ui/lib/actions';
import type { Api } from '../../ui/lib/api';
import { columnsOf, viewOf } from '../../ui/lib/filters';
import { imagePatch, typedImage } from '../../ui/lib/images';
import { validationsOf } from '../../ui/lib/inventory';
import { rowOf } from '../../ui/lib/rows';
import { unitText } from '../../ui/lib/sensors';
import {
  biosMistake,
  biosSteps,
  boundsText,
  changedSettings,
  choicesOf,
  firmwareSteps,
  logicalDisks,
  verbFor,
  type BiosSetting,
} from '../../ui/lib/settings';

const BOOT: BiosSetting = { name: 'BootMode', value: 'Uefi', attribute_type: 'Enumeration', allowable_values: ['Uefi', 'Bios'] };
const RETRIES: BiosSetting = { name: 'Retries', value: '3', attribute_type: 'Integer', lower_bound: 0, upper_bound: 9 };
const TAG: BiosSetting = { name: 'Tag', value: null, attribute_type: 'String', min_length: 2, max_length: 4 };
it.each<[BiosSetting, string, string | undefined]>([
  [BOOT, 'Bios', undefined],
  [BOOT, 'Other', 'must be one of Uefi, Bios'],
  [RETRIES, '9', undefined],
  [RETRIES, '10', 'is more than 9'],
  [RETRIES, '-1', 'is less than 0'],
  [RETRIES, 'x', 'must be a whole number'],
  [TAG, 'abc', undefined],
  [TAG, 'a', 'has fewer than 2 characters'],
  [TAG, 'abcde', 'has more than 4 characters'],
  [{ name: 'Any', value: null }, 'anything', undefined],
])('biosMistake(%j, %s) is %s', (setting, text, mistake) => expect(biosMistake(setting, text)).toBe(mistake));
it.each<[BiosSetting, readonly string[] | undefined, string]>([
  [BOOT, ['Uefi', 'Bios'], ''],
  [{ ...BOOT, value: 'Odd' }, ['Odd', 'Uefi', 'Bios'], ''],
  [{ name: 'Quiet', value: 'False', attribute_type: 'Boolean', allowable_values: [] }, ['True', 'False'], ''],
  [{ name: 'Quiet', value: 'true', attribute_type: 'Boolean' }, ['true', 'false'], ''],
  [RETRIES, undefined, '0 to 9'],
  [TAG, undefined, '2 to 4 characters'],
  [{ name: 'Any', value: null }, undefined, ''],
])('choicesOf and boundsText of %j are %j and "%s"', (setting, choices, text) =>
  expect([choicesOf(setting), boundsText(setting)]).toEqual([choices, text]),
);
it('biosSteps and firmwareSteps contain only changed values', () => {
  const changes = changedSettings([BOOT, RETRIES, TAG], { BootMode: 'Bios', Retries: '3', Tag: '' });
  expect(changes).toEqual([{ name: 'BootMode', value: 'Bios' }]);
  expect(biosSteps(changes)).toEqual([{ interface: 'bios', step: 'apply_configuration', args: { settings: changes } }]);
  expect(firmwareSteps({ bmc: 'https://x/1' })).toEqual([
    { interface: 'firmware', step: 'update', args: { settings: [{ component: 'bmc', url: 'https://x/1' }] } },
  ]);
});
it.each([
  ['manageable', 'bios', 'clean'],
  ['active', 'firmware', 'service'],
  ['active', 'raid', undefined],
  ['available', 'bios', undefined],
] as const)('verbFor a node in state %s and kind %s is %s', (state, kind, verb) => expect(verbFor(state, kind)).toBe(verb));
it('stepsAction is prefilled with the given steps', () => {
  const { id, title, inputs } = stepsAction('service', 'Change 1 setting', [{ interface: 'bios', step: 'factory_reset' }]);
  expect([id, title, JSON.parse(inputs![0]!.initial!)]).toEqual([
    'service',
    'Change 1 setting',
    [{ interface: 'bios', step: 'factory_reset' }],
  ]);
});
it.each([
  [{}, []],
  [null, []],
  [{ logical_disks: [{ size_gb: 1 }] }, [{ size_gb: 1 }]],
])('logicalDisks(%j) is %j', (config, disks) => expect(logicalDisks(config)).toEqual(disks));

const IMAGE = {
  uuid: 'i',
  name: 'debian',
  description: null,
  image_source: 'http://x/d',
  image_checksum: 'http://x/SUMS',
  image_os_hash_algo: null,
};
const BEFORE = { image_source: 'http://x/old', image_os_hash_algo: 'sha256', image_os_hash_value: 'a', root_gb: 10 };
const PATCH = [
  { op: 'add', path: '/instance_info/image_source', value: 'http://x/d' },
  { op: 'add', path: '/instance_info/image_checksum', value: 'http://x/SUMS' },
  { op: 'remove', path: '/instance_info/image_os_hash_algo' },
  { op: 'remove', path: '/instance_info/image_os_hash_value' },
];
it('imagePatch removes the checksum of another image', () => {
  expect(imagePatch(BEFORE, IMAGE)).toEqual(PATCH);
  expect(imagePatch({ image_source: 'http://x/d', image_checksum: 'http://x/SUMS' }, IMAGE)).toEqual([]);
});
it.each([
  ['', { image_source: 's' }],
  ['http://x/SUMS', { image_source: 's', image_checksum: 'http://x/SUMS' }],
  ['ab', { image_source: 's', image_os_hash_algo: 'sha256', image_os_hash_value: 'ab' }],
])('typedImage with the checksum "%s" is %j', (hash, image) => expect(typedImage('s', hash)).toEqual(image));

const row = (fields: Readonly<Record<string, unknown>>) =>
  rowOf({ uuid: 'u', name: 'a', provision_state: 'available', power_state: null, driver: 'ipmi', ...fields });
it('the action "active" deploys with the chosen image, and shows the change of state', async () => {
  const sent: unknown[] = [];
  const api = {
    get: async (path: string) => (path === 'v1/images/i' ? IMAGE : { instance_info: BEFORE }),
    send: async (...words: unknown[]) => void sent.push(words),
  } as unknown as Api;
  const deploy = ACTIONS.find(({ id }) => id === 'active')!;
  expect(deploy.change!(row({}))).toBe('available → active');
  await deploy.run(api, row({}), { image: 'i', image_source: '', image_os_hash_value: '' });
  expect(sent).toEqual([
    ['PATCH', 'v1/nodes/u', PATCH],
    ['PUT', 'v1/nodes/u/states/provision', { target: 'active' }],
  ]);
});
it('columnsOf returns default columns, columns with a value, and chosen columns', () => {
  const ids = (search: string, rows: readonly ReturnType<typeof row>[]) => columnsOf(viewOf(search), rows).map(({ id }) => id);
  expect(ids('', [row({})])).toEqual(['name', 'state', 'power', 'hardware', 'error']);
  expect(ids('', [row({}), row({ owner: 'web' })])).toContain('owner');
  expect(ids('columns=name,shard', [row({})])).toEqual(['name', 'shard']);
});
it('validationsOf lists invalid interfaces first', () =>
  expect(
    validationsOf({
      boot: { result: true, reason: null },
      console: { result: null, reason: 'not supported' },
      power: { result: false, reason: 'no' },
    }),
  ).toEqual([
    { interface: 'power', valid: 'no', reason: 'no' },
    { interface: 'boot', valid: 'yes', reason: '' },
    { interface: 'console', valid: 'not supported', reason: 'not supported' },
  ]));
it.each([
  ['celsius', '°C'],
  ['other', ''],
  ['rpm', 'rpm'],
])('unitText(%s) is "%s"', (unit, text) => expect(unitText(unit)).toBe(text));
