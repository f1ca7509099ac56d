/** The paths of the API that a request path stands for, whatever its spelling. Access rules of application credentials name these paths. */
import { segmentsOf, targetOf } from '../http/target';
import type { Document, PathItem } from '../schema/document';
import { fits, paramsOf } from './routes';

/**
 * @param path as in the request
 * @returns paths of `openapi.yaml` with the identifiers of the request; all must be allowed. Undefined: no rule can name the request
 */
export type Spellings = (path: string) => readonly string[] | undefined;

const SUFFIX = '.json';
const joined = (segments: readonly string[]): string => `/${segments.join('/')}`;

function isEscaped(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

export function createSpellings({ paths, aliases }: Pick<Document, 'paths' | 'aliases'>): Spellings {
  const templateOf = new Map(aliases.map((alias) => [alias, paths.find(({ operations }) => operations === alias.operations)!.segments]));
  /** The path that an alias stands for. Undefined: the request has the identifier in its query or its body. */
  const canonical = (alias: PathItem, segments: readonly string[]): string | undefined => {
    const params = paramsOf(alias, segments);
    const named = templateOf.get(alias)!.map((part) => (part.startsWith('{') ? params[part.slice(1, -1)] : part));
    return named.every((part) => part !== undefined) ? joined(named) : undefined;
  };
  const spelled = (segments: readonly string[]): readonly (string | undefined)[] => {
    const older = aliases.filter((alias) => fits(alias, segments));
    return older.length > 0 ? older.map((alias) => canonical(alias, segments)) : [joined(segments)];
  };
  /** Whether the last segment is an identifier, which may itself end with the suffix. */
  const endsWithParameter = (segments: readonly string[]): boolean => {
    const found = [...aliases, ...paths].filter((path) => fits(path, segments));
    return found.every(({ segments: template }) => template.at(-1)!.startsWith('{'));
  };

  return (path) => {
    const segments = segmentsOf(targetOf(path).bare || '/');
    // Text that cannot be unescaped is not an identifier. An escaped slash is part of an identifier here, and would be a separator in a
    // rule.
    if (!isEscaped(path) || segments.some((segment) => segment.includes('/'))) return undefined;
    const last = segments.at(-1) ?? '';
    const bare = last.endsWith(SUFFIX) ? [...segments.slice(0, -1), last.slice(0, -SUFFIX.length)] : segments;
    const all = bare === segments || !endsWithParameter(bare) ? [bare] : [segments, bare];
    const names = all.flatMap(spelled);
    return names.every((name) => name !== undefined) ? names : undefined;
  };
}
