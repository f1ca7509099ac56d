import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer, request, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openCache } from '../../boot/cache';
import { parseRange } from '../../boot/content';
import { startHttpBoot } from '../../boot/http';
import { systemClock } from '../../model/clock';
import { Fault } from '../../model/errors';
import { readAgentCaFiles } from '../../wire/agent-authorities';
import type { Log } from '../../model/log';
import type { JsonObject, ServedBoot, MediumRecord } from '../../model/records';
import type { Store } from '../../store/store';
import type { VolumeStore } from '../../store/volumes';
import { ownCertificate } from '../../wire/http/certificate';
import { cpioArchive } from '../../wire/images/cpio';
import { testClock } from '../support/clock';
import { filterWith } from '../support/pxe-filter';
import { optionsOf } from '../support/options';
import { nodeRecord } from '../support/task';
import { servicesOf } from '../support/services';
import { startTlsServer } from '../support/fakes/tls-server';
import { until } from '../support/until';

type HttpBootSetup = Parameters<typeof startHttpBoot>[0];
type HttpBootService = Awaited<ReturnType<typeof startHttpBoot>>;
const { glance } = servicesOf();
const UUID = '1be26c0b-03f2-4d2e-ae87-c02d7f33c123';
const DISCOVERY = '00000000-0000-0000-0000-000000000000';
const INTROSPECTION = '00000000-0000-0000-0000-000000000001';
const TOKEN = '0123456789abcdef0123456789abcdef';
const MAC = '52:54:00:aa:bb:01';
const folder = mkdtempSync(join(tmpdir(), 'http-boot-'));
const path = (...parts: string[]): string => join(folder, ...parts);
const big = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7 + (i >> 8)) & 255));
const lines: string[] = [];
const note = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
const log: Log = { debug: () => {}, info: () => {}, warn: note, error: note, child: () => log };

/** The server from which files are fetched; each test sets its answers. */
let upstream: Server;
let upstreamUrl: string;
let upstreamDoes: RequestListener;
const asked: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = [];
const files: Record<string, string> = {};
let purpose: ServedBoot['purpose'] = 'ramdisk';
let targetProperties: JsonObject = {};
let service: HttpBootService;

const row = (): ServedBoot => ({
  node_uuid: UUID,
  token: TOKEN,
  macs: [MAC],
  method: 'ipxe',
  purpose,
  kernel_args: 'a=1',
  files,
});
const boots: Store['boots'] = {
  put: () => Promise.reject(new Error('not here')),
  remove: () => Promise.reject(new Error('not here')),
  ofNode: (uuid) => Promise.resolve(uuid === UUID ? row() : undefined),
  byToken: (token) => Promise.resolve(token === TOKEN ? row() : undefined),
  kickstartOf: (token) => Promise.resolve(token === TOKEN ? 'text\n' : undefined),
  noteRequests: async () => {},
  requestsOf: async () => undefined,
  forMac: (mac) => Promise.resolve(mac === MAC ? row() : undefined),
};
const KNOWN = '52:54:00:aa:bb:02';
/** The introspection service waits for the machine with this address. */
const WAITED = '52:54:00:aa:bb:03';
const volumeStore = {
  volumeConnectors: { list: async () => [] },
  volumeTargets: { list: async () => [{ uuid: 't', volume_type: 'iscsi', boot_index: 0, properties: targetProperties }] },
} as unknown as VolumeStore;
/** Token → medium. */
const media = new Map<string, MediumRecord>();
const mediaStore = { byToken: async (token: string) => media.get(token) } as unknown as Store['media'];
const standing = async (macs: readonly string[]) =>
  macs.flatMap((mac) => (mac === KNOWN || mac === WAITED ? [{ mac, inspectedBy: null, introspected: mac === WAITED }] : []));

const listen = (server: Server): Promise<number> =>
  new Promise((done) => server.listen(0, '127.0.0.1', () => done((server.address() as AddressInfo).port)));
interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}
/** Unlike fetch, does not normalize the path: it is sent as it is. */
function get(target: string, headers: Record<string, string> = {}, method = 'GET', from = service): Promise<Answer> {
  return new Promise((done, fail) => {
    const asking = request({ host: '127.0.0.1', port: from.port, path: target, headers, method, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', fail);
      response.on('end', () => {
        const { statusCode, headers, rawHeaders } = response;
        done({ status: statusCode!, headers, rawHeaders, body: Buffer.concat(parts) });
      });
    });
    asking.on('error', fail).end();
  });
}

