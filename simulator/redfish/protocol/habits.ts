/** The habits of makers' services: what a habit may change, and the layer of habits in front of the standard service. */
import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../../../model/json';
import { ROOT, type Route, type Service, type ServiceAnswer, type System, type SystemContext } from './routes';

/** A request as habits see it: its path has this service's own names, not those of the maker. */
/** The first bytes of a file, and how many it has. */
export interface SentFile {
  readonly head: Buffer;
  readonly size: number;
}
export interface Asked {
  /** In upper case; GET for HEAD. */
  readonly method: string;
  /** /redfish/v1/Systems/sim-0. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Rejects when it is too long or not JSON. Undefined: there is none. */
  readonly body: () => Promise<unknown>;
  /** Reads the request's content as a file, in place of `body`. */
  readonly file: () => Promise<SentFile>;
  /** The request's place among those of its connection; the first is 1. */
  readonly onConnection: number;
}
export type Next = (asked: Asked) => Promise<ServiceAnswer>;
/** The BMC of a habit, and what the habit remembers of its requests until the simulator ends. */
export interface HabitContext {
  readonly service: Service;
  readonly system: System;
  readonly memory: Map<string, unknown>;
  /** Adds one to a count, and returns it. */
  readonly count: (name: string) => number;
}
export type Around = (asked: Asked, next: Next, context: HabitContext) => Promise<ServiceAnswer>;
/** One deviation from the standard service. It changes nothing else, so that it can be used alone. */
export interface Habit {
  /** What the service does. */
  readonly about: string;
  /** The project and the file, issue or page that reports the habit. It was read, not measured. */
  readonly source: string;
  /** Answers itself, or changes the request or the answer of the rest. */
  readonly around?: Around;
  /** Resources of the maker; `{system}` stands for the machine's name, and `values` do not have it if it is absent. */
  readonly routes?: readonly Route<SystemContext>[];
  /** Path in this service → path in the maker's, below the service root. `{system}`, `{manager}` and `{chassis}` stand for identifiers. */
  readonly paths?: Readonly<Record<string, string>>;
  /** Other names in paths, for those that no table can list; applied to paths and links after `paths` outward, before it inward. */
  readonly names?: NameChange;
}
export interface NameChange {
  /** @param machine the machine's name */
  readonly outward: (path: string, machine: string) => string;
  readonly inward: (path: string, machine: string) => string;
}
/** The identifiers of the machine's resources. */
export interface Ids {
  readonly system: string;
  readonly manager: string;
  readonly chassis: string;
}
/** All deviations of a BMC. */
export interface Maker {
  /** Absent: the machine's name. */
  readonly ids?: Ids;
  /** The first one is the outermost: it sees a request first, and its answer last. */
  readonly habits: readonly Habit[];
}

/** Replaces the longest of these beginnings of a path below the service root. */
function translator(pairs: readonly (readonly [from: string, to: string])[]): (text: string) => string {
  const longestFirst = pairs.map(([from, to]) => [ROOT + from, ROOT + to] as const).sort(([one], [other]) => other.length - one.length);
  return (text) => {
    const found = longestFirst.find(([from]) => text.startsWith(from) && /^[/?#]|^$/.test(text.slice(from.length)));
    return found ? found[1] + text.slice(found[0].length) : text;
  };
}
const filled = (template: string, { system, manager, chassis }: Ids): string =>
  template.replaceAll('{system}', system).replaceAll('{manager}', manager).replaceAll('{chassis}', chassis);

const lastName = (path: unknown): string => (typeof path === 'string' ? path.slice(path.lastIndexOf('/') + 1) : '');
function mapPaths(value: unknown, change: (path: string) => string): unknown {
  if (typeof value === 'string') return value.startsWith('/redfish/v1/') ? change(value) : value;
  if (Array.isArray(value)) return value.map((item) => mapPaths(item, change));
  if (!isObject(value)) return value;
  const changed = Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, mapPaths(entry, change)]));
  // A resource's Id is the last name of its path.
  const isNamed = value['Id'] !== undefined && value['Id'] === lastName(value['@odata.id']);
  return isNamed ? { ...changed, Id: lastName(changed['@odata.id']) } : changed;
}

/** Translates the paths of requests and answers. */
function translation(paths: Readonly<Record<string, string>>, names: readonly NameChange[], ours: Ids, theirs: Ids): Around {
  const pairs = Object.entries(paths).map(([from, to]) => [filled(from, ours), filled(to, theirs)] as const);
  const [ourPath, theirPath] = [translator(pairs.map(([from, to]) => [to, from])), translator(pairs)];
  const inward = (path: string): string => ourPath(names.reduce((text, change) => change.inward(text, ours.system), path));
  const outward = (path: string): string => names.reduce((text, change) => change.outward(text, ours.system), theirPath(path));
  return async (asked, next) => {
    const body = async (): Promise<unknown> => mapPaths(await asked.body(), inward);
    const path = inward(asked.path);
    // What has another path in the maker's service is not at the standard path.
    const isHidden = path === asked.path && outward(path) !== path;
    const answer = await next({ ...asked, path: isHidden ? `${ROOT}/-` : path, body });
    const shown = mapPaths(answer.body, outward) as ServiceAnswer['body'];
    const location = answer.headers?.['location'];
    return {
      ...answer,
      ...(shown && { body: shown }),
      ...(location !== undefined && { headers: { ...answer.headers, location: outward(location) } }),
    };
  };
}

/** Puts a maker's habits in front of a service with one machine. */
export function withHabits({ ids, habits }: Maker, service: Service, system: System, standard: Next): Next {
  const { name } = system;
  const memory = new Map<string, unknown>();
  const count = (key: string): number => {
    const counted = ((memory.get(key) as number | undefined) ?? 0) + 1;
    memory.set(key, counted);
    return counted;
  };
  const context: HabitContext = { service, system, memory, count };
  const ours = { system: name, manager: name, chassis: name };
  const own = ids && {
    '/Systems/{system}': '/Systems/{system}',
    '/Managers/{manager}': '/Managers/{manager}',
    '/Chassis/{chassis}': '/Chassis/{chassis}',
  };
  const paths: Readonly<Record<string, string>> = Object.fromEntries(
    [own ?? {}, ...habits.map((habit) => habit.paths ?? {})].flatMap((rows) => Object.entries(rows)),
  );
  const names = habits.flatMap((habit) => habit.names ?? []);
  const layers = [
    ...(Object.keys(paths).length + names.length > 0 ? [translation(paths, names, ours, ids ?? ours)] : []),
    ...habits.flatMap(({ around }) => (around ? [around] : [])),
  ];
  return layers.reduceRight<Next>((next, around) => (asked) => around(asked, next, context), standard);
}
