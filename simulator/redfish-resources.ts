/** The Redfish resources of simulated machines (DSP0266, schemas DSP2046): what GET shows, and what a PATCH or action does. */
import type { BootSetting, MachineControl, PowerAction } from './control';
import { MANUFACTURER, PRODUCT, type MachineDescription } from './description';

/** A machine that a BMC stands before; its name is its identifier in paths. */
export type System = MachineControl & { readonly description: MachineDescription };
export interface Refusal {
  readonly status: number;
  /** Of the Base message registry (DSP8011). */
  readonly message: string;
  readonly text: string;
}
export type Shown = Readonly<Record<string, unknown>>;

export const ROOT = '/redfish/v1';
const link = (path: string): Shown => ({ '@odata.id': `${ROOT}${path}` });
const resource = (path: string, type: string, id: string, name: string, more: Shown): Shown => ({
  '@odata.id': `${ROOT}${path}`,
  '@odata.type': `#${type}`,
  Id: id,
  Name: name,
  ...more,
});
export const collection = (path: string, type: string, members: readonly string[]): Shown => ({
  '@odata.id': `${ROOT}${path}`,
  '@odata.type': `#${type}Collection.${type}Collection`,
  Name: `${type} collection`,
  'Members@odata.count': members.length,
  Members: members.map((member) => link(`${path}/${member}`)),
});
const HEALTHY = { State: 'Enabled', Health: 'OK', HealthRollup: 'OK' };

export const serviceRoot: Shown = resource('/', 'ServiceRoot.v1_5_0.ServiceRoot', 'RootService', 'Simulated Redfish service', {
  RedfishVersion: '1.6.0',
  UUID: 'b100e000-0000-4000-8000-000000000000',
  Product: PRODUCT,
  Systems: link('/Systems'),
  Chassis: link('/Chassis'),
  Managers: link('/Managers'),
  SessionService: link('/SessionService'),
  Links: { Sessions: link('/SessionService/Sessions') },
});
export const sessionService: Shown = resource('/SessionService', 'SessionService.v1_1_3.SessionService', 'SessionService', 'Sessions', {
  ServiceEnabled: true,
  SessionTimeout: 1800,
  Sessions: link('/SessionService/Sessions'),
});
export const session = (id: string, user: string): Shown =>
  resource(`/SessionService/Sessions/${id}`, 'Session.v1_1_0.Session', id, 'Session', { UserName: user });

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

function system(machine: System): Shown {
  const { description } = machine;
  const { device, persistent, mode } = machine.boot();
  const path = `/Systems/${machine.name}`;
  return resource(path, 'ComputerSystem.v1_10_0.ComputerSystem', machine.name, machine.name, {
    SystemType: 'Physical',
    Manufacturer: MANUFACTURER,
    Model: PRODUCT,
    SerialNumber: description.serial,
    UUID: description.uuid,
    BiosVersion: '1.0',
    Status: HEALTHY,
    PowerState: machine.isOn() ? 'On' : 'Off',
    Boot: {
      BootSourceOverrideEnabled: device === 'none' ? 'Disabled' : persistent ? 'Continuous' : 'Once',
      BootSourceOverrideTarget: TARGETS.find(([, one]) => one === device)?.[0] ?? 'None',
      'BootSourceOverrideTarget@Redfish.AllowableValues': TARGETS.map(([word]) => word),
      BootSourceOverrideMode: (mode ?? description.mode) === 'uefi' ? 'UEFI' : 'Legacy',
      'BootSourceOverrideMode@Redfish.AllowableValues': MODES,
    },
    MemorySummary: { TotalSystemMemoryGiB: description.memoryMiB / 1024, Status: HEALTHY },
    ProcessorSummary: { Count: 1, Model: 'Simulated CPU', Status: HEALTHY },
    EthernetInterfaces: link(`${path}/EthernetInterfaces`),
    Processors: link(`${path}/Processors`),
    SimpleStorage: link(`${path}/SimpleStorage`),
    Links: { Chassis: [link(`/Chassis/${machine.name}`)], ManagedBy: [link(`/Managers/${machine.name}`)] },
    Actions: {
      '#ComputerSystem.Reset': {
        target: `${ROOT}${path}/Actions/ComputerSystem.Reset`,
        'ResetType@Redfish.AllowableValues': Object.keys(RESETS),
      },
    },
  });
}

function processor({ name, description }: System): Shown {
  return resource(`/Systems/${name}/Processors/1`, 'Processor.v1_5_0.Processor', '1', 'Processor', {
    ProcessorType: 'CPU',
    ProcessorArchitecture: description.architecture === 'x86_64' ? 'x86' : 'ARM',
    InstructionSet: description.architecture === 'x86_64' ? 'x86-64' : 'ARM-A64',
    Model: 'Simulated CPU',
    MaxSpeedMHz: 2400,
    TotalCores: description.cpus,
    TotalThreads: description.cpus,
    Status: HEALTHY,
  });
}

function ethernet(machine: System, id: string): Shown | undefined {
  const mac = machine.macs[Number(id) - 1];
  if (mac === undefined) return undefined;
  return resource(`/Systems/${machine.name}/EthernetInterfaces/${id}`, 'EthernetInterface.v1_5_0.EthernetInterface', id, `NIC ${id}`, {
    MACAddress: mac.toUpperCase(),
    PermanentMACAddress: mac.toUpperCase(),
    SpeedMbps: 10_000,
    InterfaceEnabled: true,
    LinkStatus: id === '1' ? 'LinkUp' : 'LinkDown',
    Status: HEALTHY,
  });
}

