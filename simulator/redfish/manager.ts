/** Manager (DSP2046): the BMC itself. */
import { HEALTHY, link, resource, type Row, type SystemAt } from './rows';

export const MANAGER_ROWS: readonly Row<SystemAt>[] = [
  {
    path: '/Managers/{system}',
    get: ({ path, system: { name } }) =>
      resource(path, 'Manager.v1_7_0.Manager', name, `BMC of ${name}`, {
        ManagerType: 'BMC',
        FirmwareVersion: '1.0',
        PowerState: 'On',
        Status: HEALTHY,
        Links: { ManagerForServers: [link(`/Systems/${name}`)], ManagerForChassis: [link(`/Chassis/${name}`)] },
      }),
  },
];
