/** Virtual media of Redfish BMCs (schema VirtualMedia): the drives, their content, inserting and ejecting. */
import { retry, waitUntil } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { MediumRole } from '../../model/records';
import { repr } from '../../model/python';
import { credentialsOf, withoutCredentials, withoutUrlCredentials, type Credentials } from '../../model/urls';
import {
  actionOf,
  followTask,
  hasMessage,
  isStatus,
  linkKey,
  linkedCollection,
  member,
  patchResource,
  isUnseen,
  RedfishError,
  textsOf,
  type RedfishAnswer,
  type RedfishResource,
} from '../../wire/redfish';
import type { ManagementInterface, Task, VirtualMediaType } from '../interfaces';
import { publishMedium, unpublish, withoutTokens } from '../common/media';
import { identify } from './makers';
import { managersOf } from './managers';
import {
  MEDIA_ROWS,
  irmcDrives,
  mediaAdvice,
  readDrive,
  refusedScheme,
  schemesAllowed,
  withOemWay,
  type Drive,
  type MediaQuirks,
  type OemMedia,
  type OemMedium,
} from './oem-media';
import { quirksIn } from './quirks';
import { remoteMediaSwitch, switchRemoteMediaOn } from './remote-media';
import { onSystem, type SystemView } from './target';

/** MediaTypes of the schema. */
export type MediaType = 'CD' | 'USBStick' | 'Floppy';
const MEDIA_TYPES: Readonly<Record<VirtualMediaType, MediaType>> = { cdrom: 'CD', disk: 'USBStick', floppy: 'Floppy' };
/** Some drives list DVD only. */
const ACCEPTED_TYPES: Readonly<Record<MediaType, readonly string[]>> = { CD: ['CD', 'DVD'], USBStick: ['USBStick'], Floppy: ['Floppy'] };

const typesOf = ({ body }: RedfishResource): readonly string[] => textsOf(member(body, 'MediaTypes')) ?? [];
const accepts = (drive: RedfishResource, type: MediaType): boolean =>
  typesOf(drive).some((candidate) => ACCEPTED_TYPES[type].includes(candidate));
const isInserted = ({ body }: RedfishResource): boolean => member(body, 'Inserted') === true;

/** The drives of the system and of each manager. */
async function drivesOf(system: SystemView): Promise<readonly (readonly Drive[])[]> {
  const own = await linkedCollection(system.ask, system, 'VirtualMedia');
  const groups = own === undefined ? [] : [own];
  for (const manager of await managersOf(system)) groups.push((await linkedCollection(system.ask, manager, 'VirtualMedia')) ?? []);
  if (groups.flat().length > 0) return groups.map((group) => group.map(withOemWay));
  const oem = await irmcDrives(system);
  return oem === undefined ? groups : [oem];
}
type Known = MediaQuirks & { readonly vendor: string | undefined };
const knownOf = (task: Task, system: SystemView): Promise<Known> => quirksIn(MEDIA_ROWS, task, system);
/** Without the drives that are known to take nothing. */
const taking = ({ unusable }: Known, group: readonly Drive[]): readonly Drive[] =>
  unusable === undefined ? group : group.filter(({ path }) => !unusable.test(path.split('/').at(-1) ?? ''));
/** The drives to use: the system's own if it has any, otherwise those of each manager in turn. */
const usable = (system: SystemView, groups: readonly (readonly Drive[])[]): readonly (readonly Drive[])[] =>
  member(system.body, 'VirtualMedia') !== undefined && groups.length > 0 ? groups.slice(0, 1) : groups;

/**
 * The drives for a medium of this type. Where several drives take media of all types, such as the two slots of an iDRAC, the first is for the
 * CD, since the machine may boot from no other, and the others are for the rest.
 */
