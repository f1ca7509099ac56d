/** Boot devices where the usual override is not offered or not kept: boot options by their order and addresses, and other targets. */
import { bootOptionOf, networkOption } from '../../../drivers/redfish/boot-options';
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import { NODE_UUID } from '../../support/task';
import { SYSTEM } from '../../wire/redfish/service';
import { redfishBench } from '../redfish-bench';

type BootOption = NonNullable<ReturnType<typeof bootOptionOf>>;
const MAC = '52:54:00:0a:0b:0c';
it.each<[string, object, Partial<BootOption> | undefined]>([
  [
    'a device path of UEFI',
    {
      BootOptionReference: 'Boot0003',
      DisplayName: 'PXE',
      UefiDevicePath: 'PciRoot(0x0)/Pci(0x1,0x0)/MAC(5254000A0B0C,0x1)/IPv4(0.0.0.0)',
    },
    { reference: 'Boot0003', macs: [MAC], kind: 'pxe', isIpv6: false },
  ],
  [
    'HTTP by its Uri',
    { BootOptionReference: 'Boot0004', UefiDevicePath: 'MAC(5254000A0B0C,0x1)/IPv6(0)/Uri()' },
    { kind: 'http', isIpv6: true },
  ],
  ['a name', { Id: 'B1', DisplayName: 'UEFI: HTTP IPv4 NIC 52-54-00-0A-0B-0C' }, { reference: 'B1', macs: [MAC], kind: 'http' }],
  ['a disk', { BootOptionReference: 'Boot0001', UefiDevicePath: 'HD(1,GPT,A-B)' }, { macs: [], kind: undefined }],
  ['one that is switched off', { BootOptionReference: 'Boot0002', BootOptionEnabled: false }, undefined],
  ['values of other types', { BootOptionReference: 5, DisplayName: {} }, undefined],
])('bootOptionOf: %s', (_, body, expected) => {
  const option = bootOptionOf(body);
  if (expected === undefined) expect(option).toBeUndefined();
  else expect(option).toMatchObject(expected);
});
it('networkOption prefers IPv4', () => {
  const option = (reference: string, isIpv6: boolean, mac = MAC): BootOption => ({ reference, name: '', macs: [mac], kind: 'pxe', isIpv6 });
  const all = [option('0', false, '52:54:00:00:00:00'), option('1', true), option('2', false)];
  expect(networkOption(all, 'pxe', [MAC])?.reference).toBe('2');
  expect(networkOption(all.slice(0, 2), 'pxe', [MAC])?.reference).toBe('1');
  expect(networkOption(all, 'http', [MAC])).toBeUndefined();
});

