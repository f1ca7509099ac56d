/** Changes and removes volume connectors and targets for clients: what the power and the state of their node allow. */
import { Fault } from '../../model/errors';
import type { ChangesOf, ResourceRecord } from '../../model/records';
import type { ProvisionState } from '../../model/states';
import type { Store, Table } from '../../store/store';
import type { VolumeKind, VolumeRecords } from '../core/call-types';
import type { Context } from '../core/context';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';

/** States of an unused node, in which its volumes may be deleted whatever its power state is. */
const UNUSED: readonly ProvisionState[] = ['manageable', 'enroll', 'adopt failed'];
/** Unique fields. They are part of every change, so that an error can name them. */
const KEYS = { connector: ['type', 'connector_id'], target: ['boot_index'] } as const;

type AnyVolume = ResourceRecord & { readonly node_uuid: string };
const tableOf = ({ volumeConnectors, volumeTargets }: Store, kind: VolumeKind): Table<AnyVolume> =>
  kind === 'connector' ? volumeConnectors : volumeTargets;

function requirePowerOff({ node }: NodeTask, action: string): void {
  if (node.power_state !== 'power off')
    throw new Fault('InvalidStateRequested', { action, node: node.uuid, state: node.power_state ?? 'None' });
}

/**
 * Throws VolumeConnectorNotFound or VolumeTargetNotFound, NodeLocked, InvalidStateRequested. Checks the node that the volume moves to,
 * not the one that it leaves.
 */
export async function updateVolume<Kind extends VolumeKind>(
  context: Context,
  kind: Kind,
  uuid: string,
  changes: ChangesOf<VolumeRecords[Kind]>,
): Promise<VolumeRecords[Kind]> {
  const table = tableOf(context.store, kind);
  const before = await table.find(uuid);
  const requested = changes as ChangesOf<AnyVolume>;
  const purpose = `volume ${kind} update`;
  const changed = await withTask(context, requested.node_uuid ?? before.node_uuid, { purpose, retry: true }, async (task) => {
    requirePowerOff(task, purpose);
    if (Object.keys(requested).length === 0) return before;
    const unique = Object.fromEntries(KEYS[kind].map((key) => [key, (before as unknown as Record<string, unknown>)[key]]));
    return table.update(uuid, { ...unique, ...requested });
  });
  return changed as unknown as VolumeRecords[Kind];
}

/** Throws VolumeConnectorNotFound or VolumeTargetNotFound, NodeLocked, InvalidStateRequested. */
export async function deleteVolume(context: Context, kind: VolumeKind, uuid: string): Promise<void> {
  const table = tableOf(context.store, kind);
  const { node_uuid: node } = await table.find(uuid);
  const purpose = `volume ${kind} deletion`;
  await withTask(context, node, { purpose, retry: true }, async (task) => {
    if (!UNUSED.includes(task.node.provision_state)) requirePowerOff(task, purpose);
    await table.remove(uuid);
  });
}
