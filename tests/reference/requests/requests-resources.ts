/** Requests for every resource that is independent of nodes: versions, routing, queries, bodies, patches; tables of malformed ones. */
import { get, MAX, quietly, send, type Sent, type Step } from './steps';
import { NEWEST_VERSION } from '../../support/newest';

export const ONE = 'aaaaaaaa-0000-4000-8000-00000000d001';
export const TWO = 'aaaaaaaa-0000-4000-8000-00000000d002';
export const NEW = 'aaaaaaaa-0000-4000-8000-00000000d0ff';
export const NOBODY = 'cccccccc-0000-4000-8000-000000000000';
export const LONG = 'x'.repeat(256);
const VERSIONS = ['1.1', '1.31', '1.50', '1.80', '1.96', '1.109', NEWEST_VERSION, 'latest', '1.116', 'junk', null];

export type Body = Readonly<Record<string, unknown>>;
/** One resource under test. */
export interface Area {
  readonly path: string;
  readonly since: number;
  readonly named: boolean;
  /** The rows that are created first. */
  readonly rows: readonly Body[];
  /** A second version that changed the resource. */
  readonly more?: number;
}
export const one = ({ path }: Area, ident = ONE): string => `${path}/${ident}`;
export const setup = ({ path, rows }: Area): Step[] => rows.map((row) => send('POST', path, row));
/** Every method on every path, at every version. */
export const everyVersion = ({ path }: Area, create: Body): Step[] =>
  VERSIONS.flatMap((version): Step[] => [
    ...[path, `${path}/${ONE}`].map((where) => ({
      method: 'GET',
      path: where,
      version,
    })),
    { method: 'POST', path, version, body: { ...create, uuid: NEW } },
    { method: 'PATCH', path: `${path}/${NEW}`, version, body: [] },
    { method: 'DELETE', path: `${path}/${NEW}`, version },
    quietly(send('DELETE', `${path}/${NEW}`, undefined)),
  ]);
export const routing = ({ path, since, more }: Area): Step[] =>
  [since - 1, more ?? since].flatMap((minor) =>
    [
      path,
      `${path}/`,
      `${path}/${NOBODY}`,
      `${path}/nobody`,
      `${path}/a%20b`,
      `${path}/detail`,
      `${path}/${ONE}/name`,
      `${path}/${ONE}/x/y`,
    ]
      .flatMap((where): Step[] => [
        get(where, minor),
        ...['HEAD', 'PUT', 'DELETE'].map((method): Sent => ({ method, path: where, version: `1.${minor}` })),
        send('POST', where, { nosuch: 1 }, minor),
        send('PATCH', where, [], minor),
        send('PATCH', where, [{ op: 'nosuch' }], minor),
      ])
      .filter((step) => !('method' in step && step.method === 'DELETE' && step.path.includes(ONE))),
  );
export const queries = ({ path, since }: Area, words: readonly string[]): Step[] =>
  [
    ...['1', '2', '0', '-1', 'x', '', '1000000', '1&limit=2'].map((value) => `limit=${value}`),
    ...[ONE, TWO, NOBODY, 'zz', 'CUSTOM_ONE', '', 'a%20b'].map((value) => `marker=${value}`),
    ...['desc', 'up', '', 'DESC'].map((value) => `sort_dir=${value}`),
    ...['id', 'uuid', 'created_at', 'updated_at', 'links', 'nosuch', '', ...words].map((value) => `sort_key=${value}`),
    ...['uuid', 'uuid,nosuch', 'nosuch', 'links', '', 'UUID', 'created_at', ...words].map((value) => `fields=${value}`),
    ...['true', 'False', 'zz', '', '1'].map((value) => `detail=${value}`),
    'detail=true&fields=uuid',
    'detail=false&fields=uuid',
    'limit=1&detail=true',
    'limit=1&detail=false',
    'limit=1&fields=uuid,links',
    `limit=1&sort_dir=desc&sort_key=created_at`,
    `limit=1&marker=${ONE}`,
    'nosuch=1',
    'nosuch=1&other=2',
    'fields=uuid&fields=created_at',
  ]
    .flatMap((query) => [get(`${path}?${query}`), ...(query === 'nosuch=1' ? [get(`${path}?${query}`, since)] : [])])
    .concat(
      ['uuid', 'uuid,nosuch', 'links', '', ...words].flatMap((value) => [
        get(`${path}/${ONE}?fields=${value}`),
        get(`${path}/${ONE}/${value}`),
      ]),
      get(`${path}/${ONE}?nosuch=1`),
      get(`${path}/${ONE}?detail=true`),
    );
