/** UpdateService (DSP2046): the firmware inventory, and updates from a URL. Each update is a task. */
import { MANUFACTURER } from '../../hardware/description';
import { list, oneOf, refuseAction, text, type Checks } from '../protocol/checks';
import { download, isFetchable } from '../protocol/download';
import { COMPONENTS, firmwareVersion, isComponent, readFirmware, type Component } from '../../hardware/firmware-versions';
import { refuse } from '../protocol/messages';
import {
  HEALTHY,
  ROOT,
  collectionRoute,
  link,
  resource,
  type ServiceAnswer,
  type RouteContext,
  type Route,
  type Service,
  type ResourceBody,
  type System,
} from '../protocol/routes';
import { changeTask, findTask, runTask, settleTasks } from '../../hardware/task-records';
import { startTask } from './tasks';

const PATH = '/UpdateService';
const INVENTORY = `${PATH}/FirmwareInventory`;
const ACTION = 'UpdateService.SimpleUpdate';
const HEAD_BYTES = 256;
/** Whether an update waits for the machine's next start. The BMC updates itself at once. */
const STAGED: Readonly<Record<Component, boolean>> = { bios: true, nic: true, bmc: false };
const NAMES: Readonly<Record<Component, string>> = { bios: 'BIOS', bmc: 'BMC', nic: 'Network adapter' };

/** An item's identifier is COMPONENT-MACHINE. */
function itemOf(service: Service, id: string): { readonly component: Component; readonly system: System } | undefined {
  const [, component, name] = /^(\w+)-(.+)$/.exec(id) ?? [];
  const system = service.systems.get(name ?? '');
  return system && isComponent(component) ? { component, system } : undefined;
}

function item({ service, path, values: [id] }: RouteContext): ResourceBody | undefined {
  const found = itemOf(service, id!);
  if (!found) return undefined;
  const { component, system } = found;
  settleTasks(system.hardware, service.clock.now());
  const related = {
    bios: `/Systems/${system.name}/Bios`,
    bmc: `/Managers/${system.name}`,
    nic: `/Chassis/${system.name}/NetworkAdapters/NIC1`,
  } as const;
  return resource(path, 'SoftwareInventory', id!, `${NAMES[component]} of ${system.name}`, {
    Version: firmwareVersion(system.hardware, component),
    Manufacturer: MANUFACTURER,
    SoftwareId: component,
    Updateable: true,
    Status: HEALTHY,
    RelatedItem: [link(related[component])],
    'RelatedItem@odata.count': 1,
  });
}

const PARAMETERS: Checks = {
  ImageURI: text,
  TransferProtocol: oneOf(['HTTP', 'HTTPS']),
  Targets: list(text),
  Username: text,
  Password: text,
  '@Redfish.OperationApplyTime': oneOf(['Immediate', 'OnReset']),
};

/** The machine to update: the one that a target names, or the only one. */
function machineOf(service: Service, targets: readonly string[]): System | ServiceAnswer {
  const [only] = service.systems.size === 1 ? service.systems.values() : [];
  if (targets.length === 0) return only ?? refuse('ActionParameterMissing', ACTION, 'Targets');
  const [, kind, name] = /\/(Systems|Chassis|Managers|FirmwareInventory)\/([^/]+)/.exec(targets[0]!) ?? [];
  const found = kind === 'FirmwareInventory' ? itemOf(service, name!)?.system : service.systems.get(name ?? '');
  return found ?? refuse('ActionParameterValueNotInList', targets[0]!, 'Targets', ACTION);
}
const isAnswer = (found: System | ServiceAnswer): found is ServiceAnswer => 'status' in found;

function simpleUpdate({ service }: RouteContext, body: ResourceBody): ServiceAnswer {
  const refused = refuseAction(ACTION, body, PARAMETERS, ['ImageURI']);
  if (refused) return refused;
  const { ImageURI, TransferProtocol = 'HTTP', Targets = [], Username, Password } = body as Readonly<Record<string, string>>;
  // In the older form, ImageURI is "server/path" and TransferProtocol has the scheme.
  const url = ImageURI!.includes('://') ? ImageURI! : `${TransferProtocol.toLowerCase()}://${ImageURI!}`;
  if (!isFetchable(url)) return refuse('ActionParameterValueTypeError', url, 'ImageURI', ACTION);
  const system = machineOf(service, Targets as readonly string[]);
  if (isAnswer(system)) return system;
  const { task, answer } = startTask(service, system, {
    name: `Firmware update of ${system.name}`,
    phase: 'new',
    work: { kind: 'fetch', url },
    takes: service.settings.taskMs,
  });
  if (task) service.background(fetchFirmware(service, system, task.id, { url, username: Username, password: Password }));
  return answer;
}

async function fetchFirmware(service: Service, { hardware }: System, id: string, from: Parameters<typeof download>[1]): Promise<void> {
  const got = await download(service, from, 'GET', HEAD_BYTES);
  const now = service.clock.now();
  const fail = (...message: readonly string[]): void => changeTask(hardware, id, { phase: 'failed', ended: now, message });
  if (typeof got === 'string') {
    fail('Update.TransferFailed', from.url, got);
    return;
  }
  const image = readFirmware(got.head);
  if (!image) {
    fail('Update.VerificationFailed', from.url, 'the machine');
    return;
  }
  changeTask(hardware, id, { phase: 'staged', work: { kind: 'firmware', ...image } });
  const task = findTask(hardware, id);
  if (task && !STAGED[image.component]) runTask(hardware, task, now);
}

/** Begins an update with a file that was sent. @param head its beginning */
export function pushedUpdate(service: Service, system: System, head: Buffer): ServiceAnswer {
  const image = readFirmware(head);
  if (!image) return refuse('UnrecognizedRequestBody');
  const { task, answer } = startTask(service, system, {
    name: `Firmware update of ${system.name}`,
    phase: 'staged',
    work: { kind: 'firmware', ...image },
    takes: service.settings.taskMs,
  });
  if (task && !STAGED[image.component]) runTask(system.hardware, task, service.clock.now());
  return answer;
}

export const UPDATE_ROUTES: readonly Route[] = [
  {
    path: PATH,
    get: ({ path }) =>
      resource(path, 'UpdateService', 'UpdateService', 'Firmware updates', {
        ServiceEnabled: true,
        Status: HEALTHY,
        FirmwareInventory: link(INVENTORY),
        Actions: {
          [`#${ACTION}`]: {
            target: `${ROOT}${PATH}/Actions/${ACTION}`,
            'TransferProtocol@Redfish.AllowableValues': ['HTTP', 'HTTPS'],
          },
        },
      }),
  },
  collectionRoute(INVENTORY, 'SoftwareInventory', ({ service }) =>
    [...service.systems.keys()].flatMap((name) => COMPONENTS.map((component) => `${component}-${name}`)),
  ),
  { path: `${INVENTORY}/{item}`, get: item },
  { path: `${PATH}/Actions/${ACTION}`, post: simpleUpdate },
];
