/** RAID volumes of machines with a Redfish service. The service may carry out requests later, or at a restart. */
import { Fault } from '../../../model/errors';
import type { JsonObject } from '../../../model/records';
import { RedfishError, isStatus, isUnseen, linkKey, startedTask, type RedfishAnswer, type SendRedfishRequest } from '../../../wire/redfish';
import { readTaskOrJob } from '../jobs';
import { done, failed, type Outcome, type RaidInterface, type Step, type StepKind, type Task } from '../../interfaces';
import { logicalDisks } from '../../agent/raid';
import { hasAgent, isAgentBack, rebootForStep } from '../../common/reboot-step';
import { requestedDisks, checkRequestedDisks, checkInterfaceTypes } from './requested-disks';
import { fitted, planVolumes, type Drive, type PlannedVolume } from './raid-plan';
import { drivesOf, existingVolumes, raidConfigOf, storagesOf, type ApplyTime, type Storage, type Volume } from './storage';
import { REDFISH_PROPERTIES, onSystem, redfishRequester, redfishFault, redfishSystem, systemOf, type SystemView } from '../target';

/** Work that a controller needs beside the standard's requests. */
export interface RaidFollowUp {
  readonly monitors: readonly string[];
  /** `due`: the machine must be restarted. `begun`: the service restarts it. */
  readonly restart?: 'due' | 'begun' | undefined;
}
/** What the RAID controllers of a maker need beside the standard's requests. */
interface RaidMaker {
  /** Waits until the service takes requests for volumes. */
  readonly prepare?: (task: Task, system: SystemView) => Promise<void>;
  /** Makes drives usable for RAID. @returns whether any were not, whose sizes must be read again */
  readonly convert?: (task: Task, system: SystemView, drives: readonly Drive[]) => Promise<boolean>;
  /** What follows the deletion of volumes, in this order. */
  readonly afterDeletion?: readonly ((task: Task, system: SystemView) => Promise<RaidFollowUp>)[];
  /** Milliseconds after a request during which its task may not be found yet. */
  readonly appearsMs?: number;
  /** Milliseconds between two requests that start tasks. */
  readonly pauseMs?: number;
  /** Cleaning needs no ramdisk for the steps. */
  readonly withoutRamdisk?: true;
  /** The kinds of steps that delete the volumes. */
  readonly deletesIn?: readonly StepKind[];
}

const APPLY_TIME = '@Redfish.OperationApplyTime';
/** A request to the service, ready to be sent. */
interface PendingRequest {
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: JsonObject;
}
/** Which of the logical disks to create. */
interface Selection {
  readonly root: boolean;
  readonly others: boolean;
}
/** driver_internal_info.raid_configs: unfinished work. It is saved before the first request. */
interface Work {
  readonly operation: 'create' | 'delete';
  /** Controller → requests that are not sent yet: a controller may only accept one at a time. */
  readonly pending: Readonly<Record<string, readonly PendingRequest[]>>;
  readonly task_monitor_uri: readonly string[];
  /** The sent requests need a restart that has not happened yet. */
  readonly reboot?: boolean;
  /** The restart has happened, so the agent must come back. */
  readonly rebooted?: boolean;
  /** Accepted requests of which no task shows the end: the volumes show it. */
  readonly unseen?: readonly PendingRequest[];
  /** When the last request was sent that started a task, in milliseconds since the epoch. */
  readonly sent_at?: number;
  /** How many of the maker's follow-ups of the deletion have been begun. */
  readonly followed?: number;
  /** To be created after the deletion. */
  readonly then_create?: Selection;
  /** Paths of the volumes that existed before. */
  readonly known: readonly string[];
  /** How many volumes are to appear, or the paths of those that are to vanish. */
  readonly effect?: { readonly appear: number } | { readonly vanish: readonly string[] };
  /** Since when the service has accepted everything without showing it, in milliseconds since the epoch. */
  readonly unshown_since?: number;
}
const KEY = 'raid_configs';
const workOf = ({ node }: Task): Work | undefined => node.driver_internal_info[KEY] as Work | undefined;
const save = (task: Task, work: Work | undefined): Promise<void> => task.saveInternal({ [KEY]: work });

