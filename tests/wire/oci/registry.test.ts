/** A registry that misbehaves, and the servers to which it sends others. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { JsonObject } from '../../../model/json';
import { openRegistry, type RegistryOptions } from '../../../wire/oci/registry';
import { ownCertificate } from '../../../wire/http/certificate';
import { driverOptions } from '../../support/task';

interface Seen {
  readonly at: 'registry' | 'other' | 'plain';
  readonly url: string;
  readonly authorization: string | undefined;
}
type Respond = (request: IncomingMessage, response: ServerResponse) => void;
let folder: string;
let registry: Server;
let other: Server;
let plain: Server;
let seen: Seen[];
let pauses: number[];
const clock = { sleep: async (milliseconds: number) => void pauses.push(milliseconds) };
let answer: Record<string, Respond>;
let otherAnswer: Respond;

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'oci-'));
  const note = (at: Seen['at'], { url, headers }: IncomingMessage) =>
    void seen.push({ at, url: url!, authorization: headers.authorization });
  const { certificate: cert, privateKey: key } = ownCertificate('127.0.0.1', 'registry', Date.now(), randomBytes);
  writeFileSync(join(folder, 'ca.pem'), cert);
  registry = await listening(
    createTlsServer({ cert, key }, (request, response) => {
      note('registry', request);
      const respond = answer[request.url!.split('?')[0]!];
      if (respond) respond(request, response);
      else response.writeHead(404).end('{}');
    }),
  );
  other = await listening(
    createTlsServer({ cert, key }, (request, response) => {
      note('other', request);
      otherAnswer(request, response);
    }),
  );
  plain = await listening(
    createServer((request, response) => {
      note('plain', request);
      response.end('{"token":"t"}');
    }),
  );
});
afterAll(async () => {
  for (const server of [registry, other, plain]) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  seen = [];
  pauses = [];
  answer = {};
  otherAnswer = (_, response) => void response.end('{"token":"t0ken"}');
});

const host = (): string => `127.0.0.1:${portOf(registry)}`;
const otherUrl = (): string => `https://127.0.0.1:${portOf(other)}`;
const plainUrl = (): string => `http://127.0.0.1:${portOf(plain)}`;
const open = (secret: string | null = 'user:pass word', options: Partial<RegistryOptions> = {}) =>
  openRegistry(
    { registry: host(), repository: 'team/disk' },
    {
      secrets: { instance_info: secret === null ? {} : { image_pull_secret: secret }, driver_info: {} },
      permitsUser: true,
      options: { ...driverOptions({ 'oci.verify_ca': join(folder, 'ca.pem') }), ...options },
      signal: new AbortController().signal,
      clock,
      random: randomBytes,
    },
  );
const challenge =
  (header: string): Respond =>
  (_, response) =>
    void response.writeHead(401, { 'www-authenticate': header }).end('{}');
const json =
  (content: JsonObject): Respond =>
  (_, response) =>
    void response.end(JSON.stringify(content));
const digestOf = (content: JsonObject, algorithm = 'sha256'): string =>
  `${algorithm}:${createHash(algorithm).update(JSON.stringify(content)).digest('hex')}`;
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
const MANIFESTS = '/v2/team/disk/manifests/';

describe('logging in', () => {
  it('asks nobody for a token without anything to log in with', async () => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token"`);
    answer[`${MANIFESTS}v1`] = json({ a: 1 });
    const { authorization, manifest } = await open(null);
    expect(authorization).toBeUndefined();
    await manifest('v1');
    expect(seen.map(({ url }) => url)).toEqual([`${MANIFESTS}v1`]);
  });
  it('gives the login to the token server that the registry names, and the token to the registry', async () => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token?account=x",service="my registry",scope="repository:all:push"`);
    answer[`${MANIFESTS}v1`] = json({ a: 1 });
    const found = await open();
    expect(found.authorization).toBe('Bearer t0ken');
    await found.manifest('v1');
    expect(seen).toEqual([
      { at: 'registry', url: '/v2/', authorization: undefined },
      {
        at: 'other',
        url: '/token?account=x&service=my+registry&scope=repository%3Ateam%2Fdisk%3Apull',
        authorization: basic('user:pass word'),
      },
      { at: 'registry', url: `${MANIFESTS}v1`, authorization: 'Bearer t0ken' },
    ]);
  });
  it.each([
    ['a realm without TLS', () => `Bearer realm="${plainUrl()}/token"`],
    ['a realm of another scheme', () => 'Bearer realm="file:///etc/passwd"'],
    ['a realm with credentials', () => `Bearer realm="${otherUrl().replace('//', '//a:b@')}/token"`],
    ['no realm', () => 'Bearer service="x"'],
  ])('sends no login to %s', async (_, header) => {
    answer['/v2/'] = challenge(header());
    await expect(open()).rejects.toMatchObject({ status: 401, message: 'it names no token server with TLS' });
    expect(seen).toHaveLength(1);
  });
  it.each([
    ['Negotiate', 'Negotiate'],
    ['nothing that can be read', '"'],
    ['a header that is too long', `Bearer realm="${'x'.repeat(5000)}"`],
  ])('knows no other authentication: %s', async (_, header) => {
    answer['/v2/'] = challenge(header);
    await expect(open()).rejects.toMatchObject({ status: 401, message: 'it asks for an authentication that is neither Basic nor Bearer' });
  });
  it.each([
    ['no token', '{}', 'the answer has no token'],
    ['a token that would break a header', '{"token":"a\\r\\nb: c"}', 'the answer has no token'],
    ['no JSON', '<html>', /^the answer is no JSON/],
    ['too many values', `[${'1,'.repeat(60_000)}1]`, /^the answer is no JSON/],
  ])('refuses %s', async (_, text, message) => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token"`);
    otherAnswer = (_request, response) => void response.end(text);
    await expect(open()).rejects.toMatchObject({ message: expect.stringMatching(message) as string });
  });
  it('does not quote what is no JSON', async () => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token"`);
    otherAnswer = (_, response) => void response.end('{"token": s3cret}');
    const error = await open().catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ message: 'the answer is no JSON' });
  });
  it('does not follow the token server with the login', async () => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token"`);
    answer['/stolen'] = json({ token: 'x' });
    otherAnswer = (_, response) => void response.writeHead(302, { location: `https://${host()}/stolen` }).end();
    await open();
    expect(seen.find(({ url }) => url === '/stolen')).toMatchObject({ authorization: undefined });
  });
  it('reads a secret as container tools write it, and then as Ironic does', async () => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token"`);
    const secret = Buffer.from('user:pass').toString('base64');
    otherAnswer = (request, response) =>
      void response.writeHead(request.headers.authorization === basic(`:${secret}`) ? 200 : 401).end('{"token":"b"}');
    await expect(open(secret)).resolves.toMatchObject({ authorization: 'Bearer b' });
    expect(seen.slice(1).map(({ authorization }) => authorization)).toEqual([basic('user:pass'), basic(`:${secret}`)]);
  });
  it('logs in with Basic', async () => {
    answer['/v2/'] = (request, response) => {
      if (request.headers.authorization === basic('user:pass word')) response.end('{}');
      else challenge('Basic realm="x"')(request, response);
    };
    await expect(open()).resolves.toMatchObject({ authorization: basic('user:pass word') });
    await expect(open('user:wrong')).rejects.toMatchObject({ status: 401 });
    await expect(open('no-user')).rejects.toMatchObject({ status: 401 });
  });
  it('finds the login of the registry, or of its token server, in [oci]authentication_config', async () => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token"`);
    const file = join(folder, 'auth.json');
    const options = { 'oci.authentication_config': file };
    for (const [name, login] of [
      [host(), 'of:registry'],
      [otherUrl().replace('https://', ''), 'of:realm'],
    ] as const) {
      seen = [];
      writeFileSync(file, JSON.stringify({ auths: { [name]: { auth: Buffer.from(login).toString('base64') } } }));
      await open(null, options);
      expect(seen[1]).toMatchObject({ authorization: basic(login) });
    }
    writeFileSync(file, '{"auths":{}}');
    seen = [];
    await open(null, options);
    expect(seen[1]).toMatchObject({ at: 'other', authorization: undefined });
    writeFileSync(file, '[]');
    await expect(open(null, options)).rejects.toThrow('[oci]authentication_config: it has no object "auths"');
    await expect(open(null, { 'oci.authentication_config': '/absent' })).rejects.toThrow('[oci]authentication_config: ENOENT');
  });
  it('gives [deploy]image_server_user only to hosts that may have it', async () => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token"`);
    const login = { 'deploy.image_server_user': 'u', 'deploy.image_server_password': 'p' };
    await open(null, { ...login, 'deploy.image_server_auth_hosts': ['127.0.0.1'] });
    expect(seen[1]).toMatchObject({ authorization: basic('u:p') });
    await expect(open(null, { ...login, 'deploy.image_server_auth_hosts': ['example.org'] })).resolves.toMatchObject({
      authorization: undefined,
    });
  });
});

describe('manifests', () => {
  const content = { schemaVersion: 2 };
  it.each(['sha256', 'sha512'])('verifies %s', async (algorithm) => {
    const digest = digestOf(content, algorithm);
    answer[`${MANIFESTS}${digest}`] = json(content);
    const { manifest } = await open(null);
    await expect(manifest(digest)).resolves.toMatchObject({ content, digest });
    answer[`${MANIFESTS}${digest}`] = json({ ...content, more: 1 });
    await expect(manifest(digest)).rejects.toThrow('the manifest does not match its digest');
  });
  it('verifies what the registry says of a tag', async () => {
    answer[`${MANIFESTS}v1`] = (_, response) =>
      void response.setHeader('docker-content-digest', digestOf({ other: 1 })).end(JSON.stringify(content));
    const { manifest } = await open(null);
    await expect(manifest('v1')).rejects.toThrow('the manifest does not match its digest');
    answer[`${MANIFESTS}v1`] = json(content);
    await expect(manifest('v1')).resolves.toMatchObject({ digest: digestOf(content) });
  });
  it.each([
    ['more than 4 MiB', `{"a":"${'x'.repeat(5_000_000)}"}`],
    ['too deep', '['.repeat(100) + ']'.repeat(100)],
    ['no object', '[]'],
  ])('refuses one that is %s', async (_, text) => {
    answer[`${MANIFESTS}v1`] = (_request, response) => void response.end(text);
    const { manifest } = await open(null);
    await expect(manifest('v1')).rejects.toMatchObject({ name: 'Error' });
  });
  it('repeats what the server limits, five times at most', async () => {
    let times = 0;
    answer[`${MANIFESTS}v1`] = (_, response) =>
      void response.writeHead(++times < 5 ? 429 : 200, { 'retry-after': '7' }).end(JSON.stringify(content));
    const { manifest } = await open(null);
    await expect(manifest('v1')).resolves.toMatchObject({ content });
    times = -5;
    await expect(manifest('v1')).rejects.toMatchObject({ status: 429 });
    expect(times).toBe(0);
    expect(pauses).toHaveLength(8);
    // Never less than the server asks for, nor more than a minute.
    expect(pauses.filter((pause) => pause < 7000 || pause > 60_000)).toEqual([]);
  });
});

describe('tags', () => {
  it('reads the pages of the same server only', async () => {
    answer['/v2/team/disk/tags/list'] = (request, response) => {
      if (request.url!.includes('?')) response.setHeader('link', `<${otherUrl()}/more>; rel="next"`).end('{"tags":["b",7]}');
      else response.setHeader('link', '</v2/team/disk/tags/list?last=a>; rel="next"').end('{"tags":["a"]}');
    };
    await expect((await open(null)).tags()).resolves.toEqual(['a', 'b']);
    expect(seen.map(({ at }) => at)).toEqual(['registry', 'registry']);
  });
  it('leaves out what is no tag', async () => {
    answer['/v2/team/disk/tags/list'] = json({ tags: ['v1', 'a\nb', 'x'.repeat(200), ''] });
    await expect((await open(null)).tags()).resolves.toEqual(['v1']);
  });
  it('ends with a server whose pages never end', async () => {
    answer['/v2/team/disk/tags/list'] = (_, response) =>
      void response.setHeader('link', '</v2/team/disk/tags/list?x>; rel="next"').end('{"tags":["a"]}');
    await expect((await open(null)).tags()).resolves.toHaveLength(20);
  });
});

describe('blobs', () => {
  const BLOB = `/v2/team/disk/blobs/sha256:${'0'.repeat(64)}`;
  const digest = `sha256:${'0'.repeat(64)}`;
  beforeEach(() => {
    answer['/v2/'] = challenge(`Bearer realm="${otherUrl()}/token"`);
  });
  const redirected = async (location: string, options: Partial<RegistryOptions> = {}) => {
    const found = await open('user:pass', options);
    seen = [];
    answer[BLOB] = (_, response) => void response.writeHead(307, { location }).end();
    otherAnswer = (_, response) => void response.end('content');
    return found.openBlob(digest);
  };
  it('goes to a CDN without the token', async () => {
    const { body } = await redirected(`${otherUrl()}/cdn?sig=1`);
    expect((await buffer(body)).toString()).toBe('content');
    expect(seen).toEqual([
      { at: 'registry', url: BLOB, authorization: 'Bearer t0ken' },
      { at: 'other', url: '/cdn?sig=1', authorization: undefined },
    ]);
  });
  it('goes with the token to hosts that the operator trusts', async () => {
    const { body } = await redirected(`${otherUrl()}/cdn`, { 'oci.secure_cdn_registries': ['127.0.0.1'] });
    await buffer(body);
    expect(seen[1]).toMatchObject({ authorization: 'Bearer t0ken' });
  });
  it.each([
    ['without TLS', () => plainUrl(), 'it redirects to a URL without TLS'],
    ['to a file', () => 'file:///etc/passwd', 'it redirects to a URL without TLS'],
    ['with credentials', () => otherUrl().replace('//', '//a:b@'), 'it redirects to a URL with credentials'],
    ['to nothing', () => 'https://', 'it redirects to no URL'],
    ['to itself', () => BLOB, 'it redirects again and again'],
  ])('refuses a redirect %s', async (_, location, message) => {
    await expect(redirected(location())).rejects.toThrow(message);
    expect(seen.filter(({ at }) => at !== 'registry')).toEqual([]);
  });
});

describe('HTTP', () => {
  const at = (options: Partial<RegistryOptions>) =>
    openRegistry(
      { registry: plainUrl().replace('http://', ''), repository: 'disk' },
      {
        secrets: undefined,
        permitsUser: true,
        options: { ...driverOptions(), ...options },
        signal: new AbortController().signal,
        clock,
        random: randomBytes,
      },
    );
  it('is used only if the operator permits it', async () => {
    const { blobUrl } = await at({ 'oci.permit_fallback_to_http_transport': true });
    expect(blobUrl('sha256:0')).toBe(`${plainUrl()}/v2/disk/blobs/sha256:0`);
    seen = [];
    const { manifest } = await at({});
    await expect(manifest('v1')).rejects.toThrow(/SSL|TLS|packet length|version/i);
    expect(seen).toEqual([]);
  });
  it('is not used for a registry whose certificate is not trusted', async () => {
    answer['/v2/'] = json({});
    await expect(open(null, { 'oci.verify_ca': null, 'oci.permit_fallback_to_http_transport': true })).rejects.toThrow(/certificate/);
  });
});
