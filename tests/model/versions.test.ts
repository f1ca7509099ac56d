import { HEADER, isGateOpen, MAXIMUM, MINIMUM, negotiate, REWRITES } from '../../model/versions';

const RANGE = { min: 1, max: 115 };
const invalid = { refusal: 'Invalid value for X-OpenStack-Ironic-API-Version header', inRange: false };
const tooNew = (version: string) => ({
  refusal: `Version ${version} was requested but the minor version is not supported by this service. The supported version range is: [1.1, 1.115].`,
  inRange: true,
});

it.each([
  // own header, common header, result
  [undefined, undefined, { minor: 1, used: '1.1', explicit: false }],
  ['', undefined, { minor: 1, used: '1.1', explicit: false }],
  ['1.50', undefined, { minor: 50, used: '1.50', explicit: true }],
  [' 1.050 ', undefined, { minor: 50, used: '1.50', explicit: true }],
  ['latest', undefined, { minor: 115, used: '1.115', explicit: true }],
  ['LATEST', undefined, { minor: 115, used: '1.115', explicit: true }],
  ['1.50,1.60', undefined, { minor: 60, used: '1.60', explicit: true }],
  ['1.0', undefined, tooNew('1.0')],
  ['1.116', undefined, tooNew('1.116')],
  ['abc', undefined, invalid],
  ['1', undefined, invalid],
  ['1.1.1', undefined, invalid],
  ['v1.1', undefined, invalid],
  ['1.', undefined, invalid],
  // Numbers as Python reads them.
  ['1.1_00', undefined, { minor: 100, used: '1.100', explicit: true }],
  ['1 . 5', undefined, { minor: 5, used: '1.5', explicit: true }],
  ['1.1_0_0', undefined, { minor: 100, used: '1.100', explicit: true }],
  ['+1.+5', undefined, { minor: 5, used: '1.5', explicit: true }],
  ['1.1', undefined, { minor: 1, used: '1.1', explicit: true }],
  ['1.115', undefined, { minor: 115, used: '1.115', explicit: true }],
  ['1.-5', undefined, tooNew('1.-5')],
  ['1.5_', undefined, invalid],
  ['1._5', undefined, invalid],
  ['1.1__0', undefined, invalid],
  ['1.5 0', undefined, invalid],
  ['x1.5', undefined, invalid],
  ['x.5', undefined, invalid],
  ['.5', undefined, invalid],
  ['1.60, 1.50 ', undefined, { minor: 50, used: '1.50', explicit: true }],
  ['1.5x', undefined, invalid],
  ['1.5_x', undefined, invalid],
  ['1.2, latest', undefined, { minor: 115, used: '1.115', explicit: true }],
  [undefined, 'baremetal 1.30, baremetal \t1.50', { minor: 50, used: '1.50', explicit: false }],
  [undefined, 'baremetal 1.30, baremetal', { minor: 30, used: '1.30', explicit: false }],
  [undefined, 'baremetal 1.5 0', invalid],
  [undefined, 'baremetal 1.50', { minor: 50, used: '1.50', explicit: false }],
  [undefined, 'compute 2.1, BareMetal 1.30', { minor: 30, used: '1.30', explicit: false }],
  [undefined, 'compute 2.1', { minor: 1, used: '1.1', explicit: false }],
  [undefined, '  baremetal 1.50  ', { minor: 50, used: '1.50', explicit: false }],
  [undefined, 'baremetal 1.50, compute 2.1', { minor: 50, used: '1.50', explicit: false }],
  [undefined, 'baremetal latest', { minor: 115, used: '1.115', explicit: false }],
  ['1.40', 'compute 2.1', { minor: 40, used: '1.40', explicit: true }],
  ['1.40', '', { minor: 40, used: '1.40', explicit: true }],
  ['1.40', 'baremetal 1.50', { minor: 50, used: '1.50', explicit: true }],
  [undefined, 'baremetal', { minor: 1, used: '1.1', explicit: false }],
])('negotiate(%p, %p)', (own, common, expected) => {
  expect(negotiate(own, common, RANGE)).toEqual(expected);
});

it('negotiate rejects another major version', () => {
  expect(negotiate('2.0', undefined, RANGE)).toEqual({
    refusal:
      'Mutually exclusive versions requested. Version 2.0 requested but not supported by this service. The supported version range is: [1.1, 1.115].',
    inRange: true,
  });
});

it.each([
  [{ since: 84 }, 83, false],
  [{ since: 84 }, 84, true],
  [{ since: 84, also: [1] }, 1, true],
  [{ since: 84, also: [1] }, 2, false],
])('isGateOpen(%p, %p) is %p', (gate, minor, expected) => {
  expect(isGateOpen(gate, minor)).toBe(expected);
});

it("the names of the headers are those of Ironic's API", () => {
  expect([HEADER, MINIMUM, MAXIMUM]).toEqual([
    'X-OpenStack-Ironic-API-Version',
    'X-OpenStack-Ironic-API-Minimum-Version',
    'X-OpenStack-Ironic-API-Maximum-Version',
  ]);
});
it.each([
  ['available', 1, null],
  ['available', 2, 'available'],
  ['inspect wait', 38, 'inspecting'],
  ['inspect wait', 39, 'inspect wait'],
  ['active', 1, 'active'],
])('REWRITES show the provision state %s in version 1.%d as %p', (state, minor, shown) => {
  const rewrite = REWRITES.find(({ field, from, before }) => field === 'provision_state' && from === state && minor < before);
  expect(rewrite ? rewrite.to : state).toBe(shown);
});
