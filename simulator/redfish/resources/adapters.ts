/** NetworkAdapters of a chassis (DSP2046): one card with all of the machine's interfaces. */
import { MANUFACTURER } from '../../hardware/description';
import { firmwareVersion } from '../../hardware/firmware-versions';
import { MODES, NETWORK_MODES, modeOf } from '../../hardware/network-modes';
import { anything, members, oneOf, refusePatch, type Checks } from '../protocol/checks';
import { refuse } from '../protocol/messages';
import { HEALTHY, collectionRoute, link, resource, type ResourceBody, type Route, type SystemContext } from '../protocol/routes';
import { macAt, numbered } from './parts';

const PATH = '/Chassis/{system}/NetworkAdapters';
const FUNCTIONS = `${PATH}/NIC1/NetworkDeviceFunctions`;

const CHECKS: Checks = {
  NetDevFuncType: oneOf(MODES),
  '@Redfish.SettingsApplyTime': members({ '@odata.type': anything, ApplyTime: oneOf(['OnReset']) }),
};
function deviceFunction(at: SystemContext): ResourceBody | undefined {
  const mac = macAt(at);
  const id = at.values[1]!;
  if (mac === undefined) return undefined;
  const { current, immediate } = at.system.hardware.get(NETWORK_MODES);
  return resource(at.path, 'NetworkDeviceFunction', id, `Function ${id}`, {
    NetDevFuncType: modeOf(current, id),
    NetDevFuncCapabilities: MODES,
    Ethernet: { MACAddress: mac, PermanentMACAddress: mac },
    BootMode: id === '1' ? 'PXE' : 'Disabled',
    Status: HEALTHY,
    '@Redfish.Settings': immediate
      ? undefined
      : { '@odata.type': '#Settings.v1_3_0.Settings', SettingsObject: link(`${at.path}/Settings`), SupportedApplyTimes: ['OnReset'] },
  });
}
/** What the next start applies. */
function settings(at: SystemContext): ResourceBody | undefined {
  const { current, pending, immediate } = at.system.hardware.get(NETWORK_MODES);
  const id = at.values[1]!;
  if (macAt(at) === undefined || immediate) return undefined;
  return resource(at.path, 'NetworkDeviceFunction', 'Settings', `Settings of function ${id} that wait for a reset`, {
    NetDevFuncType: modeOf({ ...current, ...pending }, id),
  });
}
/** @param whole the resource that is changed; undefined: there is none */
function change(at: SystemContext, body: ResourceBody, whole: ResourceBody | undefined, of: 'current' | 'pending') {
  const { hardware } = at.system;
  const state = hardware.get(NETWORK_MODES);
  const refused = whole === undefined ? refuse('ResourceMissingAtURI', at.path) : refusePatch(body, CHECKS, whole);
  if (refused) return refused;
  const mode = body['NetDevFuncType'];
  if (mode !== undefined) hardware.set(NETWORK_MODES, { ...state, [of]: { ...state[of], [at.values[1]!]: mode as string } });
  return undefined;
}

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
  collectionRoute(FUNCTIONS, 'NetworkDeviceFunction', ({ system }) => numbered(system.macs.length)),
  {
    path: `${FUNCTIONS}/{function}`,
    get: deviceFunction,
    patch: (at, body) =>
      at.system.hardware.get(NETWORK_MODES).immediate
        ? change(at, body, deviceFunction(at), 'current')
        : refuse('PropertyNotWritable', 'NetDevFuncType'),
  },
  {
    path: `${FUNCTIONS}/{function}/Settings`,
    get: settings,
    patch: (at, body) => change(at, body, settings(at), 'pending'),
  },
];