function suitableIn(group: readonly Drive[], type: MediaType): readonly Drive[] {
  const suitable = group.filter((drive) => accepts(drive, type));
  const first = group.find((drive) => accepts(drive, 'CD'));
  const takesRest = (drive: Drive): boolean => drive !== first && (accepts(drive, 'USBStick') || accepts(drive, 'Floppy'));
  const own = suitable.filter((drive) => (type === 'CD' ? !takesRest(drive) : drive !== first));
  return own.length > 0 ? own : suitable;
}
/** Reads of the drives after remote media are switched on. */
const SWITCHED_READS = 20;
/** The drives for this type. AMI's BMCs have no drives until remote media are switched on, which is done here. */
async function drivesFor(task: Task, system: SystemView, type: MediaType, known: Known): Promise<readonly (readonly Drive[])[]> {
  const look = async (): Promise<readonly (readonly Drive[])[]> => usable(system, await drivesOf(system));
  let found = await look();
  if (found.flat().length === 0 && (await switchRemoteMediaOn(task, system)))
    await waitUntil(
      task,
      async () => (found = await look()).flat().length > 0,
      (reads) => (reads < SWITCHED_READS ? PAUSE_MS : undefined),
    );
  return found.map((group) => suitableIn(taking(known, group), type));
}
const schemeOf = (url: string): string => url.split(':', 1)[0]!.toLowerCase();
/** Throws InvalidParameterValue when none of the drives takes images from URLs of a scheme. @returns those that do */
async function takingScheme(
  task: Task,
  system: SystemView,
  { schemes, vendor }: Known,
  groups: readonly (readonly Drive[])[],
  scheme: string,
): Promise<readonly (readonly Drive[])[]> {
  let refusal: Fault | undefined;
  const left: (readonly Drive[])[] = [];
  for (const group of groups) {
    const drives: Drive[] = [];
    for (const drive of group) {
      const listed = await actionOf(drive, '#VirtualMedia.InsertMedia')?.allowed(system.ask, 'TransferProtocolType');
      const allowed = drive.oem?.schemes ?? schemes ?? schemesAllowed(listed);
      if (allowed === undefined || allowed.includes(scheme)) drives.push(drive);
      else refusal ??= refusedScheme(task.node.uuid, vendor, `${drive.path}, ${drive.oem?.field ?? 'Image'}`, scheme, allowed);
    }
    left.push(drives);
  }
  if (refusal && left.flat().length === 0) throw refusal;
  return left;
}
/** Throws InvalidParameterValue when the BMC takes no CD from URLs of this scheme. Services without drives are not looked at further. */
export const validateScheme = (task: Task, scheme: string): Promise<void> =>
  onSystem(task, undefined, async (system) => {
    const known = await knownOf(task, system);
    const groups = usable(system, await drivesOf(system)).map((group) => suitableIn(taking(known, group), 'CD'));
    await takingScheme(task, system, known, groups, scheme);
  });

/** Attempts, and milliseconds between them, for BMCs that still work on the last ejection. */
const TRIES = 3;
const PAUSE_MS = 3000;
/** Reads of a drive after a change before it counts as not made. */
const STATE_READS = 5;
/** Some BMCs upload the image over their own, slow network. */
const TASK_MS = 600_000;

/** Follows the task of a change. A service that names none shows the drive's new state some time later. */
async function follow(task: Task, system: SystemView, answer: RedfishAnswer, arrives: () => Promise<void>): Promise<void> {
  await followTask(system.ask, answer, { clock: task.clock, signal: task.signal, timeoutMs: TASK_MS });
  if (isUnseen(answer)) await arrives();
}

/** Whether the drive is changed by PATCH, as in services older than the action InsertMedia. */
const isPatched = async (system: SystemView, drive: RedfishResource): Promise<boolean> =>
  /\bPATCH\b/i.test((await system.ask('GET', drive.path)).headers['allow'] ?? '');