beforeAll(async () => {
  mkdirSync(path('root', 'sub'), { recursive: true });
  writeFileSync(path('root', 'big'), big);
  writeFileSync(path('root', 'empty'), '');
  writeFileSync(path('root', 'sub', 'a b'), 'a file');
  writeFileSync(path('secret'), 'secret');
  writeFileSync(path('snponly.efi'), 'efi');
  symlinkSync(path('secret'), path('root', 'out'));
  utimesSync(path('root', 'big'), 1000, 1000.25);
  upstream = createServer((incoming, response) => {
    asked.push({ url: incoming.url!, headers: incoming.headers });
    upstreamDoes(incoming, response);
  });
  upstreamUrl = `http://127.0.0.1:${await listen(upstream)}`;
  service = await startHttpBoot(setup());
});
const setup = (): HttpBootSetup => ({
  glance,
  hosts: ['127.0.0.1'],
  options: {
    ...optionsOf(),
    'DEFAULT.my_ip': '192.0.2.9',
    'boot.http_port': 0,
    'boot.https_port': null,
    'api.unix_socket_proxy_protocol': false,
    'boot.http_unix_socket': null,
    'boot.http_max_connections': 100,
    'boot.http_max_connections_per_source': null,
    'deploy.http_url': 'http://127.0.0.1:0',
    'deploy.http_root': path('root'),
    'pxe.loader_file_paths': { 'snponly.efi': path('snponly.efi') },
    'pxe.image_cache_size': 1,
    'DEFAULT.webserver_verify_ca': 'True',
    'DEFAULT.webserver_tls_minimum_version': '1.3',
    'agent.api_ca_file': null,
    'boot.cache_root': path('cache'),
    'files.own': [path('own')],
    'files.boot': new Set([path('own/chosen')]),
  },
  store: {
    boots,
    media: mediaStore,
    ...volumeStore,
    discoveries: { addressStatuses: standing },
    nodes: { find: async () => nodeRecord() },
  },
  filter: filterWith({ 'auto_discovery.enabled': true }),
  log,
  clock: systemClock,
  random: randomBytes,
  reports: {
    discovery: { ...row(), node_uuid: DISCOVERY, token: DISCOVERY, kernel_args: 'discover=1', files: { kernel: path('snponly.efi') } },
    introspection: {
      ...row(),
      node_uuid: INTROSPECTION,
      token: INTROSPECTION,
      kernel_args: 'introspect=1',
      files: { kernel: path('snponly.efi') },
    },
  },
});
beforeEach(() => {
  lines.length = 0;
  asked.length = 0;
  for (const name of Object.keys(files)) Reflect.deleteProperty(files, name);
});
afterAll(async () => {
  await service.stop();
  upstream.closeAllConnections();
  await new Promise((closed) => upstream.close(closed));
  rmSync(folder, { recursive: true });
});

describe('iPXE scripts', () => {
  it('exist for a machine with a boot record, with the address of this server', async () => {
    const { status, headers, body } = await get('/ipxe/52-54-00-aa-bb-01');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/plain');
    expect(body.toString()).toContain(`kernel http://127.0.0.1:${service.port}/boot/${TOKEN}/kernel a=1 `);
    expect((await get('/ipxe/52-54-00-AA-BB-01')).body).toEqual(body);
  });
  it('exist for discovery and introspection, but not for a known machine without a boot record', async () => {
    expect((await get('/ipxe/52-54-00-aa-bb-02')).status).toBe(404);
    expect((await get('/ipxe/52-54-00-aa-bb-99')).body.toString()).toContain('discover=1');
    expect((await get(`/boot/${DISCOVERY}/kernel`)).body.toString()).toBe('efi');
    expect((await get('/ipxe/52-54-00-aa-bb-03')).body.toString()).toContain('introspect=1');
    expect((await get(`/boot/${INTROSPECTION}/kernel`)).body.toString()).toBe('efi');
  });
});

