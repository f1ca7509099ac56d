/** The habits of makers' services: what a habit may change, and the layer of habits in front of the standard service. */
import type { IncomingHttpHeaders } from 'node:http';
import { ROOT, type Route, type Service, type ServiceAnswer, type System, type SystemContext } from './routes';

/** A request as habits see it: its path has this service's own names, not those of the maker. */
export interface Asked {
  /** In upper case; GET for HEAD. */
  readonly method: string;
  /** /redfish/v1/Systems/sim-0. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Rejects when it is too long or not JSON. Undefined: there is none. */
  readonly body: () => Promise<unknown>;
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

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return value.startsWith('/redfish/v1/') ? change(value) : value;
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, mapTexts(entry, change)]));
}
const lastName = (path: unknown): string => (typeof path === 'string' ? path.slice(path.lastIndexOf('/') + 1) : '');

/** Translates the paths of requests and answers. */
function translation(names: Readonly<Record<string, string>>, ours: Ids, theirs: Ids): Around {
  const pairs = Object.entries(names).map(([from, to]) => [filled(from, ours), filled(to, theirs)] as const);
  const inward = translator(pairs.map(([from, to]) => [to, from]));
  const outward = translator(pairs);
  return async (asked, next) => {
    const body = async (): Promise<unknown> => mapTexts(await asked.body(), inward);
    const path = inward(asked.path);
    // What has another path in the maker's service is not at the standard path.
    const isHidden = path === asked.path && outward(path) !== path;
    const answer = await next({ ...asked, path: isHidden ? `${ROOT}/-` : path, body });
    const shown = mapTexts(answer.body, outward) as ServiceAnswer['body'];
    // A resource's Id is the last name of its path.
    const [before, after] = [lastName(answer.body?.['@odata.id']), lastName(shown?.['@odata.id'])];
    const location = answer.headers?.['location'];
    return {
      ...answer,
      ...(shown && { body: before !== after && shown['Id'] === before ? { ...shown, Id: after } : shown }),
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
  const layers = [
    ...(Object.keys(paths).length > 0 ? [translation(paths, ours, ids ?? ours)] : []),
    ...habits.flatMap(({ around }) => (around ? [around] : [])),
  ];
  return layers.reduceRight<Next>((next, around) => (asked) => around(asked, next, context), standard);
}
