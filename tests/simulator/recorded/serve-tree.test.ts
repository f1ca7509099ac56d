/** A recorded tree as a BMC: login, the little state that it has, and what is refused in files. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HttpListener } from '../../../simulator/http';
import { serveTree } from '../../../simulator/recorded/serve-tree';
import { isTreePath, readTree, treeText, type RecordedResource } from '../../../wire/redfish/recorded-tree';

const RECORDED = '2026-01-01T00:00:00.000Z';
const HEADER = { program: '1', recorded: RECORDED, complete: true, replaced: {} };
const SYSTEM = '/redfish/v1/Systems/1';
const CD = '/redfish/v1/Managers/1/VirtualMedia/CD';
const resource = (path: string, body: Readonly<Record<string, unknown>>, allow?: string): RecordedResource => ({
  path,
  status: 200,
  body,
  allow,
});
const TREE = [
  resource('/redfish/v1/', { Links: { Sessions: { '@odata.id': '/redfish/v1/SessionService/Sessions' } } }),
  resource(
    SYSTEM,
    {
      PowerState: 'Off',
      Boot: { BootSourceOverrideTarget: 'None' },
      Actions: { '#ComputerSystem.Reset': { target: `${SYSTEM}/Actions/ComputerSystem.Reset` } },
    },
    'GET, PATCH',
  ),
  resource(
    `${SYSTEM}/Bios`,
    { Attributes: { A: 1 }, '@Redfish.Settings': { SettingsObject: { '@odata.id': `${SYSTEM}/Bios/Settings` } } },
    'GET',
  ),
  resource(`${SYSTEM}/Bios/Settings`, { Attributes: { A: 1 } }),
  resource(CD, {
    Inserted: false,
    Image: null,
    Actions: {
      '#VirtualMedia.InsertMedia': { target: `${CD}/Actions/VirtualMedia.InsertMedia` },
      '#VirtualMedia.EjectMedia': { target: `${CD}/Actions/VirtualMedia.EjectMedia` },
    },
  }),
  resource('/redfish/v1/Managers/1', { DateTime: '2026-01-01T01:00:00+01:00' }),
  { path: `${SYSTEM}/Oem`, status: 503 },
  { path: '/redfish/v1/AccountService/Accounts', status: 200, left_out: true },
] satisfies RecordedResource[];

let folder: string;
let bmc: HttpListener;
let now = Date.parse(RECORDED);
const written = (text: string): string => {
  const file = join(folder, `${randomBytes(4).toString('hex')}.jsonl`);
  writeFileSync(file, text);
  return file;
};
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tree-'));
  const tree = await readTree(written(treeText(HEADER, TREE)));
  bmc = await serveTree({
    tree,
    host: '127.0.0.1',
    port: 0,
    username: 'admin',
    password: 'password',
    clock: { now: () => now },
    random: randomBytes,
  });
});
afterAll(async () => {
  await bmc.close();
  rmSync(folder, { recursive: true });
});
const BASIC = { authorization: `Basic ${Buffer.from('admin:password').toString('base64')}` };
const ask = async (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = BASIC) => {
  const answer = await fetch(`http://127.0.0.1:${bmc.port}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
};

it('opens and ends sessions, and refuses others', async () => {
  expect((await ask('GET', '/redfish/v1', undefined, {})).status).toBe(200);
  expect((await ask('GET', SYSTEM, undefined, {})).status).toBe(401);
  expect((await ask('POST', '/redfish/v1/SessionService/Sessions', { UserName: 'admin', Password: 'x' }, {})).status).toBe(401);
  const { status, headers } = await ask('POST', '/redfish/v1/SessionService/Sessions', { UserName: 'admin', Password: 'password' }, {});
  expect(status).toBe(201);
  const token = { 'x-auth-token': headers.get('x-auth-token')! };
  expect((await ask('GET', SYSTEM, undefined, token)).status).toBe(200);
  expect((await ask('DELETE', headers.get('location')!, undefined, token)).status).toBe(204);
  expect((await ask('GET', SYSTEM, undefined, token)).status).toBe(401);
});

it('has the state of power, boot device, BIOS settings and media', async () => {
  expect((await ask('PATCH', SYSTEM, { Boot: { BootSourceOverrideTarget: 'Pxe' } })).body).toMatchObject({
    PowerState: 'Off',
    Boot: { BootSourceOverrideTarget: 'Pxe' },
  });
  expect((await ask('PATCH', `${SYSTEM}/Bios`, {})).status).toBe(405);
  await ask('PATCH', `${SYSTEM}/Bios/Settings`, { Attributes: { A: 2 } });
  expect((await ask('GET', `${SYSTEM}/Bios`)).body['Attributes']).toEqual({ A: 1 });
  expect((await ask('POST', `${SYSTEM}/Actions/ComputerSystem.Reset`, { ResetType: 'Explode' })).status).toBe(400);
  expect((await ask('POST', `${SYSTEM}/Actions/ComputerSystem.Reset`, { ResetType: 'On' })).status).toBe(204);
  expect((await ask('GET', `${SYSTEM}/`)).body['PowerState']).toBe('On');
  expect((await ask('GET', `${SYSTEM}/Bios`)).body['Attributes']).toEqual({ A: 2 });
  await ask('POST', `${CD}/Actions/VirtualMedia.InsertMedia`, { Image: 'http://192.0.2.1/x.iso' });
  expect((await ask('GET', CD)).body).toMatchObject({ Inserted: true, Image: 'http://192.0.2.1/x.iso' });
  await ask('POST', `${CD}/Actions/VirtualMedia.EjectMedia`);
  expect((await ask('GET', CD)).body).toMatchObject({ Inserted: false, Image: null });
});

it('repeats what the service answered, and its clock runs on', async () => {
  expect((await ask('GET', `${SYSTEM}/Oem`)).status).toBe(503);
  expect((await ask('GET', `${SYSTEM}/Nothing`)).status).toBe(404);
  expect((await ask('GET', '/redfish/v1/AccountService/Accounts')).body['Members']).toEqual([]);
  expect((await ask('GET', SYSTEM)).headers.get('allow')).toBe('GET, PATCH');
  now += 3_600_000;
  expect((await ask('GET', '/redfish/v1/Managers/1')).body['DateTime']).toBe('2026-01-01T01:00:00+00:00');
});

it('a change with names of prototypes changes no other object', async () => {
  const sent = await fetch(`http://127.0.0.1:${bmc.port}${SYSTEM}`, {
    method: 'PATCH',
    headers: BASIC,
    body: '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  });
  expect(sent.status).toBe(200);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

const line = (value: unknown): string => `${JSON.stringify(value)}\n`;
const start = line({ bloomery_tree: 1, ...HEADER });
it.each<readonly [string, string, RegExp]>([
  ['nothing', '', /is empty/],
  ['no header', line(TREE[0]), /line 1: the first line is no header/],
  ['another format', line({ bloomery_tree: 2 }), /another version/],
  ['no JSON', `${start}{`, /line 2:/],
  ['a path elsewhere', start + line({ path: '/etc/passwd', status: 200 }), /line 2: "path" is not a path below \/redfish/],
  ['a path upwards', start + line({ path: '/redfish/v1/../../etc', status: 200 }), /"path"/],
  ['another host', start + line({ path: '//evil.example/redfish', status: 200 }), /"path"/],
  ['no status', start + line({ path: SYSTEM, status: 'x' }), /"status"/],
  ['a text as body', start + line({ path: SYSTEM, status: 200, body: 'x' }), /"body"/],
  ['a header in allow', start + line({ path: SYSTEM, status: 200, allow: 'GET\r\nx: y' }), /"allow"/],
  ['deep JSON', `${start}{"path":"${SYSTEM}","status":200,"body":{"a":${'['.repeat(100)}${']'.repeat(100)}}}`, /line 2:.*depth/],
  [
    'too many',
    start + Array.from({ length: 2001 }, (_, index) => line({ path: `${SYSTEM}/${index}`, status: 404 })).join(''),
    /more than 2000/,
  ],
])('a file with %s is refused', async (_name, text, reason) => {
  await expect(readTree(written(text))).rejects.toThrow(reason);
});

it.each(['/redfish', '/redfish/v1/', "/redfish/v1/Systems('1')", '/redfish/v1/S?$skip=50', '/redfish/v1/A/b%3Ac'])('%s is a path', (path) =>
  expect(isTreePath(path)).toBe(true),
);
it.each(['/redfishy', '/redfish/./x', '/redfish/v1/a b', '/redfish/v1/\u001b', `/redfish/${'x'.repeat(2000)}`, 7])('%p is none', (path) =>
  expect(isTreePath(path)).toBe(false),
);