describe('configuration of GRUB', () => {
  it.each([
    ['/grub/grub.cfg', 200, 'source /$net_default_mac.conf\n'],
    ['/grub.cfg', 200, 'source /$net_default_mac.conf\n'],
    [`/grub/grub.cfg-01-${MAC.replaceAll(':', '-')}`, 200, `linux /boot/${TOKEN}/kernel 'a=1'`],
    [`/${MAC}.conf`, 200, `initrd /boot/${TOKEN}/ramdisk`],
    [`/${KNOWN}.conf`, 404, `Nothing to boot for ${KNOWN}`],
    // GRUB would wait for the end of the connection.
    ['/grub/x86_64-efi/fs.lst', 404, 'Not found'],
  ])('%s: %d', async (path, status, text) => {
    const answer = await get(path, { connection: 'keep-alive' });
    expect([answer.status, answer.headers.connection]).toEqual([status, status === 200 ? 'keep-alive' : 'close']);
    expect(answer.body.toString()).toContain(text);
  });
});

it.each(['/grub.cfg', `/${MAC}.conf`, '/big', '/not-there'])('%s: the size has the capitals that GRUB 2.06 looks for', async (path) => {
  expect((await get(path)).rawHeaders).toContain('Content-Length');
});

describe('iPXE scripts for volumes', () => {
  const properties = { target_iqn: 'iqn.2017-08.org.example:v', target_lun: 0, auth_username: 'u', auth_password: 'a secret' };
  beforeEach(() => {
    purpose = 'volume';
    targetProperties = { ...properties, target_portal: '192.0.2.5:3260' };
  });
  afterEach(() => {
    purpose = 'ramdisk';
  });
  it('contain the current volume target and its secret, which is not logged', async () => {
    const { status, body } = await get('/ipxe/52-54-00-aa-bb-01');
    expect(status).toBe(200);
    expect(body.toString()).toContain('sanhook --drive 0x80 iscsi:192.0.2.5::3260:0:iqn.2017-08.org.example:v || goto again');
    expect(body.toString()).toContain(`set password:hexraw ${Buffer.from('a secret').toString('hex')}`);
    targetProperties = { ...properties, target_portal: '192.0.2.6:3260' };
    expect((await get('/ipxe/52-54-00-aa-bb-01')).body.toString()).toContain('iscsi:192.0.2.6::');
    expect(lines.join('\n')).not.toContain('secret');
  });
  it('do not exist for an invalid volume target', async () => {
    targetProperties = { ...properties, target_portal: 'not a portal' };
    const { status, body } = await get('/ipxe/52-54-00-aa-bb-01');
    expect([status, body.toString()]).toEqual([404, 'Nothing to boot for 52:54:00:aa:bb:01\n']);
    expect((await get('/ipxe/52-54-00-aa-bb-02')).status).toBe(404);
    // A script that asks for another gets one: iPXE cannot tell 404 from other failures.
    const asked = await get('/ipxe/52-54-00-aa-bb-02?start');
    expect([asked.status, asked.body.toString()]).toEqual([200, expect.stringContaining('nothing to boot for ${mac:hexhyp}\nexit 1\n')]);
    expect(lines.join('\n')).toContain('Volume target t: target_portal is not an address with an optional port');
    expect(lines.join('\n')).not.toContain('secret');
  });
});

describe('files', () => {
  it.each([
    ['/big', big],
    ['//big', big],
    ['/empty', Buffer.alloc(0)],
    ['/sub/a%20b', Buffer.from('a file')],
    ['/sub/../empty', Buffer.alloc(0)],
    ['/snponly.efi?x=1', Buffer.from('efi')],
  ])('%s is served', async (target, content) => {
    const { status, headers, body } = await get(target);
    expect([status, headers['content-length']]).toEqual([200, String(content.length)]);
    expect(body.equals(content)).toBe(true);
  });
  it('a loader has the content type application/efi', async () => {
    expect((await get('/snponly.efi', {}, 'HEAD')).headers['content-type']).toBe('application/efi');
  });
  it.each(['/', '/sub', '/nothing', '/out', '/../secret', '/%2e%2e/secret', '/..%2fsecret', '/sub/..%2f..%2fsecret', '/a%00b', '/big/'])(
    '%s is not found',
    async (target) => expect((await get(target)).status).toBe(404),
  );
  it.each(['/%', '/%ff', '/%zz'])('%s is a bad request', async (target) => expect((await get(target)).status).toBe(400));
  it.each(['POST', 'PUT', 'DELETE'])('%s is not allowed', async (method) => {
    const { status, headers } = await get('/big', {}, method);
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
  });
  it('HEAD is answered without a body', async () => {
    const { status, headers, body } = await get('/big', {}, 'HEAD');
    expect([status, headers['content-length'], body.length]).toEqual([200, '300000', 0]);
  });
});

