/** The functions of the Redfish management interface other than boot devices: secure boot, indicators, the clock, vendors' quirks. */
import { redfishManagement } from '../../drivers/redfish/steps/management';
import { redfishPower } from '../../drivers/redfish/power';
import type { Step, Task } from '../../drivers/interfaces';
import { publish as publishMedium } from '../../drivers/common/media';
import { NODE_UUID } from '../support/task';
import { startsWith } from '../support/expect';
import { SYSTEM, redfishError } from '../wire/redfish/service';
import { redfishBench } from './redfish-bench';

const { service, resource, changes, bench } = redfishBench();
const link = (path: string): object => ({ '@odata.id': path });
const stepOf = (name: string): Step => redfishManagement.steps!.find(({ step }) => step === name)!;

describe('secure boot', () => {
  const PLACE = `${SYSTEM}/SecureBoot`;
  const KEYS = `${PLACE}/Actions/SecureBoot.ResetKeys`;
  const offer = (state: object = { SecureBootEnable: false }, takes = true): void => {
    Object.assign(resource(), { SecureBoot: link(PLACE) });
    service().resources[PLACE] = {
      ...state,
      Actions: { '#SecureBoot.ResetKeys': { target: KEYS, 'ResetKeysType@Redfish.AllowableValues': ['ResetAllKeysToDefault'] } },
    };
    service().reply = ({ method, path, body }) => {
      if (path === KEYS) return { status: 204 };
      if (path !== PLACE || method !== 'PATCH') return undefined;
      if (takes) Object.assign(resource(PLACE), body);
      return { status: 204 };
    };
  };
  const { secureBoot } = redfishManagement;
  it.each([
    [{ SecureBootEnable: true }, true],
    [{ SecureBootEnable: false }, false],
    [{}, null],
  ])('get of %j returns %s', async (state, expected) => {
    offer(state);
    expect(await secureBoot!.get(bench().task)).toBe(expected);
  });
  it('is unsupported without the SecureBoot resource', async () => {
    await expect(secureBoot!.get(bench().task)).rejects.toMatchObject({ name: 'UnsupportedDriverExtension' });
    await expect(secureBoot!.set(bench().task, true)).rejects.toMatchObject({ name: 'UnsupportedDriverExtension' });
  });
  it('get returns null where the BMC requires a licence for it', async () => {
    offer();
    const denied = { error: { code: 'SMC.1.0.OemLicenseNotPassed', message: 'licence' } };
    service().reply = ({ path }) => (path === PLACE ? { status: 403, body: denied } : undefined);
    expect(await secureBoot!.get(bench().task)).toBeNull();
  });
  it('set sends one PATCH, without a reboot if the change applies at once', async () => {
    offer();
    const { task, events } = bench();
    await secureBoot!.set(task, true);
    await secureBoot!.set(task, true);
    expect([changes(), events]).toEqual([[{ SecureBootEnable: true }], []]);
  });
  it('set reboots the machine if needed, and restores its power state', async () => {
    offer({ SecureBootEnable: false }, false);
    resource()['PowerState'] = 'Off' as never;
    // The firmware applies the change after two reads.
    let looks = 0;
    const { reply } = service();
    service().reply = (asked, response) => {
      if (asked.method === 'GET' && asked.path === PLACE && ++looks === 5) Object.assign(resource(PLACE), { SecureBootEnable: true });
      return reply(asked, response);
    };
    const { task, events, slept } = bench();
    await secureBoot!.set(task, true);
    expect([events, slept]).toEqual([
      ['power: rebooting', 'power: power off'],
      [15_000, 15_000],
    ]);
  });
  it('set fails after the timeout', async () => {
    offer({ SecureBootEnable: false }, false);
    await expect(secureBoot!.set(bench().task, true)).rejects.toMatchObject({
      message: `Redfish exception occurred. Error: Timeout reached while waiting for secure boot state of node ${NODE_UUID} to become True, current is False`,
    });
  });
  it('set fails without UEFI', async () => {
    offer();
    resource()['Boot']!['BootSourceOverrideMode'] = 'Legacy';
    await expect(secureBoot!.set(bench().task, true)).rejects.toMatchObject({
      message: `Redfish exception occurred. Error: Configuring secure boot requires UEFI for node ${NODE_UUID}`,
    });
    expect(changes()).toEqual([]);
  });
  it('keys are reset by steps if the service offers the reset type', async () => {
    offer();
    expect(await stepOf('reset_secure_boot_keys_to_default').run(bench().task, {})).toEqual({ kind: 'done' });
    expect(changes()).toEqual([{ ResetKeysType: 'ResetAllKeysToDefault' }]);
    await expect(stepOf('clear_secure_boot_keys').run(bench().task, {})).rejects.toMatchObject({
      message: startsWith(`Redfish exception occurred. Error: Failed to reset secure boot keys on node ${NODE_UUID}: `),
    });
  });
});

