/** Storage (DSP2046): subsystems with a controller, their drives, and their volumes. Tasks create and delete volumes. */
import { isObject } from '../../../model/json';
import { MANUFACTURER } from '../../hardware/description';
import {
  anything,
  list,
  members,
  oneOf,
  reference,
  refuseAction,
  refuseNew,
  refusePatch,
  text,
  integer,
  type Checks,
} from '../protocol/checks';
import { partStatus } from './sensors';
import { INDICATOR_CHECKS, indicator, setIndicator } from './indicators';
import { refuse } from '../protocol/messages';
import {
  HEALTHY,
  ROOT,
  collection,
  collectionRoute,
  link,
  resource,
  type ServiceAnswer,
  type Route,
  type ResourceBody,
  type SystemContext,
} from '../protocol/routes';
import { freeVolumeId, runTask, type TaskWork } from '../../hardware/task-records';
import { startTask } from './tasks';
import {
  RAID_TYPES,
  driveName,
  planVolume,
  subsystemsOf,
  volumesIn,
  type RaidType,
  type Subsystem,
  type Volume,
} from '../../hardware/volumes';

const PATH = '/Systems/{system}/Storage';
const APPLY_TIMES = ['Immediate', 'OnReset'];
const APPLY_TIME: Checks = { '@Redfish.OperationApplyTime': oneOf(APPLY_TIMES) };
const INITIALIZE = 'Volume.Initialize';

const subsystemOf = ({ system, values: [, id] }: SystemContext): Subsystem | undefined =>
  subsystemsOf(system.description).find((candidate) => candidate.id === id);
const driveOf = (at: SystemContext): Subsystem['drives'][number] | undefined =>
  subsystemOf(at)?.drives.find((drive) => driveName(drive) === at.values[2]);
const volumeOf = (at: SystemContext): Volume | undefined =>
  volumesIn(at.system.hardware, at.values[1]!).find((volume) => volume.id === at.values[2]);
const storagePath = ({ system }: SystemContext, storage: string): string => `/Systems/${system.name}/Storage/${storage}`;

const controllerOf = ({ id, protocol, raid }: Subsystem): ResourceBody => ({
  Manufacturer: MANUFACTURER,
  Model: 'Simulated controller',
  SerialNumber: `CTRL${id}`,
  FirmwareVersion: '1.0',
  SupportedControllerProtocols: ['PCIe'],
  SupportedDeviceProtocols: [protocol],
  SupportedRAIDTypes: raid,
  SpeedGbps: 12,
});

function storage(at: SystemContext): ResourceBody | undefined {
  const found = subsystemOf(at);
  if (!found) return undefined;
  const { id, drives } = found;
  const there = drives.filter((drive) => !at.system.conditions?.(driveName(drive)).includes('gone'));
  return resource(at.path, 'Storage', id, `Storage ${id}`, {
    Status: HEALTHY,
    StorageControllers: [
      {
        '@odata.id': `${ROOT}${at.path}#/StorageControllers/0`,
        MemberId: '0',
        Name: `Controller ${id}`,
        Status: HEALTHY,
        ...controllerOf(found),
      },
    ],
    Controllers: link(`${at.path}/Controllers`),
    Drives: there.map((drive) => link(`${at.path}/Drives/${driveName(drive)}`)),
    'Drives@odata.count': there.length,
    Volumes: link(`${at.path}/Volumes`),
  });
}
function controller(at: SystemContext): ResourceBody | undefined {
  const found = at.values[2] === '1' ? subsystemOf(at) : undefined;
  if (!found) return undefined;
  const { SupportedRAIDTypes, SpeedGbps, ...more } = controllerOf(found);
  const shown = { ...more, SpeedGbps, SupportedRAIDTypes, Status: HEALTHY };
  return resource(at.path, 'StorageController', '1', `Controller ${found.id}`, shown);
}
function drive(at: SystemContext): ResourceBody | undefined {
  const found = driveOf(at);
  if (!found) return undefined;
  const { model, serial, size, rotational } = found;
  const name = driveName(found);
  const { hardware } = at.system;
  const conditions = at.system.conditions?.(name) ?? [];
  const volumes = volumesIn(hardware, at.values[1]!).filter(({ drives }) => drives.includes(name));
  return resource(at.path, 'Drive', name, `Drive ${name}`, {
    Manufacturer: MANUFACTURER,
    Model: model,
    SerialNumber: serial,
    CapacityBytes: size,
    BlockSizeBytes: 512,
    Revision: '1.0',
    MediaType: rotational ? 'HDD' : 'SSD',
    Protocol: subsystemOf(at)!.protocol,
    ...(rotational ? { RotationSpeedRPM: 7200 } : { PredictedMediaLifeLeftPercent: conditions.includes('worn') ? 3 : 100 }),
    FailurePredicted: conditions.includes('failing'),
    Status: partStatus(at, name),
    ...indicator(hardware, `drive ${name}`),
    Links: {
      Chassis: link(`/Chassis/${at.system.name}`),
      Volumes: volumes.map(({ id, storage: owner }) => link(`${storagePath(at, owner)}/Volumes/${id}`)),
      'Volumes@odata.count': volumes.length,
    },
  });
}
function volume(at: SystemContext): ResourceBody | undefined {
  const found = volumeOf(at);
  if (!found) return undefined;
  const { id, name, raid, bytes, drives, storage: owner } = found;
  return resource(at.path, 'Volume', id, name, {
    DisplayName: name,
    RAIDType: raid,
    CapacityBytes: bytes,
    BlockSizeBytes: 512,
    Encrypted: false,
    Identifiers: [{ DurableNameFormat: 'UUID', DurableName: at.system.description.uuid.replace(/^.{8}/, id.padStart(8, '0')) }],
    Status: HEALTHY,
    Links: {
      Drives: drives.map((item) => link(`${storagePath(at, owner)}/Drives/${item}`)),
      'Drives@odata.count': drives.length,
    },
    Actions: {
      [`#${INITIALIZE}`]: { target: `${ROOT}${at.path}/Actions/${INITIALIZE}`, 'InitializeType@Redfish.AllowableValues': ['Fast', 'Slow'] },
    },
  });
}