describe('ranges and conditions', () => {
  it.each([
    ['bytes=0-0', 206, 0, 1],
    ['bytes=100-199', 206, 100, 200],
    ['bytes=299990-', 206, 299990, 300000],
    ['bytes=299990-999999', 206, 299990, 300000],
    ['bytes=-10', 206, 299990, 300000],
    ['bytes=0-1,3-4', 200, 0, 300000],
    ['bytes=5-4', 200, 0, 300000],
    ['lines=1-2', 200, 0, 300000],
  ])('%s', async (range, status, start, end) => {
    const answer = await get('/big', { range });
    expect(answer.status).toBe(status);
    expect(answer.headers['content-range']).toBe(status === 206 ? `bytes ${start}-${end - 1}/300000` : undefined);
    expect(answer.body.equals(big.subarray(start, end))).toBe(true);
  });
  it.each(['bytes=300000-', 'bytes=-0'])('%s is not satisfiable', async (range) => {
    const { status, headers } = await get('/big', { range });
    expect([status, headers['content-range']]).toEqual([416, 'bytes */300000']);
  });
  it('parseRange returns "outside" for an empty file', () => expect(parseRange('bytes=-1', 0)).toBe('outside'));
  it("If-Range sends a range only of the client's version", async () => {
    const { etag } = (await get('/big', {}, 'HEAD')).headers;
    expect((await get('/big', { range: 'bytes=0-9', 'if-range': etag! })).status).toBe(206);
    expect((await get('/big', { range: 'bytes=0-9', 'if-range': '"other"' })).status).toBe(200);
    expect((await get('/big', { range: 'bytes=0-9', 'if-range': new Date(1_000_000).toUTCString() })).status).toBe(206);
    expect((await get('/big', { range: 'bytes=0-9', 'if-range': new Date(2_000_000).toUTCString() })).status).toBe(200);
  });
  it('If-None-Match and If-Modified-Since are answered with 304 if nothing has changed', async () => {
    const { etag, 'last-modified': modified } = (await get('/big', {}, 'HEAD')).headers;
    expect((await get('/big', { 'if-none-match': etag! })).status).toBe(304);
    expect((await get('/big', { 'if-none-match': `"x", W/${etag!}` })).status).toBe(304);
    expect((await get('/big', { 'if-none-match': '"x"', 'if-modified-since': modified! })).status).toBe(200);
    expect((await get('/big', { 'if-modified-since': modified! })).status).toBe(304);
    expect((await get('/big', { 'if-modified-since': new Date(999_000).toUTCString() })).status).toBe(200);
  });
});

