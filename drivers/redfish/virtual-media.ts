/** Virtual media of Redfish BMCs (schema VirtualMedia): which drives there are, what is in them, inserting and ejecting. */
import { Fault } from '../../model/errors';
import type { MediumRole } from '../../model/records';
import { credentialsOf, withoutCredentials, type Credentials } from '../../model/urls';
import {
  actionOf,
  followTask,
  hasMessage,
  isStatus,
  linkedCollection,
  listOf,
  member,
  patchResource,
  readResource,
  RedfishError,
  textOf,
  textsOf,
  type RedfishResource,
} from '../../wire/redfish';
import type { ManagementInterface, Task, VirtualMediaType } from '../interfaces';
import { publish, unpublish, withoutTokens } from '../common/media';
import { onSystem, type SystemView } from './target';

/** MediaTypes of the schema. */
export type MediaType = 'CD' | 'USBStick' | 'Floppy';
const MEDIA_TYPES: Readonly<Record<VirtualMediaType, MediaType>> = { cdrom: 'CD', disk: 'USBStick', floppy: 'Floppy' };
/** Some drives only say that they take DVDs. */
const TAKEN_FOR: Readonly<Record<MediaType, readonly string[]>> = { CD: ['CD', 'DVD'], USBStick: ['USBStick'], Floppy: ['Floppy'] };

const typesOf = ({ body }: RedfishResource): readonly string[] => textsOf(member(body, 'MediaTypes')) ?? [];
const takes = (drive: RedfishResource, type: MediaType): boolean => typesOf(drive).some((one) => TAKEN_FOR[type].includes(one));
const isInserted = ({ body }: RedfishResource): boolean => member(body, 'Inserted') === true;

/** The system's managers, as far as they are there. */
async function managersOf(system: SystemView): Promise<readonly RedfishResource[]> {
  const found: RedfishResource[] = [];
  for (const link of listOf(member(system.body, 'Links', 'ManagedBy')).slice(0, 8)) {
    const path = textOf(member(link, '@odata.id'));
    if (path === undefined) continue;
    try {
      found.push(await readResource(system.ask, path));
    } catch (error) {
      if (!isStatus(error, 404)) throw error;
    }
  }
  return found;
}
/** The drives of the system and of each manager; those of the system are the ones to use, where it has any. */
async function drivesOf(system: SystemView): Promise<readonly (readonly RedfishResource[])[]> {
  const own = await linkedCollection(system.ask, system, 'VirtualMedia');
  const groups = own === undefined ? [] : [own];
  for (const manager of await managersOf(system)) groups.push((await linkedCollection(system.ask, manager, 'VirtualMedia')) ?? []);
  return groups;
}
/** Those that may be used: the system's, or the managers' one after the other. */
const usable = (system: SystemView, groups: readonly (readonly RedfishResource[])[]): readonly (readonly RedfishResource[])[] =>
  member(system.body, 'VirtualMedia') !== undefined && groups.length > 0 ? groups.slice(0, 1) : groups;

/** Tries, and milliseconds between them, for BMCs that are still busy with what was ejected. */
const TRIES = 3;
const PAUSE_MS = 3000;
/** An image that is uploaded into the BMC comes over its own network. */
const TASK_MS = 600_000;

const follow = async (task: Task, system: SystemView, answer: Awaited<ReturnType<SystemView['ask']>>): Promise<unknown> =>
  followTask(system.ask, answer, { clock: task.clock, signal: task.signal, timeoutMs: TASK_MS });

/** Whether it may be changed by PATCH, as services before the action InsertMedia wanted it. */
const isPatched = async (system: SystemView, drive: RedfishResource): Promise<boolean> =>
  /\bPATCH\b/i.test((await system.ask('GET', drive.path)).headers['allow'] ?? '');

/** What a service may say that it misses → what is added then. The schema makes all of them optional. */
const ADDITIONS: readonly {
  readonly said: RegExp;
  readonly adds: (url: string) => Readonly<Record<string, string>>;
}[] = [
  { said: /TransferProtocolType/, adds: (url) => ({ TransferProtocolType: url.startsWith('https:') ? 'HTTPS' : 'HTTP' }) },
  { said: /TransferMethod/, adds: () => ({ TransferMethod: 'Stream' }) },
  { said: /UserName|Password|requires the parameter User/i, adds: () => ({ UserName: 'none', Password: 'none' }) },
];

