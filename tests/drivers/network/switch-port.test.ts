import { isComplete, switchPortOfNetwork, switchPortOfPort, switchportProblem, lagProblem } from '../../../drivers/network/switch-port';

it.each([
  ['access/native_vlan=100', { mode: 'access', nativeVlan: 100, allowedVlans: null }, true],
  ['trunk/native_vlan=1/allowed_vlans=5,7-8', { mode: 'trunk', nativeVlan: 1, allowedVlans: [5, 7, 8] }, true],
  [' hybrid / native_vlan = 1 / other=x', { mode: 'hybrid', nativeVlan: 1, allowedVlans: null }, false],
  ['access/allowed_vlans=5', { mode: 'access', nativeVlan: null, allowedVlans: [5] }, false],
])('switchPortOfNetwork parses %s', (text, expected, complete) => {
  const port = switchPortOfNetwork(text, 'cleaning');
  expect(port).toEqual(expected);
  expect(isComplete(port)).toBe(complete);
});
it.each([
  ['/native_vlan=1', 'mode is empty'],
  ['access', 'expected at least mode/native_vlan=N'],
  ['port/native_vlan=1', "mode must be one of ('access', 'trunk', 'hybrid'), got 'port'"],
  ['access/100', "expected key=value, got '100'"],
  ['access/native_vlan=x', "invalid literal for int() with base 10: 'x'"],
  ['trunk/native_vlan=1/allowed_vlans=0', 'VLAN ID must be between 1 and 4094, got 0'],
])('switchPortOfNetwork rejects %s', (text, reason) => {
  expect(() => switchPortOfNetwork(text, 'cleaning')).toThrow(
    `Invalid cleaning network value '${text}'. Expected: {access|trunk|hybrid}/native_vlan=VLAN_ID[/allowed_vlans=V1,V2,Vn-Vm,...]. Error: ${reason}`,
  );
});

it.each([
  [undefined, undefined],
  [{ native_vlan: 5 }, undefined],
  [
    { mode: 'access', native_vlan: 5 },
    { mode: 'access', nativeVlan: 5, allowedVlans: null },
  ],
  [
    { mode: 'trunk', native_vlan: 5, allowed_vlans: [6, '7', 9999] },
    { mode: 'trunk', nativeVlan: 5, allowedVlans: [6] },
  ],
])('switchPortOfPort reads %j', (switchport, expected) => {
  expect(switchPortOfPort(switchport)).toEqual(expected);
});
it.each([
  [{ mode: 'port' }, "Invalid switchport mode 'port'. Must be one of ('access', 'trunk', 'hybrid')."],
  [{ mode: 'access', native_vlan: '5' }, 'native_vlan must be an integer, got str.'],
])('switchPortOfPort rejects %j', (switchport, reason) => {
  expect(() => switchPortOfPort(switchport)).toThrow(reason);
});
it.each([
  [{ mode: 'access', native_vlan: 5, lag_name: 'a', mtu: 9000 }, undefined],
  [{ mode: 'trunk', native_vlan: 5, allowed_vlans: [6, 7] }, undefined],
  [{ native_vlan: 5 }, "'mode' is a required property"],
  [{ mode: 'access' }, "'native_vlan' is a required property"],
  [{ mode: 'port', native_vlan: 5 }, "'port' is not one of ['access', 'trunk', 'hybrid']"],
  [{ mode: 'access', native_vlan: 0 }, '0 is not a VLAN from 1 to 4094'],
  [{ mode: 'access', native_vlan: 5, allowed_vlans: [6] }, 'allowed_vlans is not for the mode access'],
  [{ mode: 'trunk', native_vlan: 5 }, "'allowed_vlans' is a required property"],
  [{ mode: 'trunk', native_vlan: 5, allowed_vlans: [6, 6] }, /^allowed_vlans is not a list/],
  [{ mode: 'access', native_vlan: 5, mtu: 9217 }, '9217 is not a valid mtu'],
  [{ mode: 'access', native_vlan: 5, lag_name: 5 }, '5 is not a valid lag_name'],
  [{ mode: 'access', native_vlan: 5, more: 1 }, "Additional properties are not allowed ('more' was unexpected)"],
])('switchportProblem checks %j', (switchport, problem) => {
  if (problem instanceof RegExp) expect(switchportProblem(switchport)).toMatch(problem);
  else expect(switchportProblem(switchport)).toBe(problem);
});
it.each([
  [{ mode: 'access', aggregation_mode: 'static' }, undefined],
  [{ mode: 'trunk', native_vlan: 5, allowed_vlans: [6, 7], aggregation_mode: 'lacp', mtu: 9000 }, undefined],
  [{ mode: 'access', aggregation_mode: 'pagp' }, "'pagp' is not one of ['lacp', 'static']"],
  [{ mode: 'trunk', aggregation_mode: 'lacp' }, "'allowed_vlans' is a required property"],
  [{ mode: 'access', native_vlan: 4095, aggregation_mode: 'lacp' }, '4095 is not a VLAN from 1 to 4094'],
  [{ mode: 'access', aggregation_mode: 'lacp', lag_name: 'a' }, "Additional properties are not allowed ('lag_name' was unexpected)"],
  [{ aggregation_mode: 'lacp' }, "'mode' is a required property"],
])('lagProblem checks %j', (lag, problem) => {
  expect(lagProblem(lag)).toBe(problem);
});