describe('files of a boot record', () => {
  const target = `/boot/${TOKEN}/kernel`;

  it('are served from a path or file URL only under their token and name', async () => {
    files.kernel = path('secret');
    expect((await get(target)).body.toString()).toBe('secret');
    files.kernel = `file://${path('secret')}`;
    expect((await get(target.toUpperCase().replace('/BOOT/', '/boot/').replace('KERNEL', 'kernel'))).body.toString()).toBe('secret');
    for (const wrong of [
      `/boot/${UUID}/kernel`,
      `/boot/${TOKEN}/ramdisk`,
      `/boot/${TOKEN}/constructor`,
      `/boot/x/kernel`,
      target.replace('012', '112'),
    ])
      expect((await get(wrong)).status).toBe(404);
    files.kernel = path('not there');
    expect((await get(target)).status).toBe(404);
    expect(lines).toEqual([expect.stringContaining('a file of a boot record does not exist')]);
  });

  it('are served from files of the server only if an option names them, and never through a link of a record', async () => {
    mkdirSync(path('own'), { recursive: true });
    for (const name of ['chosen', 'database']) writeFileSync(path(`own/${name}`), name);
    writeFileSync(path('plain'), 'plain');
    symlinkSync(path('plain'), path('linked'));
    files['kernel'] = path('own/chosen');
    expect((await get(target)).body.toString()).toBe('chosen');
    for (const name of ['own/database', 'linked']) {
      files['kernel'] = path(name);
      const { status, body } = await get(target);
      expect([status, body.toString()]).toEqual([502, expect.not.stringContaining('/')]);
    }
    files['kernel'] = '/etc/passwd';
    expect((await get(target)).status).toBe(502);
  });
  it('are downloaded once, and again only after a change on the other server', async () => {
    let version = 1;
    upstreamDoes = (incoming, response) => {
      const etag = `"${version}"`;
      if (incoming.headers['if-none-match'] === etag) response.writeHead(304).end();
      else response.writeHead(200, { etag, 'content-length': 9 }).end(`version ${version}`);
    };
    files.kernel = `${upstreamUrl}/once`;
    const texts = await Promise.all(Array.from({ length: 5 }, async () => (await get(target)).body.toString()));
    expect(texts).toEqual(Array.from({ length: 5 }, () => 'version 1'));
    expect(asked).toHaveLength(1);
    expect((await get(target, { range: 'bytes=8-8' })).body.toString()).toBe('1');

    // The bytes are sent before the file counts as complete.
    const isComplete = (name: string): boolean =>
      name.endsWith('.json') && readFileSync(path('cache', name), 'utf8').includes(files.kernel!);
    await until('the file to be complete', () => readdirSync(path('cache')).some(isComplete));
    // A cache that is opened later has the files of the former one, and asks the server whether they changed.
    const later = await openCache({
      folder: path('cache'),
      maxBytes: 2 ** 20,
      options: optionsOf(),
      glance,
      log,
      clock: systemClock,
      random: randomBytes,
    });
    const read = async (): Promise<string> => {
      const file = await later.open(files.kernel!);
      const parts = await file.read(0, file.size - 1).toArray();
      await file.release();
      return Buffer.concat(parts as Buffer[]).toString();
    };
    expect(await read()).toBe('version 1');
    expect(asked.at(-1)!.headers['if-none-match']).toBe('"1"');
    await later.close();
    version = 2;
    const latest = await openCache({
      folder: path('cache'),
      maxBytes: 2 ** 20,
      options: optionsOf(),
      glance,
      log,
      clock: systemClock,
      random: randomBytes,
    });
    const file = await latest.open(files.kernel);
    expect(Buffer.concat((await file.read(0, 8).toArray()) as Buffer[]).toString()).toBe('version 2');
    await file.release();
    await latest.close();
  });

  it('are served during their download', async () => {
    let finish = (): void => {};
    upstreamDoes = (_, response) => {
      response.writeHead(200, { 'content-length': big.length }).write(big.subarray(0, 1000));
      finish = () => response.end(big.subarray(1000));
    };
    files.kernel = `${upstreamUrl}/slow`;
    expect((await get(target, { range: 'bytes=0-999' })).body.equals(big.subarray(0, 1000))).toBe(true);
    const whole = get(target);
    finish();
    expect((await whole).body.equals(big)).toBe(true);
    expect(asked).toHaveLength(1);
  });

  it('are downloaded through a redirect', async () => {
    upstreamDoes = (incoming, response) => {
      if (incoming.url === '/moved') response.writeHead(302, { location: '/there' }).end();
      else response.writeHead(200, { 'content-length': 5 }).end('there');
    };
    files.kernel = `${upstreamUrl}/moved`;
    expect((await get(target)).body.toString()).toBe('there');
  });

  it('are downloaded with the credentials in the URL', async () => {
    upstreamDoes = ({ headers: { authorization } }, response) => {
      if (authorization === `Basic ${Buffer.from('user:s/cret').toString('base64')}`)
        response.writeHead(200, { 'content-length': 4 }).end('good');
      else response.writeHead(401).end();
    };
    files.kernel = `${upstreamUrl.replace('//', '//user:s%2Fcret@')}/locked`;
    expect((await get(target)).body.toString()).toBe('good');
  });

  it.each<[string, RequestListener, RegExp]>([
    ['answers 404', (_, response) => response.writeHead(404).end(), /: the server answers 404/],
    ['closes the connection', (_, response) => response.destroy(), /other side closed|ECONNRESET/],
    [
      'is larger than the cache',
      (_, response) => response.writeHead(200, { 'content-length': 2 ** 21 }).write('x'),
      /exceed the size of the image cache/,
    ],
    ['sends no Content-Length', (_, response) => response.writeHead(200).end('x'), /does not send Content-Length/],
  ])('cause status 502 with a reason without secrets when the source %s', async (what, does, text) => {
    upstreamDoes = does;
    files.kernel = `${upstreamUrl.replace('//', '//user:secret@')}/${what.replaceAll(' ', '-')}?token=secret`;
    const { status, body } = await get(target);
    expect(status).toBe(502);
    expect(body.toString()).toMatch(text);
    expect(lines).toEqual([expect.stringMatching(text)]);
    expect(body.toString() + lines.join()).not.toContain('secret');
  });

  it('are cut off and not cached when their download breaks', async () => {
    upstreamDoes = (_, response) => {
      response.writeHead(200, { 'content-length': 1000 }).write('x');
      setTimeout(() => response.destroy(), 20);
    };
    files.kernel = `${upstreamUrl}/broken`;
    await expect(get(target)).rejects.toThrow(/aborted|socket hang up/);
    // The client may see the failure before it is logged.
    while (lines.length === 0) await new Promise((done) => setImmediate(done));
    expect(lines).toEqual([expect.stringContaining('download failed')]);
    upstreamDoes = (_, response) => response.writeHead(200, { 'content-length': 4 }).end('good');
    expect((await get(target)).body.toString()).toBe('good');
  });

  it('are evicted from the cache when others need the space', async () => {
    upstreamDoes = (_, response) => response.writeHead(200, { 'content-length': 700_000 }).end(Buffer.alloc(700_000));
    for (const name of ['a', 'b', 'a']) {
      files.kernel = `${upstreamUrl}/${name}`;
      expect((await get(target)).body).toHaveLength(700_000);
    }
    expect(asked.map(({ url }) => url)).toEqual(['/a', '/b', '/a']);
    const sizes = readdirSync(path('cache')).map((name) => statSync(path('cache', name)).size);
    expect(sizes.filter((size) => size === 700_000)).toHaveLength(1);
  });
});

