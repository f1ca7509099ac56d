/** Manager (DSP2046): the BMC itself, with its clock, its network and its reset to the factory state. */
import { hardwarePart } from '../../hardware/hardware';
import { VOLUMES } from '../../hardware/volumes';
import { oneOf, refuseAction, refusePatch, type Check } from '../protocol/checks';
import { FIRMWARE, firmwareVersion } from '../../hardware/firmware-versions';
import {
  HEALTHY,
  ROOT,
  collectionRoute,
  dateTime,
  link,
  resource,
  type Route,
  type ResourceBody,
  type SystemContext,
} from '../protocol/routes';

const PATH = '/Managers/{system}';
const RESET = 'Manager.Reset';
const RESET_TO_DEFAULTS = 'Manager.ResetToDefaults';
const MINUTE = 60_000;

interface BmcClock {
  /** Milliseconds ahead of the simulator's clock. */
  readonly ahead: number;
  /** The offset of local time from UTC, such as +02:00. */
  readonly offset: string;
}
const CLOCK = hardwarePart<BmcClock>('clock', { ahead: 0, offset: '+00:00' });
const minutes = (offset: string): number => {
  const [, sign, hours, rest] = /^([+-])(\d\d):(\d\d)$/.exec(offset)!;
  return (Number(hours) * 60 + Number(rest)) * (sign === '-' ? -1 : 1);
};
function shownTime(at: SystemContext): ResourceBody {
  const { ahead, offset } = at.system.hardware.get(CLOCK);
  const local = dateTime(at.service.clock.now() + ahead + minutes(offset) * MINUTE);
  return { DateTime: local.replace('Z', offset), DateTimeLocalOffset: offset };
}

function show(at: SystemContext): ResourceBody {
  const { path, system } = at;
  const { name, description, hardware } = system;
  return resource(path, 'Manager', name, `BMC of ${name}`, {
    ManagerType: 'BMC',
    Manufacturer: description.manufacturer,
    Model: 'Simulated BMC',
    UUID: description.uuid.replace(/^b100e/, 'b100f'),
    FirmwareVersion: firmwareVersion(hardware, 'bmc'),
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

export const MANAGER_ROUTES: readonly Route<SystemContext>[] = [
  {
    path: PATH,
    get: show,
    patch: (at, body) => {
      const refused = refusePatch(body, { DateTime: matches(DATE_TIME), DateTimeLocalOffset: matches(OFFSET) }, show(at));
      if (refused) return refused;
      const { DateTime: time, DateTimeLocalOffset: offset } = body as { readonly DateTime?: string; readonly DateTimeLocalOffset?: string };
      const now = at.system.hardware.get(CLOCK);
      const ahead = time === undefined ? now.ahead : Date.parse(time) - at.service.clock.now();
      at.system.hardware.set(CLOCK, { ahead, offset: offset ?? now.offset });
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
      // The reset of the BMC keeps volumes, which are on the drives, and firmware, which is in the components.
      system.hardware.resetExcept([VOLUMES, FIRMWARE]);
      return undefined;
    },
  },
  collectionRoute(`${PATH}/EthernetInterfaces`, 'EthernetInterface', () => ['1']),
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