/** Creations, each of which is undone. */
export const creations = ({ path, named }: Area, bodies: readonly unknown[], minors: readonly number[] = [MAX]): Step[] =>
  bodies.flatMap((body) =>
    minors.flatMap((minor): Step[] => [
      send('POST', path, body, minor),
      ...[NEW, ...(named ? ['CUSTOM_NEW'] : [])].map((ident) => quietly(send('DELETE', `${path}/${ident}`, undefined))),
    ]),
  );
/** Creations that are read before they are undone. */
export const looked = (area: Area, bodies: readonly unknown[], minors: readonly number[] = [MAX]): Step[] =>
  bodies.flatMap((body) =>
    minors.flatMap((minor): Step[] => [
      send('POST', area.path, body, minor),
      get(one(area, NEW), minor),
      quietly(send('DELETE', one(area, NEW), undefined)),
    ]),
  );
const AWAY: Readonly<Record<string, Body>> = {
  '/v1/deploy_templates': { interface: 'raid', step: 'away', args: {}, priority: 1 },
  '/v1/runbooks': { interface: 'raid', step: 'away', args: {}, order: 1 },
};
/** Patches, each of which is undone by `restore`. */
export const patches = (area: Area, restore: readonly object[], list: readonly unknown[], minors: readonly number[] = [MAX]): Step[] =>
  list.flatMap((body) =>
    minors.flatMap((minor): Step[] => [
      send('PATCH', one(area), body, minor),
      // The order of steps shows which existed before. So another step replaces all, before `restore` brings the first ones back.
      ...(area.named ? [quietly(send('PATCH', one(area), [replace('/steps', [AWAY[area.path]])]))] : []),
      quietly(send('PATCH', one(area), restore)),
    ]),
  );
export const replace = (path: string, value: unknown): object => ({ op: 'replace', path, value });
export const add = (path: string, value: unknown): object => ({ op: 'add', path, value });
export const remove = (path: string): object => ({ op: 'remove', path });
export const ODD_PATCHES: readonly unknown[] = [
  [],
  {},
  'x',
  null,
  '{bad',
  [replace('/nosuch', 1)],
  [add('/nosuch', 1)],
  [remove('/nosuch')],
  [replace('/uuid', NEW)],
  [add('/uuid', NEW)],
  [remove('/uuid')],
  [replace('/id', 5)],
  [replace('/created_at', 'x')],
  [replace('/links', [])],
  [replace('name', 'x')],
  [replace('/', 'x')],
  [replace('', 'x')],
  [{ op: 'replace', path: '/name' }],
  [{ op: 'test', path: '/name', value: 'x' }],
  [{ op: 'move', from: '/name', path: '/extra' }],
  [{ op: 'replace', path: '/extra', value: {}, more: 1 }],
  [{ path: '/name', value: 'x' }],
  [{ op: 'replace', value: 'x' }],
  ['x'],
];
export const EXTRA_PATCHES: readonly unknown[] = [
  [replace('/extra', { a: { b: [1] } })],
  [add('/extra', { a: 1 })],
  [add('/extra/a', 1)],
  [add('/extra/a/b', 1)],
  [replace('/extra/k', 2)],
  [replace('/extra/none', 2)],
  [remove('/extra/k')],
  [remove('/extra/none')],
  [remove('/extra')],
  [replace('/extra', null)],
  [replace('/extra', 'x')],
  [replace('/extra', [])],
  [add('/extra/__proto__', 1)],
  [add('/extra/a', 1), replace('/extra/none', 1)],
];

/** Deletions. Two rows of each resource stay for later requests. */
export const deletions = (area: Area, good: Body): Step[] => [
  send('POST', area.path, good),
  send('DELETE', one(area, String(good['name'])), undefined),
  send('POST', area.path, good),
  send('DELETE', one(area, NEW), undefined),
  send('DELETE', one(area, NEW), undefined),
  send('DELETE', one(area, 'nobody'), undefined),
  send('DELETE', one(area, 'a%20b'), undefined),
  send('DELETE', area.path, undefined),
];