/** A parameter that the service may report as missing → the parameters to add then. The schema makes all of them optional. */
const ADDITIONS: readonly {
  readonly missing: RegExp;
  readonly adds: (url: string) => Readonly<Record<string, string>>;
}[] = [
  { missing: /TransferProtocolType/, adds: (url) => ({ TransferProtocolType: url.startsWith('https:') ? 'HTTPS' : 'HTTP' }) },
  { missing: /TransferMethod/, adds: () => ({ TransferMethod: 'Stream' }) },
  { missing: /UserName|Password|requires the parameter User/i, adds: () => ({ UserName: 'none', Password: 'none' }) },
];

interface MediumToInsert {
  readonly type: MediaType;
  readonly url: string;
  readonly credentials: Credentials | undefined;
  /** TransferProtocolType; undefined: the BMC takes it from the URL. */
  readonly protocol: string | undefined;
}
/** Whether a drive shows this image. One that shows none of its properties does not tell it. */
function holds({ body }: RedfishResource, url: string): boolean {
  const [inserted, image, via] = ['Inserted', 'Image', 'ConnectedVia'].map((name) => member(body, name) ?? undefined);
  return inserted === undefined || inserted === true || image === url || via === 'URI';
}
/** Reads the drive until it shows the image, or not in time. */
const becomesFull = (task: Task, system: SystemView, drive: Drive, url: string): Promise<boolean> =>
  waitUntil(
    task,
    async () => holds(await readDrive(system.ask, drive), url),
    (reads) => (reads < STATE_READS ? PAUSE_MS : undefined),
  );

/** Inserts by a maker's own way. Throws RedfishError; a Fault when the medium does not arrive. */
async function insertByOem(task: Task, system: SystemView, drive: Drive, oem: OemMedia, medium: OemMedium): Promise<true> {
  const isGivenUp = (error: unknown): boolean => error instanceof RedfishError && error.kind === 'task';
  const arrives = (): Promise<void> => untilInserted(task, system, drive);
  const insert = async (): Promise<void> => follow(task, system, await oem.insert(system.ask, medium), arrives);
  await retry(task, insert, (error, attempt) => (isGivenUp(error) && attempt < oem.tries ? PAUSE_MS : undefined));
  if (await becomesFull(task, system, drive, medium.url)) return true;
  throw unkeptMedium(drive, (await identify(task, system)).vendor);
}
const unkeptMedium = ({ path }: Drive, vendor: string | undefined, why = ''): RedfishError =>
  new RedfishError(
    'unkept',
    `the medium for ${path} is accepted, not kept by the service (${vendor ?? 'unknown maker'}): Inserted was set to true and is false${why}`,
  );

/** Inserts into one drive. @returns false: the drive does not offer insertion. Throws RedfishError; a Fault when the medium does not arrive. */
async function insertInto(task: Task, system: SystemView, drive: Drive, { url, credentials, protocol }: MediumToInsert): Promise<boolean> {
  if (drive.oem) return insertByOem(task, system, drive, drive.oem, { url, credentials });
  let parameters: Readonly<Record<string, unknown>> = {
    Image: url,
    ...(credentials ? { UserName: credentials.username, Password: credentials.password } : {}),
    ...(protocol === undefined ? {} : { TransferProtocolType: protocol }),
  };
  const arrives = (): Promise<void> => untilInserted(task, system, drive);
  const action = actionOf(drive, '#VirtualMedia.InsertMedia');
  if (!action && !(await isPatched(system, drive))) return false;
  const offered = protocol === undefined ? undefined : await action?.allowed(system.ask, 'TransferProtocolType');
  if (protocol !== undefined && offered?.includes(protocol) === false)
    throw new Fault('InvalidParameterValue', {
      message: `Node ${task.node.uuid} requested transport protocol ${protocol} via driver_info, but BMC only supports ${repr(offered)}.`,
    });
  const send = (): Promise<RedfishAnswer> =>
    action
      ? system.ask('POST', action.target, { body: parameters })
      : patchResource(system.ask, drive, { ...parameters, Inserted: true, WriteProtected: true });
  // Inserted and WriteProtected default to true, and some services refuse them.
  for (let retries = 0, done = false; !done; retries++) {
    try {
      await follow(task, system, await send(), arrives);
      done = true;
    } catch (error) {
      const refused = action && isStatus(error) && (error.status ?? 500) < 500;
      const lacking =
        refused &&
        ADDITIONS.find(({ missing, adds }) => missing.test(error.message) && !Object.keys(adds(url)).some((key) => key in parameters));
      if (!lacking || retries >= ADDITIONS.length) throw error;
      parameters = { ...parameters, ...lacking.adds(url) };
    }
  }
  if (task.options['redfish.enable_vmedia_insert_polling']) await arrives();
  if (await becomesFull(task, system, drive, url)) return true;
  // Accepted, and not kept: once more, without a condition.
  const again = action
    ? send()
    : system.ask('PATCH', drive.path, { body: { ...parameters, Inserted: true }, headers: { 'if-match': '*' } });
  const refusal = await again.then(
    (answer) => follow(task, system, answer, arrives),
    (error: unknown) => {
      if (!isStatus(error)) throw error;
      return error;
    },
  );
  if (await becomesFull(task, system, drive, url)) return true;
  const { vendor } = await identify(task, system);
  const why = refusal ? `; and then refused: ${withoutTokens(refusal.message)}` : '';
  throw unkeptMedium(drive, vendor, why);
}

