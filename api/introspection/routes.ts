/** The introspection service's doors: path → methods → handler. Its documents name them, and refusals tell what is allowed. */
import type { Options } from '../../config/options';
import type { Conductor } from '../../conductor/conductor';
import { Fault } from '../../model/errors';
import type { Store } from '../../store/store';
import { describeRoutes, type SchemaName } from './document';
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
  readonly options: Options;
  readonly random: (bytes: number) => Buffer;
  /** Throws InvalidParameterValue when a part of an agent's report is not of the shape that agents send. */
  readonly checkReport: (report: unknown) => void;
}
export type Handle = (request: Request, rooms: Rooms) => Promise<Answer>;

export interface Door {
  readonly handle: Handle;
  /** Its name and its purpose, in the document. */
  readonly does: string;
  readonly says: string;
  readonly query?: readonly string[];
  readonly takes?: { readonly body: SchemaName; readonly required: boolean };
  /** Status → its body; null: none. Refusals are no part of it. */
  readonly answers: Readonly<Record<number, SchemaName | null>>;
}
export interface Route {
  /** As OpenAPI writes it. */
  readonly path: string;
  readonly methods: Readonly<Record<string, Door>>;
  /** Nobody has to say who asks. */
  readonly isPublic?: true;
  /** Ours: the list of what there is leaves it out. */
  readonly isUnlisted?: true;
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
  const inside = ({ path, isUnlisted }: Route): boolean =>
    !isUnlisted && path.startsWith(`/${params[0]!}/`) && path.split('/').length === 3;
  const below = ROUTES.filter(inside).map(({ path }) => path.slice(1));
  if (below.length === 0) throw new Fault('NotFound', { message: `Version ${params[0]!} not found.` });
  return { status: 200, body: { resources: below.map((path) => ({ name: path.split('/')[1], links: linked(base, path) })) } };
};
const showDocument: Handle = async () => ({ status: 200, body: describeRoutes(ROUTES, `${MAXIMUM.major}.${MAXIMUM.minor}`) });

const door = (handle: Handle, does: string, says: string, answers: Door['answers'], more: Pick<Door, 'query' | 'takes'> = {}): Door => ({
  ...{ handle, does, says, answers },
  ...more,
});
const REPORT = { body: 'Report', required: true } as const;

export const ROUTES: readonly Route[] = [
  { path: '/', isPublic: true, methods: { GET: door(showRoot, 'showRoot', 'Versions', { 200: 'Root' }) } },
  { path: '/{version}', isPublic: true, methods: { GET: door(showVersion, 'showVersion', 'Resources of a version', { 200: 'Version' }) } },
  {
    path: '/v1/openapi.json',
    ...{ isPublic: true, isUnlisted: true },
    methods: { GET: door(showDocument, 'showDocument', 'This document', { 200: 'Document' }) },
  },
  {
    path: '/v1/continue',
    isPublic: true,
    methods: {
      POST: door(continueIntrospection, 'continueIntrospection', 'A ramdisk reports', { 200: 'Recognized' }, { takes: REPORT }),
    },
  },
  {
    path: '/v1/introspection',
    methods: {
      GET: door(
        listIntrospections,
        'listIntrospections',
        'Introspections, the newest first',
        { 200: 'Introspections' },
        { query: ['limit', 'marker', 'state'] },
      ),
    },
  },
  {
    path: '/v1/introspection/{node}',
    methods: {
      GET: door(showIntrospection, 'showIntrospection', 'How it stands', { 200: 'Introspection' }),
      POST: door(startIntrospection, 'startIntrospection', 'Begin', { 202: 'Accepted' }, { query: ['manage_boot'] }),
    },
  },
  {
    path: '/v1/introspection/{node}/abort',
    methods: { POST: door(abortIntrospection, 'abortIntrospection', 'End without a report', { 202: 'Accepted' }) },
  },
  {
    path: '/v1/introspection/{node}/data',
    methods: { GET: door(showData, 'showData', 'The report, processed', { 200: 'Data' }) },
  },
  {
    path: '/v1/introspection/{node}/data/unprocessed',
    methods: {
      GET: door(showUnprocessed, 'showUnprocessed', 'The report as it came', { 200: 'Data' }),
      POST: door(
        reapply,
        'reapply',
        'Process what was kept once more, or the body in its place',
        { 202: 'Accepted' },
        { takes: { ...REPORT, required: false } },
      ),
    },
  },
  {
    path: '/v1/rules',
    methods: {
      GET: door(listRules, 'listRules', 'Rules', { 200: 'Rules' }),
      // 200 before 1.6.
      POST: door(createRule, 'createRule', 'A new rule', { 200: 'Rule', 201: 'Rule' }, { takes: { body: 'NewRule', required: true } }),
      DELETE: door(removeRules, 'removeRules', 'Remove all rules', { 204: null }),
    },
  },
  {
    path: '/v1/rules/{rule}',
    methods: {
      GET: door(showRule, 'showRule', 'A rule', { 200: 'Rule' }),
      DELETE: door(removeRule, 'removeRule', 'Remove a rule', { 204: null }),
    },
  },
];

const isWord = (word: string): boolean => !word.startsWith('{');
/** @param segments of the path, unescaped */
export function findRoute(segments: readonly string[]): { readonly route: Route; readonly params: readonly string[] } | undefined {
  for (const route of ROUTES) {
    const words = route.path === '/' ? [] : route.path.slice(1).split('/');
    if (words.length !== segments.length) continue;
    if (!words.every((word, at) => (isWord(word) ? word === segments[at] : segments[at] !== ''))) continue;
    return { route, params: segments.filter((_, at) => !isWord(words[at]!)) };
  }
  return undefined;
}
