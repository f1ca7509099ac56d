/** Chassis (DSP2046). */
import { MANUFACTURER } from '../description';
import { HEALTHY, link, resource, type Row, type SystemAt } from './rows';

export const CHASSIS_ROWS: readonly Row<SystemAt>[] = [
  {
    path: '/Chassis/{system}',
    get: ({ path, system }) =>
      resource(path, 'Chassis.v1_10_0.Chassis', system.name, system.name, {
        ChassisType: 'RackMount',
        Manufacturer: MANUFACTURER,
        PowerState: system.isOn() ? 'On' : 'Off',
        Status: HEALTHY,
        NetworkAdapters: link(`${path}/NetworkAdapters`),
        Links: { ComputerSystems: [link(`/Systems/${system.name}`)], ManagedBy: [link(`/Managers/${system.name}`)] },
      }),
  },
];