const applied = (body: JsonObject, applyTime: ApplyTime): JsonObject => ({ ...body, ...(applyTime ? { [APPLY_TIME]: applyTime } : {}) });
const isImmediate = ({ body }: PendingRequest): boolean => body?.[APPLY_TIME] === 'Immediate';

/** The body of a new volume. Without a size the service chooses the largest. */
const newVolume = ({ request, raidType, drives, bytes }: PlannedVolume): JsonObject => ({
  RAIDType: raidType,
  ...(bytes === 'MAX' ? {} : { CapacityBytes: bytes }),
  Links: { Drives: drives.map(({ path }) => ({ '@odata.id': path })) },
  ...(request.volume_name ? { Name: request.volume_name } : {}),
});

/** Grouped by controller, in the order of the controllers' names. */
function grouped(requests: readonly (readonly [string, PendingRequest])[]): Work['pending'] {
  const names = [...new Set(requests.map(([name]) => name))].sort();
  return Object.fromEntries(names.map((name) => [name, requests.filter(([request]) => request === name).map(([, request]) => request)]));
}

/**
 * The requests that create target_raid_config. Throws when the drives do not suffice.
 * @param deletes the present volumes are deleted before
 */
async function creation(
  task: Task,
  { convert }: RaidMaker,
  system: SystemView,
  { root, others }: Selection,
  { deletes = false } = {},
): Promise<Work> {
  const { ask } = system;
  const storages = await storagesOf(system);
  const known = await existingVolumes(ask, storages);
  const staying = deletes ? [] : known.filter(isRaid);
  const planned = planVolumes(requestedDisks(task.node.target_raid_config), await drivesOf(ask, storages, staying));
  let selected: readonly PlannedVolume[] = planned.filter(({ request }) => (request.is_root_volume ? root : others));
  const converts =
    !deletes &&
    (await convert?.(
      task,
      system,
      selected.flatMap(({ drives }) => drives),
    ));
  if (converts) selected = fitted(selected, await drivesOf(ask, storages, staying));
  const requests = selected.map((volume): readonly [string, PendingRequest] => {
    const owner = storages.find(({ id }) => id === volume.drives[0]!.controller)!.volumes!;
    return [volume.drives[0]!.controller, { method: 'POST', path: owner.path, body: applied(newVolume(volume), owner.applyTime) }];
  });
  return {
    operation: 'create',
    pending: grouped(requests),
    task_monitor_uri: [],
    known: known.map(({ path }) => path),
    effect: { appear: requests.length },
  };
}
/** Other volumes are drives that the service shows as volumes too. */
const isRaid = ({ raidType }: Volume): boolean => raidType !== undefined;
function deletion(volumes: readonly Volume[]): Work {
  const requests = volumes
    .filter(isRaid)
    .map(({ path, storage }): readonly [string, PendingRequest] => [
      storage.id,
      { method: 'DELETE', path, ...(storage.volumes?.applyTime ? { body: applied({}, storage.volumes.applyTime) } : {}) },
    ]);
  return {
    operation: 'delete',
    pending: grouped(requests),
    task_monitor_uri: [],
    known: volumes.map(({ path }) => path),
    effect: { vanish: requests.map(([, { path }]) => path) },
  };
}

