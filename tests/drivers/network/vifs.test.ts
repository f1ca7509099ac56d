import {
  attachedVifs,
  portOrPortgroupOf,
  checkPortChange,
  checkPortgroupChange,
  currentVif,
  choosePortOrPortgroup,
} from '../../../drivers/network/vifs';
import type { PortgroupRecord, PortRecord, Vif } from '../../../model/records';
import { portgroupRecord, portRecord } from '../../support/task';

const with_ = (vif: string) => ({ internal_info: { tenant_vif_port_id: vif } });
const port = (uuid: string, changes: Partial<PortRecord> = {}) => portRecord({ uuid, ...changes });
const group = (uuid: string, changes: Partial<PortgroupRecord> = {}) => portgroupRecord({ uuid, ...changes });

const place = (vif: Vif, ports: readonly PortRecord[], portgroups: readonly PortgroupRecord[] = [], networks: readonly string[] = []) =>
  choosePortOrPortgroup(vif, networks, { ports, portgroups }).record.uuid;
const member = (uuid: string, changes: Partial<PortRecord> = {}) => port(uuid, { portgroup_uuid: 'g', ...changes });

it.each<[string, string, readonly PortRecord[], readonly PortgroupRecord[], readonly string[]]>([
  ['a port that boots', 'b', [port('a', { pxe_enabled: false }), port('b')], [], []],
  ['the first of equal ones', 'a', [port('a'), port('b')], [], []],
  ['one that is free', 'b', [port('a', with_('other')), port('b')], [], []],
  ['a portgroup before a port', 'g', [port('a'), member('b')], [group('g')], []],
  ['no portgroup without ports', 'a', [port('a')], [group('g')], []],
  ['no portgroup that has a VIF', 'a', [port('a'), member('b')], [group('g', with_('other'))], []],
  ['a free port where another of its portgroup has a VIF', 'b', [member('a', with_('other')), member('b')], [group('g')], []],
  ['a physical network of its own', 'b', [port('a'), port('b', { physical_network: 'left' })], [], ['left']],
  ['its network before a portgroup', 'a', [port('a', { physical_network: 'left' }), member('b')], [group('g')], ['left']],
  ['no other physical network', 'a', [port('b', { physical_network: 'right' }), port('a')], [], ['left']],
])('a VIF goes to %s', (_, expected, ports, portgroups, networks) =>
  expect(place({ id: 'v' }, ports, portgroups, networks)).toBe(expected),
);

it.each<[object, string]>([
  [{ port_uuid: 'a' }, 'a'],
  [{ portgroup_uuid: 'g' }, 'g'],
])('a VIF goes where it shall: %j', (asked, expected) =>
  expect(place({ id: 'v', ...asked }, [port('b'), port('a', { pxe_enabled: false }), member('c')], [group('h'), group('g')])).toBe(
    expected,
  ),
);
it.each<[object, readonly PortRecord[], readonly PortgroupRecord[]]>([
  [{}, [], []],
  [{}, [port('a', with_('other'))], []],
  [{ port_uuid: 'b' }, [port('a')], []],
  [{ port_uuid: 'b' }, [port('a'), member('b')], [group('g')]],
  [{ portgroup_uuid: 'g' }, [port('a')], [group('g')]],
  [{ portgroup_uuid: 'g' }, [member('a', with_('other')), member('b')], [group('g')]],
])('no place for %j among %j and %j', (asked, ports, portgroups) =>
  expect(() => place({ id: 'v', ...asked }, ports, portgroups)).toThrow('Unable to attach VIF v, not enough free physical ports.'),
);
it.each<[string, readonly PortRecord[], readonly PortgroupRecord[]]>([
  ['Port a', [port('b'), port('a', with_('v'))], []],
  ['Portgroup g', [member('a')], [group('g', with_('v'))]],
])('a VIF is attached once: %s', (where, ports, portgroups) =>
  expect(() => place({ id: 'v' }, ports, portgroups)).toThrow(`Unable to attach VIF because VIF v is already attached to Ironic ${where}`),
);

it('tells which VIFs there are and where', () => {
  const all = { ports: [port('a', with_('v')), port('b')], portgroups: [group('g', with_('w'))] };
  expect(attachedVifs(all)).toEqual([{ id: 'v' }, { id: 'w' }]);
  expect(portOrPortgroupOf('w', 'n', all)).toMatchObject({ kind: 'portgroup', record: { uuid: 'g' } });
  expect(portOrPortgroupOf('v', 'n', all)).toMatchObject({ kind: 'port', record: { uuid: 'a' } });
  expect(() => portOrPortgroupOf('x', 'n', all)).toThrow('Unable to detach VIF x from node n because it is not attached to it.');
  expect(currentVif(port('a', { internal_info: { tenant_vif_port_id: 't', cleaning_vif_port_id: 'c' } }))).toBe('c');
  expect(currentVif(port('a'))).toBeUndefined();
});

describe('a portgroup that allows no port for itself', () => {
  const strict = group('g', { standalone_ports_supported: false });
  const join = (changes: Partial<PortRecord>) =>
    checkPortChange({ before: port('a', changes), after: member('a', changes), portgroup: strict });
  it('takes no port that boots or has a VIF', () => {
    expect(() => join({})).toThrow(
      "Port group g doesn't support standalone ports. This port a cannot be  a member of that port group because of: 'pxe_enabled' was set to True",
    );
    expect(() => join({ pxe_enabled: false, ...with_('v') })).toThrow(/because of: VIF v is attached to the port$/);
    expect(() => join({ pxe_enabled: false })).not.toThrow();
  });
  it('is not made of one with such ports', () => {
    const make = (...members: PortRecord[]) => checkPortgroupChange({ before: group('g'), after: strict, members });
    expect(() => make(member('a'))).toThrow(
      "standalone_ports_supported can not be set to False, because the port group g contains port with 'pxe_enabled' is set to True",
    );
    expect(() => make(member('a', { pxe_enabled: false }))).not.toThrow();
  });
});