describe('setBootDevice', () => {
  const { service, resource, changes, bench } = redfishBench();
  const TARGETS = 'BootSourceOverrideTarget@Redfish.AllowableValues';
  const withOptions = (targets: readonly string[] | undefined): void => {
    Object.assign(resource()['Boot']!, {
      [TARGETS]: targets,
      BootOptions: { '@odata.id': '/o' },
      BootOrder: ['Boot0002: name', 'Boot0001'],
    });
    Object.assign(service().resources, {
      '/o': { Members: ['1', '2', '3'].map((id) => ({ '@odata.id': `/o/${id}` })) },
      '/o/1': { BootOptionReference: 'Boot0001', UefiDevicePath: 'MAC(5254000A0B0C,0x1)/IPv4(0)' },
      '/o/2': { BootOptionReference: 'Boot0002', UefiDevicePath: 'MAC(5254000A0B0C,0x1)/IPv4(0)' },
      '/o/3': { BootOptionReference: 'Boot0003', UefiDevicePath: 'MAC(5254000A0B0C,0x1)/IPv4(0)/Uri()' },
    });
  };
  const machine = () => {
    const made = bench();
    Object.defineProperty(made.task, 'ports', { value: [{ address: MAC, pxe_enabled: true }] });
    return made;
  };
  it.each([
    ['pxe', 'Boot0002'],
    ['uefihttp', 'Boot0003'],
  ])('boots %s by the option of its port that is first in BootOrder, where the target is not offered', async (device, option) => {
    withOptions(['Hdd', 'UefiBootNext']);
    const { task, node } = machine();
    await redfishManagement.setBootDevice(task, device, false);
    const written = { BootSourceOverrideTarget: 'UefiBootNext', BootNext: option, BootSourceOverrideEnabled: 'Once' };
    expect(changes()).toEqual([{ Boot: written }]);
    // It is for one boot: a persistent device is set again before each start.
    await redfishManagement.setBootDevice(task, device, true);
    expect(node().driver_internal_info['redfish_boot_device']).toBe(device);
  });
  it('boots by PXE where HTTP is not offered and the firmware has options for it', async () => {
    withOptions(['Hdd', 'Pxe']);
    const { task } = machine();
    await redfishManagement.setBootDevice(task, 'uefihttp', false);
    expect(changes()).toEqual([{ Boot: { BootSourceOverrideTarget: 'Pxe', BootSourceOverrideEnabled: 'Once' } }]);
    delete service().resources['/o/3'];
    await expect(redfishManagement.setBootDevice(task, 'uefihttp', false)).rejects.toThrow(
      'can boot from Hdd, Pxe only, not from UefiHttp',
    );
  });
  const keepsNothing = (what: (body: object) => boolean): void => {
    service().reply = ({ method, body }) =>
      method === 'PATCH' && what((body as { Boot: object }).Boot) ? { status: 200, body: {} } : undefined;
  };
  it('names maker, property, asked and found value of what is accepted and not kept', async () => {
    resource()['Manufacturer'] = 'ACME' as never;
    keepsNothing(() => true);
    await expect(redfishManagement.setBootDevice(bench().task, 'pxe', false)).rejects.toThrow(
      `Redfish set boot device failed for node ${NODE_UUID}. Error: the change of ${SYSTEM} is accepted, not kept by the service (ACME): ` +
        'Boot/BootSourceOverrideTarget was set to "Pxe" and is "None"; Boot/BootSourceOverrideEnabled was set to "Once" and is "Disabled".',
    );
  });
  it('takes the boot option where Pxe is not kept', async () => {
    withOptions(['Pxe', 'UefiBootNext']);
    keepsNothing((boot) => 'BootSourceOverrideTarget' in boot && boot.BootSourceOverrideTarget === 'Pxe');
    await redfishManagement.setBootDevice(machine().task, 'pxe', false);
    expect(resource()['Boot']).toMatchObject({ BootSourceOverrideTarget: 'UefiBootNext', BootNext: 'Boot0002' });
  });
  it('repeats a device before each start where Continuous is not kept', async () => {
    keepsNothing((boot) => 'BootSourceOverrideEnabled' in boot && boot.BootSourceOverrideEnabled === 'Continuous');
    const { task, node } = bench();
    await redfishManagement.setBootDevice(task, 'disk', true);
    expect(node().driver_internal_info['redfish_boot_device']).toBe('disk');
    expect(resource()['Boot']).toMatchObject({ BootSourceOverrideTarget: 'Hdd', BootSourceOverrideEnabled: 'Once' });
  });
  it.each([
    ['cdrom', 'Cd'],
    ['cdrom', 'UsbCd'],
    // sushy-tools boots a URL from a virtual CD.
    ['uefihttp', 'Cd'],
  ])('accepts a service that shows for %s the target %s, and always Continuous', async (device, shown) => {
    service().reply = ({ method }) => {
      if (method !== 'PATCH') return undefined;
      Object.assign(resource()['Boot']!, { BootSourceOverrideTarget: shown, BootSourceOverrideEnabled: 'Continuous' });
      return { status: 204 };
    };
    await redfishManagement.setBootDevice(bench().task, device, false);
    expect(changes()).toHaveLength(1);
  });
});