/** How the service took a request: `over`; a task's monitor; or `unseen`, which is accepted without a task. */
type Sent = 'over' | 'unseen' | { readonly monitor: string };
function takenAs(answer: RedfishAnswer): Sent {
  const monitor = startedTask(answer);
  return monitor === undefined ? (isUnseen(answer) ? 'unseen' : 'over') : { monitor };
}
/** Characters that every controller accepts as the name of a volume. */
const NAME_CHARACTERS = 15;
/** The request with a shorter name; undefined: its name is not long. */
function renamed({ method, body }: PendingRequest): JsonObject | undefined {
  const name = method === 'POST' ? body?.['Name'] : undefined;
  return typeof name === 'string' && name.length > NAME_CHARACTERS ? { ...body, Name: name.slice(0, NAME_CHARACTERS) } : undefined;
}
/** Sends a request. A volume that is gone needs no deletion. */
async function send(task: Task, ask: SendRedfishRequest, request: PendingRequest): Promise<Sent> {
  const { method, path, body } = request;
  try {
    return takenAs(await ask(method, path, body === undefined ? {} : { body }));
  } catch (error) {
    const shorter = isStatus(error, 400) ? renamed(request) : undefined;
    if (shorter) {
      const taken = await ask(method, path, { body: shorter }).then(takenAs, () => {
        throw error;
      });
      task.log.warn('The controller accepts shorter names of volumes only', { name: shorter['Name'] });
      return taken;
    }
    if (method !== 'DELETE' || !isStatus(error)) throw error;
    if (error.status === 404) return 'over';
    // Some services (Dell) offer an apply time, and refuse it here.
    if (body === undefined || !error.message.includes(APPLY_TIME)) throw error;
    return takenAs(await ask(method, path));
  }
}

/** Sends each controller its requests, up to the first that starts a task. Each accepted request is saved at once. */
async function sendPending(task: Task, { pauseMs = 0 }: RaidMaker, ask: SendRedfishRequest, from: Work): Promise<Work> {
  let work = from;
  const pause = (from.sent_at ?? 0) + pauseMs - task.clock.now();
  if (pause > 0) await task.clock.sleep(Math.min(pause, pauseMs), task.signal);
  for (const controller of Object.keys(from.pending))
    for (let busy = false; !busy;) {
      const [request, ...rest] = work.pending[controller] ?? [];
      if (!request) break;
      const sent = await send(task, ask, request);
      busy = sent !== 'over';
      work = {
        ...work,
        pending: { ...work.pending, [controller]: rest },
        ...(sent === 'unseen' ? { unseen: [...(work.unseen ?? []), request] } : {}),
        ...(typeof sent === 'object' ? { task_monitor_uri: [...work.task_monitor_uri, sent.monitor] } : {}),
        ...(busy ? { sent_at: task.clock.now() } : {}),
        ...(busy && !isImmediate(request) ? { reboot: true } : {}),
      };
      await save(task, work);
    }
  return work;
}

/** Seconds until the next poll of immediate work. */
const SOON = 5;
function waiting({ options }: Task, work: Work, quiet: boolean): Outcome {
  const interval = options['redfish.raid_config_status_interval'] || 60;
  return { kind: 'wait', pollEvery: work.rebooted ? interval : Math.min(interval, SOON), quiet: quiet ? true : undefined };
}
const hasPending = ({ pending }: Work): boolean => Object.values(pending).some((requests) => requests.length > 0);

interface VolumesView {
  readonly system: SystemView;
  readonly storages: readonly Storage[];
  readonly volumes: readonly Volume[];
}
/** Throws RedfishError. */
async function volumesNow(task: Task): Promise<VolumesView> {
  const system = await systemOf(task);
  const storages = await storagesOf(system);
  return { system, storages, volumes: await existingVolumes(system.ask, storages) };
}
/** Saves the current volumes on the node. Throws RedfishError. */
async function refresh(task: Task, seen?: VolumesView): Promise<void> {
  const { volumes } = seen ?? (await volumesNow(task));
  await task.save({ raid_config: raidConfigOf(task, volumes) });
}

