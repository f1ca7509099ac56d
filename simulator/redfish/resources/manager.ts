/** Manager (DSP2046): the BMC itself: its clock, its network, and its way back to the state in which it left the factory. */
import { MANUFACTURER } from '../../hardware/description';
import { change } from '../../hardware/hardware';
import { oneOf, refuseAction, refusePatch, type Check } from '../protocol/checks';
import { versionOf } from '../../hardware/firmware-versions';
import { HEALTHY, ROOT, collectionRow, dateTime, link, resource, type Row, type Shown, type SystemAt } from '../protocol/routes';

const PATH = '/Managers/{system}';
const RESET = 'Manager.Reset';
const RESET_TO_DEFAULTS = 'Manager.ResetToDefaults';
const MINUTE = 60_000;

export interface ClockState {
  /** Milliseconds that it is ahead. */
  readonly ahead: number;
  /** +02:00 */
  readonly offset: string;
}
const clockOf = ({ system }: SystemAt): ClockState => system.hardware.state.clock ?? { ahead: 0, offset: '+00:00' };
const minutes = (offset: string): number => {
  const [, sign, hours, rest] = /^([+-])(\d\d):(\d\d)$/.exec(offset)!;
  return (Number(hours) * 60 + Number(rest)) * (sign === '-' ? -1 : 1);
};
function shownTime(at: SystemAt): Shown {
  const { ahead, offset } = clockOf(at);
  const local = dateTime(at.service.clock.now() + ahead + minutes(offset) * MINUTE);
  return { DateTime: local.replace('Z', offset), DateTimeLocalOffset: offset };
}

function show(at: SystemAt): Shown {
  const { path, system } = at;
  const { name, description, hardware } = system;
  return resource(path, 'Manager', name, `BMC of ${name}`, {
    ManagerType: 'BMC',
    Manufacturer: MANUFACTURER,
    Model: 'Simulated BMC',
    UUID: description.uuid.replace(/^b100e/, 'b100f'),
    FirmwareVersion: versionOf(hardware.state, 'bmc'),
    PowerState: 'On',
    ...shownTime(at),
    Status: HEALTHY,
    EthernetInterfaces: link(`${path}/EthernetInterfaces`),
    NetworkProtocol: link(`${path}/NetworkProtocol`),
    VirtualMedia: link(`${path}/VirtualMedia`),
    Links: {
      ManagerForServers: [link(`/Systems/${name}`)],
      'ManagerForServers@odata.count': 1,
      ManagerForChassis: [link(`/Chassis/${name}`)],
      'ManagerForChassis@odata.count': 1,
    },
    Actions: {
      [`#${RESET}`]: {
        target: `${ROOT}${path}/Actions/${RESET}`,
        'ResetType@Redfish.AllowableValues': ['GracefulRestart', 'ForceRestart'],
      },
      [`#${RESET_TO_DEFAULTS}`]: {
        target: `${ROOT}${path}/Actions/${RESET_TO_DEFAULTS}`,
        'ResetType@Redfish.AllowableValues': ['ResetAll'],
      },
    },
  });
}

const matches =
  (pattern: RegExp): Check =>
  (value, name) =>
    typeof value !== 'string'
      ? ['PropertyValueTypeError', JSON.stringify(value), name]
      : pattern.test(value) && (pattern !== DATE_TIME || !Number.isNaN(Date.parse(value)))
        ? undefined
        : ['PropertyValueFormatError', value, name];
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const OFFSET = /^[+-](0\d|1[0-4]):[0-5]\d$/;

export const MANAGER_ROWS: readonly Row<SystemAt>[] = [
  {
    path: PATH,
    get: show,
    patch: (at, body) => {
      const refused = refusePatch(body, { DateTime: matches(DATE_TIME), DateTimeLocalOffset: matches(OFFSET) }, show(at));
      if (refused) return refused;
      const { DateTime: time, DateTimeLocalOffset: offset } = body as { readonly DateTime?: string; readonly DateTimeLocalOffset?: string };
      const now = clockOf(at);
      const ahead = time === undefined ? now.ahead : Date.parse(time) - at.service.clock.now();
      change(at.system.hardware, { clock: { ahead, offset: offset ?? now.offset } });
      return undefined;
    },
  },
  {
    path: `${PATH}/Actions/${RESET}`,
    post: ({ service }, body) => {
      const refused = refuseAction(RESET, body, { ResetType: oneOf(['GracefulRestart', 'ForceRestart']) });
      if (!refused) service.restart.begin();
      return refused;
    },
  },
  {
    path: `${PATH}/Actions/${RESET_TO_DEFAULTS}`,
    post: ({ service, system }, body) => {
      const refused = refuseAction(RESET_TO_DEFAULTS, body, { ResetType: oneOf(['ResetAll']) }, ['ResetType']);
      if (refused) return refused;
      service.restart.begin();
      // The drives, and what firmware was written, are not the BMC's to forget.
      const { volumes = [], firmware = {} } = system.hardware.state;
      system.hardware.state = { volumes, firmware };
      system.hardware.changed();
      return undefined;
    },
  },
  collectionRow(`${PATH}/EthernetInterfaces`, 'EthernetInterface', () => ['1']),
  {
    path: `${PATH}/EthernetInterfaces/1`,
    get: ({ path, system: { macs, description } }) =>
      resource(path, 'EthernetInterface', '1', 'BMC network', {
        MACAddress: macs[0]!.replace(/^52:54/, '52:55').toUpperCase(),
        InterfaceEnabled: true,
        LinkStatus: 'LinkUp',
        SpeedMbps: 1000,
        Status: HEALTHY,
        IPv4Addresses: description.bmcAddress.includes(':') ? [] : [{ Address: description.bmcAddress, AddressOrigin: 'Static' }],
      }),
  },
  {
    path: `${PATH}/NetworkProtocol`,
    get: ({ path, system }) =>
      resource(path, 'ManagerNetworkProtocol', 'NetworkProtocol', 'Network protocols of the BMC', {
        HostName: `bmc-${system.name}`,
        Status: HEALTHY,
        HTTP: { ProtocolEnabled: true, Port: 80 },
        IPMI: { ProtocolEnabled: true, Port: 623 },
      }),
  },
];