/** Reads the drive again until it is empty. Only Inserted counts: some services keep the name of the image. @returns whether it is */
const becomesEmpty = (task: Task, system: SystemView, drive: Drive): Promise<boolean> =>
  waitUntil(
    task,
    async () => !isInserted(await readDrive(system.ask, drive)),
    (reads) => (reads < STATE_READS ? PAUSE_MS : undefined),
  );
/** @throws RedfishError when the drive still shows its medium */
async function eject(task: Task, system: SystemView, drive: Drive): Promise<void> {
  const action = actionOf(drive, '#VirtualMedia.EjectMedia');
  const { oem } = drive;
  if (!action && !oem && !(await isPatched(system, drive)))
    throw new RedfishError('protocol', `${drive.path} does not offer to eject media`);
  // The action has no parameters, but some services require an empty object. Ejecting twice does no harm.
  const act = ({ target }: { readonly target: string }): Promise<RedfishAnswer> =>
    system.ask('POST', target, { repeatable: true }).catch((error: unknown) => {
      if (!isStatus(error, 400, 415)) throw error;
      return system.ask('POST', target, { body: {}, repeatable: true });
    });
  const once = async (): Promise<void> => {
    const answer = await (oem
      ? oem.eject(system.ask)
      : action
        ? act(action)
        : patchResource(system.ask, drive, { Image: null, Inserted: false }));
    await followTask(system.ask, answer, { clock: task.clock, signal: task.signal, timeoutMs: TASK_MS });
  };
  let failure: unknown = new RedfishError('unkept', `${drive.path} still has its medium after an ejection, which the service accepted`);
  for (let tries = 0; tries < 2; tries++) {
    let isRefused = false;
    try {
      await once();
    } catch (error) {
      // The medium may have been out already, or goes out in spite of the error. Services show the old state for a while.
      if (!isStatus(error)) throw error;
      if (tries === 0) failure = error;
      isRefused = true;
    }
    if (await becomesEmpty(task, system, drive)) return;
    if (isRefused) break;
  }
  throw failure;
}

/** Whether another drive may accept what this one refused, such as a drive that only serves the BMC's own console. */
const tryNext = (error: unknown): error is RedfishError =>
  error instanceof RedfishError &&
  (error.kind === 'protocol' ||
    error.kind === 'task' ||
    error.kind === 'unkept' ||
    isStatus(error, 400, 404, 405, 501) ||
    hasMessage(error, 'ActionNotSupported'));

const isBroken = (error: unknown): error is RedfishError => isStatus(error) && (error.status ?? 0) >= 500;
/** Inserts into the first drive of a group that accepts the medium. @returns false: none does; the errors are added to `errors` */
async function insertIntoGroup(
  task: Task,
  system: SystemView,
  drives: readonly Drive[],
  medium: MediumToInsert,
  errors: string[],
): Promise<boolean> {
  for (const drive of drives) {
    try {
      if (await insertInto(task, system, drive, medium)) return true;
    } catch (error) {
      if (!tryNext(error)) throw error;
      errors.push(withoutUrlCredentials(withoutTokens(error.message)));
    }
  }
  return false;
}

