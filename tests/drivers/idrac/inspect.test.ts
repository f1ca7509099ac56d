import { idracInspect } from '../../../drivers/idrac/inspect';
import type { InspectionFindings } from '../../../drivers/interfaces';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { SYSTEM, redfishService, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';
import { dellService, taskPath, type DellService } from './dell-service';

const link = (path: string): object => ({ '@odata.id': path });
const SWITCHES = `${SYSTEM}/NetworkPorts/Oem/Dell/DellSwitchConnections`;
const CARDS = { 'NIC.1-1-1': '52:54:00:00:00:01', 'NIC.1-2-1': '52:54:00:00:00:02' } as const;
let service: RedfishService;
let pool: RedfishPool;
let dell: DellService;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  dell = dellService(service);
  Object.assign(service.resources[SYSTEM] as object, {
    SKU: 'TAG1234',
    SerialNumber: 'CNBOARD',
    Manufacturer: 'Dell Inc.',
    EthernetInterfaces: link(`${SYSTEM}/EthernetInterfaces`),
    Bios: link(`${SYSTEM}/Bios`),
  });
  service.resources[`${SYSTEM}/EthernetInterfaces`] = {
    Members: Object.keys(CARDS).map((name) => link(`${SYSTEM}/EthernetInterfaces/${name}`)),
  };
  for (const [name, mac] of Object.entries(CARDS))
    service.resources[`${SYSTEM}/EthernetInterfaces/${name}`] = { Id: name, MACAddress: mac };
});
afterEach(async () => {
  await pool.close();
  await service.close();
});
const inspect = async (): Promise<InspectionFindings> => {
  const { task } = bmcTask({
    node: { driver: 'idrac', driver_info: { redfish_address: service.url } },
    driver: {},
    options: { 'redfish.connection_attempts': 1 },
    connections: { redfish: pool },
  });
  return (await idracInspect.inspect(task)) as InspectionFindings;
};
const mode = (name: 'UEFI' | 'Legacy'): void =>
  void Object.assign((service.resources[SYSTEM] as { Boot: object }).Boot, { BootSourceOverrideMode: name });

it('the serial number is the service tag', async () => {
  expect((await inspect()).inventory['system_vendor']).toEqual({ manufacturer: 'Dell Inc.', serial_number: 'TAG1234' });
  delete (service.resources[SYSTEM] as Record<string, unknown>)['SKU'];
  expect((await inspect()).inventory['system_vendor']).toMatchObject({ serial_number: 'CNBOARD' });
});

describe('the card that boots', () => {
  it.each<[string, object, string | undefined]>([
    [
      'is the one that the BIOS names',
      { PxeDev1EnDis: 'Enabled', PxeDev1Interface: 'NIC.1-2-1', PxeDev2EnDis: 'Disabled' },
      CARDS['NIC.1-2-1'],
    ],
    [
      'is unknown, of several',
      { PxeDev1EnDis: 'Enabled', PxeDev1Interface: 'NIC.1-2-1', PxeDev2EnDis: 'Enabled', PxeDev2Interface: 'NIC.1-1-1' },
      undefined,
    ],
    ['is unknown, if the BIOS names another', { PxeDev1EnDis: 'Enabled', PxeDev1Interface: 'NIC.9-9-9' }, undefined],
    ['is unknown without attributes', {}, undefined],
  ])('in UEFI mode %s', async (_, attributes, mac) => {
    service.resources[`${SYSTEM}/Bios`] = { Attributes: attributes };
    expect((await inspect()).inventory.boot).toEqual({ current_boot_mode: 'uefi', ...(mac && { pxe_interface: mac }) });
  });
  it('in BIOS mode is the one that boots by PXE, of the exported configuration', async () => {
    mode('Legacy');
    const components = Object.keys(CARDS).map((name, index) => ({
      FQDD: name,
      Attributes: [{ Name: 'LegacyBootProto', Value: index === 0 ? 'PXE' : 'NONE' }],
    }));
    dell.answers.export = [{ status: 202, headers: { location: taskPath('JID_5') } }];
    service.resources[taskPath('JID_5')] = { SystemConfiguration: { Components: components } };
    expect((await inspect()).inventory.boot).toEqual({ current_boot_mode: 'bios', pxe_interface: CARDS['NIC.1-1-1'] });
    expect(dell.asked('export')).toEqual([
      { ShareParameters: { Target: ['NIC'] }, ExportFormat: 'JSON', ExportUse: 'Default', IncludeInExport: 'Default' },
    ]);
  });
  it('in BIOS mode is unknown if there is no export, and the inspection goes on', async () => {
    mode('Legacy');
    dell.answers.export = [{ status: 500, body: {} }];
    expect((await inspect()).inventory.boot).toEqual({ current_boot_mode: 'bios' });
  });
});

describe('switches', () => {
  const connected = (connections: readonly object[]): void => {
    service.resources[SWITCHES] = { Members: connections.map((_, index) => link(`${SWITCHES}/${index}`)) };
    connections.forEach((connection, index) => (service.resources[`${SWITCHES}/${index}`] = connection));
  };
  it('are those of DellSwitchConnections with a link', async () => {
    connected([
      { FQDD: 'NIC.1-1-1', SwitchConnectionID: '3c:2c:30:00:00:01', SwitchPortConnectionID: 'Ethernet1' },
      { FQDD: 'NIC.1-2-1', SwitchConnectionID: 'No Link', SwitchPortConnectionID: 'No Link' },
      { FQDD: 5, SwitchConnectionID: [], SwitchPortConnectionID: null },
    ]);
    expect((await inspect()).pluginData).toEqual({
      parsed_lldp: { 'NIC.1-1-1': { switch_chassis_id: '3c:2c:30:00:00:01', switch_port_id: 'Ethernet1' } },
    });
  });
  it('come with the collection from iDRACs that have no resource for each', async () => {
    const connection = { FQDD: 'NIC.1-1-1', SwitchConnectionID: 'aa', SwitchPortConnectionID: 'e1' };
    service.resources[SWITCHES] = { Members: [{ ...link(`${SWITCHES}/0`), ...connection }] };
    expect((await inspect()).pluginData).toEqual({ parsed_lldp: { 'NIC.1-1-1': { switch_chassis_id: 'aa', switch_port_id: 'e1' } } });
  });
  it("are those of the standard's ports where the iDRAC has none", async () => {
    Object.assign((service.resources[SYSTEM] as { Links: object }).Links, { Chassis: [link('/c')] });
    Object.assign(service.resources, {
      '/c': { NetworkAdapters: link('/c/a') },
      '/c/a': { Members: [link('/c/a/1')] },
      '/c/a/1': { Ports: link('/c/a/1/p') },
      '/c/a/1/p': { Members: [link('/c/a/1/p/1')] },
      '/c/a/1/p/1': { Id: 'P1', Ethernet: { LLDPReceive: { ChassisId: 'aa', PortId: 'e2' } } },
    });
    expect((await inspect()).pluginData).toEqual({ parsed_lldp: { P1: { switch_chassis_id: 'aa', switch_port_id: 'e2' } } });
  });
});
