/** Access rules of application credentials: which requests their tokens may make. */
import type { Spellings } from '../resource/spellings';
import type { AccessRule } from '../../wire/keystone/tokens';

/** `{name}` and `*` match one or more characters up to the next slash. `**` matches any characters, or none. */
type Part = { readonly literal: string } | { readonly wild: 'segment' | 'rest' };
const partsOf = (pattern: string): readonly Part[] =>
  [...pattern.matchAll(/\{[^{}]*\}|\*\*|\*|[^{}*]+|[{}]/g)].map(([text]) => {
    if (text === '**') return { wild: 'rest' };
    return text === '*' || (text.length > 1 && text.startsWith('{')) ? { wild: 'segment' } : { literal: text };
  });

/** Takes time of pattern length × path length. A regular expression could take much more, and users write the patterns. */
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
/** Rules are compared without the trailing slash of their path. */
const unslashed = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path);
/** In characters. No path of the API is longer. */
const MAX_PATH = 1024;
/**
 * Whether a rule allows each path that the request stands for (spellings.ts).
 * @param serviceType of this service; null: no rule allows anything
 */
export function isAllowed(
  rules: readonly AccessRule[],
  { method, path }: RuledRequest,
  serviceType: string | null,
  spellings: Spellings,
): boolean {
  if (path.length > MAX_PATH) return false;
  const paths = spellings(path) ?? [];
  const allows = (name: string): boolean =>
    rules.some((rule) => rule.service === serviceType && rule.method === method && matchesPath(unslashed(rule.path), name));
  return paths.length > 0 && paths.every(allows);
}
