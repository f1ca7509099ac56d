/** Volume connectors and targets changed and removed by clients: what the power and the state of their node allow. */
import { Fault } from '../../model/errors';
import type { ChangesOf, ResourceRecord } from '../../model/records';
import type { ProvisionState } from '../../model/states';
import type { Store, Table } from '../../store/store';
import type { VolumeKind, VolumeRecords } from '../conductor';
import type { Context } from '../core/context';
import { withTask, type NodeTask } from '../core/task';

/** States in which a node is not in use, whatever its power state. */
const UNUSED: readonly ProvisionState[] = ['manageable', 'enroll', 'adopt failed'];
/** What must be unique: part of a change, so that a refusal can name it. */
const KEYS = { connector: ['type', 'connector_id'], target: ['boot_index'] } as const;

type AnyVolume = ResourceRecord & { readonly node_uuid: string };
const tableOf = ({ volumeConnectors, volumeTargets }: Store, kind: VolumeKind): Table<AnyVolume> =>
  kind === 'connector' ? volumeConnectors : volumeTargets;

function demandOff({ node }: NodeTask, action: string): void {
  if (node.power_state !== 'power off')
    throw new Fault('InvalidStateRequested', { action, node: node.uuid, state: node.power_state ?? 'None' });
}

/** Throws VolumeConnectorNotFound and its like, NodeLocked, InvalidStateRequested. The node that it goes to is asked, not the one it leaves. */
export async function updateVolume<Kind extends VolumeKind>(
  context: Context,
  kind: Kind,
  uuid: string,
  changes: ChangesOf<VolumeRecords[Kind]>,
): Promise<VolumeRecords[Kind]> {
  const table = tableOf(context.store, kind);
  const before = await table.find(uuid);
  const asked = changes as ChangesOf<AnyVolume>;
  const purpose = `volume ${kind} update`;
  const changed = await withTask(context, asked.node_uuid ?? before.node_uuid, { purpose, retry: true }, async (task) => {
    demandOff(task, purpose);
    if (Object.keys(asked).length === 0) return before;
    const unique = Object.fromEntries(KEYS[kind].map((key) => [key, (before as unknown as Record<string, unknown>)[key]]));
    return table.update(uuid, { ...unique, ...asked });
  });
  return changed as unknown as VolumeRecords[Kind];
}

/** Throws VolumeConnectorNotFound and its like, NodeLocked, InvalidStateRequested. */
export async function deleteVolume(context: Context, kind: VolumeKind, uuid: string): Promise<void> {
  const table = tableOf(context.store, kind);
  const { node_uuid: node } = await table.find(uuid);
  const purpose = `volume ${kind} deletion`;
  await withTask(context, node, { purpose, retry: true }, async (task) => {
    if (!UNUSED.includes(task.node.provision_state)) demandOff(task, purpose);
    await table.remove(uuid);
  });
}
