/** The introspection service's doors: path → methods → handler. Its documents name them, and refusals tell what is allowed. */
import type { Conductor } from '../../conductor/conductor';
import { Fault } from '../../model/errors';
import type { Store } from '../../store/store';
import type { IntrospectionOptions } from './options';
import { createRule, listRules, removeRule, removeRules, showRule } from './rules';
import {
  abortIntrospection,
  continueIntrospection,
  listIntrospections,
  reapply,
  showData,
  showIntrospection,
  showUnprocessed,
  startIntrospection,
} from './status';

export interface Request {
  /** The parts of the path that are no fixed words. */
  readonly params: readonly string[];
  readonly query: URLSearchParams;
  readonly minor: number;
  /** Scheme and host of links. */
  readonly base: string;
  readonly hasBody: boolean;
  /** The body. Throws Invalid, Unread. */
  readonly json: () => unknown;
}
export interface Answer {
  readonly status: number;
  readonly body?: object;
  /** In its place: JSON that is written already. */
  readonly text?: string;
}
export interface Rooms {
  readonly store: Store;
  readonly conductor: Conductor;
  readonly options: IntrospectionOptions;
  readonly random: (bytes: number) => Buffer;
  /** Throws InvalidParameterValue when a part of an agent's report is not of the shape that agents send. */
  readonly checkReport: (report: unknown) => void;
}
export type Handle = (request: Request, rooms: Rooms) => Promise<Answer>;

export interface Route {
  readonly path: string;
  readonly methods: Readonly<Record<string, Handle>>;
  /** Nobody has to say who asks. */
  readonly isPublic?: true;
}

export const MINIMUM = { major: 1, minor: 0 } as const;
export const MAXIMUM = { major: 1, minor: 18 } as const;

const linked = (base: string, path: string): object => [{ href: `${base}/${path}`, rel: 'self' }];
const showRoot: Handle = async ({ base }) => ({
  status: 200,
  body: { versions: [{ id: `${MAXIMUM.major}.${MAXIMUM.minor}`, status: 'CURRENT', links: linked(base, `v${MAXIMUM.major}`) }] },
});
/** What lies one step below the version. */
const showVersion: Handle = async ({ params, base }) => {
  const below = ROUTES.flatMap(({ path }) => (path.startsWith(`/${params[0]!}/`) && path.split('/').length === 3 ? [path.slice(1)] : []));
  if (below.length === 0) throw new Fault('NotFound', { message: `Version ${params[0]!} not found.` });
  return { status: 200, body: { resources: below.map((path) => ({ name: path.split('/')[1], links: linked(base, path) })) } };
};

const ROUTES: readonly Route[] = [
  { path: '/', isPublic: true, methods: { GET: showRoot } },
  { path: '/{}', isPublic: true, methods: { GET: showVersion } },
  { path: '/v1/continue', isPublic: true, methods: { POST: continueIntrospection } },
  { path: '/v1/introspection', methods: { GET: listIntrospections } },
  { path: '/v1/introspection/{}', methods: { GET: showIntrospection, POST: startIntrospection } },
  { path: '/v1/introspection/{}/abort', methods: { POST: abortIntrospection } },
  { path: '/v1/introspection/{}/data', methods: { GET: showData } },
  { path: '/v1/introspection/{}/data/unprocessed', methods: { GET: showUnprocessed, POST: reapply } },
  { path: '/v1/rules', methods: { GET: listRules, POST: createRule, DELETE: removeRules } },
  { path: '/v1/rules/{}', methods: { GET: showRule, DELETE: removeRule } },
];

/** @param segments of the path, unescaped */
export function findRoute(segments: readonly string[]): { readonly route: Route; readonly params: readonly string[] } | undefined {
  for (const route of ROUTES) {
    const words = route.path === '/' ? [] : route.path.slice(1).split('/');
    if (words.length !== segments.length) continue;
    if (!words.every((word, at) => (word === '{}' ? segments[at] !== '' : word === segments[at]))) continue;
    return { route, params: segments.filter((_, at) => words[at] === '{}') };
  }
  return undefined;
}
