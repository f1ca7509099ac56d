/** Parses the target of a request: path, segments and query. */

export interface Target {
  /** The path as in the request. */
  readonly path: string;
  /** The same without trailing slashes. */
  readonly bare: string;
  /** The query, still escaped. */
  readonly search: string;
}
/** Not a regular expression, which would take quadratic time for many slashes. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return end === path.length ? path : path.slice(0, end);
}
export function targetOf(url: string): Target {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  return { path, bare: withoutSlashes(path), search: mark < 0 ? '' : url.slice(mark + 1) };
}

/** Text that cannot be unescaped stays as it is. */
function unescaped(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
function rawSegments(path: string): string[] {
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  return segments;
}
/** The unescaped segments. A trailing slash is optional. */
export const plainSegmentsOf = (path: string): string[] => rawSegments(path).map(unescaped);
/** The same for the API: /v1 is optional too. */
export function segmentsOf(path: string): string[] {
  const segments = rawSegments(path);
  return (segments[0] === 'v1' || segments.length === 0 ? segments : ['v1', ...segments]).map(unescaped);
}

const NO_QUERY: Readonly<Record<string, unknown>> = {};
/** The value of a repeated name is a list. The name `__proto__` is safe. */
export function queryOf(search: string): Readonly<Record<string, unknown>> {
  if (search === '') return NO_QUERY;
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(search)) {
    const before = query.get(name);
    if (Array.isArray(before)) before.push(value);
    else query.set(name, before === undefined ? value : [before, value]);
  }
  return Object.fromEntries(query);
}