const simpleStorage = ({ name, description }: System): Shown =>
  resource(`/Systems/${name}/SimpleStorage/1`, 'SimpleStorage.v1_3_0.SimpleStorage', '1', 'Disks', {
    Status: HEALTHY,
    Devices: description.disks.map(({ name: disk, model, size }) => ({ Name: disk, Model: model, CapacityBytes: size, Status: HEALTHY })),
  });

const chassis = (machine: System): Shown =>
  resource(`/Chassis/${machine.name}`, 'Chassis.v1_10_0.Chassis', machine.name, machine.name, {
    ChassisType: 'RackMount',
    Manufacturer: MANUFACTURER,
    PowerState: machine.isOn() ? 'On' : 'Off',
    Status: HEALTHY,
    Links: { ComputerSystems: [link(`/Systems/${machine.name}`)], ManagedBy: [link(`/Managers/${machine.name}`)] },
  });

const manager = ({ name }: System): Shown =>
  resource(`/Managers/${name}`, 'Manager.v1_7_0.Manager', name, `BMC of ${name}`, {
    ManagerType: 'BMC',
    FirmwareVersion: '1.0',
    PowerState: 'On',
    Status: HEALTHY,
    Links: { ManagerForServers: [link(`/Systems/${name}`)], ManagerForChassis: [link(`/Chassis/${name}`)] },
  });

/** Path below a system → resource. */
const PARTS: Readonly<Record<string, (machine: System) => Shown>> = {
  '': system,
  EthernetInterfaces: ({ name, macs }) =>
    collection(
      `/Systems/${name}/EthernetInterfaces`,
      'EthernetInterface',
      macs.map((_, index) => String(index + 1)),
    ),
  Processors: ({ name }) => collection(`/Systems/${name}/Processors`, 'Processor', ['1']),
  'Processors/1': processor,
  SimpleStorage: ({ name }) => collection(`/Systems/${name}/SimpleStorage`, 'SimpleStorage', ['1']),
  'SimpleStorage/1': simpleStorage,
};

const COLLECTIONS = [
  ['Systems', 'ComputerSystem'],
  ['Chassis', 'Chassis'],
  ['Managers', 'Manager'],
] as const;

/** The resource at a path below the service root ('/Systems/sim-0'), of any but sessions. */
export function show(path: string, systems: ReadonlyMap<string, System>): Shown | undefined {
  if (path === '') return serviceRoot;
  if (path === '/SessionService') return sessionService;
  const [, kind, name, ...rest] = path.split('/');
  const names = [...systems.keys()];
  if (name === undefined) {
    const type = COLLECTIONS.find(([one]) => one === kind)?.[1];
    return type === undefined ? undefined : collection(path, type, names);
  }
  const machine = systems.get(name);
  if (!machine) return undefined;
  if (kind === 'Chassis') return rest.length === 0 ? chassis(machine) : undefined;
  if (kind === 'Managers') return rest.length === 0 ? manager(machine) : undefined;
  if (kind !== 'Systems') return undefined;
  if (rest[0] === 'EthernetInterfaces' && rest.length === 2) return ethernet(machine, rest[1]!);
  const part = rest.join('/');
  return Object.hasOwn(PARTS, part) ? PARTS[part]!(machine) : undefined;
}

const refusal = (message: string, text: string, status = 400): Refusal => ({ status, message, text });
const notInList = (value: unknown, property: string): Refusal =>
  refusal(
    'PropertyValueNotInList',
    `The value ${JSON.stringify(value)} for the property ${property} is not in the list of acceptable values.`,
  );

/** PATCH of a system: its boot override, all or nothing. */
export function patchSystem(machine: System, body: unknown): Refusal | undefined {
  const { Boot: boot, ...others } = (body ?? {}) as { readonly Boot?: unknown };
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined || typeof boot !== 'object' || boot === null)
    return refusal('PropertyUnknown', `The property ${unknown ?? 'Boot'} is not in the list of valid properties for the resource.`);
  const now = machine.boot();
  let { device, persistent, mode } = now;
  for (const [property, value] of Object.entries(boot as Shown)) {
    if (property === 'BootSourceOverrideTarget') {
      const target = TARGETS.find(([word]) => word === value);
      if (!target) return notInList(value, property);
      device = target[1];
    } else if (property === 'BootSourceOverrideEnabled') {
      if (!ENABLED.includes(value as string)) return notInList(value, property);
      persistent = value === 'Continuous';
      if (value === 'Disabled') device = 'none';
    } else if (property === 'BootSourceOverrideMode') {
      if (!MODES.includes(value as string)) return notInList(value, property);
      mode = value === 'UEFI' ? 'uefi' : 'bios';
    } else return refusal('PropertyUnknown', `The property ${property} is not in the list of valid properties for the resource.`);
  }
  machine.setBoot({ device, persistent: device !== 'none' && persistent, mode });
  return undefined;
}

/** The action ComputerSystem.Reset. */
export async function resetSystem(machine: System, body: unknown): Promise<Refusal | undefined> {
  const type = (body as { readonly ResetType?: unknown } | undefined)?.ResetType;
  if (type === undefined) return refusal('ActionParameterMissing', 'The action ComputerSystem.Reset requires the parameter ResetType.');
  if (typeof type !== 'string' || !Object.hasOwn(RESETS, type))
    return refusal('ActionParameterNotSupported', `The parameter ResetType does not support the value ${JSON.stringify(type)}.`);
  const action = RESETS[type]!;
  await machine.act(action === 'button' ? (machine.isOn() ? 'soft' : 'on') : action);
  return undefined;
}
