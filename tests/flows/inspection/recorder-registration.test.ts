/**
 * Recorders that register themselves, at a whole server with http_basic: with a token of `bloomery token` that may do nothing else, the
 * program gets a token of its own for its machine, once; what is refused, and what follows when the token is revoked.
 */
import { execFile, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { claimOf } from '../../../ramdisk-agent/system/registration';
import { tree } from '../../../ramdisk-agent/system/tree';
import { fileTree } from '../../ramdisk-agent/support';
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { NEWEST_VERSION } from '../../support/newest';
import { until } from '../../support/until';
import { fakeSettings, openProcesses, type Processes } from '../../support/processes';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-registration-'));
/** `secret`, of bcrypt at its lowest cost. */
const DIGEST = '$2b$04$JCYtpV1F4gyrBd50P97aReFpr1INtdnhJUuzUjJeiKJYffB6hR8iK';
const database = useDatabase();
let processes: Processes;
let url: string;

const UUIDS = { one: '7a5ed1b4-8b6c-4b9a-9e0e-0d1c6d1c9f01', two: '7a5ed1b4-8b6c-4b9a-9e0e-0d1c6d1c9f02' } as const;
const macOf = (at: number): string => `52:54:00:00:00:0${at}`;
const basic = { authorization: `Basic ${Buffer.from('admin:secret').toString('base64')}` };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
async function call(method: string, path: string, headers: Readonly<Record<string, string>>, body?: object) {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { 'X-OpenStack-Ironic-API-Version': NEWEST_VERSION, 'content-type': 'application/json', ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await answer.text();
  return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as Readonly<Record<string, unknown>> };
}
const asRecorder = (token: string, body: object) => call('POST', '/v1/hardware/registrations', bearer(token), body);
async function tokens(...words: readonly string[]): Promise<string> {
  const config = join(folder, 'empty.conf');
  writeFileSync(config, '');
  const { output, code } = await runCommand(['token', ...words, '--config-file', config], { DATABASE_URL: database.connection() });
  expect(code).toBe(0);
  return output.trim();
}
const makeToken = (name: string, expires: string, role = 'recorder'): Promise<string> =>
  tokens('create', '--name', name, '--role', role, '--expires', expires);

interface Machine {
  readonly state?: string;
  readonly vendor?: object | null;
}
let made = 0;
/** A node with a port, and the result of an inspection. */
async function createNode({ state = 'active', vendor = {} }: Machine = {}): Promise<{ readonly uuid: string; readonly mac: string }> {
  const mac = `52:54:00:00:01:${(++made).toString(16).padStart(2, '0')}`;
  const created = await call('POST', '/v1/nodes', basic, { driver: 'fake-hardware' });
  const uuid = created.body['uuid'] as string;
  await call('POST', '/v1/ports', basic, { node_uuid: uuid, address: mac });
  if (vendor) await database.store().inventories.put(uuid, { inventory: { interfaces: [], system_vendor: vendor }, plugin_data: {} });
  await database.query('UPDATE nodes SET provision_state = $2, revision = revision + 1 WHERE uuid = $1', [uuid, state]);
  return { uuid, mac };
}
const machineOf = (mac: string, uuid: string, serial = 'S1'): string =>
  fileTree({
    'proc/cpuinfo': 'processor\t: 0\n',
    'proc/sys/kernel/random/boot_id': 'b\n',
    'sys/class/dmi/id/product_uuid': `${uuid}\n`,
    'sys/class/dmi/id/product_serial': `${serial}\n`,
    'sys/block/sda/size': '2048\n',
    'sys/block/sda/device/wwid': 'naa.5000c500a1b2c3d4\n',
    'sys/class/net/eth0/address': `${mac}\n`,
    'sys/class/net/eth0/device': '->../../../devices/pci0000:00/0000:00:01.0',
    'sys/devices/pci0000:00/0000:00:01.0/vendor': '0x8086\n',
  });
const AGENT = join(__dirname, '../../../dist/ramdisk-agent/main.js');
function wordsOf(root: string, token: string, identity: string): string[] {
  const file = join(folder, 'bootstrap');
  writeFileSync(file, token);
  const words = ['--url', url, '--root', root, '--config-drive', join(folder, 'none')];
  return [...words, '--bootstrap-file', file, '--identity-file', identity];
}
/** One push of the program. @returns what it says */
const record = (...given: Parameters<typeof wordsOf>) => recordWith(wordsOf(...given));
async function recordWith(words: readonly string[]): Promise<{ readonly code: number; readonly text: string }> {
  try {
    const { stdout, stderr } = await run(process.execPath, [AGENT, 'record', '--once', ...words]);
    return { code: 0, text: stdout + stderr };
  } catch (error) {
    const { stdout, stderr, code } = error as { stdout: string; stderr: string; code: number };
    return { code, text: stdout + stderr };
  }
}

let bootstrap: string;
beforeAll(async () => {
  const users = join(folder, 'users');
  writeFileSync(users, `admin:${DIGEST}\n`);
  processes = openProcesses(() => database.connection());
  const settings = fakeSettings(`auth_strategy = http_basic\nhttp_basic_auth_user_file = ${users}`, '[recorder]\nenabled = true\n');
  const started = await processes.start('one', 'api,conductor', settings);
  if (typeof started !== 'string') throw new Error(started.errors);
  url = started;
  bootstrap = await makeToken('bootstrap', '1h');
});
afterAll(async () => {
  await processes.close();
  rmSync(folder, { recursive: true, force: true });
});

it('the program gets a token of its own, keeps it for itself, and needs the other one no more', async () => {
  const { uuid, mac } = await createNode({ vendor: { system_uuid: UUIDS.one } });
  const [root, identity] = [machineOf(mac, UUIDS.one.toUpperCase()), join(folder, 'host', 'identity.json')];
  const first = await record(root, bootstrap, identity);
  expect(first).toEqual({ code: 0, text: expect.stringContaining('The hardware is recorded') as string });
  expect(statSync(identity).mode & 0o777).toBe(0o600);
  const kept = JSON.parse(readFileSync(identity, 'utf8')) as { node: string; token: string };
  expect(kept).toEqual({ node: uuid, token: expect.stringMatching(/^[\w-]{20,}$/) as string });
  expect(first.text).not.toContain(kept.token);
  const shown = await call('GET', `/v1/nodes/${uuid}/hardware`, basic);
  expect(shown.body).toMatchObject({ token: { from: 'registration' }, hardware: { disks: [{}] } });
  expect(await record(root, 'worthless', identity)).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(identity, 'utf8'))).toEqual(kept);
  const { body } = await call('GET', `/v1/nodes/${uuid}/history?detail=True`, basic);
  expect(JSON.stringify(body)).toContain('The recorder of the running host registered itself.');
  expect(JSON.stringify(body)).not.toContain(kept.token);

  // From elsewhere, with all that the machine knows of itself.
  const second = await record(root, bootstrap, join(folder, 'elsewhere.json'));
  expect(second).toEqual({ code: 1, text: expect.stringContaining('it answers 409') as string });
  expect(() => statSync(join(folder, 'elsewhere.json'))).toThrow('ENOENT');
  expect(JSON.stringify((await call('GET', `/v1/nodes/${uuid}/history`, basic)).body)).toContain(
    'A recorder that wanted to register was refused',
  );
  expect(await record(root, bootstrap, identity)).toMatchObject({ code: 0 });
});

