/** NetworkAdapters of a chassis (DSP2046): one card with all of the machine's interfaces. */
import { MANUFACTURER } from '../../hardware/description';
import { firmwareVersion } from '../../hardware/firmware-versions';
import { HEALTHY, collectionRoute, link, resource, type Route, type SystemContext } from '../protocol/routes';

const PATH = '/Chassis/{system}/NetworkAdapters';

export const ADAPTER_ROUTES: readonly Route<SystemContext>[] = [
  collectionRoute(PATH, 'NetworkAdapter', () => ['NIC1']),
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
            FirmwarePackageVersion: firmwareVersion(hardware, 'nic'),
            ControllerCapabilities: { NetworkPortCount: macs.length, NetworkDeviceFunctionCount: macs.length },
          },
        ],
      }),
  },
];
