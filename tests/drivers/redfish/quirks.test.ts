/** Who made a service, and the quirks that its rows give it. */
import { bmcFactsOf, identify, identityOf } from '../../../drivers/redfish/makers';
import type { SystemView } from '../../../drivers/redfish/target';
import type { Task } from '../../../drivers/interfaces';
import { isBelow, quirksFor } from '../../../drivers/redfish/quirks';

const node = (vendor?: string) => ({ properties: vendor === undefined ? {} : { vendor } });
const oem = (...keys: readonly string[]) => ({ Oem: Object.fromEntries(keys.map((key) => [key, {}])) });
const made = (Manufacturer: string, Model?: string) => ({ Manufacturer, Model });

it.each<[string, string | undefined, object, object, string | undefined, readonly string[]]>([
  ['Dell by Vendor', undefined, { Vendor: 'Dell', ...oem('Dell') }, made('Dell Inc.'), 'Dell', ['dell']],
  ['an old iDRAC without Vendor', undefined, oem('Dell'), made('Dell Inc.'), 'Dell Inc.', ['dell']],
  ['iLO 4 by its Oem alone', undefined, oem('Hp'), {}, 'Hp', ['hpe']],
  ['iRMC', undefined, oem('ts_fujitsu'), made('FUJITSU'), 'FUJITSU', ['fujitsu']],
  ['Lenovo on AMI', undefined, oem('Ami'), made('Lenovo'), 'Lenovo', ['lenovo', 'ami']],
  ['Gigabyte on AMI', undefined, { Vendor: 'AMI', ...oem('AMI') }, made('GIGABYTE'), 'AMI', ['ami']],
  ['a vendor that only sells the machine', undefined, { Vendor: 'ACME' }, made('Supermicro'), 'ACME', ['supermicro']],
  ['Super Micro Computer', undefined, {}, made('Super Micro Computer, Inc.'), 'Super Micro Computer, Inc.', ['supermicro']],
  ['a maker under Oem (BULL)', undefined, {}, { Oem: { Manufacturer: 'BULL' } }, 'BULL', []],
  ['the operator against the service', 'Supermicro', { Vendor: 'AMI' }, made('GIGABYTE'), 'Supermicro', ['supermicro']],
  ['names within other words', undefined, {}, made('Dynamics of Miami Hpex Intelligent'), 'Dynamics of Miami Hpex Intelligent', []],
  [
    'a name of any length',
    undefined,
    { Vendor: `Dell ${'x'.repeat(100_000)}` },
    {},
    expect.stringMatching(/^Dell x.{194}$/) as string,
    ['dell'],
  ],
  ['nothing', undefined, {}, {}, undefined, []],
  ['values of other types', undefined, { Vendor: 5, Oem: 'x' }, { Manufacturer: {}, Oem: null }, undefined, []],
])('identityOf: %s', (_, vendor, root, system, name, makers) => {
  expect(identityOf(node(vendor), root, system)).toMatchObject({ vendor: name, makers });
});

it.each<[string, object, object, string | undefined]>([
  ['12G Monolithic', { Model: '12G Monolithic' }, {}, 'iDRAC 7'],
  ['13G Modular', { Model: '13G Modular' }, {}, 'iDRAC 8'],
  ['14G', { Model: '14G Monolithic' }, {}, 'iDRAC 9'],
  ['16G', { Model: '16G Monolithic' }, {}, 'iDRAC 9'],
  ['17G, whose versions began anew', { Model: '17G Monolithic', FirmwareVersion: '1.20.25.00' }, {}, 'iDRAC 10'],
  ['iDRAC by name', { Model: 'iDRAC9' }, {}, 'iDRAC 9'],
  ['iLO 4 by ManagerType', {}, { Oem: { Hp: { Manager: [{ ManagerType: 'iLO 4' }] } } }, 'iLO 4'],
  ['iLO 5 by Moniker', {}, { Oem: { Hpe: { Moniker: { PRODGEN: 'iLO 5' } } } }, 'iLO 5'],
  ['iLO 6 by its version', { FirmwareVersion: 'iLO 6 v1.59' }, {}, 'iLO 6'],
  ['another', { Model: 'AST2600', FirmwareVersion: '2.14' }, {}, undefined],
])('bmcFactsOf: %s', (_, manager, root, generation) => {
  expect(bmcFactsOf(manager, root).generation).toBe(generation);
});

it.each([
  ['6.00.00.00', '6.10.30.00', true],
  ['iLO 5 v2.30', '2.30', false],
  ['iLO 5 v2.29', '2.30', true],
  ['10.1', '9.9', false],
  ['1.2', '1.2.0.1', true],
  ['', '1', true],
])('isBelow(%j, %j) is %s', (version, limit, below) => expect(isBelow(version, limit)).toBe(below));

describe('quirksFor', () => {
  const identity = (vendor: string, Model?: string) => identityOf(node(), {}, made(vendor, Model));
  const nothing = { generation: undefined, firmware: undefined };
  it('takes rows by maker and model, the later ones first', () => {
    expect(quirksFor(identity('Dell Inc.'), nothing)).toEqual({});
    expect(quirksFor(identity('AMI'), nothing)).toEqual({ wholeBoot: true, dropsUntagged: true });
    expect(quirksFor(identity('Supermicro'), nothing)).toMatchObject({ virtualCd: 'UsbCd', forgetsMode: true });
    expect(quirksFor(identity('Supermicro', 'ARS-111GL-NHR'), nothing)).toMatchObject({ virtualCd: 'Cd', forgetsMode: true });
  });
  it('takes rows by generation and firmware', () => {
    const rows = [
      { maker: 'dell', generation: 'iDRAC 9', firmware: { from: '5.0', below: '6.0' }, quirks: { wholeBoot: true }, source: 'none' },
    ] as const;
    const of = (generation: string | undefined, firmware: string | undefined) =>
      quirksFor(identity('Dell Inc.'), { generation, firmware }, rows).wholeBoot === true;
    expect([of('iDRAC 9', '5.10.00.00'), of('iDRAC 9', '6.00.00.00'), of('iDRAC 9', '4.40'), of('iDRAC 8', '5.1')]).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect([of('iDRAC 9', undefined), of(undefined, '5.1'), quirksFor(identity('Dell Inc.'), undefined, rows).wholeBoot]).toEqual([
      false,
      false,
      undefined,
    ]);
  });
});

it.each<[string, object, number]>([
  ['is kept', { Vendor: 'Dell' }, 1],
  ['of any size is not kept', { Vendor: 'Dell', Oem: { x: 'y'.repeat(60_000) } }, 2],
])('a service root %s', async (_, body, reads) => {
  let asked = 0;
  const task = { node: node(), connections: { redfish: {} }, clock: { now: () => 0 } } as unknown as Task;
  const ask = async () => (asked++, { status: 200, headers: {}, body });
  const view = { ask, target: { address: 'https://bmc' }, path: '/x', body: {} } as unknown as SystemView;
  for (const _ of [1, 2]) expect((await identify(task, view)).vendor).toBe('Dell');
  expect(asked).toBe(reads);
});
