/** The route table of the introspection service: path → method → handler. The `Allow` headers and the OpenAPI document come from it. */
import { Fault } from '../../model/errors';
import { describeRoutes } from './document';
import type { Handler, Operation, Route } from './operation';
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

export const MINIMUM = { major: 1, minor: 0 } as const;
export const MAXIMUM = { major: 1, minor: 18 } as const;

const linked = (base: string, path: string): object => [{ href: `${base}/${path}`, rel: 'self' }];
const showRoot: Handler = async ({ base }) => ({
  status: 200,
  body: { versions: [{ id: `${MAXIMUM.major}.${MAXIMUM.minor}`, status: 'CURRENT', links: linked(base, `v${MAXIMUM.major}`) }] },
});
/** Lists the resources one level below the version. */
const showVersion: Handler = async ({ params, base }) => {
  const inside = ({ path, isUnlisted }: Route): boolean =>
    !isUnlisted && path.startsWith(`/${params[0]!}/`) && path.split('/').length === 3;
  const below = ROUTES.filter(inside).map(({ path }) => path.slice(1));
  if (below.length === 0) throw new Fault('NotFound', { message: `Version ${params[0]!} not found.` });
  return { status: 200, body: { resources: below.map((path) => ({ name: path.split('/')[1], links: linked(base, path) })) } };
};
const showDocument: Handler = async () => ({ status: 200, body: describeRoutes(ROUTES, `${MAXIMUM.major}.${MAXIMUM.minor}`) });

const operation = (
  handler: Handler,
  operationId: string,
  summary: string,
  answers: Operation['answers'],
  more: Pick<Operation, 'query' | 'takes'> = {},
): Operation => ({ handler, operationId, summary, answers, ...more });
const REPORT = { body: 'Report', required: true } as const;

/** @internal */
export const ROUTES: readonly Route[] = [
  { path: '/', isPublic: true, methods: { GET: operation(showRoot, 'showRoot', 'Versions', { 200: 'Root' }) } },
  {
    path: '/{version}',
    isPublic: true,
    methods: { GET: operation(showVersion, 'showVersion', 'Resources of a version', { 200: 'Version' }) },
  },
  {
    path: '/v1/openapi.json',
    isPublic: true,
    isUnlisted: true,
    methods: { GET: operation(showDocument, 'showDocument', 'This document', { 200: 'Document' }) },
  },
  {
    path: '/v1/continue',
    isPublic: true,
    methods: {
      POST: operation(continueIntrospection, 'continueIntrospection', 'Report of a ramdisk', { 200: 'Recognized' }, { takes: REPORT }),
    },
  },
  {
    path: '/v1/introspection',
    methods: {
      GET: operation(
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
      GET: operation(showIntrospection, 'showIntrospection', 'Status of an introspection', { 200: 'Introspection' }),
      POST: operation(startIntrospection, 'startIntrospection', 'Start an introspection', { 202: 'Accepted' }, { query: ['manage_boot'] }),
    },
  },
  {
    path: '/v1/introspection/{node}/abort',
    methods: { POST: operation(abortIntrospection, 'abortIntrospection', 'Abort an introspection', { 202: 'Accepted' }) },
  },
  {
    path: '/v1/introspection/{node}/data',
    methods: { GET: operation(showData, 'showData', 'The processed report', { 200: 'Data' }) },
  },
  {
    path: '/v1/introspection/{node}/data/unprocessed',
    methods: {
      GET: operation(showUnprocessed, 'showUnprocessed', 'The unprocessed report', { 200: 'Data' }),
      POST: operation(
        reapply,
        'reapply',
        'Process the stored report again, or the body in its place',
        { 202: 'Accepted' },
        { takes: { ...REPORT, required: false } },
      ),
    },
  },
  {
    path: '/v1/rules',
    methods: {
      GET: operation(listRules, 'listRules', 'Rules', { 200: 'Rules' }),
      // 200 before 1.6.
      POST: operation(
        createRule,
        'createRule',
        'Create a rule',
        { 200: 'Rule', 201: 'Rule' },
        { takes: { body: 'NewRule', required: true } },
      ),
      DELETE: operation(removeRules, 'removeRules', 'Delete all rules', { 204: null }),
    },
  },
  {
    path: '/v1/rules/{rule}',
    methods: {
      GET: operation(showRule, 'showRule', 'A rule', { 200: 'Rule' }),
      DELETE: operation(removeRule, 'removeRule', 'Delete a rule', { 204: null }),
    },
  },
];

const isLiteral = (segment: string): boolean => !segment.startsWith('{');
/** @param segments of the path, unescaped */
export function findRoute(segments: readonly string[]): { readonly route: Route; readonly params: readonly string[] } | undefined {
  for (const route of ROUTES) {
    const words = route.path === '/' ? [] : route.path.slice(1).split('/');
    if (words.length !== segments.length) continue;
    if (!words.every((word, at) => (isLiteral(word) ? word === segments[at] : segments[at] !== ''))) continue;
    return { route, params: segments.filter((_, at) => !isLiteral(words[at]!)) };
  }
  return undefined;
}