describe('with [agent]api_ca_file', () => {
  let trusting: HttpBootService;
  beforeAll(async () => {
    const options = { ...setup().options, 'agent.api_ca_file': path('api.pem'), 'boot.cache_root': path('ca-cache') };
    trusting = await startHttpBoot({ ...setup(), options });
  });
  afterAll(() => trusting.stop());
  const read = async (name: string, headers = {}): Promise<Buffer> => (await get(`/boot/${TOKEN}/${name}`, headers, 'GET', trusting)).body;

  it('the CA certificates are appended to the ramdisk and to no other file', async () => {
    writeFileSync(path('api.pem'), 'the authority');
    files.ramdisk = path('root', 'big');
    files.kernel = path('root', 'big');
    const archive = cpioArchive(
      Object.fromEntries(Object.entries(await readAgentCaFiles(path('api.pem'))).map(([name, text]) => [name, Buffer.from(text)])),
    );
    const expected = Buffer.concat([big, archive]);
    expect((await read('ramdisk')).equals(expected)).toBe(true);
    const range = { range: `bytes=${big.length - 10}-${expected.length - 7}` };
    expect((await read('ramdisk', range)).equals(expected.subarray(big.length - 10, -6))).toBe(true);
    expect((await read('kernel')).equals(big)).toBe(true);
    // A changed file counts at once, from the next machine that reads it.
    writeFileSync(path('api.pem'), 'another authority');
    expect((await read('ramdisk')).includes('another authority')).toBe(true);
    upstreamDoes = (_, response) => response.writeHead(200, { 'content-length': 7 }).end('ramdisk');
    files.ramdisk = `${upstreamUrl}/ramdisk`;
    expect((await read('ramdisk')).subarray(0, 14).toString()).toBe('ramdisk\x00070701');
  });
  it('the ramdisk is not served while the CA file cannot be read', async () => {
    files.ramdisk = path('root', 'big');
    rmSync(path('api.pem'), { force: true });
    expect((await get(`/boot/${TOKEN}/ramdisk`, {}, 'GET', trusting)).status).toBe(500);
    expect(lines).toEqual([expect.stringMatching(/\[agent\]api_ca_file: cannot read .*api\.pem: ENOENT/)]);
  });
});

