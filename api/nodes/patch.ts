/** PATCH of a node: checks the input, in the order of Ironic's errors. The conductor checks further rules that depend on the state. */
import { invalid, Fault } from '../../model/errors';
import { applyPatch, equalJson, valuesAt, type PatchOperation } from '../../model/patch';
import { toBoolean } from '../../model/python';
import type { NodeChanges, NodeRecord } from '../../model/records';
import { stateRow } from '../../model/states';
import type { AliveConductors } from '../../store/store';
import { isGateOpen } from '../../model/versions';
import type { FieldRow } from '../schema/document';
import { checkInPlaceOf } from '../resource/access';
import { checkedPatch, checkedRecord, emptyOf, type Values } from '../resource/fields';
import { checkChassis, checkName, checkNotInspecting, checkServed, linkedNode, nodeOf } from '../resource/node-find';
import type { Request, ApiContext } from '../resource/handler';

const conflict = (message: string): Fault => new Fault('Conflict', { message });

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

function checkState(node: NodeRecord, patch: readonly PatchOperation[], { minor, params, caller }: Request, { auth }: ApiContext): void {
  const freesInstance =
    patch.length === 1 && patch[0]!.op === 'remove' && patch[0]!.path === '/instance_uuid' && Object.keys(patch[0]!).length === 2;
  if (node.maintenance && freesInstance) return;
  const { provision_state: state, target_provision_state: target } = node;
  if (target && !stateRow(state).changeable)
    throw conflict(`Node ${params['node_ident']!} can not be updated while a state transition is in progress.`);
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

/** @returns the node before the patch, the fields that change, and the conductors */
export async function changedNode(
  request: Request,
  context: ApiContext,
): Promise<{
  readonly node: NodeRecord;
  readonly changes: NodeChanges;
  readonly resetInterfaces: boolean;
  readonly alive: AliveConductors;
}> {
  const { minor, query, body, params } = request;
  const rows = context.document.fields('Node');
  const resetInterfaces = query['reset_interfaces'] === true;
  const patch = checkedPatch(body, rows);
  if (rows.some(({ name, gate }) => !isGateOpen(gate, minor) && valuesAt(patch, `/${name}`).length > 0))
    throw new Fault('NotAcceptable', { message: 'Request not acceptable.' });
  if (resetInterfaces && valuesAt(patch, '/driver').length === 0)
    throw invalid("The reset_interfaces parameter can only be used when changing the node's driver.");
  const [description] = valuesAt(patch, '/description');
  if (typeof description === 'string' && description.length > 4096)
    throw invalid('Cannot update node with description exceeding 4096 characters');
  checkNetworkData(patch, context);
  checkAutomatedClean(patch);

  const node = await nodeOf(request, context, 'node:get', true);
  checkInPlaceOf('node:update', policies(patch, rows), request, context, node);
  const [parent] = valuesAt(patch, '/parent_node');
  const parentUuid = parent === undefined ? undefined : (await linkedNode('parent_node', parent, node.owner, request, context)).uuid;
  checkState(node, patch, request, context);
  await checkAllocation(node, patch, context);
  for (const name of valuesAt(patch, '/name')) checkName(name, minor, `Node ${params['node_ident']!}: Cannot change name to invalid name`);

  const patchable = rows.filter(({ create, patch: may }) => create || may);
  const patched = applyPatch(node as unknown as Values, patch);
  const known = Object.fromEntries(Object.entries(patched).filter(([name]) => patchable.some((row) => row.name === name)));
  const checked = checkedRecord(
    'patch',
    'Node',
    patchable,
    { ...known, ...(parentUuid === undefined ? {} : { parent_node: parentUuid }) },
    context,
  );
  return { node, ...(await differences(node, checked, patchable, request, context)), resetInterfaces };
}

async function differences(
  node: NodeRecord,
  checked: Values,
  rows: readonly FieldRow[],
  { minor, params }: Request,
  context: ApiContext,
): Promise<{ readonly changes: NodeChanges; readonly alive: AliveConductors }> {
  const before = node as unknown as Values;
  const changes: Values = {};
  for (const row of rows.filter(({ patch }) => patch)) {
    const value = checked[row.name] ?? emptyOf(row);
    if (!equalJson(value, before[row.name])) changes[row.name] = value;
  }
  if (typeof changes['conductor_group'] === 'string') changes['conductor_group'] = changes['conductor_group'].toLowerCase();
  await checkChassis(changes['chassis_uuid'], context);
  if (changes['chassis_uuid'] === null && minor < 25) throw new Fault('NotAcceptable', { message: 'Request not acceptable.' });
  // Older clients set the instance name as instance_info.display_name.
  const shown = (changes['instance_info'] as { display_name?: unknown } | undefined)?.display_name;
  if (typeof shown === 'string' && shown && !node.instance_name && !('instance_name' in changes)) changes['instance_name'] = shown;
  const after: NodeRecord = { ...node, ...changes };
  const alive = await checkServed(after, context);
  if (after.driver !== node.driver && node.console_enabled)
    throw conflict(`Node ${params['node_ident']!} can not update the driver while the console is enabled. Please stop the console first.`);
  return { changes, alive };
}
