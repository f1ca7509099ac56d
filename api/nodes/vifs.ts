/** /v1/nodes/X/vifs: the VIFs that tenants attach to a node. */
import { invalid, invalidParameter } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import type { Vif } from '../../model/records';
import { nodeOf } from '../pipeline/node-find';
import type { SomeHandlers } from '../pipeline/handler';

export const nodeVifHandlers = {
  listVifs: async (request, context) => {
    const node = await nodeOf(request, context, 'node:vif:list');
    return { status: 200, body: { vifs: await context.conductor.listVifs(node.uuid) } };
  },
  attachVif: async (request, context) => {
    const vif: Vif = request.body;
    if (!isUuid(vif.id) && !isLogicalName(vif.id)) throw invalidParameter(`Expected UUID or name for id: ${String(vif.id)}`);
    const node = await nodeOf(request, context, 'node:vif:attach');
    if (request.minor >= 67 && 'port_uuid' in vif && 'portgroup_uuid' in vif)
      throw invalid('Cannot specify both port_uuid and portgroup_uuid');
    await context.conductor.attachVif(node.uuid, vif);
    return { status: 204 };
  },
  detachVif: async (request, context) => {
    const node = await nodeOf(request, context, 'node:vif:detach');
    await context.conductor.detachVif(node.uuid, request.params.vif_id);
    return { status: 204 };
  },
} satisfies SomeHandlers;