it('openCache trusts web servers with [DEFAULT]webserver_verify_ca', async () => {
  const secure = await startTlsServer(path('web.pem'), (_, response) => response.writeHead(200, { 'content-length': 4 }).end('good'));
  const open = async (verifyCa: string): Promise<number> => {
    const cache = await openCache({
      folder: path(`cache-${verifyCa.length}`),
      maxBytes: 10,
      options: optionsOf({ 'DEFAULT.webserver_verify_ca': verifyCa }),
      glance,
      log,
      clock: systemClock,
      random: randomBytes,
    });
    try {
      const file = await cache.open(`${secure.url}/kernel`);
      await file.release();
      return file.size;
    } finally {
      await cache.close();
    }
  };
  await expect(open('True')).rejects.toThrow(/self-signed certificate/);
  expect(await open(secure.ca)).toBe(4);
  await secure.close();
});

it('openCache sends the login only to web servers in [deploy]image_server_auth_hosts', async () => {
  const seen: (string | undefined)[] = [];
  upstreamDoes = ({ headers }, response) => {
    seen.push(headers.authorization);
    response.writeHead(200, { 'content-length': 4 }).end('good');
  };
  for (const host of ['127.0.0.1', 'elsewhere']) {
    const options = optionsOf({
      'deploy.image_server_auth_strategy': 'http_basic',
      'deploy.image_server_user': 'u',
      'deploy.image_server_password': 'p',
      'deploy.image_server_auth_hosts': [host],
    });
    const cache = await openCache({
      folder: path(`cache-${host}`),
      maxBytes: 10,
      options,
      glance,
      log,
      clock: systemClock,
      random: randomBytes,
    });
    await (await cache.open(`${upstreamUrl}/kernel`)).release();
    await cache.close();
  }
  expect(seen).toEqual([`Basic ${Buffer.from('u:p').toString('base64')}`, undefined]);
});

it('bytes that are not HTTP are answered with 400', async () => {
  const socket = connect(service.port, '127.0.0.1');
  const text = await new Promise<string>((done) => {
    let seen = '';
    socket.on('data', (part) => (seen += part.toString()));
    socket.on('close', () => done(seen));
    socket.write('\x16\x03\x01 nonsense\r\n\r\n');
  });
  expect(text).toMatch(/^HTTP\/1.1 400/);
});

it('openCache deletes incomplete files of an earlier run', async () => {
  mkdirSync(path('other'));
  writeFileSync(path('other', 'half'), 'x');
  writeFileSync(path('other', 'broken.json'), '{');
  const cache = await openCache({
    folder: path('other'),
    maxBytes: 1,
    options: optionsOf(),
    glance,
    log,
    clock: systemClock,
    random: randomBytes,
  });
  await cache.close();
  expect(readdirSync(path('other'))).toEqual([]);
  expect(existsSync(path('cache'))).toBe(true);
});

describe('media', () => {
  const TOKEN = 'A_b-'.repeat(10);
  it('are served under an unguessable token, which is not logged', async () => {
    media.set(TOKEN, {
      token: TOKEN,
      node_uuid: UUID,
      role: 'boot',
      content: { kind: 'image', source: path('root', 'big') },
      made_at: 0,
      swift_container: null,
    });
    const answer = await get(`/media/${TOKEN}/boot.iso`, { range: 'bytes=10-19' });
    expect([answer.status, answer.headers['content-type']]).toEqual([206, 'application/vnd.efi-iso']);
    expect(answer.body.equals(big.subarray(10, 20))).toBe(true);
    media.set(TOKEN, { ...media.get(TOKEN)!, content: { kind: 'image', source: path('gone') } });
    expect((await get(`/media/${TOKEN}/boot.iso`)).status).toBe(502);
    expect(lines.join()).toContain('/media/***/boot.iso');
    expect(lines.join()).not.toContain(TOKEN);
    media.clear();
  });
  it.each([`/media/${TOKEN}/boot.iso`, `/media/${TOKEN}`, '/media/x/boot.iso', `/media/${TOKEN}/a/b`, '/media/'])(
    '%s is not found',
    async (target) => {
      expect((await get(target)).status).toBe(404);
    },
  );
});