/** Milliseconds that accepted work may take to be shown. Some services show a new volume seconds after its task. */
const SHOWN_MS = 600_000;
/** What the volumes do not show of the work; undefined: they show all. */
function unshown({ effect, known }: Work, { volumes }: VolumesView): string | undefined {
  if (effect === undefined) return undefined;
  const paths = volumes.map(({ path }) => linkKey(path));
  if ('vanish' in effect) {
    const left = effect.vanish.filter((path) => paths.includes(linkKey(path)));
    return left.length === 0 ? undefined : `the deletion of ${left.join(', ')} is accepted, not kept by the service`;
  }
  const before = known.map(linkKey);
  const created = paths.filter((path) => !before.includes(path)).length;
  return created >= effect.appear
    ? undefined
    : `the service has accepted ${effect.appear} new volumes and shows ${created}: accepted, not kept`;
}
/** After a failure: part of the work may be done, so the volumes are read again if possible. */
async function tryRefreshing(task: Task): Promise<void> {
  await refresh(task).catch((error: unknown) => {
    if (!(error instanceof RedfishError)) throw error;
    task.log.warn('the volumes cannot be read', { reason: error.message });
  });
}

/** The tasks that still run, or the failure of one. */
async function runningTasks(
  { clock }: Task,
  { appearsMs = 0 }: RaidMaker,
  ask: SendRedfishRequest,
  { task_monitor_uri: monitors, sent_at: sent = 0 }: Work,
): Promise<readonly string[] | { readonly failure: string }> {
  const running: string[] = [];
  for (const monitor of monitors) {
    const current = await readTaskOrJob(ask, monitor);
    if (current.kind === 'failed') return { failure: `task ${monitor} ended as ${current.state ?? 'failed'}: ${current.messages}` };
    const appears = current.kind === 'gone' && clock.now() < sent + appearsMs;
    // A task may become a job.
    if (current.kind === 'running' || appears) running.push(current.job ?? monitor);
  }
  return running;
}

/** Whether a volume was created as the request demands. */
function isCreated({ method, body }: PendingRequest, created: readonly Volume[]): boolean {
  const drives = ((body?.['Links'] as { readonly Drives?: readonly { readonly '@odata.id': string }[] } | undefined)?.Drives ?? []).map(
    (drive) => linkKey(drive['@odata.id']),
  );
  const matches = ({ raidType, drives: has }: Volume): boolean =>
    raidType === body?.['RAIDType'] && has.length === drives.length && has.every((path) => drives.includes(linkKey(path)));
  return method === 'POST' && created.some(matches);
}
/** Drops requests whose volumes exist: the service accepted them, but the conductor died before it could save that. */
async function withoutAccepted(ask: SendRedfishRequest, storages: readonly Storage[], work: Work): Promise<Work> {
  const created = (await existingVolumes(ask, storages)).filter(({ path }) => !work.known.includes(path));
  const pending = Object.entries(work.pending).map(
    ([name, requests]) => [name, requests.filter((request) => !isCreated(request, created))] as const,
  );
  return { ...work, pending: Object.fromEntries(pending) };
}
/** The accepted requests without a task whose effect the volumes do not show yet. */
async function stillUnseen(task: Task, { unseen = [], known }: Work): Promise<readonly PendingRequest[]> {
  if (unseen.length === 0) return unseen;
  const system = await systemOf(task);
  const now = await existingVolumes(system.ask, await storagesOf(system));
  const created = now.filter(({ path }) => !known.includes(path));
  return unseen.filter((request) =>
    request.method === 'POST' ? !isCreated(request, created) : now.some(({ path }) => path === request.path),
  );
}

/** Begins what follows a deletion. Throws RedfishError, Fault. */
async function follow(task: Task, begin: NonNullable<RaidMaker['afterDeletion']>[number], before: Work): Promise<Work> {
  const { monitors, restart } = await begin(task, await systemOf(task));
  const work: Work = {
    ...before,
    followed: (before.followed ?? 0) + 1,
    task_monitor_uri: monitors,
    ...(monitors.length > 0 ? { sent_at: task.clock.now() } : {}),
    ...(restart === 'due' ? { reboot: true } : {}),
    ...(restart === 'begun' ? { rebooted: true } : {}),
  };
  await save(task, work);
  if (restart === 'begun' && hasAgent(task)) {
    await task.driver.boot.prepareRamdisk(task, {});
    await task.saveInternal({ agent_url: undefined });
  }
  return work;
}

