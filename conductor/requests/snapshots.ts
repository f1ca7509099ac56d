/** Snapshots (docs/snapshots.md): whole files are checked, those of flows that have ended fail, and old ones are removed. */
import { conflict, Fault, ifFound, reasonOf } from '../../model/errors';
import { UNFINISHED_SNAPSHOTS } from '../../model/states';
import type { SnapshotRecord } from '../../model/records';
import { MAX_ERROR, shortened } from '../../model/text';
import { finishFile, removeFiles, snapshotFile, type PartsReport } from '../../wire/snapshot-files';
import { TARGETS } from '../../drivers/common/snapshot-targets';
import type { Context } from '../core/context';

const DAY_MS = 86_400_000;
/** The flow of a record has begun before this time, or never begins. */
const BEGINNING_MS = 60_000;
/** Records that one round reads. */
const ROUND = 1000;

const givenFor = ({ options, connections, clock, signal }: Context, snapshot: SnapshotRecord) => ({
  options,
  glance: connections.services.glance,
  now: () => clock.now(),
  signal,
  snapshot,
});

/** Removes what there is of a snapshot outside the folder. Throws TemporaryFailure. */
async function removeElsewhere(context: Context, snapshot: SnapshotRecord): Promise<void> {
  for (const { title, mayHave, remove } of TARGETS)
    if (mayHave(snapshot, context.options))
      await remove(givenFor(context, snapshot)).catch((error: unknown) => {
        // Options that are missing, for instance.
        if (error instanceof Fault) throw error;
        const message = `The file of snapshot ${snapshot.uuid} cannot be deleted from ${title}: ${reasonOf(error)}`;
        throw new Fault('TemporaryFailure', { message }, { cause: error });
      });
}

/** Throws RecordNotFound, Conflict, TemporaryFailure. */
export async function deleteSnapshot(context: Context, uuid: string): Promise<void> {
  const { store, options } = context;
  const snapshot = await store.snapshots.find(uuid);
  const { state, node_uuid: node } = snapshot;
  if (UNFINISHED_SNAPSHOTS.includes(state))
    throw conflict(`Snapshot ${uuid} is being saved. To end that, abort the service of node ${node}; then delete the snapshot.`);
  // Before the record, so that another request can delete the file if the other service does not answer now.
  await removeElsewhere(context, snapshot);
  // The record goes before its file: a record without a file would seem to be complete.
  await store.snapshots.remove(uuid);
  await removeFiles(options['snapshot.directory'], uuid);
}

/** Changes a snapshot that is still in one of these states. Undefined: it was deleted meanwhile. */
async function change(
  { store }: Context,
  uuid: string,
  changes: Parameters<Context['store']['snapshots']['update']>[1],
  states: readonly SnapshotRecord['state'][],
): Promise<SnapshotRecord | undefined> {
  return ifFound(store.snapshots.update(uuid, changes, { state: states }));
}

/** Checks a file that has arrived whole. Undefined: the snapshot has failed. */
async function checkedSum(context: Context, { uuid, size, parts }: SnapshotRecord): Promise<string | undefined> {
  const { options, signal, log } = context;
  const folder = options['snapshot.directory'];
  try {
    const sha256 = await finishFile(folder, uuid, { size, ...parts } as PartsReport, signal);
    await change(context, uuid, { sha256 }, ['storing']);
    return sha256;
  } catch (error) {
    // A conductor that starts again checks the file again.
    signal.throwIfAborted();
    log.warn('a snapshot cannot be stored', { snapshot: uuid, reason: reasonOf(error) });
    await change(context, uuid, { state: 'failed', last_error: shortened(reasonOf(error), MAX_ERROR) }, ['storing']);
    await removeFiles(folder, uuid);
    return undefined;
  }
}

/** Rounds until a file that could not be stored is tried again: each attempt may send all of it. */
const RETRY_ROUNDS = 6;
const mayStore = ({ last_error: error, updated_at: at }: SnapshotRecord, { options, clock }: Context): boolean =>
  error === null || Date.parse(at ?? '1970-01-01') <= clock.now() - RETRY_ROUNDS * options['snapshot.check_interval'] * 1000;

/** The last part of each snapshot. Doing it again after an interruption is harmless. */
async function store(context: Context, snapshot: SnapshotRecord): Promise<void> {
  const { options, signal, log } = context;
  const { uuid } = snapshot;
  const folder = options['snapshot.directory'];
  const sha256 = snapshot.sha256 ?? (await checkedSum(context, snapshot));
  if (sha256 === undefined) return;
  const target = TARGETS.find(({ isUsed }) => isUsed(options));
  let kept = { ...snapshot, sha256 };
  const remember = async (id: string): Promise<void> => {
    const changed = await change(context, uuid, { image_id: id }, ['storing']);
    if (!changed) throw new Error('the snapshot was deleted');
    kept = { ...kept, image_id: id };
  };
  try {
    await target?.keep(givenFor(context, kept), snapshotFile(folder, uuid), remember);
  } catch (error) {
    // The file is complete here: a later round tries again.
    signal.throwIfAborted();
    log.warn('a snapshot cannot be stored', { snapshot: uuid, target: target?.title, reason: reasonOf(error) });
    await change(context, uuid, { last_error: shortened(`${target?.title}: ${reasonOf(error)}`, MAX_ERROR) }, ['storing']);
    return;
  }
  const stored = await change(context, uuid, { state: 'available', storage: target?.storage ?? 'directory', last_error: null }, [
    'storing',
  ]);
  if (!stored) await removeElsewhere(context, kept);
  if (!stored || target) await removeFiles(folder, uuid);
  if (stored) log.info('snapshot stored', { snapshot: uuid, size: snapshot.size, sha256 });
}