describe('boot mode', () => {
  it('set reboots the machine, and waits unless boot_mode_config_timeout is 0', async () => {
    service().reply = ({ method }) => (method === 'PATCH' ? { status: 204 } : undefined);
    const { task, events } = bench();
    await expect(redfishManagement.bootMode!.set(task, 'bios')).rejects.toMatchObject({
      message: `Redfish exception occurred. Error: Timeout reached while waiting for boot mode of node ${NODE_UUID} to become bios, current is uefi`,
    });
    expect(events).toEqual(['power: rebooting']);
    const unhurried = bench({ options: { 'redfish.boot_mode_config_timeout': 0 } });
    await redfishManagement.bootMode!.set(unhurried.task, 'bios');
    expect(unhurried.events).toEqual(['power: rebooting']);
  });
  it('set is unsupported where the service neither shows nor accepts a boot mode', async () => {
    resource()['Boot'] = {};
    service().reply = ({ method }) => (method === 'PATCH' ? { status: 400, body: redfishError('no') } : undefined);
    await expect(redfishManagement.bootMode!.set(bench().task, 'bios')).rejects.toMatchObject({ name: 'UnsupportedDriverExtension' });
  });
  it.each([
    [undefined, undefined],
    [['UEFI'], ['uefi']],
    [
      ['Legacy', 'UEFI'],
      ['bios', 'uefi'],
    ],
    [['Odd'], undefined],
    ['UEFI', undefined],
  ])('supported maps the allowable values %j to %j', async (allowed, expected) => {
    resource()['Boot']!['BootSourceOverrideMode@Redfish.AllowableValues'] = allowed;
    expect(await redfishManagement.bootMode!.supported!(bench().task)).toEqual(expected);
  });
});

