/** Which snapshots a node may be deployed with: those that the caller who names them may see. */
import { ifFound, invalid } from '../../model/errors';
import { snapshotId } from '../../model/idents';
import type { JsonObject } from '../../model/json';
import type { ApiContext, Request } from './handler';

/**
 * Throws Invalid for an image_source `snapshot://UUID` of a snapshot that the caller may not see.
 * @param before instance_info before the request: who changes something else need not see the snapshot
 */
export async function checkSnapshotSource(
  after: JsonObject | undefined,
  before: JsonObject,
  { caller }: Pick<Request, 'caller'>,
  { store, auth }: Pick<ApiContext, 'auth' | 'store'>,
): Promise<void> {
  const uuid = snapshotId(after?.['image_source']);
  if (uuid === undefined || after!['image_source'] === before['image_source']) return;
  const found = await ifFound(store.snapshots.find(uuid));
  if (found && (found.public || auth.allowed(caller, 'snapshot:get', { owner: found.owner, lessee: null }))) return;
  throw invalid(`instance_info.image_source: there is no snapshot ${uuid}`);
}