interface ServedNode {
  readonly uuid: string;
  readonly provision_state: string;
  readonly provision_updated_at: string | null;
  readonly last_error: string | null;
  readonly driver_internal_info: { readonly service_steps?: readonly { readonly args?: Readonly<Record<string, unknown>> }[] };
}
const SERVICING = ['servicing', 'service wait', 'service hold'];
const isSaving = ({ uuid }: SnapshotRecord, node: ServedNode | undefined): boolean =>
  node !== undefined &&
  SERVICING.includes(node.provision_state) &&
  (node.driver_internal_info.service_steps ?? []).some((step) => step.args?.['snapshot'] === uuid);

/** The API makes the record, and then begins the flow: the state of the node is older until then. */
const mayBegin = ({ created_at: made }: SnapshotRecord, node: ServedNode | undefined, now: number): boolean =>
  node !== undefined && Date.parse(made) > now - BEGINNING_MS && Date.parse(node.provision_updated_at ?? '1970-01-01') < Date.parse(made);

/** A snapshot whose flow has ended without its file never becomes complete. */
async function failStray(context: Context, snapshots: readonly SnapshotRecord[]): Promise<void> {
  const { store: all, clock, options, log } = context;
  if (snapshots.length === 0) return;
  const nodes = (await all.nodes.listColumns(['uuid', 'provision_state', 'provision_updated_at', 'last_error', 'driver_internal_info'], {
    where: { uuid: [...new Set(snapshots.map(({ node_uuid: uuid }) => uuid))] },
    children: 'all',
  })) as unknown as readonly ServedNode[];
  const byUuid = new Map(nodes.map((node) => [node.uuid, node]));
  for (const snapshot of snapshots) {
    const node = byUuid.get(snapshot.node_uuid);
    if (isSaving(snapshot, node) || mayBegin(snapshot, node, clock.now())) continue;
    const reason = node ? (node.last_error ?? 'The service of the node ended before the disk was saved.') : 'The node was deleted.';
    log.warn('a snapshot has failed', { snapshot: snapshot.uuid, node: snapshot.node_uuid, reason });
    await change(context, snapshot.uuid, { state: 'failed', last_error: shortened(reason, MAX_ERROR) }, UNFINISHED_SNAPSHOTS);
    await removeFiles(options['snapshot.directory'], snapshot.uuid);
  }
}

/** Those that [snapshot]keep_per_node and keep_days do not keep. @internal */
export function outdated(
  available: readonly SnapshotRecord[],
  { perNode, days }: { readonly perNode: number; readonly days: number },
  now: number,
): readonly SnapshotRecord[] {
  const seen = new Map<string, number>();
  return [...available]
    .sort((left, right) => (left.created_at < right.created_at ? 1 : -1))
    .filter(({ node_uuid: node, created_at: at }) => {
      const younger = seen.get(node) ?? 0;
      seen.set(node, younger + 1);
      return (perNode > 0 && younger >= perNode) || (days > 0 && Date.parse(at) < now - days * DAY_MS);
    });
}
async function removeOutdated(context: Context): Promise<void> {
  const { options, clock, log } = context;
  const [perNode, days] = [options['snapshot.keep_per_node'], options['snapshot.keep_days']];
  if (perNode === 0 && days === 0) return;
  const available = await context.store.snapshots.list({ where: { state: 'available' } });
  for (const { uuid, node_uuid: node } of outdated(available, { perNode, days }, clock.now())) {
    log.info('snapshot removed: it is not among those that are kept', { snapshot: uuid, node });
    await deleteSnapshot(context, uuid).catch((error: unknown) => {
      context.signal.throwIfAborted();
      log.warn('a snapshot cannot be removed', { snapshot: uuid, reason: reasonOf(error) });
    });
  }
}

/** A round. */
export async function tendSnapshots(context: Context): Promise<void> {
  const open = await context.store.snapshots.list({ where: { state: [...UNFINISHED_SNAPSHOTS, 'storing'] }, limit: ROUND });
  await failStray(
    context,
    open.filter(({ state }) => state !== 'storing'),
  );
  for (const snapshot of open) if (snapshot.state === 'storing' && mayStore(snapshot, context)) await store(context, snapshot);
  await removeOutdated(context);
}
