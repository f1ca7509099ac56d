/** Access rules of application credentials: which requests their tokens may make. */
import type { AccessRule } from '../../wire/keystone/tokens';

/** `{name}` and `*`: characters up to the next slash, at least one. `**`: any characters. */
type Part = { readonly literal: string } | { readonly wild: 'segment' | 'rest' };
const partsOf = (pattern: string): readonly Part[] =>
  [...pattern.matchAll(/\{[^{}]*\}|\*\*|\*|[^{}*]+|[{}]/g)].map(([text]) => {
    if (text === '**') return { wild: 'rest' };
    return text === '*' || (text.length > 1 && text.startsWith('{')) ? { wild: 'segment' } : { literal: text };
  });

/** In time of pattern × path, because users write the patterns. */
function matchesPath(pattern: string, path: string): boolean {
  /** 1 at the positions where the parts so far may end. */
  let ends = new Uint8Array(path.length + 1);
  ends[0] = 1;
  for (const part of partsOf(pattern)) {
    const next = new Uint8Array(path.length + 1);
    let isInside = false;
    for (let at = 0; at <= path.length; at++) {
      const mayBegin = ends[at] === 1;
      if ('literal' in part) {
        if (mayBegin && path.startsWith(part.literal, at)) next[at + part.literal.length] = 1;
        continue;
      }
      if (part.wild === 'rest') isInside ||= mayBegin;
      if (isInside) next[at] = 1;
      if (part.wild === 'segment') isInside = path[at] !== '/' && (isInside || mayBegin);
    }
    ends = next;
  }
  return ends[path.length] === 1;
}

interface RuledRequest {
  readonly method: string;
  /** As in the request, without the query. */
  readonly path: string;
}
/** No path of the API is longer. */
const LONGEST_PATH = 1024;
/** @param serviceType of this service; null: no rule allows anything */
export function isAllowed(rules: readonly AccessRule[], { method, path }: RuledRequest, serviceType: string | null): boolean {
  if (path.length > LONGEST_PATH) return false;
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    return false;
  }
  return rules.some((rule) => rule.service === serviceType && rule.method === method && matchesPath(rule.path, decoded));
}