describe('vendor quirks', () => {
  const of = (vendor: string): ReturnType<typeof bench> => bench({ node: { properties: { vendor } } });
  it.each<[string, string, boolean, object]>([
    ['AMI', 'pxe', false, { BootSourceOverrideTarget: 'Pxe', BootSourceOverrideEnabled: 'Once', BootSourceOverrideMode: 'UEFI' }],
    ['Supermicro', 'disk', true, { BootSourceOverrideTarget: 'Hdd', BootSourceOverrideEnabled: 'Continuous' }],
    ['Dell', 'disk', true, { BootSourceOverrideTarget: 'Hdd' }],
  ])('%s: setBootDevice of %s, persistent %s, sends the expected boot settings', async (vendor, device, persistent, Boot) => {
    resource()['Boot']!['BootSourceOverrideEnabled'] = 'Continuous';
    const { task } = of(vendor);
    await redfishManagement.setBootDevice(task, device, persistent);
    expect(changes()[0]).toEqual({ Boot });
  });
  it('Supermicro: virtual media is the boot target UsbCd', async () => {
    resource()['Boot']!['BootSourceOverrideTarget@Redfish.AllowableValues'] = ['Pxe', 'Cd', 'UsbCd'];
    const { task } = of('Supermicro');
    await redfishManagement.setBootDevice(task, 'cdrom', false);
    expect(changes()[0]).toMatchObject({ Boot: { BootSourceOverrideTarget: 'UsbCd' } });
    expect(await redfishManagement.getBootDevice(task)).toEqual({ device: 'cdrom', persistent: false });
  });
  it.each([
    ['AMI', true],
    ['Ami Corp.', true],
    ['American Megatrends International LLC.', true],
    ['Dynamics Corporation', false],
    ['Miami Servers', false],
  ])('the vendor %s gets all boot settings together: %s', async (vendor, whole) => {
    await redfishManagement.setBootDevice(of(vendor).task, 'pxe', false);
    expect('BootSourceOverrideMode' in (changes()[0] as { Boot: object }).Boot).toBe(whole);
  });
  it('detectVendor returns the vendor of the service root, or the manufacturer of the system', async () => {
    expect(await redfishManagement.detectVendor!(bench().task)).toBeUndefined();
    resource()['Manufacturer'] = 'Maker' as never;
    expect(await redfishManagement.detectVendor!(bench().task)).toBe('Maker');
    resource('/redfish/v1/')['Vendor'] = 'Vendor' as never;
    expect(await redfishManagement.detectVendor!(bench().task)).toBe('Vendor');
  });
  it('boot settings that the settings resource contains are written there', async () => {
    Object.assign(resource(), { '@Redfish.Settings': { SettingsObject: link(`${SYSTEM}/Settings`) } });
    service().resources[`${SYSTEM}/Settings`] = { Boot: { BootSourceOverrideTarget: 'None' } };
    await redfishManagement.setBootDevice(bench().task, 'pxe', false);
    const written = service().asked.filter(({ method }) => method === 'PATCH');
    expect(written.map(({ path, body }) => [path, body])).toEqual([
      [`${SYSTEM}/Settings`, { Boot: { BootSourceOverrideTarget: 'Pxe' } }],
      [SYSTEM, { Boot: { BootSourceOverrideEnabled: 'Once' } }],
    ]);
  });
});

describe('UEFI HTTP boot', () => {
  const uefiHttp = { BootSourceOverrideTarget: 'UefiHttp', BootSourceOverrideEnabled: 'Once' };
  const publish = async (task: Task): Promise<string> => publishMedium(task, 'boot', { kind: 'image', source: 'http://192.0.2.1/x.iso' });
  it('setBootDevice sends the URL of the published medium, and clears it with another device', async () => {
    resource()['Boot']!['HttpBootUri'] = null;
    const { task } = bench();
    const url = await publish(task);
    await redfishManagement.setBootDevice(task, 'uefihttp', false);
    await redfishManagement.setBootDevice(task, 'pxe', false);
    expect(changes()).toEqual([
      { Boot: { ...uefiHttp, HttpBootUri: url } },
      { Boot: { BootSourceOverrideTarget: 'Pxe', HttpBootUri: null } },
    ]);
  });
  it('setBootDevice without a published medium leaves the URL to DHCP, and with one requires HttpBootUri', async () => {
    await redfishManagement.setBootDevice(bench().task, 'uefihttp', false);
    expect(changes()).toEqual([{ Boot: uefiHttp }]);
    const { task } = bench();
    await publish(task);
    await expect(redfishManagement.setBootDevice(task, 'uefihttp', false)).rejects.toThrow('HttpBootUri is missing');
  });
});

