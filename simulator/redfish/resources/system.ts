/** ComputerSystem (DSP2046): power, boot override, and the links to all parts of a machine. */
import type { BootSetting, PowerAction } from '../../hardware/control';
import { HTTP_BOOT_URI } from '../../hardware/boot-media';
import { hardwarePart } from '../../hardware/hardware';
import { members, oneOf, refuseAction, refusePatch, text, textOrNull } from '../protocol/checks';
import { firmwareVersion } from '../../hardware/firmware-versions';
import { INDICATOR_CHECKS, indicator, setIndicator } from './indicators';
import { bootOrder, memoryStatus } from './parts';
import { partStatus } from './sensors';
import { ROOT, link, resource, type Route, type ResourceBody, type SystemContext } from '../protocol/routes';

const PATH = '/Systems/{system}';
const ASSET_TAG = hardwarePart('assetTag', '');

/** [Redfish's name, our name] of each boot device. */
const TARGETS: readonly (readonly [string, BootSetting['device']])[] = [
  ['None', 'none'],
  ['Pxe', 'pxe'],
  ['Hdd', 'disk'],
  ['Cd', 'cdrom'],
  ['BiosSetup', 'bios'],
  ['UefiHttp', 'uefi-http'],
];
const ENABLED = ['Disabled', 'Once', 'Continuous'];
const MODES = ['Legacy', 'UEFI'];
const RESETS: Readonly<Record<string, PowerAction | 'button'>> = {
  On: 'on',
  ForceOn: 'on',
  ForceOff: 'off',
  GracefulShutdown: 'soft',
  GracefulRestart: 'reset',
  ForceRestart: 'reset',
  PowerCycle: 'cycle',
  PushPowerButton: 'button',
  Nmi: 'diagnostic',
};

function show(at: SystemContext): ResourceBody {
  const { system, path } = at;
  const { description, name } = system;
  const { device, persistent, mode } = system.boot();
  return resource(path, 'ComputerSystem', name, name, {
    SystemType: 'Physical',
    Manufacturer: description.manufacturer,
    Model: description.product,
    SerialNumber: description.serial,
    UUID: description.uuid,
    BiosVersion: firmwareVersion(system.hardware, 'bios'),
    Status: partStatus(at, 'System'),
    PowerState: system.isOn() ? 'On' : 'Off',
    Boot: {
      BootSourceOverrideEnabled: device === 'none' ? 'Disabled' : persistent ? 'Continuous' : 'Once',
      BootSourceOverrideTarget: TARGETS.find(([, target]) => target === device)?.[0] ?? 'None',
      'BootSourceOverrideTarget@Redfish.AllowableValues': TARGETS.map(([word]) => word),
      BootSourceOverrideMode: (mode ?? description.mode) === 'uefi' ? 'UEFI' : 'Legacy',
      'BootSourceOverrideMode@Redfish.AllowableValues': MODES,
      BootOrder: bootOrder(at),
      BootOptions: link(`${path}/BootOptions`),
      HttpBootUri: system.hardware.get(HTTP_BOOT_URI),
    },
    MemorySummary: { TotalSystemMemoryGiB: description.memoryMiB / 1024, Status: memoryStatus(at) },
    ProcessorSummary: { Count: 1, Model: 'Simulated CPU', Status: partStatus(at, 'CPU1') },
    Bios: link(`${path}/Bios`),
    SecureBoot: link(`${path}/SecureBoot`),
    EthernetInterfaces: link(`${path}/EthernetInterfaces`),
    Processors: link(`${path}/Processors`),
    Memory: link(`${path}/Memory`),
    NetworkInterfaces: link(`${path}/NetworkInterfaces`),
    LogServices: link(`${path}/LogServices`),
    PCIeDevices: [link(`/Chassis/${name}/PCIeDevices/NIC1`)],
    'PCIeDevices@odata.count': 1,
    SimpleStorage: link(`${path}/SimpleStorage`),
    Storage: link(`${path}/Storage`),
    ...indicator(system.hardware, 'system'),
    AssetTag: system.hardware.get(ASSET_TAG),
    VirtualMedia: link(`${path}/VirtualMedia`),
    Links: {
      Chassis: [link(`/Chassis/${name}`)],
      'Chassis@odata.count': 1,
      ManagedBy: [link(`/Managers/${name}`)],
      'ManagedBy@odata.count': 1,
    },
    Actions: {
      '#ComputerSystem.Reset': {
        target: `${ROOT}${path}/Actions/ComputerSystem.Reset`,
        'ResetType@Redfish.AllowableValues': Object.keys(RESETS),
      },
    },
  });
}

const BOOT = {
  BootSourceOverrideTarget: oneOf(TARGETS.map(([word]) => word)),
  BootSourceOverrideEnabled: oneOf(ENABLED),
  BootSourceOverrideMode: oneOf(MODES),
  HttpBootUri: textOrNull,
};
function override(now: BootSetting, boot: ResourceBody): BootSetting {
  const { BootSourceOverrideTarget: target, BootSourceOverrideEnabled: enabled, BootSourceOverrideMode: mode } = boot;
  const chosen = TARGETS.find(([word]) => word === target)?.[1] ?? now.device;
  const device = enabled === 'Disabled' ? 'none' : chosen;
  return {
    device,
    persistent: device !== 'none' && (enabled === undefined ? now.persistent : enabled === 'Continuous'),
    mode: mode === undefined ? now.mode : mode === 'UEFI' ? 'uefi' : 'bios',
  };
}

export const SYSTEM_ROUTES: readonly Route<SystemContext>[] = [
  {
    path: PATH,
    get: show,
    patch: (at, body) => {
      const refused = refusePatch(body, { ...INDICATOR_CHECKS, AssetTag: text, Boot: members(BOOT) }, show(at));
      if (refused) return refused;
      setIndicator(at.system, 'system', body);
      if (body['AssetTag'] !== undefined) at.system.hardware.set(ASSET_TAG, body['AssetTag'] as string);
      const { Boot: boot } = body as { readonly Boot?: ResourceBody & { readonly HttpBootUri?: string | null } };
      if (boot) at.system.setBoot(override(at.system.boot(), boot));
      if (boot?.HttpBootUri !== undefined) at.system.hardware.set(HTTP_BOOT_URI, boot.HttpBootUri);
      return undefined;
    },
  },
  {
    path: `${PATH}/Actions/ComputerSystem.Reset`,
    post: async ({ system }, body) => {
      const refused = refuseAction('ComputerSystem.Reset', body, { ResetType: oneOf(Object.keys(RESETS)) }, ['ResetType']);
      if (refused) return refused;
      const action = RESETS[body['ResetType'] as string]!;
      await system.act(action === 'button' ? (system.isOn() ? 'soft' : 'on') : action);
      return undefined;
    },
  },
];
