/** Reading an Ironic by its API: pages, releases, refused requests, and the secrets that it masks. */
import { openApi, type ApiGet } from '../../store/import/api';
import { insertSecrets } from '../../store/import/secrets';
import { NEWEST_VERSION } from '../support/newest';

const NEVER = new AbortController().signal;
/** @param bodies path → body; any other path is not found */
const ironic = (bodies: Readonly<Record<string, unknown>>, newest = NEWEST_VERSION): { readonly get: ApiGet; readonly paths: string[] } => {
  const paths: string[] = [];
  const get: ApiGet = async (path, headers) => {
    paths.push(`${path} ${Object.values(headers).join()}`);
    const body = path === '/v1' ? {} : bodies[path];
    const found = { status: 200, headers: { 'x-openstack-ironic-api-maximum-version': newest }, body };
    return body === undefined ? { status: 404, headers: {}, body: { error_message: '{"faultstring": "gone"}' } } : found;
  };
  return { get, paths };
};
async function rowsOf(get: ApiGet, ...tables: readonly string[]): Promise<unknown[]> {
  const source = await openApi(get);
  const all: unknown[] = [];
  for (const table of tables) for await (const page of source.rows(table, 'id', NEVER)) all.push(...page);
  return all;
}
const node = (uuid: string): object => ({ uuid, created_at: 'then', driver_info: {}, chassis_uuid: `chassis of ${uuid}` });

test('rows reads a list page by page, with the columns of the database', async () => {
  const { get, paths } = ironic({
    '/v1/nodes?detail=true&limit=50': { nodes: [node('a'), node('b')], next: 'http://elsewhere.example/v1/nodes' },
    '/v1/nodes?detail=true&limit=50&marker=b': { nodes: [node('c')] },
    '/v1/nodes/a/inventory': { inventory: { cpu: 1 }, plugin_data: {} },
    '/v1/nodes/b/bios?detail=true': { bios: [{ name: 'Boot' }] },
  });
  expect(await rowsOf(get, 'nodes', 'node_inventory', 'bios_settings')).toEqual([
    ...['a', 'b', 'c'].map((uuid) => ({ ...node(uuid), id: uuid, chassis_id: `chassis of ${uuid}` })),
    { node_id: 'a', created_at: 'then', inventory_data: { cpu: 1 }, plugin_data: {} },
    { id: undefined, node_id: 'b', name: 'Boot' },
  ]);
  expect(paths.slice(0, 2)).toEqual(['/v1 latest', `/v1/nodes?detail=true&limit=50 ${NEWEST_VERSION}`]);
});

test.each<readonly [newest: string, used: string, runbooks: boolean]>([
  ['1.90', '1.90', false],
  ['1.93', '1.93', true],
  ['1.200', NEWEST_VERSION, true],
])('openApi of an Ironic up to %s uses microversion %s', async (newest, used, runbooks) => {
  const { get, paths } = ironic({ '/v1/chassis?detail=true&limit=50': { chassis: [] } }, newest);
  const { tables } = await openApi(get);
  expect(tables.has('runbooks')).toBe(runbooks);
  expect(await rowsOf(get, 'chassis')).toEqual([]);
  expect(paths.at(-1)).toBe(`/v1/chassis?detail=true&limit=50 ${used}`);
});

const answering = (status: number, body: unknown, newest = NEWEST_VERSION): ApiGet => {
  const headers = { 'x-openstack-ironic-api-maximum-version': newest };
  return async (path) => (path === '/v1' ? { status: 200, headers, body: {} } : { status, headers, body });
};
const first = { uuid: 'a', driver_info: {} };
test.each<readonly [what: string, get: ApiGet, message: string]>([
  ['a release before 2024.1', answering(200, {}, '1.82'), 'this Ironic is older than 2024.1: its API ends with 1.82'],
  ['another server', answering(200, {}, ''), 'this is not the API of an Ironic (HTTP status 200)'],
  [
    'a refused request',
    answering(403, { error_message: '{"faultcode": "Client", "faultstring": "not for \\u001b[31m you"}' }),
    'GET /v1/nodes: HTTP status 403: not for \\u001b[31m you; use an administrator with the scope of the system',
  ],
  ['a text response', answering(200, undefined), 'GET /v1/nodes: HTTP status 200'],
  ['a repeated page', answering(200, { nodes: [first], next: 'more' }), 'GET /v1/nodes?detail=true: the same page came twice'],
  [
    'a user who may not see driver_info',
    answering(200, { nodes: [{ uuid: 'a', driver_info: { content: '** Redacted - requires …' } }] }),
    'this user may not see all of a node: use an administrator of the system',
  ],
])('rows fails for %s', async (_, get, message) => {
  await expect(rowsOf(get, 'nodes')).rejects.toThrow(message);
});

const SECRETS = {
  one: { driver_info: { ipmi_password: 'of one', unmasked: 'never used' } },
  '*': { driver_info: { ipmi_password: 'of all', other: { secret: 'deep' } } },
  template: { steps: [{ args: { password: 'of the template' } }] },
  target: { properties: { auth_password: 'of the target' } },
};
test.each<readonly [what: string, table: string, row: object, expected: object]>([
  [
    'inserts the secrets of the node, then those of all nodes',
    'nodes',
    { name: 'one', driver_info: { ipmi_password: '******', unmasked: 'shown', other: { secret: '******' } } },
    { missing: [], dropped: [], row: { driver_info: { ipmi_password: 'of one', unmasked: 'shown', other: { secret: 'deep' } } } },
  ],
  [
    'reports a masked part of a text as missing',
    'nodes',
    { name: 'two', driver_info: { text: 'password=******' } },
    { missing: ['driver_info/text'], dropped: [], row: { driver_info: {} } },
  ],
  [
    'drops secrets that a node does not need',
    'nodes',
    {
      driver_internal_info: { agent_secret_token: '******', agent_url: 'kept' },
      instance_info: { configdrive: '******', image_url: '******', list: ['******', { token: '******', kept: 1 }] },
    },
    {
      missing: [],
      dropped: ['instance_info/configdrive', 'instance_info/list/0', 'instance_info/list/1/token'],
      row: { driver_internal_info: { agent_url: 'kept' }, instance_info: { list: [{ kept: 1 }] } },
    },
  ],
  [
    'inserts the secret of a volume target',
    'volume_targets',
    { uuid: 'target', properties: { auth_password: '******' } },
    { missing: [], row: { properties: { auth_password: 'of the target' } } },
  ],
  [
    'does not insert secrets of all nodes into a volume target',
    'volume_targets',
    { properties: { ipmi_password: '******' } },
    { missing: ['properties/ipmi_password'] },
  ],
  [
    'reports a masked argument of a step as missing',
    'deploy_templates',
    { name: 'one', steps: [{ args: { password: '******' } }] },
    { missing: ['steps/0/args/password'] },
  ],
  [
    'inserts steps that are given as a whole',
    'deploy_templates',
    { name: 'template', steps: [{ args: { password: '******' } }] },
    { missing: [], row: { steps: [{ args: { password: 'of the template' } }] } },
  ],
  [
    'leaves a table without secrets unchanged',
    'node_history',
    { event: 'it wrote ******' },
    { missing: [], row: { event: 'it wrote ******' } },
  ],
])('insertSecrets: %s', (_, table, row, expected) => {
  expect(insertSecrets(row as Record<string, unknown>, table, SECRETS)).toMatchObject(expected);
  const { row: whole, missing } = insertSecrets(row as Record<string, unknown>, table, SECRETS);
  if (missing.length === 0 && table !== 'node_history') expect(JSON.stringify(whole)).not.toContain('******');
});