it('a recorder whose token was revoked registers again, without an operator on the machine', async () => {
  const { uuid, mac } = await createNode({ vendor: { system_uuid: UUIDS.two } });
  const identity = join(folder, 'revoked.json');
  const own = (): string => (JSON.parse(readFileSync(identity, 'utf8')) as { token: string }).token;
  const words = ['--interval', '1', ...wordsOf(machineOf(mac, UUIDS.two), bootstrap, identity)];
  const program = spawn(process.execPath, [AGENT, 'record', ...words], { stdio: 'ignore' });
  try {
    await until('it is registered', () => existsSync(identity));
    const before = own();
    expect((await call('DELETE', `/v1/nodes/${uuid}/hardware/token`, basic)).status).toBe(204);
    await until('it has another token', () => own() !== before);
    await until('its push is taken', async () => (await call('GET', `/v1/nodes/${uuid}/hardware`, basic)).status === 200);
  } finally {
    const ended = once(program, 'exit');
    program.kill('SIGTERM');
    await ended;
  }
});

it('a host that did not get the answer registers again, with the same token', async () => {
  const { uuid, mac } = await createNode({ vendor: { system_uuid: UUIDS.one } });
  let lost = 0;
  // Between the host and the server: the connection breaks after the server has answered.
  const between = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const headers = Object.entries(request.headers).filter(([name]) => !['host', 'connection', 'content-length'].includes(name));
      const answer = await fetch(`${url}${request.url!}`, {
        method: request.method!,
        headers: headers as [string, string][],
        body: Buffer.concat(chunks),
      });
      if (lost++ === 0) request.socket.destroy();
      else response.writeHead(answer.status).end(await answer.text());
    })();
  });
  await new Promise<void>((done) => between.listen(0, '127.0.0.1', done));
  const identity = join(folder, 'lost.json');
  const again = async (): ReturnType<typeof record> => {
    const words = wordsOf(machineOf(mac, UUIDS.one), bootstrap, identity);
    words.splice(words.indexOf('--url') + 1, 1, `http://127.0.0.1:${(between.address() as AddressInfo).port}`);
    return recordWith(words);
  };
  try {
    expect(await again()).toMatchObject({ code: 1 });
    expect(existsSync(identity)).toBe(false);
    const before = (await database.store().hardware.findToken(uuid))!.token_hash;
    expect(before).toMatch(/^[0-9a-f]{64}$/);
    expect(statSync(`${identity}.secret`).mode & 0o777).toBe(0o600);
    expect(await again()).toMatchObject({ code: 0 });
    expect((await database.store().hardware.findToken(uuid))!.token_hash).toBe(before);
    expect(existsSync(`${identity}.secret`)).toBe(false);
    const { history } = (await call('GET', `/v1/nodes/${uuid}/history?detail=True`, basic)).body as { history: { event: string }[] };
    expect(history.map(({ event }) => event)).toEqual(['The recorder of the running host registered itself.']);
  } finally {
    between.close();
  }
  // From elsewhere, with another token, and without one.
  const claim = { addresses: [mac], system_uuid: UUIDS.one };
  for (const more of [{ token: 'x'.repeat(43) }, {}]) expect((await asRecorder(bootstrap, { ...claim, ...more })).status).toBe(409);
});
it.each(['short', `${'x'.repeat(42)}!`, 'x'.repeat(200), 7])('refuses %j as a token of the host', async (token) => {
  expect((await asRecorder(bootstrap, { addresses: [macOf(1)], token })).status).toBe(400);
});

