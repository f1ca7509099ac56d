/** /v1/nodes/X/management/inject_nmi and indicators. */
import { invalidParameter } from '../../model/errors';
import { linksTo } from '../pipeline/present';
import { onNode } from '../pipeline/node-find';
import type { RequestOn, SomeHandlers } from '../pipeline/handler';

/** An indicator is named `NAME@COMPONENT`. */
function indicatorOf({ params }: RequestOn<'indicator'>): readonly [component: string, name: string] {
  const text = params.indicator;
  const at = text.indexOf('@');
  if (at < 0) throw invalidParameter(`Malformed indicator name "${text}"`);
  return [text.slice(at + 1), text.slice(0, at)];
}

export const indicatorHandlers = {
  injectNmi: onNode(({ uuid }, _, { conductor }) => conductor.injectNmi(uuid)),
  listIndicators: onNode(async ({ uuid }, { base, params }, { conductor }) => {
    const table = await conductor.listIndicators(uuid);
    const indicators = Object.entries(table).flatMap(([component, named]) =>
      Object.entries(named).map(([entry, { readonly, states }]) => {
        const name = `${entry}@${component}`;
        return { name, component, readonly, states, links: linksTo(base, `nodes/${params.node_ident}/management/indicators/${name}`) };
      }),
    );
    return { indicators };
  }),
  showIndicator: onNode(async ({ uuid }, request, { conductor }) => ({
    state: await conductor.getIndicator(uuid, ...indicatorOf(request)),
  })),
  setIndicator: onNode(({ uuid }, request, { conductor }) =>
    conductor.setIndicator(uuid, ...indicatorOf(request), request.query.state ?? ''),
  ),
} satisfies SomeHandlers;
