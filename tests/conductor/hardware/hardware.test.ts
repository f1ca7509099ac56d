/** Which interfaces are enabled, and the defaults of a hardware type. */
import { createHardware } from '../../../conductor/hardware/create-hardware';
import { silentLog } from '../../../model/log';
import { INTERFACE_KINDS } from '../../../model/records';
import { HARDWARE, conductorOptions } from '../../support/conductor';
import { interfacesOf, newMachine } from '../../support/machine';
import { errorWith } from '../../support/expect';

const made = (changes: Parameters<typeof conductorOptions>[0] = {}, warnings: string[] = []) =>
  createHardware(conductorOptions(changes), HARDWARE, interfacesOf(newMachine()), {
    ...silentLog,
    warn: (message) => void warnings.push(message),
  });

it.each<[string, Parameters<typeof conductorOptions>[0], string, readonly string[], string]>([
  ['the enabled interfaces, of which the first is the default', {}, 'test-hardware', ['test', 'other'], 'test'],
  [
    'interfaces in its own order, not in that of the option',
    { 'DEFAULT.enabled_boot_interfaces': ['other', 'test'] },
    'test-hardware',
    ['test', 'other'],
    'test',
  ],
  ['only enabled interfaces', { 'DEFAULT.enabled_boot_interfaces': ['other'] }, 'test-hardware', ['other'], 'other'],
  [
    'the default of the option before the first interface',
    { 'DEFAULT.default_boot_interface': 'other' },
    'test-hardware',
    ['test', 'other'],
    'other',
  ],
  ['no interface "*"', {}, 'any-hardware', ['other'], 'other'],
])('a hardware type offers %s', (_name, options, type, enabled, standard) => {
  const types = type === 'rigid-hardware' ? {} : { 'DEFAULT.enabled_hardware_types': [type] };
  const hardware = made({ ...options, ...types });
  expect(hardware.enabled[type]!.enabled.boot).toEqual(enabled);
  expect(hardware.enabled[type]!.defaults.boot).toBe(standard);
});

it.each<[string, Parameters<typeof conductorOptions>[0], RegExp]>([
  [
    'is not enabled',
    { 'DEFAULT.enabled_boot_interfaces': ['test'], 'DEFAULT.default_boot_interface': 'other' },
    /^\[DEFAULT\]default_boot_interface = other: not enabled: choose from \[DEFAULT\]enabled_boot_interfaces, of which are available: test$/m,
  ],
  [
    'does not exist',
    { 'DEFAULT.default_storage_interface': 'nope' },
    /^\[DEFAULT\]default_storage_interface = nope: not available: choose from \[DEFAULT\]enabled_storage_interfaces, of which are available: /,
  ],
  [
    'an enabled hardware type does not support',
    { 'DEFAULT.default_boot_interface': 'other' },
    /^\[DEFAULT\]default_boot_interface = other: hardware type rigid-hardware does not support this interface/,
  ],
])('a default that %s stops the start, as in Ironic', (_, options, message) => {
  expect(() => made(options)).toThrow(message);
});
it("Ironic's own default does not stop the start if it is not enabled", () => {
  const types = { 'DEFAULT.enabled_hardware_types': ['test-hardware'] };
  expect(made({ 'DEFAULT.default_storage_interface': 'noop', ...types }).enabled['test-hardware']!.defaults.storage).toBe('test');
});

it('without enabled_power_interfaces, those that the enabled hardware types prefer are enabled', () => {
  const hardware = made({ 'DEFAULT.enabled_power_interfaces': null, 'DEFAULT.enabled_hardware_types': ['any-hardware', 'test-hardware'] });
  expect(hardware.enabled['test-hardware']!.enabled.power).toEqual(['test', 'other']);
});

it.each(['bios', 'boot', 'vendor'] as const)(
  'an empty list of %s interfaces enables those that the hardware types prefer, as in Ironic',
  (kind) => {
    const options = { [`DEFAULT.enabled_${kind}_interfaces`]: [], 'DEFAULT.enabled_hardware_types': ['test-hardware'] };
    expect(made(options).enabled['test-hardware']!.enabled[kind]).toEqual(['test']);
  },
);

it('warns about enabled interfaces that do not exist, and continues', () => {
  const warnings: string[] = [];
  made({ 'DEFAULT.enabled_bios_interfaces': ['nope', 'test', 'other'] }, warnings);
  expect(warnings).toEqual(['[DEFAULT]enabled_bios_interfaces: not available: nope: nodes that set one of these need another one']);
});

