/** NetworkAdapters of a chassis (DSP2046): one card, that all of the machine's interfaces are on. */
import { MANUFACTURER } from '../../hardware/description';
import { versionOf } from '../../hardware/firmware-versions';
import { HEALTHY, collectionRow, link, resource, type Row, type SystemAt } from '../protocol/routes';

const PATH = '/Chassis/{system}/NetworkAdapters';

export const ADAPTER_ROWS: readonly Row<SystemAt>[] = [
  collectionRow(PATH, 'NetworkAdapter', () => ['NIC1']),
  {
    path: `${PATH}/NIC1`,
    get: ({ path, system: { description, hardware, macs } }) =>
      resource(path, 'NetworkAdapter', 'NIC1', 'Network adapter', {
        Manufacturer: MANUFACTURER,
        Model: 'Simulated NIC',
        SerialNumber: `NIC${description.serial}`,
        Status: HEALTHY,
        Ports: link(`${path}/Ports`),
        NetworkDeviceFunctions: link(`${path}/NetworkDeviceFunctions`),
        Controllers: [
          {
            FirmwarePackageVersion: versionOf(hardware.state, 'nic'),
            ControllerCapabilities: { NetworkPortCount: macs.length, NetworkDeviceFunctionCount: macs.length },
          },
        ],
      }),
  },
];
