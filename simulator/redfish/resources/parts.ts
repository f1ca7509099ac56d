/** Processors, memory, interfaces, PCIe devices and boot options of a machine (DSP2046). */
import { MANUFACTURER } from '../../hardware/description';
import { HEALTHY, collectionRoute, link, resource, type Route, type ResourceBody, type SystemContext } from '../protocol/routes';
import { driveName, visibleDisks } from '../../hardware/volumes';
import { healthIn } from '../../hardware/parts';
import { partStatus } from './sensors';

const SYSTEM = '/Systems/{system}';
const ADAPTER = '/Chassis/{system}/NetworkAdapters/NIC1';
const MODULE_MIB = 16_384;

export const numbered = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => String(index + 1));
/** The MAC address of the interface whose number the path names. */
export const macAt = ({ system, values: [, id] }: SystemContext): string | undefined =>
  /^[1-9]\d?$/.test(id ?? '') ? system.macs[Number(id) - 1]?.toUpperCase() : undefined;
const modules = ({ system: { description } }: SystemContext): readonly string[] =>
  numbered(Math.max(1, Math.ceil(description.memoryMiB / MODULE_MIB)));

function processor(at: SystemContext): ResourceBody {
  const {
    path,
    system: { description },
  } = at;
  const isX86 = description.architecture === 'x86_64';
  return resource(path, 'Processor', '1', 'Processor', {
    ProcessorType: 'CPU',
    ProcessorArchitecture: isX86 ? 'x86' : 'ARM',
    InstructionSet: isX86 ? 'x86-64' : 'ARM-A64',
    Manufacturer: MANUFACTURER,
    Model: 'Simulated CPU',
    Socket: 'CPU1',
    MaxSpeedMHz: 2400,
    TotalCores: description.cpus,
    TotalThreads: description.cpus,
    Status: partStatus(at, 'CPU1'),
  });
}
/** The worst health of all modules. */
export const memoryStatus = (at: SystemContext): ResourceBody => {
  const health = healthIn(modules(at).flatMap((id) => at.system.conditions?.(`DIMM${id}`) ?? []));
  return { ...HEALTHY, Health: health, HealthRollup: health };
};
function memory(at: SystemContext): ResourceBody | undefined {
  const all = modules(at);
  const id = at.values[1]!;
  if (!all.includes(id)) return undefined;
  return resource(at.path, 'Memory', id, `DIMM ${id}`, {
    MemoryType: 'DRAM',
    MemoryDeviceType: 'DDR4',
    CapacityMiB: Math.floor(at.system.description.memoryMiB / all.length),
    OperatingSpeedMhz: 3200,
    Manufacturer: MANUFACTURER,
    SerialNumber: `DIMM${id}-${at.system.description.serial}`,
    Status: partStatus(at, `DIMM${id}`),
  });
}
const linkState = ({ values: [, id] }: SystemContext): 'LinkUp' | 'LinkDown' => (id === '1' ? 'LinkUp' : 'LinkDown');
function ethernet(at: SystemContext): ResourceBody | undefined {
  const mac = macAt(at);
  const id = at.values[1]!;
  return mac === undefined
    ? undefined
    : resource(at.path, 'EthernetInterface', id, `NIC ${id}`, {
        MACAddress: mac,
        PermanentMACAddress: mac,
        SpeedMbps: 10_000,
        InterfaceEnabled: true,
        LinkStatus: linkState(at),
        Status: HEALTHY,
      });
}
function port(at: SystemContext): ResourceBody | undefined {
  const mac = macAt(at);
  const id = at.values[1]!;
  return mac === undefined
    ? undefined
    : resource(at.path, 'Port', id, `Port ${id}`, {
        PortId: id,
        PortProtocol: 'Ethernet',
        LinkStatus: linkState(at),
        CurrentSpeedGbps: 10,
        Ethernet: { AssociatedMACAddresses: [mac] },
        Status: HEALTHY,
      });
}
/** Boot options in the order in which the firmware tries them by default. */
const bootOptions = ({ system }: SystemContext): readonly { readonly id: string; readonly name: string; readonly path: string }[] =>
  [
    ...visibleDisks(system.description, system.hardware).map(({ name }, index) => ({
      name: `Disk ${name}`,
      path: `HD(${index + 1},GPT)`,
    })),
    ...system.macs.map((mac) => ({ name: `PXE ${mac}`, path: `MAC(${mac.replaceAll(':', '').toUpperCase()},0x1)` })),
  ].map((option, index) => ({ id: `Boot${index.toString(16).toUpperCase().padStart(4, '0')}`, ...option }));