/** Continues the work on the node as far as possible now. Throws RedfishError, Fault. */
async function advance(task: Task, maker: RaidMaker, ask: SendRedfishRequest, begun: Work): Promise<Outcome> {
  let work = begun;
  for (;;) {
    if (work.reboot) {
      await rebootForStep(task);
      work = { ...work, reboot: false, rebooted: true };
      await save(task, work);
      return waiting(task, work, false);
    }
    const running = await runningTasks(task, maker, ask, work);
    if ('failure' in running) return giveUp(task, work, running.failure);
    const moved = running.length < work.task_monitor_uri.length || running.some((path) => !work.task_monitor_uri.includes(path));
    if (moved) {
      work = { ...work, task_monitor_uri: running };
      await save(task, work);
    }
    if (running.length > 0) return waiting(task, work, !moved);
    const unseen = await stillUnseen(task, work);
    if (unseen.length < (work.unseen?.length ?? 0)) {
      work = { ...work, unseen };
      await save(task, work);
    }
    if (unseen.length > 0) return waiting(task, work, true);
    if (hasPending(work)) {
      work = await sendPending(task, maker, ask, work);
      continue;
    }
    const following = work.operation === 'delete' ? maker.afterDeletion?.[work.followed ?? 0] : undefined;
    if (following) {
      work = await follow(task, following, work);
      continue;
    }
    const seen = await volumesNow(task);
    const lacking = unshown(work, seen);
    if (lacking !== undefined) {
      const { unshown_since: since = task.clock.now() } = work;
      if (task.clock.now() - since > SHOWN_MS) return giveUp(task, work, lacking);
      if (work.unshown_since === undefined) await save(task, { ...work, unshown_since: since });
      return waiting(task, work, true);
    }
    if (work.then_create) {
      const next = await creation(task, maker, seen.system, work.then_create);
      work = { ...next, rebooted: work.rebooted ?? false };
      await save(task, work);
    } else if (work.rebooted && hasAgent(task) && !isAgentBack(task)) return waiting(task, work, true);
    else {
      await refresh(task, seen);
      await save(task, undefined);
      return done;
    }
  }
}
/** Ends the work as failed. */
async function giveUp(task: Task, { operation }: Work, why: string): Promise<Outcome> {
  await save(task, undefined);
  await tryRefreshing(task);
  return failed(`Redfish RAID ${operation}_configuration step failed on node ${task.node.uuid}: ${why}`);
}

const CREATING = 'Redfish RAID create configuration';
const DELETING = 'Redfish RAID delete configuration';

/** Begins the work, or continues the work of a conductor that died. */
const begin = (task: Task, maker: RaidMaker, doing: string, make: (system: SystemView) => Promise<Work>): Promise<Outcome> =>
  onSystem(task, doing, async (system) => {
    await maker.prepare?.(task, system);
    const before = workOf(task);
    const work = before ? await withoutAccepted(system.ask, await storagesOf(system), before) : await make(system);
    await save(task, work);
    try {
      return await advance(task, maker, system.ask, work);
    } catch (error) {
      if (error instanceof RedfishError) await tryRefreshing(task);
      throw error;
    }
  });
const deleting = async (system: SystemView): Promise<Work> => deletion(await existingVolumes(system.ask, await storagesOf(system)));
async function create(
  task: Task,
  maker: RaidMaker,
  config: unknown,
  args: JsonObject,
  defaults: { readonly others: boolean },
): Promise<Outcome> {
  checkRequestedDisks(task.node.uuid, requestedDisks(config));
  const selection: Selection = {
    root: args['create_root_volume'] !== false,
    others: args['create_nonroot_volumes'] === undefined ? defaults.others : args['create_nonroot_volumes'] === true,
  };
  return begin(task, maker, CREATING, async (system) => {
    if (args['delete_existing'] !== true) return creation(task, maker, system, selection);
    // If the new volumes are not possible, nothing is deleted.
    await creation(task, maker, system, selection, { deletes: true });
    return { ...(await deleting(system)), then_create: selection };
  });
}

