/**
 * Finds the operation of a method and a path. Most of the code handles errors. A closed gate may be 404, 405 or 406. A further segment may
 * name a field. If only the members of a collection have the method, an argument is missing. See docs/decisions/0003-openapi.md.
 */
import { Fault, invalidParameter } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import { repr } from '../../model/python';
import { isGateOpen } from '../../model/versions';
import { Refusal } from '../http/errors';
import { refuseByGate } from '../schema/arguments';
import type { Document, Operation, PathItem } from '../schema/document';

interface Match {
  readonly operation: Operation;
  readonly params: Readonly<Record<string, string>>;
  /** A field named by a further path segment. */
  readonly field?: string;
  /** This version does not have the operation. The error comes after the check of the arguments. */
  readonly closed?: true;
}
type Matcher = (method: string, segments: readonly string[], minor: number) => Match;

/** Nothing exists below the path: a method that the path itself has gets 404, another one 405, with the methods of the path. */
const isMissing = (rest: PathItem['rest']): boolean => rest === null || (Array.isArray(rest) && rest[0] === 404);
const isParameter = (segment: string | undefined): boolean => segment?.startsWith('{') ?? false;
export const fits = (path: PathItem, segments: readonly string[]): boolean =>
  path.segments.length === segments.length && path.segments.every((part, index) => isParameter(part) || part === segments[index]);
export function paramsOf(path: PathItem, segments: readonly string[]): Readonly<Record<string, string>> {
  const params: Record<string, string> = {};
  for (const [index, part] of path.segments.entries()) if (isParameter(part)) params[part.slice(1, -1)] = segments[index]!;
  return params;
}

/** Paths that cannot match the same request have different keys: the second segment is never a parameter. */
const groupOf = (segments: readonly string[]): string => `${segments.length} ${segments[1] ?? ''}`;
function grouped(paths: readonly PathItem[]): Map<string, PathItem[]> {
  const groups = new Map<string, PathItem[]>();
  for (const path of paths) {
    const key = groupOf(path.segments);
    groups.set(key, [...(groups.get(key) ?? []), path]);
  }
  return groups;
}
/** The words that are no identifiers, by the name of the parameter at the end of a path. */
function reservedIn(paths: readonly PathItem[]): Map<string, ReadonlySet<string>> {
  const words = new Map<string, ReadonlySet<string>>();
  for (const { reserved, segments } of paths) {
    if (reserved.length === 0) continue;
    const name = segments.at(-1)!.slice(1, -1);
    words.set(name, new Set([...(words.get(name) ?? []), ...reserved]));
  }
  return words;
}
/** The first matching path with the method, else the first matching path. */
function fitting(paths: readonly PathItem[] = [], segments: readonly string[], method?: string): PathItem | undefined {
  let first: PathItem | undefined;
  for (const path of paths) {
    if (!fits(path, segments)) continue;
    if (method === undefined || path.operations.has(method)) return path;
    first ??= path;
  }
  return first;
}

class Router {
  private readonly paths: readonly PathItem[];
  /** By `groupOf`. */
  private readonly aliasesOf: ReadonlyMap<string, readonly PathItem[]>;
  private readonly pathsOf: ReadonlyMap<string, readonly PathItem[]>;
  /** By the name of the parameter. */
  private readonly reserved: ReadonlyMap<string, ReadonlySet<string>>;
  /** Segments of the longest path. A request may have thousands. */
  private readonly deepest: number;
  /** Deeper paths first. */
  private readonly closing: readonly PathItem[];

  constructor({ paths, aliases }: Document) {
    // If two paths match, the one with fewer parameters wins.
    const parameters = ({ segments }: PathItem): number => segments.filter(isParameter).length;
    const ordered = (all: readonly PathItem[]): PathItem[] => [...all].sort((left, right) => parameters(left) - parameters(right));
    this.paths = ordered([...aliases, ...paths]);
    this.deepest = Math.max(...this.paths.map(({ segments }) => segments.length));
    this.aliasesOf = grouped(ordered(aliases));
    this.pathsOf = grouped(ordered(paths));
    this.reserved = reservedIn(this.paths);
    this.closing = paths.filter(({ closed }) => closed !== null).sort((a, b) => b.segments.length - a.segments.length);
  }

  match(method: string, segments: readonly string[], minor: number): Match {
    this.checkClosed(method, segments, minor);
    const path = this.at(segments, method);
    if (!path) return this.behind(method, segments, minor, false);
    this.checkRouted(path, segments);
    if (typeof path.below === 'number' && !isGateOpen(path.gate, minor)) throw new Refusal(path.below);
    const operation = path.operations.get(method);
    if (!operation) return path.only ? this.behind(method, segments, minor, false) : this.wrongMethod(path, method, segments, minor);
    const match = { operation, params: paramsOf(path, segments) };
    const { gate, below } = operation;
    if (isGateOpen(gate, minor) || below === 'handler') return match;
    if (below === 'member') return this.behind(method, segments, minor, true);
    if (below === 405) return this.wrongMethod(path, '', segments, minor);
    return Array.isArray(below) && below[2] !== 'early' ? { ...match, closed: true } : refuseByGate(below, gate.since);
  }

  /** Aliases precede paths: Ironic's sub-controllers do not fall back to a node of that name. */
  private at(segments: readonly string[], method?: string): PathItem | undefined {
    const group = groupOf(segments);
    return fitting(this.aliasesOf.get(group), segments, method) ?? fitting(this.pathsOf.get(group), segments, method);
  }