/** Inserts into one drive. Throws RedfishError; of kind `protocol` for a drive that cannot be inserted into from outside. */
async function insertInto(
  task: Task,
  system: SystemView,
  drive: RedfishResource,
  url: string,
  credentials: Credentials | undefined,
): Promise<void> {
  let wanted: Readonly<Record<string, unknown>> = {
    Image: url,
    ...(credentials ? { UserName: credentials.username, Password: credentials.password } : {}),
  };
  const action = actionOf(drive, '#VirtualMedia.InsertMedia');
  if (!action) {
    if (!(await isPatched(system, drive))) throw new RedfishError('protocol', `${drive.path} does not offer to insert media`);
    await follow(task, system, await patchResource(system.ask, drive, { ...wanted, Inserted: true, WriteProtected: true }));
    return;
  }
  // Inserted and WriteProtected are true unless told, and some services refuse them.
  for (let missed = 0; ; missed++) {
    try {
      await follow(task, system, await system.ask('POST', action.target, { body: wanted }));
      return;
    } catch (error) {
      const refused = isStatus(error) && (error.status ?? 500) < 500;
      const lacking =
        refused && ADDITIONS.find(({ said, adds }) => said.test(error.message) && !Object.keys(adds(url)).some((key) => key in wanted));
      if (!lacking || missed >= ADDITIONS.length) throw error;
      wanted = { ...wanted, ...lacking.adds(url) };
    }
  }
}

async function eject(task: Task, system: SystemView, drive: RedfishResource): Promise<void> {
  const action = actionOf(drive, '#VirtualMedia.EjectMedia');
  if (!action) {
    if (!(await isPatched(system, drive))) throw new RedfishError('protocol', `${drive.path} does not offer to eject media`);
    await follow(task, system, await patchResource(system.ask, drive, { Image: null, Inserted: false }));
    return;
  }
  try {
    // The action has no parameters; some services want an empty object all the same.
    const answer = await system.ask('POST', action.target).catch((error: unknown) => {
      if (!isStatus(error, 400, 415)) throw error;
      return system.ask('POST', action.target, { body: {} });
    });
    await follow(task, system, answer);
  } catch (error) {
    // It may be out already, or have gone out all the same.
    if (!isStatus(error) || isInserted(await readResource(system.ask, drive.path))) throw error;
  }
}

/** Whether another drive may do what this one refused: this one is for the BMC's own console, or wants something else. */
const tryNext = (error: unknown): error is RedfishError =>
  error instanceof RedfishError &&
  (error.kind === 'protocol' || error.kind === 'task' || isStatus(error, 400, 405, 501) || hasMessage(error, 'ActionNotSupported'));

/** Inserts into the first drive of a group that takes it. @returns false: none does; what they said is added to `said` */
async function insertIntoGroup(
  task: Task,
  system: SystemView,
  drives: readonly RedfishResource[],
  wanted: { readonly type: MediaType; readonly url: string; readonly credentials: Credentials | undefined },
  said: string[],
): Promise<boolean> {
  for (const drive of drives.filter((one) => takes(one, wanted.type))) {
    try {
      await insertInto(task, system, drive, wanted.url, wanted.credentials);
      await untilInserted(task, system, drive);
      return true;
    } catch (error) {
      if (!tryNext(error)) throw error;
      // What a drive does not offer is no failure worth telling.
      if (error.kind !== 'protocol') said.push(withoutTokens(error.message));
    }
  }
  return false;
}

/** Throws a Fault when the BMC does not confirm it in time. */
async function untilInserted({ clock, signal, options, node }: Task, system: SystemView, drive: RedfishResource): Promise<void> {
  if (!options['redfish.enable_vmedia_insert_polling']) return;
  const seconds = options['redfish.vmedia_insert_timeout'];
  const until = clock.now() + seconds * 1000;
  while (!isInserted(await readResource(system.ask, drive.path))) {
    if (clock.now() >= until)
      throw new Fault('DriverOperationError', {
        message: `Timed out after ${seconds}s waiting for virtual media to be mounted on node ${node.uuid}.`,
      });
    await clock.sleep(options['redfish.vmedia_insert_poll_interval'] * 1000, signal);
  }
}

