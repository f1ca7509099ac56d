/** Manager (DSP2046): the BMC itself. */
import { MANUFACTURER } from '../description';
import { versionOf } from './firmware-versions';
import { HEALTHY, dateTime, link, resource, type Row, type Shown, type SystemAt } from './rows';

const PATH = '/Managers/{system}';

function manager({ path, system: { name, description, hardware }, service }: SystemAt): Shown {
  return resource(path, 'Manager', name, `BMC of ${name}`, {
    ManagerType: 'BMC',
    Manufacturer: MANUFACTURER,
    Model: 'Simulated BMC',
    UUID: description.uuid.replace(/^b100e/, 'b100f'),
    FirmwareVersion: versionOf(hardware.state, 'bmc'),
    PowerState: 'On',
    DateTime: dateTime(service.clock.now()),
    DateTimeLocalOffset: '+00:00',
    Status: HEALTHY,
    VirtualMedia: link(`${path}/VirtualMedia`),
    Links: { ManagerForServers: [link(`/Systems/${name}`)], ManagerForChassis: [link(`/Chassis/${name}`)] },
  });
}

export const MANAGER_ROWS: readonly Row<SystemAt>[] = [{ path: PATH, get: manager }];