/** Throws a Fault when the BMC does not confirm the insertion in time. */
async function untilInserted(task: Task, system: SystemView, drive: Drive): Promise<void> {
  const { clock, options, node } = task;
  const seconds = options['redfish.vmedia_insert_timeout'];
  const until = clock.now() + seconds * 1000;
  const arrived = await waitUntil(
    task,
    async () => isInserted(await readDrive(system.ask, drive)),
    () => (clock.now() < until ? options['redfish.vmedia_insert_poll_interval'] * 1000 : undefined),
  );
  if (!arrived)
    throw new Fault('DriverOperationError', {
      message: `Timed out after ${seconds}s waiting for virtual media to be mounted on node ${node.uuid}.`,
    });
}

/** Ejects the media in these drives. @returns the drives as they are then: their actions and ETags may have changed */
async function emptied(task: Task, system: SystemView, drives: readonly Drive[]): Promise<readonly Drive[]> {
  const now: Drive[] = [];
  for (const drive of drives) {
    if (isInserted(drive))
      await eject(task, system, drive).catch((error: unknown) => {
        if (!(error instanceof RedfishError)) throw error;
        task.log.warn('Cannot eject the previous medium of a virtual drive', { drive: drive.path, reason: withoutTokens(error.message) });
      });
    now.push(isInserted(drive) ? await readDrive(system.ask, drive) : drive);
  }
  return now;
}
/** Ejects the media in suitable drives, and inserts an image into the first drive that accepts it. Throws a Fault with the BMC's errors. */
export async function insertMedium(
  task: Task,
  type: MediaType,
  url: string,
  { credentials, protocol }: { readonly credentials?: Credentials | undefined; readonly protocol?: string | undefined } = {},
): Promise<void> {
  const errors: string[] = [];
  const advice = await onSystem(task, 'Redfish insert virtual media', async (system) => {
    const known = await knownOf(task, system);
    const groups = await takingScheme(task, system, known, await drivesFor(task, system, type, known), schemeOf(url));
    for (const group of groups) {
      let drives = await emptied(task, system, group);
      const insert = async (attempt: number): Promise<boolean> => {
        if (attempt > 1) drives = await Promise.all(drives.map((drive) => readDrive(system.ask, drive)));
        return insertIntoGroup(task, system, drives, { type, url, credentials, protocol }, errors);
      };
      const pauseAfter = (error: unknown, attempt: number): number | undefined => {
        if (!isBroken(error)) return undefined;
        errors.push(withoutUrlCredentials(withoutTokens(error.message)));
        return attempt < TRIES ? PAUSE_MS : undefined;
      };
      const isIn = await retry(task, insert, pauseAfter).catch((error: unknown) => {
        if (!isBroken(error)) throw error;
        return false;
      });
      if (isIn) return undefined;
    }
    return mediaAdvice(known, errors.join(' '));
  });
  if (advice !== undefined)
    throw new Fault('InvalidParameterValue', { message: `${notInserted(task.node.uuid, withoutTokens(url), errors)}${advice}` });
}

function notInserted(node: string, url: string, errors: readonly string[]): string {
  const [first, last] = [errors[0], errors.at(-1)];
  if (first === undefined) return `No suitable virtual media device found for node ${node} to mount image ${url}`;
  const failed = `Virtual media mount failed for node ${node} with image ${url}`;
  return first === last ? `${failed}. Error: ${first}` : `${failed} after multiple attempts. First error: ${first}. Last error: ${last!}`;
}