it('the token that registers may do nothing else', async () => {
  const { uuid } = await createNode();
  for (const [method, path] of [
    ['GET', '/v1/nodes'],
    ['GET', `/v1/nodes/${uuid}`],
    ['GET', '/v1/hardware'],
    ['GET', `/v1/nodes/${uuid}/hardware`],
    ['POST', `/v1/nodes/${uuid}/hardware/token`],
    ['DELETE', `/v1/nodes/${uuid}/hardware/token`],
    ['PUT', `/v1/nodes/${uuid}/hardware`],
  ] as const)
    expect([403, 404]).toContain(
      (await call(method, path, bearer(bootstrap), method === 'PUT' ? { digest: 'a'.repeat(64) } : undefined)).status,
    );
});

it.each<[string, Machine, object]>([
  ['of another system', { vendor: { system_uuid: UUIDS.one } }, { system_uuid: UUIDS.two, serial_number: 'S1' }],
  [
    'without a system UUID, if the inspection found one',
    { vendor: { system_uuid: UUIDS.one, serial_number: 'S1' } },
    { serial_number: 'S1' },
  ],
  ['of another serial number', { vendor: { serial_number: 'S1' } }, { system_uuid: UUIDS.one, serial_number: 'S2' }],
  [
    'of a system without an identity',
    { vendor: { system_uuid: '00000000-0000-0000-0000-000000000000', serial_number: '' } },
    { system_uuid: '00000000-0000-0000-0000-000000000000', serial_number: '' },
  ],
  ['of a node that is not deployed', { state: 'available', vendor: { system_uuid: UUIDS.one } }, { system_uuid: UUIDS.one }],
  ['of a node that was never inspected', { vendor: null }, { system_uuid: UUIDS.one }],
])('refuses a host %s, with one answer', async (_, machine, claim) => {
  const { uuid, mac } = await createNode(machine);
  const answer = await asRecorder(bootstrap, { addresses: [mac], ...claim });
  expect(answer.status).toBe(404);
  expect(JSON.stringify(answer.body)).toContain('No active node has these addresses and was inspected as this system.');
  expect(await database.store().hardware.findToken(uuid)).toBeUndefined();
});
it('refuses addresses that no node has, and those of two nodes', async () => {
  const [one, two] = [await createNode({ vendor: { system_uuid: UUIDS.one } }), await createNode({ vendor: { system_uuid: UUIDS.one } })];
  for (const addresses of [['52:54:00:ff:ff:ff'], ['x'], [one.mac, two.mac]])
    expect((await asRecorder(bootstrap, { addresses, system_uuid: UUIDS.one })).status).toBe(404);
});
it.each<[string, object]>([
  ['no addresses', { system_uuid: UUIDS.one }],
  ['an empty list', { addresses: [] }],
  ['too many', { addresses: Array.from({ length: 257 }, () => macOf(1)) }],
  ['a member that is not known', { addresses: [macOf(1)], node: 'x' }],
  ['a UUID that is a number', { addresses: [macOf(1)], system_uuid: 1 }],
])('refuses %s with 400', async (_, body) => expect((await asRecorder(bootstrap, body)).status).toBe(400));

