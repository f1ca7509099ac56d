/** /v1/nodes/X/management/inject_nmi and indicators. */
import { invalidParameter } from '../../model/errors';
import { linksTo } from '../pipeline/present';
import { nodeOf } from '../pipeline/node-find';
import type { Answer, RequestOf, RequestOn, SomeHandlers, ApiContext } from '../pipeline/handler';

/** An indicator is named `NAME@COMPONENT`. */
function indicatorOf({ params }: RequestOn<'indicator'>): readonly [component: string, name: string] {
  const text = params.indicator;
  const at = text.indexOf('@');
  if (at < 0) throw invalidParameter(`Malformed indicator name "${text}"`);
  return [text.slice(at + 1), text.slice(0, at)];
}

async function listIndicators(request: RequestOf<'listIndicators'>, context: ApiContext): Promise<Answer> {
  const { base, params } = request;
  const node = await nodeOf(request, context, 'node:get_indicator_state');
  const table = await context.conductor.listIndicators(node.uuid);
  const indicators = Object.entries(table).flatMap(([component, named]) =>
    Object.entries(named).map(([entry, { readonly, states }]) => {
      const name = `${entry}@${component}`;
      return { name, component, readonly, states, links: linksTo(base, `nodes/${params.node_ident}/management/indicators/${name}`) };
    }),
  );
  return { status: 200, body: { indicators } };
}

export const indicatorHandlers = {
  injectNmi: async (request, context) => {
    const node = await nodeOf(request, context, 'node:inject_nmi');
    await context.conductor.injectNmi(node.uuid);
    return { status: 204 };
  },
  listIndicators,
  showIndicator: async (request, context) => {
    const node = await nodeOf(request, context, 'node:get_indicator_state');
    return { status: 200, body: { state: await context.conductor.getIndicator(node.uuid, ...indicatorOf(request)) } };
  },
  setIndicator: async (request, context) => {
    const node = await nodeOf(request, context, 'node:set_indicator_state');
    await context.conductor.setIndicator(node.uuid, ...indicatorOf(request), request.query.state ?? '');
    return { status: 204 };
  },
} satisfies SomeHandlers;