  /** Refuses paths that this version does not have, and all paths below them. */
  private checkClosed(method: string, segments: readonly string[], minor: number): void {
    for (const path of this.closing) {
      if (isGateOpen(path.gate, minor) || !fits(path, segments.slice(0, path.segments.length))) continue;
      const [reading, writing, sentence] = path.closed!;
      throw new Refusal(method === 'GET' ? reading : writing, sentence);
    }
  }

  /** @param everyIdent also checks the identifiers that the router checks only before a 405 */
  private checkRouted(path: PathItem, segments: readonly string[], everyIdent = false): void {
    for (const { name, routed } of path.arguments) {
      if (!routed && !(everyIdent && name === 'node_ident')) continue;
      const ident = segments[path.segments.indexOf(`{${name}}`)];
      if (ident === undefined) continue;
      if (this.reserved.get(name)?.has(ident)) throw new Refusal(404);
      if (![isLogicalName, isUuid].some((test) => test(ident))) throw new Refusal(400, `Expected UUID or name for node: ${ident}`);
    }
  }

  /** The path of one member of a collection. */
  private memberOf({ segments }: PathItem): PathItem | undefined {
    return this.paths.find(
      ({ segments: own }) =>
        own.length === segments.length + 1 && isParameter(own.at(-1)) && segments.every((part, index) => part === own[index]),
    );
  }

  /** Throws the error for a path that does not have the method. */
  private wrongMethod(path: PathItem, method: string, segments: readonly string[], minor: number): never {
    // Below a node, the router checks the identifier before the method.
    if (path.segments[2] === '{node_ident}' && path.segments[1] === 'nodes' && (segments.length === 4 || method !== 'GET'))
      this.checkRouted(path, segments, true);
    const member = this.memberOf(path);
    const needed = member?.operations.get(method);
    if (needed) {
      if (Array.isArray(needed.below) && !isGateOpen(needed.gate, minor)) refuseByGate(needed.below, needed.gate.since);
      const { label } = needed.arguments.filter(({ from }) => from === 'path').at(-1)!;
      throw new Fault('MissingParameterValue', { message: `Missing mandatory parameter: ${label}` });
    }
    const collection = this.at(segments.slice(0, -1));
    const creation = method === 'POST' ? collection?.operations.get(method) : undefined;
    if (creation && Array.isArray(creation.below) && !isGateOpen(creation.gate, minor)) refuseByGate(creation.below, creation.gate.since);
    if (creation?.bodyName)
      throw invalidParameter(`Schema error for ${creation.bodyName}: ${repr(segments.at(-1))} is not of type 'object'`);
    const { rest } = path;
    const isRefused = rest !== 'fields' && rest !== 405 && !isMissing(rest);
    if (isRefused && ['POST', 'PATCH', 'DELETE'].includes(method)) refuseByGate(rest!, 1);
    const allowed = [path, member, isParameter(path.segments.at(-1)) ? collection : undefined].flatMap((item) => [
      ...(item?.operations.keys() ?? []),
    ]);
    throw new Refusal(405, '', { Allow: [...new Set(allowed)].sort().join(', ') });
  }

  /**
   * The request's path continues below a known path.
   * @param isField the next segment names a field, even if it is reserved
   */
  private behind(method: string, segments: readonly string[], minor: number, isField: boolean): Match {
    for (let length = Math.min(segments.length - 1, this.deepest); length > 1; length--) {
      const start = segments.slice(0, length);
      const path = this.paths.find((candidate) => fits(candidate, start) && candidate.rest !== null) ?? this.at(start);
      if (path) return this.behindPath(path, method, segments, minor, isField);
    }
    throw new Refusal(404);
  }
  private behindPath(path: PathItem, method: string, segments: readonly string[], minor: number, isField: boolean): Match {
    this.checkRouted(path, segments);
    const { length } = path.segments;
    const operation = path.operations.get(method);
    const hides = typeof path.below === 'number' || (operation !== undefined && Array.isArray(path.below));
    if (hides && !isGateOpen(path.gate, minor))
      refuseByGate(Array.isArray(operation?.below) ? operation.below : path.below, path.gate.since);
    const rest = operation?.rest ?? path.rest;
    const field = segments[length]!;
    const isLast = length === segments.length - 1;
    if (rest === 'fields' && method === 'GET' && operation && isLast && (isField || !path.reserved.includes(field)))
      return isGateOpen(operation.gate, minor)
        ? { operation, params: paramsOf(path, segments), field }
        : refuseByGate(operation.below, operation.gate.since);
    if (rest === 405) this.wrongMethod(path, '', segments.slice(0, length), minor);
    // `detail` belongs to lists.
    if (method === 'GET' && field === 'detail' && path.reserved.includes(field)) refuseByGate([404, 'Resource could not be found.'], 1);
    if (isMissing(rest) && !operation) this.wrongMethod(path, method, segments.slice(0, length), minor);
    if (rest !== null && rest !== 'fields') refuseByGate(rest, 1);
    if (rest === 'fields' && method !== 'GET') this.wrongMethod(path, method, segments.slice(0, length), minor);
    throw new Refusal(404);
  }
}

/**
 * @returns finds the operation for a method and a path (`v1` first, decoded segments)
 * @throws Refusal, Fault: why there is none for this version
 */
export function matcher(document: Document): Matcher {
  const router = new Router(document);
  return (method, segments, minor) => router.match(method, segments, minor);
}
