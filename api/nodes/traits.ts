/** /v1/nodes/X/traits. */
import { Fault, invalid, invalidParameter } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { MAX_TRAITS } from '../../model/traits';
import { nodeOf, onNode } from '../pipeline/node-find';
import { withNotifications } from '../pipeline/notifications';
import { location, sortedTraits } from '../pipeline/present';
import type { Answer, Request, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';
import { throwIfInvalid } from '../schema/schema';

const USAGE =
  'A single node trait may be added via PUT /v1/nodes/<node identifier>/traits/<trait> with no body, or all node traits may be replaced via PUT /v1/nodes/<node identifier>/traits with the list of traits specified in the request body.';

export function checkTrait(trait: string, { validators, document }: ApiContext): void {
  throwIfInvalid('trait', validators('Trait', () => document.schemas['Traits']!.properties!['traits']!.items!)(trait));
}
function checkCount(node: NodeRecord, traits: readonly string[]): void {
  if (traits.length <= MAX_TRAITS) return;
  const message = `Could not modify traits for node ${node.id} as it would exceed the maximum number of traits per node (${traits.length} vs. ${MAX_TRAITS})`;
  throw invalidParameter(message);
}

const change = (
  node: NodeRecord,
  what: Parameters<ApiContext['conductor']['setTraits']>[1],
  after: readonly string[],
  request: Request,
  context: ApiContext,
): Promise<void> =>
  withNotifications(context, request, 'node', 'update', { ...node, traits: after }, () => context.conductor.setTraits(node.uuid, what));

async function replaceTraits(request: RequestOf<'replaceTraits'>, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:traits:set');
  const { traits } = request.body;
  if (!traits) throw invalid(USAGE);
  const replace = [...new Set(traits)];
  checkCount(node, replace);
  await change(node, { replace }, replace, request, context);
  return { status: 204 };
}

async function addTrait(request: RequestOf<'addTrait'>, context: ApiContext): Promise<Answer> {
  const { base, params, body } = request;
  const add = params.trait;
  checkTrait(add, context);
  const node = await nodeOf(request, context, 'node:traits:set');
  if (body.traits !== undefined) throw invalid(USAGE);
  const after = [...new Set([...node.traits, add])];
  checkCount(node, after);
  await change(node, { add }, after, request, context);
  return { status: 204, headers: location(base, `nodes/${params.node_ident}/traits/${add}`) };
}

export const nodeTraitHandlers = {
  listTraits: onNode(async (node) => ({ traits: sortedTraits(node) })),
  replaceTraits,
  addTrait,
  removeTrait: onNode(async (node, request, context) => {
    const remove = request.params.trait;
    if (!node.traits.includes(remove)) throw new Fault('NodeTraitNotFound', { node_id: node.uuid, trait: remove });
    await change(
      node,
      { remove },
      node.traits.filter((trait) => trait !== remove),
      request,
      context,
    );
  }),
  removeTraits: onNode((node, request, context) => change(node, { replace: [] }, [], request, context)),
} satisfies SomeHandlers;