describe('indicators', () => {
  const offer = (): void => {
    Object.assign(resource(), {
      UUID: 'u-sys',
      IndicatorLED: 'Off',
      Links: { Chassis: [link('/c/1'), link('/c/gone')] },
      Storage: link('/s'),
    });
    Object.assign(service().resources, {
      '/c/1': { Id: '1', UUID: 'u-ch', LocationIndicatorActive: true },
      '/s': { Members: [link('/s/1')] },
      '/s/1': { Id: 'raid', Drives: [link('/d/1'), link('/d/2'), 5] },
      '/d/1': { Id: 'd1', IndicatorLED: 'Blinking' },
      '/d/2': { Id: 'd2' },
    });
    service().reply = ({ method, path, body }) => {
      if (method !== 'PATCH') return undefined;
      Object.assign(resource(path), body);
      return { status: 204 };
    };
  };
  const led = { readonly: false, states: ['blinking', 'off', 'on'] };
  const { indicators } = redfishManagement;
  it('are found on chassis, system and drives', async () => {
    expect(await indicators!.supported(bench().task)).toEqual({});
    offer();
    expect(await indicators!.supported(bench().task)).toEqual({
      chassis: { 'u-ch': { readonly: false, states: ['off', 'on'] } },
      system: { 'u-sys': led },
      disk: { 'raid:d1': led },
    });
    service().resources['/s'] = 'x';
    service().reply = ({ path }) => (path === '/c/1' ? { status: 403, body: redfishError('no') } : undefined);
    expect(await indicators!.supported(bench().task)).toEqual({ system: { 'u-sys': led } });
  });
  it.each([
    ['system', 'u-sys', 'off', 'blinking', { IndicatorLED: 'Blinking' }],
    ['chassis', 'u-ch', 'on', 'off', { LocationIndicatorActive: false }],
    ['disk', 'raid:d1', 'blinking', 'on', { IndicatorLED: 'Lit' }],
  ])('of %s %s are %s before set and %s after it', async (component, name, before, after, change) => {
    offer();
    expect(await indicators!.get(bench().task, component, name)).toBe(before);
    await indicators!.set!(bench().task, component, name, after);
    expect(changes()).toEqual([change]);
    expect(await indicators!.get(bench().task, component, name)).toBe(after);
  });
  it.each([
    ['system', 'other', 'on', 'MissingParameterValue'],
    ['nic', 'u-sys', 'on', 'MissingParameterValue'],
    ['toString', 'x', 'on', 'MissingParameterValue'],
    ['disk', 'raid:d2', 'on', 'MissingParameterValue'],
    ['system', 'u-sys', 'green', 'InvalidParameterValue'],
    ['chassis', 'u-ch', 'blinking', 'InvalidParameterValue'],
  ])('set of %s %s to %s is rejected', async (component, name, state, fault) => {
    offer();
    await expect(indicators!.set!(bench().task, component, name, state)).rejects.toMatchObject({ name: fault });
    expect(changes()).toEqual([]);
  });
});

describe('clock of the BMC', () => {
  const MANAGER = '/redfish/v1/Managers/1';
  const NOW = '2026-02-03T04:05:06+00:00';
  const offer = (time: unknown, takes = true): void => {
    Object.assign(resource(), { Links: { ManagedBy: [link(MANAGER)] } });
    service().resources[MANAGER] = { DateTime: time };
    service().reply = ({ method, body }) => {
      if (method !== 'PATCH') return undefined;
      if (takes) Object.assign(resource(MANAGER), body);
      return { status: 204 };
    };
  };
  it.each([
    [{}, { DateTime: NOW }],
    [{ target_datetime: '2030-01-01T00:00:00Z' }, { DateTime: '2030-01-01T00:00:00+00:00' }],
    [
      { target_datetime: '2030-01-01T00:00:00.5+02:00', datetime_local_offset: '+02:00' },
      { DateTime: '2030-01-01T00:00:00+02:00', DateTimeLocalOffset: '+02:00' },
    ],
    [{ target_datetime: '2030-01-01 00:00:00' }, { DateTime: '2030-01-01T00:00:00+00:00' }],
  ])('set_bmc_clock with %j sets the expected time', async (args, change) => {
    offer('2000-01-01T00:00:00Z');
    expect(await stepOf('set_bmc_clock').run(bench().task, args)).toEqual({ kind: 'done' });
    expect(changes()).toEqual([change]);
  });
  it.each(['noon', '2030-13-01T00:00:00Z', 5])('set_bmc_clock rejects target_datetime %j', async (time) => {
    offer(NOW);
    await expect(stepOf('set_bmc_clock').run(bench().task, { target_datetime: time })).rejects.toMatchObject({
      name: 'InvalidParameterValue',
    });
    expect(changes()).toEqual([]);
  });
  it('set_bmc_clock fails if the BMC keeps its old time', async () => {
    offer('2000-01-01T00:00:00Z', false);
    await expect(stepOf('set_bmc_clock').run(bench().task, {})).rejects.toThrow('BMC clock update failed: mismatch after setting datetime');
  });
  const verified = { options: { 'redfish.enable_verify_bmc_clock': true } };
  it('verify_bmc_clock corrects the time only with [redfish]enable_verify_bmc_clock', async () => {
    offer('2000-01-01T00:00:00Z');
    expect(await stepOf('verify_bmc_clock').run(bench().task, {})).toEqual({ kind: 'done' });
    expect(service().asked).toEqual([]);
    expect(await stepOf('verify_bmc_clock').run(bench(verified).task, {})).toEqual({ kind: 'done' });
    expect(changes()).toEqual([{ DateTime: NOW, DateTimeLocalOffset: '+00:00' }]);
    expect(await stepOf('verify_bmc_clock').run(bench(verified).task, {})).toEqual({ kind: 'done' });
    expect(changes().length).toBe(1);
  });
  it.each([['2000-01-01T00:00:00Z'], [undefined], ['x']])('verify_bmc_clock fails if the time stays %j', async (time) => {
    offer(time, false);
    expect(await stepOf('verify_bmc_clock').run(bench(verified).task, {})).toEqual({
      kind: 'failed',
      reason: startsWith(`Failed to verify node ${NODE_UUID}: BMC clock verify step failed: `),
    });
  });
});

