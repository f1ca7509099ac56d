/** /v1/nodes/X/vifs: the VIFs that tenants attach to a node. */
import { invalid, invalidParameter } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import type { Vif } from '../../model/records';
import { nodeOf, onNode } from '../pipeline/node-find';
import type { SomeHandlers } from '../pipeline/handler';

export const nodeVifHandlers = {
  listVifs: onNode(async ({ uuid }, _, { conductor }) => ({ vifs: await conductor.listVifs(uuid) })),
  attachVif: async (request, context) => {
    const vif: Vif = request.body;
    if (!isUuid(vif.id) && !isLogicalName(vif.id)) throw invalidParameter(`Expected UUID or name for id: ${String(vif.id)}`);
    const node = await nodeOf(request, context, 'node:vif:attach');
    if (request.minor >= 67 && 'port_uuid' in vif && 'portgroup_uuid' in vif)
      throw invalid('Cannot specify both port_uuid and portgroup_uuid');
    await context.conductor.attachVif(node.uuid, vif);
    return { status: 204 };
  },
  detachVif: onNode(({ uuid }, { params }, { conductor }) => conductor.detachVif(uuid, params.vif_id)),
} satisfies SomeHandlers;
