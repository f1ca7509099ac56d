/** ComputerSystem (DSP2046): power, boot override, and the links to all parts of a machine. */
import type { BootSetting, PowerAction } from '../control';
import { MANUFACTURER, PRODUCT } from '../description';
import { change } from '../hardware';
import { members, oneOf, refuseAction, refusePatch, text, textOrNull } from './checks';
import { versionOf } from './firmware-versions';
import { INDICATOR_CHECKS, indicator, setIndicator } from './indicators';
import { visibleDisks } from './volumes';
import { HEALTHY, ROOT, collectionRow, link, resource, type Row, type Shown, type SystemAt } from './rows';

const PATH = '/Systems/{system}';

/** Redfish's word ↔ the machine's. */
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

function show({ system, path }: SystemAt): Shown {
  const { description, name } = system;
  const { device, persistent, mode } = system.boot();
  return resource(path, 'ComputerSystem', name, name, {
    SystemType: 'Physical',
    Manufacturer: MANUFACTURER,
    Model: PRODUCT,
    SerialNumber: description.serial,
    UUID: description.uuid,
    BiosVersion: versionOf(system.hardware.state, 'bios'),
    Status: HEALTHY,
    PowerState: system.isOn() ? 'On' : 'Off',
    Boot: {
      BootSourceOverrideEnabled: device === 'none' ? 'Disabled' : persistent ? 'Continuous' : 'Once',
      BootSourceOverrideTarget: TARGETS.find(([, one]) => one === device)?.[0] ?? 'None',
      'BootSourceOverrideTarget@Redfish.AllowableValues': TARGETS.map(([word]) => word),
      BootSourceOverrideMode: (mode ?? description.mode) === 'uefi' ? 'UEFI' : 'Legacy',
      'BootSourceOverrideMode@Redfish.AllowableValues': MODES,
      HttpBootUri: system.hardware.state.httpBootUri ?? null,
    },
    MemorySummary: { TotalSystemMemoryGiB: description.memoryMiB / 1024, Status: HEALTHY },
    ProcessorSummary: { Count: 1, Model: 'Simulated CPU', Status: HEALTHY },
    Bios: link(`${path}/Bios`),
    SecureBoot: link(`${path}/SecureBoot`),
    EthernetInterfaces: link(`${path}/EthernetInterfaces`),
    Processors: link(`${path}/Processors`),
    SimpleStorage: link(`${path}/SimpleStorage`),
    Storage: link(`${path}/Storage`),
    ...indicator(system.hardware.state, 'system'),
    AssetTag: system.hardware.state.assetTag ?? '',
    VirtualMedia: link(`${path}/VirtualMedia`),
    Links: { Chassis: [link(`/Chassis/${name}`)], ManagedBy: [link(`/Managers/${name}`)] },
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
function override(now: BootSetting, wanted: Shown): BootSetting {
  const { BootSourceOverrideTarget: target, BootSourceOverrideEnabled: enabled, BootSourceOverrideMode: mode } = wanted;
  const chosen = TARGETS.find(([word]) => word === target)?.[1] ?? now.device;
  const device = enabled === 'Disabled' ? 'none' : chosen;
  return {
    device,
    persistent: device !== 'none' && (enabled === undefined ? now.persistent : enabled === 'Continuous'),
    mode: mode === undefined ? now.mode : mode === 'UEFI' ? 'uefi' : 'bios',
  };
}

export const SYSTEM_ROWS: readonly Row<SystemAt>[] = [
  {
    path: PATH,
    get: show,
    patch: (at, body) => {
      const refused = refusePatch(body, { ...INDICATOR_CHECKS, AssetTag: text, Boot: members(BOOT) }, show(at));
      if (refused) return refused;
      setIndicator(at.system, 'system', body);
      if (body['AssetTag'] !== undefined) change(at.system.hardware, { assetTag: body['AssetTag'] as string });
      const { Boot: wanted } = body as { readonly Boot?: Shown & { readonly HttpBootUri?: string | null } };
      if (wanted) at.system.setBoot(override(at.system.boot(), wanted));
      if (wanted?.HttpBootUri !== undefined) change(at.system.hardware, { httpBootUri: wanted.HttpBootUri });
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
  collectionRow(`${PATH}/Processors`, 'Processor', () => ['1']),
  {
    path: `${PATH}/Processors/1`,
    get: ({ path, system: { description } }) =>
      resource(path, 'Processor', '1', 'Processor', {
        ProcessorType: 'CPU',
        ProcessorArchitecture: description.architecture === 'x86_64' ? 'x86' : 'ARM',
        InstructionSet: description.architecture === 'x86_64' ? 'x86-64' : 'ARM-A64',
        Model: 'Simulated CPU',
        MaxSpeedMHz: 2400,
        TotalCores: description.cpus,
        TotalThreads: description.cpus,
        Status: HEALTHY,
      }),
  },
  collectionRow(`${PATH}/EthernetInterfaces`, 'EthernetInterface', ({ system }) => system.macs.map((_, index) => String(index + 1))),
  {
    path: `${PATH}/EthernetInterfaces/{nic}`,
    get: ({ path, system, values: [, id] }) => {
      const mac = system.macs[Number(id) - 1]?.toUpperCase();
      return mac === undefined
        ? undefined
        : resource(path, 'EthernetInterface', id!, `NIC ${id!}`, {
            MACAddress: mac,
            PermanentMACAddress: mac,
            SpeedMbps: 10_000,
            InterfaceEnabled: true,
            LinkStatus: id === '1' ? 'LinkUp' : 'LinkDown',
            Status: HEALTHY,
          });
    },
  },
  collectionRow(`${PATH}/SimpleStorage`, 'SimpleStorage', () => ['1']),
  {
    path: `${PATH}/SimpleStorage/1`,
    get: ({ path, system: { description, hardware } }) =>
      resource(path, 'SimpleStorage', '1', 'Disks', {
        Status: HEALTHY,
        Devices: visibleDisks(description, hardware.state).map(({ name, model, size }) => ({
          Name: name,
          Model: model,
          CapacityBytes: size,
          Status: HEALTHY,
        })),
      }),
  },
];