export const bootOrder = (at: SystemContext): readonly string[] => bootOptions(at).map(({ id }) => id);
function bootOption(at: SystemContext): ResourceBody | undefined {
  const found = bootOptions(at).find(({ id }) => id === at.values[1]);
  return (
    found &&
    resource(at.path, 'BootOption', found.id, found.name, {
      BootOptionReference: found.id,
      BootOptionEnabled: true,
      DisplayName: found.name,
      UefiDevicePath: found.path,
    })
  );
}

export const PART_ROUTES: readonly Route<SystemContext>[] = [
  collectionRoute(`${SYSTEM}/Processors`, 'Processor', () => ['1']),
  { path: `${SYSTEM}/Processors/1`, get: processor },
  collectionRoute(`${SYSTEM}/Memory`, 'Memory', modules),
  { path: `${SYSTEM}/Memory/{module}`, get: memory },
  collectionRoute(`${SYSTEM}/EthernetInterfaces`, 'EthernetInterface', ({ system }) => numbered(system.macs.length)),
  { path: `${SYSTEM}/EthernetInterfaces/{nic}`, get: ethernet },
  collectionRoute(`${SYSTEM}/NetworkInterfaces`, 'NetworkInterface', () => ['NIC1']),
  {
    path: `${SYSTEM}/NetworkInterfaces/NIC1`,
    get: ({ path, system }) =>
      resource(path, 'NetworkInterface', 'NIC1', 'Network adapter', {
        Status: HEALTHY,
        Ports: link(`/Chassis/${system.name}/NetworkAdapters/NIC1/Ports`),
        NetworkDeviceFunctions: link(`/Chassis/${system.name}/NetworkAdapters/NIC1/NetworkDeviceFunctions`),
        Links: { NetworkAdapter: link(`/Chassis/${system.name}/NetworkAdapters/NIC1`) },
      }),
  },
  collectionRoute(`${ADAPTER}/Ports`, 'Port', ({ system }) => numbered(system.macs.length)),
  { path: `${ADAPTER}/Ports/{port}`, get: port },
  collectionRoute('/Chassis/{system}/PCIeDevices', 'PCIeDevice', () => ['NIC1']),
  {
    path: '/Chassis/{system}/PCIeDevices/NIC1',
    get: ({ path, system }) =>
      resource(path, 'PCIeDevice', 'NIC1', 'Network adapter', {
        DeviceType: 'SingleFunction',
        Manufacturer: MANUFACTURER,
        Model: 'Simulated NIC',
        SerialNumber: `NIC${system.description.serial}`,
        Status: HEALTHY,
        PCIeFunctions: link(`${path}/PCIeFunctions`),
      }),
  },
  collectionRoute('/Chassis/{system}/PCIeDevices/NIC1/PCIeFunctions', 'PCIeFunction', () => ['1']),
  {
    path: '/Chassis/{system}/PCIeDevices/NIC1/PCIeFunctions/1',
    get: ({ path }) =>
      resource(path, 'PCIeFunction', '1', 'Network adapter', {
        FunctionId: 0,
        FunctionType: 'Physical',
        DeviceClass: 'NetworkController',
        ClassCode: '0x020000',
        VendorId: '0x1AF4',
        DeviceId: '0x1041',
        RevisionId: '0x01',
        SubsystemVendorId: '0x1AF4',
        SubsystemId: '0x1100',
        Status: HEALTHY,
      }),
  },
  collectionRoute(`${SYSTEM}/BootOptions`, 'BootOption', bootOrder),
  { path: `${SYSTEM}/BootOptions/{option}`, get: bootOption },
  collectionRoute(`${SYSTEM}/SimpleStorage`, 'SimpleStorage', () => ['1']),
  {
    path: `${SYSTEM}/SimpleStorage/1`,
    get: (at) =>
      resource(at.path, 'SimpleStorage', '1', 'Disks', {
        Status: HEALTHY,
        Devices: visibleDisks(at.system.description, at.system.hardware)
          .filter((disk) => !at.system.conditions?.(driveName(disk)).includes('gone'))
          .map(({ name, model, size }) => ({
            Name: name,
            Manufacturer: MANUFACTURER,
            Model: model,
            CapacityBytes: size,
            Status: partStatus(at, driveName({ name })),
          })),
      }),
  },
];
