/** PATCH of a node: checks the input, in the order of Ironic's errors. The conductor checks further rules that depend on the state. */
import { AlreadyRead } from '../../conductor/conductor';
import { conflict, invalid, notAcceptable } from '../../model/errors';
import { valuesAt, type PatchOperation } from '../../model/patch';
import { toBoolean } from '../../model/python';
import type { NodeChanges, NodeRecord } from '../../model/records';
import { stateRow } from '../../model/states';
import type { AliveConductors } from '../../store/store';
import type { FieldRow } from '../schema/document';
import { checkInPlaceOf } from '../pipeline/access';
import { checkChassis, checkName, checkNotInspecting, checkServed, linkedNode, nodeOf } from '../pipeline/node-find';
import { checkPatch, patchRecord, type Found, type PatchSteps } from '../pipeline/patch';
import { nodeBytes } from '../pipeline/present';
import { checkSnapshotSource } from '../pipeline/snapshot-sources';
import type { RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

/** The policies of the paths in the patch. */
function policies(patch: readonly PatchOperation[], rows: readonly FieldRow[]): ReadonlySet<string> {
  const of = ({ path, value }: PatchOperation): string => {
    const name = path.split('/')[1];
    if (name === 'automated_clean' && value !== undefined && toBoolean(value) === false) return 'node:disable_cleaning';
    return rows.find((row) => row.name === name)?.policy ?? 'node:update';
  };
  const named = new Set(patch.map(of));
  // The general policy comes last.
  return patch.length === 0 || named.delete('node:update') ? named.add('node:update') : named;
}

/** The policy depends on the value, so the operation must have one. */
function checkAutomatedClean(patch: readonly PatchOperation[]): void {
  if (patch.some(({ path, value }) => path.split('/')[1] === 'automated_clean' && value === undefined))
    throw invalid('automated_clean cannot be removed: replace it with null, and [conductor]automated_clean holds again.');
}

function checkState(
  node: NodeRecord,
  patch: readonly PatchOperation[],
  { minor, params, caller }: UpdateRequest,
  { auth }: ApiContext,
): void {
  const freesInstance =
    patch.length === 1 && patch[0]!.op === 'remove' && patch[0]!.path === '/instance_uuid' && Object.keys(patch[0]!).length === 2;
  if (node.maintenance && freesInstance) return;
  const { provision_state: state, target_provision_state: target } = node;
  if (target && !stateRow(state).changeable)
    throw conflict(`Node ${params.node_ident} can not be updated while a state transition is in progress.`);
  checkNotInspecting('node', node, minor);
  if (state === 'active' && valuesAt(patch, '/owner').some(Boolean) && !auth.allowed(caller, 'node:update_owner_provisioned', node))
    throw conflict(`Cannot update owner of node "${node.uuid}" while it is in state "active".`);
}

/** The owner of a node stays while its allocation has an owner. */
async function checkAllocation(node: NodeRecord, patch: readonly PatchOperation[], { store }: ApiContext): Promise<void> {
  if (node.allocation_uuid === null || valuesAt(patch, '/owner').length === 0) return;
  const [allocation] = await store.allocations.list({ where: { uuid: node.allocation_uuid } });
  if ((allocation?.owner ?? null) !== null)
    throw conflict(`Cannot update owner of node "${node.uuid}" while it is allocated to an allocation with an  owner.`);
}

/** network_data has an error message of its own. */
function checkNetworkData(patch: readonly PatchOperation[], { validators, document }: ApiContext): void {
  for (const value of valuesAt(patch, '/network_data')) {
    const problem = validators('NetworkData', () => document.schemas['NetworkData']!)(value);
    if (problem !== undefined) throw invalid(`Invalid network_data: ${problem.split('. Possible root cause: ')[0]!} `);
  }
}

/** `parentUuid`: of the parent that the patch names. `alive`: the conductors. */
interface FoundNode extends Found<NodeRecord> {
  readonly parentUuid?: string | undefined;
  readonly alive: AliveConductors;
}
async function find(patch: readonly PatchOperation[], request: UpdateRequest, context: ApiContext): Promise<FoundNode> {
  const { minor, params } = request;
  const node = await nodeOf(request, context, 'node:get', true);
  checkInPlaceOf('node:update', policies(patch, context.document.fields('Node')), request, context, node);
  const [parent] = valuesAt(patch, '/parent_node');
  const linked = parent === undefined ? undefined : await linkedNode('parent_node', parent, node.owner, request, context);
  checkState(node, patch, request, context);
  await checkAllocation(node, patch, context);
  for (const name of valuesAt(patch, '/name')) checkName(name, minor, `Node ${params.node_ident}: Cannot change name to invalid name`);
  const alive = await context.current.conductors();
  return { record: node, alive, parentUuid: linked?.uuid };
}

type UpdateRequest = RequestOf<'updateNode'>;
const NODE_PATCH: PatchSteps<NodeRecord, 'Node', FoundNode, UpdateRequest> = {
  schema: 'Node',
  checkPatch(patch, { minor, query }, context) {
    checkPatch(patch, context.document.fields('Node'), minor);
    if (query.reset_interfaces === true && valuesAt(patch, '/driver').length === 0)
      throw invalid("The reset_interfaces parameter can only be used when changing the node's driver.");
    const [description] = valuesAt(patch, '/description');
    if (typeof description === 'string' && description.length > 4096)
      throw invalid('Cannot update node with description exceeding 4096 characters');
    checkNetworkData(patch, context);
    checkAutomatedClean(patch);
  },
  find,
  patched: (values, { parentUuid }) => (parentUuid === undefined ? values : { ...values, parent_node: parentUuid }),
  async checkChanges(given, { record: node, alive }, request, context) {
    const { minor, params } = request;
    const group = given.conductor_group;
    // Older clients set the instance name as instance_info.display_name.
    const shown = given.instance_info?.['display_name'];
    const isNamed = typeof shown === 'string' && shown && !node.instance_name && !('instance_name' in given);
    const changes: NodeChanges = {
      ...given,
      ...(typeof group === 'string' ? { conductor_group: group.toLowerCase() } : {}),
      ...(isNamed ? { instance_name: shown } : {}),
    };
    await checkSnapshotSource(changes.instance_info, node.instance_info, request, context);
    await checkChassis(changes.chassis_uuid, context);
    if (changes.chassis_uuid === null && minor < 25) throw notAcceptable();
    const after: NodeRecord = { ...node, ...changes };
    checkServed(after, alive);
    if (after.driver !== node.driver && node.console_enabled)
      throw conflict(`Node ${params.node_ident} can not update the driver while the console is enabled. Please stop the console first.`);
    return changes;
  },
  alwaysUpdates: true,
  update: (node, changes, { conductor }, { query }) =>
    conductor.updateNode(node.uuid, changes, query.reset_interfaces === true, new AlreadyRead(node)),
};

export const nodePatchHandlers = {
  updateNode: async (request, context) => {
    const { record, found } = await patchRecord(NODE_PATCH, request, context);
    return { status: 200, bytes: await nodeBytes(record, request, context, { alive: found.alive }) };
  },
} satisfies SomeHandlers;
