/** Chassis (DSP2046). */
import { refusePatch } from '../protocol/checks';
import { INDICATOR_CHECKS, indicator, setIndicator } from './indicators';
import { HEALTHY, link, resource, type Route, type ResourceBody, type SystemContext } from '../protocol/routes';

const show = ({ path, system }: SystemContext): ResourceBody =>
  resource(path, 'Chassis', system.name, system.name, {
    ChassisType: 'RackMount',
    Manufacturer: system.description.manufacturer,
    SerialNumber: system.description.serial,
    UUID: system.description.uuid,
    PowerState: system.isOn() ? 'On' : 'Off',
    Status: HEALTHY,
    ...indicator(system.hardware, 'chassis'),
    ...Object.fromEntries(
      ['Thermal', 'Power', 'ThermalSubsystem', 'PowerSubsystem', 'Sensors'].map((part) => [part, link(`${path}/${part}`)]),
    ),
    NetworkAdapters: link(`${path}/NetworkAdapters`),
    PCIeDevices: link(`${path}/PCIeDevices`),
    Links: {
      ComputerSystems: [link(`/Systems/${system.name}`)],
      'ComputerSystems@odata.count': 1,
      ManagedBy: [link(`/Managers/${system.name}`)],
      'ManagedBy@odata.count': 1,
    },
  });

export const CHASSIS_ROUTES: readonly Route<SystemContext>[] = [
  {
    path: '/Chassis/{system}',
    get: show,
    patch: (at, body) => {
      const refused = refusePatch(body, INDICATOR_CHECKS, show(at));
      if (!refused) setIndicator(at.system, 'chassis', body);
      return refused;
    },
  },
];
