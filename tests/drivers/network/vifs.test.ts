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
  ['a port with pxe_enabled', 'b', [port('a', { pxe_enabled: false }), port('b')], [], []],
  ['the first of equal ports', 'a', [port('a'), port('b')], [], []],
  ['a port without a VIF', 'b', [port('a', with_('other')), port('b')], [], []],
  ['a portgroup to a port', 'g', [port('a'), member('b')], [group('g')], []],
  ['a port to a portgroup without members', 'a', [port('a')], [group('g')], []],
  ['a port to a portgroup with a VIF', 'a', [port('a'), member('b')], [group('g', with_('other'))], []],
  ['a free member if another member of the portgroup has a VIF', 'b', [member('a', with_('other')), member('b')], [group('g')], []],
  ["a port in the VIF's physical network to one without", 'b', [port('a'), port('b', { physical_network: 'left' })], [], ['left']],
  [
    "a port in the VIF's physical network to a portgroup without",
    'a',
    [port('a', { physical_network: 'left' }), member('b')],
    [group('g')],
    ['left'],
  ],
  ['a port without a physical network to one in another', 'a', [port('b', { physical_network: 'right' }), port('a')], [], ['left']],
])('choosePortOrPortgroup prefers %s', (_, expected, ports, portgroups, networks) =>
  expect(place({ id: 'v' }, ports, portgroups, networks)).toBe(expected),
);

it.each<[object, string]>([
  [{ port_uuid: 'a' }, 'a'],
  [{ portgroup_uuid: 'g' }, 'g'],
])('choosePortOrPortgroup returns the requested port or portgroup: %j', (asked, expected) =>
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
])('choosePortOrPortgroup throws without a free place for %j among the ports %j and portgroups %j', (asked, ports, portgroups) =>
  expect(() => place({ id: 'v', ...asked }, ports, portgroups)).toThrow('Unable to attach VIF v, not enough free physical ports.'),
);
it.each<[string, readonly PortRecord[], readonly PortgroupRecord[]]>([
  ['Port a', [port('b'), port('a', with_('v'))], []],
  ['Portgroup g', [member('a')], [group('g', with_('v'))]],
])('choosePortOrPortgroup rejects a VIF that is already attached to %s', (where, ports, portgroups) =>
  expect(() => place({ id: 'v' }, ports, portgroups)).toThrow(`Unable to attach VIF because VIF v is already attached to Ironic ${where}`),
);

it('attachedVifs, portOrPortgroupOf and currentVif find the attached VIFs', () => {
  const all = { ports: [port('a', with_('v')), port('b')], portgroups: [group('g', with_('w'))] };
  expect(attachedVifs(all)).toEqual([{ id: 'v' }, { id: 'w' }]);
  expect(portOrPortgroupOf('w', 'n', all)).toMatchObject({ kind: 'portgroup', record: { uuid: 'g' } });
  expect(portOrPortgroupOf('v', 'n', all)).toMatchObject({ kind: 'port', record: { uuid: 'a' } });
  expect(() => portOrPortgroupOf('x', 'n', all)).toThrow('Unable to detach VIF x from node n because it is not attached to it.');
  expect(currentVif(port('a', { internal_info: { tenant_vif_port_id: 't', cleaning_vif_port_id: 'c' } }))).toBe('c');
  expect(currentVif(port('a'))).toBeUndefined();
});

describe('a portgroup with standalone_ports_supported = false', () => {
  const strict = group('g', { standalone_ports_supported: false });
  const join = (changes: Partial<PortRecord>) =>
    checkPortChange({ before: port('a', changes), after: member('a', changes), portgroup: strict });
  it('rejects a new member with pxe_enabled or a VIF', () => {
    expect(() => join({})).toThrow(
      "Port group g doesn't support standalone ports. This port a cannot be  a member of that port group because of: 'pxe_enabled' was set to True",
    );
    expect(() => join({ pxe_enabled: false, ...with_('v') })).toThrow(/because of: VIF v is attached to the port$/);
    expect(() => join({ pxe_enabled: false })).not.toThrow();
  });
  it('cannot be made from a portgroup whose members have pxe_enabled', () => {
    const make = (...members: PortRecord[]) => checkPortgroupChange({ before: group('g'), after: strict, members });
    expect(() => make(member('a'))).toThrow(
      "standalone_ports_supported can not be set to False, because the port group g contains port with 'pxe_enabled' is set to True",
    );
    expect(() => make(member('a', { pxe_enabled: false }))).not.toThrow();
  });
});