/** Ejects media from the drives of the system and its managers. @param types absent: from all drives. @returns whether there was any */
export async function ejectMedia(task: Task, types?: readonly MediaType[]): Promise<boolean> {
  return onSystem(task, 'Redfish eject virtual media', async (system) => {
    let found = false;
    // A system and its manager may show the same drives.
    const drives = new Map((await drivesOf(system)).flat().map((drive) => [`${linkKey(drive.path)} ${drive.oem?.field ?? ''}`, drive]));
    for (const drive of drives.values()) {
      if (!isInserted(drive) || (types && !types.some((type) => accepts(drive, type)))) continue;
      await eject(task, system, drive);
      found = true;
    }
    return found;
  });
}

/** The first of these types for which there is a drive. @param inserted only drives with a medium */
export async function typeOfDrive(task: Task, types: readonly MediaType[], inserted = false): Promise<MediaType | undefined> {
  return onSystem(task, undefined, async (system) => {
    const known = await knownOf(task, system);
    const drives = usable(system, await drivesOf(system))
      .flatMap((group) => taking(known, group))
      .filter((drive) => !inserted || isInserted(drive));
    const found = types.find((type) => drives.some((drive) => accepts(drive, type)));
    if (found !== undefined || inserted || drives.length > 0) return found;
    // The drives appear when the first medium is inserted.
    return (await remoteMediaSwitch(system)) === undefined ? undefined : types[0];
  });
}

/** What virtual media of this maker need, as the end of a sentence; empty: nothing is known. */
export const needsOfMedia = (task: Task): Promise<string> =>
  onSystem(task, undefined, async (system) => mediaAdvice(await knownOf(task, system), ''));

/** The drives as clients see them. Throws InvalidParameterValue when there is none. */
async function listMedia(
  task: Task,
): Promise<readonly { readonly media_types: readonly string[]; readonly inserted: boolean | null; readonly image: string | null }[]> {
  const drives = await onSystem(
    task,
    undefined,
    async (system) => usable(system, await drivesOf(system)).find((group) => group.length > 0) ?? [],
  );
  if (drives.length === 0) throw new Fault('InvalidParameterValue', { message: 'No suitable virtual media device found' });
  return drives.map((drive) => {
    const [image, inserted] = [member(drive.body, 'Image'), member(drive.body, 'Inserted')];
    return {
      media_types: typesOf(drive),
      inserted: typeof inserted === 'boolean' ? inserted : null,
      image: typeof image === 'string' ? withoutTokens(image) : null,
    };
  });
}

/** The roles of media that a drive of this type may hold. */
const ROLES: Readonly<Record<VirtualMediaType, readonly MediumRole[]>> = {
  cdrom: ['cdrom', 'boot'],
  disk: ['disk', 'configdrive', 'parameters'],
  floppy: ['floppy'],
};
/** Media that users attach and detach (…/nodes/X/vmedia). */
export const redfishMedia: NonNullable<ManagementInterface['virtualMedia']> = {
  get: listMedia,
  attach: async (task, device, given, source) => {
    // The BMC gets credentials beside the URL: the URL in requests and messages has none.
    const url = withoutCredentials(given);
    const [scheme] = url.split(':', 1) as [string];
    // The BMC mounts shares (nfs, cifs, smb) itself.
    if (source === 'local' && !/^https?$/i.test(scheme))
      throw new Fault('InvalidParameterValue', {
        message: `image_download_source is set to 'local' but the image URL ${url} uses the ${scheme} protocol which cannot be downloaded by the conductor. Set image_download_source to 'http' or remove it to use the default.`,
      });
    await unpublish(task, [device]);
    if (source === 'local')
      await insertMedium(task, MEDIA_TYPES[device], await publishMedium(task, device, { kind: 'image', source: given }));
    else await insertMedium(task, MEDIA_TYPES[device], url, { credentials: credentialsOf(given) });
  },
  detach: async (task, devices) => {
    await ejectMedia(
      task,
      devices?.map((device) => MEDIA_TYPES[device]),
    );
    await unpublish(task, devices?.flatMap((device) => ROLES[device]) ?? Object.values(ROLES).flat());
  },
};