it('https_port serves everything, and then media are served only there', async () => {
  const { certificate, privateKey } = ownCertificate('127.0.0.1', 'boot', Date.now(), randomBytes);
  writeFileSync(path('second.crt'), certificate);
  writeFileSync(path('second.key'), privateKey);
  const both = await startHttpBoot({
    ...setup(),
    options: { ...setup().options, 'boot.https_port': 0, 'boot.cache_root': path('both-cache') },
    secondTls: {
      cert: { option: '[boot]cert_file', path: path('second.crt') },
      key: { option: '[boot]key_file', path: path('second.key') },
      minVersion: 'TLSv1.2',
      maxVersion: 'TLSv1.3',
    },
  });
  const secure = (target: string): Promise<number> =>
    new Promise((done, fail) => {
      tlsRequest({ host: '127.0.0.1', port: both.httpsPort, path: target, ca: certificate, agent: false }, (response) => {
        response.resume();
        done(response.statusCode!);
      })
        .once('error', fail)
        .end();
    });
  try {
    expect(both.bound).toEqual([`http://127.0.0.1:${both.port}`, `https://127.0.0.1:${both.httpsPort}`]);
    const token = 'A_b-'.repeat(10);
    const medium = `/media/${token}/boot.iso`;
    media.set(token, {
      token,
      node_uuid: UUID,
      role: 'boot',
      content: { kind: 'image', source: path('root', 'big') },
      made_at: 0,
      swift_container: null,
    });
    expect([await secure(medium), (await get(medium, {}, 'GET', both)).status]).toEqual([200, 403]);
    // This port does not tell whether the medium exists.
    expect((await get(`/media/${'x'.repeat(40)}/boot.iso`, {}, 'GET', both)).status).toBe(403);
    expect([await secure('/snponly.efi'), (await get('/snponly.efi', {}, 'GET', both)).status]).toEqual([200, 200]);
  } finally {
    media.clear();
    await both.stop();
  }
});

it('serves HTTPS on each given address', async () => {
  const { certificate, privateKey } = ownCertificate('127.0.0.1', 'boot', Date.now(), randomBytes);
  const [cert, key] = [path('boot.crt'), path('boot.key')];
  writeFileSync(cert, certificate);
  writeFileSync(key, privateKey);
  const secure = await startHttpBoot({
    ...setup(),
    options: { ...setup().options, 'boot.cache_root': path('secure-cache') },
    hosts: ['127.0.0.1', '127.0.0.2'],
    tls: {
      cert: { option: '[boot]cert_file', path: cert },
      key: { option: '[boot]key_file', path: key },
      minVersion: 'TLSv1.2',
      maxVersion: 'TLSv1.3',
    },
  });
  try {
    expect(secure.bound).toEqual([`https://127.0.0.1:${secure.port}`, `https://127.0.0.2:${secure.port}`]);
    for (const host of ['127.0.0.1', '127.0.0.2']) {
      const status = await new Promise((done, fail) => {
        const options = {
          host,
          port: secure.port,
          path: '/snponly.efi',
          ca: certificate,
          agent: false,
          checkServerIdentity: () => undefined,
        };
        tlsRequest(options, (response) => {
          response.resume();
          done(response.statusCode);
        })
          .once('error', fail)
          .end();
      });
      expect(status).toBe(200);
    }
    await expect(startHttpBoot({ ...setup(), options: { ...setup().options, 'boot.http_port': secure.port } })).rejects.toThrow(
      /^cannot listen on 127\.0\.0\.1 port \d+ \(HTTP boot, \[boot\]http_host and http_port\): the port is in use$/,
    );
  } finally {
    await secure.stop();
  }
});

describe('while the database is unreachable', () => {
  const unreachable = (): Fault => new Fault('TemporaryFailure', { message: 'The database is away.' });
  /** A service whose boot records can be read after so many failures. Each wait moves its clock. */
  const startAfter = async (failures: number): Promise<HttpBootService> => {
    let left = failures;
    const forMac = async (mac: string) => {
      if (left-- > 0) throw unreachable();
      return boots.forMac(mac);
    };
    return startHttpBoot({ ...setup(), clock: testClock(), store: { ...setup().store, boots: { ...boots, forMac } } });
  };
  it.each([
    { what: 'a script request waits for the database', failures: 3, status: 200 },
    { what: 'a script request is answered with 503 after 10 seconds', failures: 100, status: 503 },
  ])('$what', async ({ failures, status }) => {
    const waiting = await startAfter(failures);
    try {
      const answer = await get(`/ipxe/${MAC.replaceAll(':', '-')}`, {}, 'GET', waiting);
      expect(answer.status).toBe(status);
      expect(answer.headers['retry-after']).toBe(status === 503 ? '5' : undefined);
    } finally {
      await waiting.stop();
    }
  });
});