it('refuses an expired, a revoked and an unknown token, one of another role, and none', async () => {
  const { mac } = await createNode({ vendor: { system_uuid: UUIDS.one } });
  const claim = { addresses: [mac], system_uuid: UUIDS.one };
  const [expired, revoked, member] = [
    await makeToken('expired', '1m'),
    await makeToken('revoked', '1h'),
    await makeToken('member', '1h', 'member'),
  ];
  await tokens('revoke', 'revoked');
  await database.query("UPDATE api_tokens SET expires_at = now() - interval '1 second' WHERE name = 'expired'");
  expect((await asRecorder(expired, claim)).status).toBe(401);
  expect((await asRecorder(revoked, claim)).status).toBe(401);
  expect((await asRecorder(`${expired}x`, claim)).status).toBe(401);
  expect((await asRecorder(member, claim)).status).toBe(403);
  expect((await call('POST', '/v1/hardware/registrations', {}, claim)).status).toBe(401);
});

it('of several registrations of one machine at once, one gets a token', async () => {
  const { mac } = await createNode({ vendor: { serial_number: 'S7' } });
  const claim = { ...claimOf(tree(machineOf(mac, UUIDS.two, 'S7')), [mac]) };
  const answers = await Promise.all(Array.from({ length: 8 }, () => asRecorder(bootstrap, claim)));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array<number>(7).fill(409)]);
});
it('takes the UUID in the other byte order too', async () => {
  const { uuid, mac } = await createNode({ vendor: { system_uuid: '00112233-4455-6677-8899-AABBCCDDEEFF' } });
  const answer = await asRecorder(bootstrap, { addresses: [mac.toUpperCase()], system_uuid: '33221100-5544-7766-8899-aabbccddeeff' });
  expect(answer).toMatchObject({ status: 201, body: { node_uuid: uuid } });
});
it('does not register a host that cannot keep its token', async () => {
  const { uuid, mac } = await createNode({ vendor: { system_uuid: UUIDS.two } });
  const file = join(folder, 'plain');
  writeFileSync(file, '');
  chmodSync(file, 0o400);
  const said = await record(machineOf(mac, UUIDS.two), bootstrap, join(file, 'identity.json'));
  expect(said).toEqual({ code: 1, text: expect.stringMatching(/ENOTDIR|EEXIST/) as string });
  expect(await database.store().hardware.findToken(uuid)).toBeUndefined();
});