/** Adds a task that runs at once or, with the apply time OnReset, from the machine's next start on. */
function startVolumeTask({ service, system }: SystemContext, name: string, body: ResourceBody, work: TaskWork): ServiceAnswer {
  const { task, answer } = startTask(service, system, { name, phase: 'staged', work, takes: service.settings.taskMs });
  if (task && body['@Redfish.OperationApplyTime'] !== 'OnReset') runTask(system.hardware, task, service.clock.now());
  return answer;
}

const NEW_VOLUME: Checks = {
  ...APPLY_TIME,
  RAIDType: oneOf(RAID_TYPES),
  Name: text,
  DisplayName: text,
  CapacityBytes: integer(1, Number.MAX_SAFE_INTEGER),
  Links: members({ Drives: list(reference), 'Drives@odata.count': anything }),
  Encrypted: (value, name) => (value === false ? undefined : ['PropertyValueNotInList', JSON.stringify(value), name]),
};
function create(at: SystemContext, body: ResourceBody): ServiceAnswer | undefined {
  const found = subsystemOf(at);
  if (!found) return refuse('ResourceMissingAtURI', at.path);
  const refused = refuseNew(body, NEW_VOLUME, ['RAIDType', 'Links']);
  if (refused) return refused;
  if (found.raid.length === 0) return refuse('PropertyValueNotInList', String(body['RAIDType']), 'RAIDType');
  const {
    RAIDType: raid,
    CapacityBytes: bytes,
    Name: name,
    DisplayName: label,
  } = body as Readonly<Record<string, unknown>> & {
    readonly RAIDType: RaidType;
    readonly CapacityBytes?: number;
    readonly Name?: string;
    readonly DisplayName?: string;
  };
  const { Drives: references = [] } = body['Links'] as { readonly Drives?: readonly { readonly '@odata.id': string }[] };
  const within = `${ROOT}${storagePath(at, found.id)}/Drives/`;
  const drives = [...new Set(references.map((item) => item['@odata.id'].replace(within, '')))];
  const { hardware } = at.system;
  const planned = planVolume(hardware, found, raid, drives, bytes);
  if ('problem' in planned) return refuse(...planned.problem);
  const id = freeVolumeId(hardware, found.id);
  const made = { id, storage: found.id, name: label ?? name ?? `Volume ${id}`, raid, bytes: planned.bytes, drives };
  return startVolumeTask(at, `Make volume ${id}`, body, { kind: 'make volume', volume: made });
}
function remove(at: SystemContext, body: ResourceBody): ServiceAnswer | undefined {
  const found = volumeOf(at);
  if (!found) return refuse('ResourceMissingAtURI', at.path);
  const refused = isObject(body) && Object.keys(body).length > 0 ? refusePatch(body, APPLY_TIME) : undefined;
  return refused ?? startVolumeTask(at, `Delete volume ${found.id}`, body, { kind: 'delete volume', storage: found.storage, id: found.id });
}

export const STORAGE_ROUTES: readonly Route<SystemContext>[] = [
  collectionRoute(PATH, 'Storage', ({ system }) => subsystemsOf(system.description).map(({ id }) => id)),
  { path: `${PATH}/{storage}`, get: storage },
  { path: `${PATH}/{storage}/Controllers`, get: (at) => (subsystemOf(at) ? collection(at.path, 'StorageController', ['1']) : undefined) },
  { path: `${PATH}/{storage}/Controllers/{controller}`, get: controller },
  {
    path: `${PATH}/{storage}/Drives/{drive}`,
    get: drive,
    patch: (at, body) => {
      const found = driveOf(at);
      if (!found) return refuse('ResourceMissingAtURI', at.path);
      const refused = refusePatch(body, INDICATOR_CHECKS, drive(at));
      if (!refused) setIndicator(at.system, `drive ${driveName(found)}`, body);
      return refused;
    },
  },
  {
    path: `${PATH}/{storage}/Volumes`,
    get: (at) =>
      subsystemOf(at) && {
        ...collection(
          at.path,
          'Volume',
          volumesIn(at.system.hardware, at.values[1]!).map(({ id }) => id),
        ),
        '@Redfish.OperationApplyTimeSupport': { '@odata.type': '#Settings.v1_3_0.OperationApplyTimeSupport', SupportedValues: APPLY_TIMES },
      },
    post: create,
  },
  { path: `${PATH}/{storage}/Volumes/{volume}`, get: volume, delete: remove },
  {
    path: `${PATH}/{storage}/Volumes/{volume}/Actions/${INITIALIZE}`,
    post: (at, body) =>
      volumeOf(at)
        ? refuseAction(INITIALIZE, body, { ...APPLY_TIME, InitializeType: oneOf(['Fast', 'Slow']) })
        : refuse('ResourceMissingAtURI', at.path),
  },
];