/** Polls the work. A service that cannot be read now is polled again later. */
async function poll(task: Task, maker: RaidMaker): Promise<Outcome> {
  const work = workOf(task);
  if (!work) return done;
  try {
    return await advance(task, maker, redfishRequester(task, (await redfishSystem(task)).target), work);
  } catch (error) {
    const unreachable = error instanceof RedfishError && ['unreachable', 'untrusted', 'interrupted'].includes(error.kind);
    if (!unreachable && !isStatus(error, 401, 429, 500, 502, 503, 504))
      throw redfishFault(task, error, work.operation === 'create' ? CREATING : DELETING);
    task.log.warn('the Redfish service does not report the state of its RAID tasks', { reason: (error as Error).message });
    return waiting(task, work, true);
  }
}

const flag = (description: string) => ({ description, required: false, type: 'boolean' }) as const;

const stepsOf = (maker: RaidMaker): readonly Step[] => {
  const resumed = { resumable: true, poll: (task: Task) => poll(task, maker), pollAtHeartbeat: true } as const satisfies Partial<Step>;
  const inCleaning = maker.withoutRamdisk ? { ...resumed, requiresRamdisk: false } : resumed;
  const { deletesIn = ['clean', 'deploy', 'service'] } = maker;
  return [
    {
      ...inCleaning,
      step: 'create_configuration',
      priority: { clean: 0 },
      args: {
        create_root_volume: flag('This specifies whether to create the root volume. Defaults to `True`.'),
        create_nonroot_volumes: flag('This specifies whether to create the non-root volumes. Defaults to `True`.'),
        delete_existing: flag(
          'Setting this to `True` indicates to delete existing RAID configuration prior to creating the new configuration. Default value is `False`.',
        ),
      },
      run: async (task, args) => {
        const { uuid, target_raid_config: target } = task.node;
        if (Object.keys(target).length === 0)
          throw new Fault('MissingParameterValue', { message: `Node ${uuid} has no target RAID configuration.` });
        return create(task, maker, target, args, { others: true });
      },
    },
    {
      ...resumed,
      step: 'apply_configuration',
      priority: { deploy: 0, service: 0 },
      args: {
        raid_config: { description: 'The RAID configuration to apply.', required: true, type: 'object' },
        create_root_volume: flag(
          "Setting this to 'False' indicates not to create root volume that is specified in 'raid_config'. Default value is 'True'.",
        ),
        create_nonroot_volumes: flag(
          "Setting this to 'False' indicates not to create non-root volumes (all except the root volume) in 'raid_config'. Default value is 'True'.",
        ),
        delete_existing: flag(
          "Setting this to 'True' indicates to delete existing RAID configuration prior to creating the new configuration. Default value is 'True'.",
        ),
      },
      checkArguments: ({ raid_config: config }) => void requestedDisks(config),
      run: async (task, { raid_config: config, ...args }) => {
        requestedDisks(config);
        await task.save({ target_raid_config: config as JsonObject });
        return create(task, maker, config, args, { others: false });
      },
    },
    ...deletesIn.map((kind): Step => ({
      ...(kind === 'clean' ? inCleaning : resumed),
      step: 'delete_configuration',
      priority: { [kind]: 0 },
      run: (task) => begin(task, maker, DELETING, deleting),
    })),
  ];
};

/** The RAID interface of machines whose controllers need this beside the standard's requests. */
export const raidBy = (maker: RaidMaker): RaidInterface => ({
  properties: REDFISH_PROPERTIES,
  validate: async ({ node: { target_raid_config: target } }) => {
    if (Object.keys(target).length === 0) return;
    logicalDisks(target);
    checkInterfaceTypes(target);
  },
  validateConfig: async (_, config) => checkInterfaceTypes(config),
  currentConfig: (task) =>
    onSystem(task, undefined, async (system) => raidConfigOf(task, await existingVolumes(system.ask, await storagesOf(system)))),
  steps: stepsOf(maker),
});
export const redfishRaid: RaidInterface = raidBy({});