/** Puts an image into the first drive for such media that takes it; what was in such drives is ejected. Throws a Fault that says what the BMC said. */
export async function insertMedium(task: Task, type: MediaType, url: string, credentials?: Credentials): Promise<void> {
  const said: string[] = [];
  const inserted = await onSystem(task, 'Redfish insert virtual media', async (system) => {
    for (const group of usable(system, await drivesOf(system))) {
      for (const drive of group.filter((one) => takes(one, type) && isInserted(one))) {
        await eject(task, system, drive).catch((error: unknown) => {
          if (!(error instanceof RedfishError)) throw error;
          task.log.warn('What was in a virtual drive cannot be ejected', { drive: drive.path, reason: withoutTokens(error.message) });
        });
      }
      for (let tried = 1; tried <= TRIES; tried++) {
        try {
          if (await insertIntoGroup(task, system, group, { type, url, credentials }, said)) return true;
          break;
        } catch (error) {
          if (!isStatus(error) || (error.status ?? 0) < 500) throw error;
          said.push(withoutTokens(error.message));
          if (tried < TRIES) await task.clock.sleep(PAUSE_MS, task.signal);
        }
      }
    }
    return false;
  });
  if (!inserted) throw new Fault('InvalidParameterValue', { message: notInserted(task.node.uuid, withoutTokens(url), said) });
}

function notInserted(node: string, url: string, said: readonly string[]): string {
  const [first, last] = [said[0], said.at(-1)];
  if (first === undefined) return `No suitable virtual media device found for node ${node} to mount image ${url}`;
  const failed = `Virtual media mount failed for node ${node} with image ${url}`;
  return first === last ? `${failed}. Error: ${first}` : `${failed} after multiple attempts. First error: ${first}. Last error: ${last!}`;
}

/** Takes out what is in the drives for such media, of the system and its managers. @param types absent: of all of them. @returns whether anything was in */
export async function ejectMedia(task: Task, types?: readonly MediaType[]): Promise<boolean> {
  return onSystem(task, 'Redfish eject virtual media', async (system) => {
    let found = false;
    const drives = (await drivesOf(system)).flat();
    for (const drive of drives) {
      if (!isInserted(drive) || (types && !types.some((type) => takes(drive, type)))) continue;
      await eject(task, system, drive);
      found = true;
    }
    return found;
  });
}

/** The first of these types for which there is a drive. @param inserted only drives in which something is */
export async function typeOfDrive(task: Task, types: readonly MediaType[], inserted = false): Promise<MediaType | undefined> {
  return onSystem(task, undefined, async (system) => {
    const drives = usable(system, await drivesOf(system))
      .flat()
      .filter((drive) => !inserted || isInserted(drive));
    return types.find((type) => drives.some((drive) => takes(drive, type)));
  });
}

/** The drives as clients see them. Throws InvalidParameterValue when there is none. */
export async function listMedia(
  task: Task,
): Promise<readonly { readonly media_types: readonly string[]; readonly inserted: boolean | null; readonly image: string | null }[]> {
  const drives = await onSystem(
    task,
    undefined,
    async (system) => usable(system, await drivesOf(system)).find((group) => group.length > 0) ?? [],
  );
  if (drives.length === 0) throw new Fault('InvalidParameterValue', { message: 'No suitable virtual media device found' });
  return drives.map((drive) => {
    const [image, inserted] = [textOf(member(drive.body, 'Image')), member(drive.body, 'Inserted')];
    return {
      media_types: typesOf(drive),
      inserted: typeof inserted === 'boolean' ? inserted : null,
      image: image === undefined ? null : withoutTokens(image),
    };
  });
}

/** What may be in such a drive. */
const ROLES: Readonly<Record<VirtualMediaType, readonly MediumRole[]>> = {
  cdrom: ['cdrom', 'boot'],
  disk: ['disk', 'configdrive', 'parameters'],
  floppy: ['floppy'],
};
/** What users attach and detach (…/nodes/X/vmedia). */
export const redfishMedia: NonNullable<ManagementInterface['virtualMedia']> = {
  get: listMedia,
  attach: async (task, device, given, source) => {
    // A name and a password in it are told beside it, and shown to nobody.
    const url = withoutCredentials(given);
    const [scheme] = url.split(':', 1) as [string];
    // Shares (nfs, cifs, smb) the BMC takes from where they are.
    if (source === 'local' && !/^https?$/i.test(scheme))
      throw new Fault('InvalidParameterValue', {
        message: `image_download_source is set to 'local' but the image URL ${url} uses the ${scheme} protocol which cannot be downloaded by the conductor. Set image_download_source to 'http' or remove it to use the default.`,
      });
    await unpublish(task, [device]);
    if (source === 'local') await insertMedium(task, MEDIA_TYPES[device], await publish(task, device, { kind: 'image', source: given }));
    else await insertMedium(task, MEDIA_TYPES[device], url, credentialsOf(given));
  },
  detach: async (task, devices) => {
    await ejectMedia(
      task,
      devices?.map((device) => MEDIA_TYPES[device]),
    );
    await unpublish(task, devices?.flatMap((device) => ROLES[device]) ?? Object.values(ROLES).flat());
  },
};