it('says which interface a misspelt name may mean', () => {
  const warnings: string[] = [];
  made({ 'DEFAULT.enabled_deploy_interfaces': ['tset', 'test', 'other'] }, warnings);
  expect(warnings).toEqual([
    '[DEFAULT]enabled_deploy_interfaces: not available: tset (did you mean test?): nodes that set one of these need another one',
  ]);
  expect(() => made({ 'DEFAULT.default_storage_interface': 'ohter' })).toThrow(
    '[DEFAULT]default_storage_interface = ohter (did you mean other?): not available: choose from',
  );
  expect(() => made({ 'DEFAULT.enabled_hardware_types': ['test-hardwar'] })).toThrow(
    '[DEFAULT]enabled_hardware_types: unknown hardware types: test-hardwar (did you mean test-hardware?); there are',
  );
});

it('says what to use instead of interfaces that have a successor', () => {
  const warnings: string[] = [];
  const hardware = made({ 'DEFAULT.enabled_deploy_interfaces': ['ansible', 'test', 'other'] }, warnings);
  expect(warnings).toEqual([
    expect.stringMatching(/^\[DEFAULT\]enabled_deploy_interfaces: not available: ansible \(use custom-agent .*\)/),
  ]);
  expect(() => hardware.fill('test-hardware', { deploy_interface: 'ansible' })).toThrow(
    /entrypoint: ansible\. Valid interfaces are \['other', 'test'\]\. The interface ansible is not here: use custom-agent /,
  );
});

describe('what Ironic has and this program has not', () => {
  it('is left out, with a warning that says what happens to the nodes', () => {
    const warnings: string[] = [];
    const hardware = made(
      { 'DEFAULT.enabled_hardware_types': ['snmp', 'test-hardware', 'ilo5'], 'DEFAULT.default_boot_interface': 'ilo-ipxe' },
      warnings,
    );
    expect(Object.keys(hardware.enabled)).toEqual(['test-hardware']);
    expect(hardware.enabled['test-hardware']!.defaults.boot).toBe('test');
    expect(warnings).toEqual([
      expect.stringMatching(
        /enabled_hardware_types: not available: snmp \(use ipmi or redfish, or manual-management\), ilo5 \(use redfish\): nodes .* until they get another driver \(of test-hardware\)$/,
      ),
      expect.stringMatching(
        /^\[DEFAULT\]default_boot_interface = ilo-ipxe \(use ipxe\): not available: nodes that do not set one get the first .*\(test, other\)/,
      ),
    ]);
  });
  it.each<[Parameters<typeof conductorOptions>[0], RegExp]>([
    [
      { 'DEFAULT.enabled_hardware_types': ['irmc', 'ilo'] },
      /^\[DEFAULT\]enabled_hardware_types: unknown hardware types: irmc \(use redfish\), ilo \(use redfish\); there are/,
    ],
    [{ 'DEFAULT.enabled_hardware_types': ['test-hardware', 'redfihs'] }, /unknown hardware types: redfihs; there are/],
    [{ 'DEFAULT.default_network_interface': 'ucsm' }, /^\[DEFAULT\]default_network_interface = ucsm: not available: choose from/],
  ])('stops the start if nothing is left, if it is a mistake, or if it separates networks: %j', (options, message) => {
    expect(() => made(options)).toThrow(message);
  });
  it('and all other problems are named at once', () => {
    const options = {
      'DEFAULT.enabled_hardware_types': ['test-hardware'],
      'DEFAULT.enabled_boot_interfaces': ['iscsi'],
      'DEFAULT.enabled_power_interfaces': ['irmc'],
      'DEFAULT.default_raid_interface': 'nope',
    };
    expect(() => made(options)).toThrow(
      /^\[DEFAULT\]default_raid_interface = nope: .*\nhardware type test-hardware would have no boot interface: enable one of test, other in .*\n.*would have no power interface/,
    );
  });
});

it('fill() adds the default interfaces, and driverOf() makes the driver of a node', () => {
  const hardware = made();
  const filled = hardware.fill('test-hardware', { boot_interface: 'other', power_interface: null });
  expect(filled).toMatchObject({ boot_interface: 'other', power_interface: 'test', vendor_interface: 'test' });
  const driver = hardware.driverOf({ driver: 'test-hardware', ...filled });
  expect(Object.keys(driver)).toEqual([...INTERFACE_KINDS]);
});

it.each([
  ['constructor', 404],
  ['__proto__', 404],
  ['nope', 404],
])('refuses the unknown hardware type %s', (type, status) => {
  expect(() => made().fill(type, {})).toThrow(errorWith({ status, name: 'DriverNotFound' }));
});