it('getStatus reads power state, health, boot mode and presence of a vendor with one request', async () => {
  expect(await redfishPower.getStatus!(bench().task)).toEqual({
    power: 'power on',
    health: null,
    memoryHealth: null,
    processorHealth: null,
    bootMode: 'uefi',
    namesVendor: false,
  });
  Object.assign(resource(), {
    Status: { Health: 'Warning' },
    Manufacturer: 'ACME',
    MemorySummary: { Status: { Health: 'OK', HealthRollup: 'Critical' } },
    ProcessorSummary: { Status: { Health: 'OK' } },
  });
  service().asked.length = 0;
  expect(await redfishPower.getStatus!(bench().task)).toEqual({
    power: 'power on',
    health: 'Warning',
    memoryHealth: 'Critical',
    processorHealth: 'OK',
    bootMode: 'uefi',
    namesVendor: true,
  });
  expect(service().asked.length).toBe(1);
});

describe('MAC addresses', () => {
  const PLACE = `${SYSTEM}/EthernetInterfaces`;
  it('are those of interfaces that are enabled and healthy', async () => {
    const { task } = bench();
    expect(await redfishManagement.macAddresses!(task)).toEqual([]);
    Object.assign(resource(), { EthernetInterfaces: link(PLACE) });
    expect(await redfishManagement.macAddresses!(task)).toEqual([]);
    const interfaces: readonly object[] = [
      { MACAddress: 'AA:BB:CC:00:00:01', Status: { State: 'Enabled', Health: 'OK' } },
      { MACAddress: 'AA:BB:CC:00:00:02', Status: { State: 'Disabled', Health: 'OK' } },
      { MACAddress: 'AA:BB:CC:00:00:03', Status: { State: 'Enabled', Health: 'Warning' } },
      { MACAddress: '', Status: { State: 'Enabled', Health: 'OK' } },
      { MACAddress: 'AA:BB:CC:00:00:04' },
    ];
    interfaces.forEach((item, index) => (service().resources[`${PLACE}/${index}`] = { ...item }));
    service().resources[PLACE] = { Members: interfaces.map((_, index) => link(`${PLACE}/${index}`)) };
    expect(await redfishManagement.macAddresses!(task)).toEqual(['aa:bb:cc:00:00:01']);
  });
  it('fail if the service does not return the interfaces', async () => {
    Object.assign(resource(), { EthernetInterfaces: link(PLACE) });
    service().reply = ({ path }) => (path === PLACE ? { status: 500, body: redfishError('no') } : undefined);
    await expect(redfishManagement.macAddresses!(bench().task)).rejects.toMatchObject({
      message: startsWith(`Redfish exception occurred. Error: Failed to get network interface information on node ${NODE_UUID}: `),
    });
  });
});
