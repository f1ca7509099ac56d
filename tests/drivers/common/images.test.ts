import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  checkChecksumForm,
  checkLocation,
  checkOwnFile,
  checksumOf,
  findChecksum,
  locate,
  readPart,
  requireChecksum,
} from '../../../drivers/common/images';
import { optionsOf } from '../../support/options';
import { NODE_UUID, nodeRecord } from '../../support/task';
import { startTlsServer, type TlsWebServer } from '../../support/fakes/tls-server';

const never = { signal: new AbortController().signal, options: optionsOf() };
const allowing = (allowed: readonly string[], own: readonly string[] = []) => ({
  ...never,
  options: optionsOf({ 'conductor.file_url_allowed_paths': allowed, 'files.own': own }),
});
const MD5 = 'd41d8cd98f00b204e9800998ecf8427e';
const SHA256 = 'a'.repeat(64);
const SHA512 = 'B'.repeat(128);

let folder: string;
let server: Server;
let base: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'images-'));
  writeFileSync(join(folder, 'a.img'), 'raw bytes');
  server = createServer((request, response) => {
    const url = request.url!;
    const authorization = request.headers.authorization;
    if (url === '/secret' && authorization === `Basic ${Buffer.from('user:hunter2').toString('base64')}`) response.end();
    else if (url === '/moved') response.writeHead(302, { location: '/image' }).end();
    else if (url === '/image') response.end(request.method === 'HEAD' ? undefined : 'raw bytes, many more than four were asked for');
    else if (url === '/ranged') response.writeHead(206, { 'content-range': 'bytes 4-8/9' }).end('bytes');
    else if (url === '/empty') response.writeHead(416).end();
    else if (url === '/SUMS') response.end(`${SHA256}  image\n`);
    else if (url === '/huge') response.end(Buffer.alloc(5 * 1024 * 1024));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
});

describe('locate', () => {
  it.each([
    ['http://x/y.img', { kind: 'http', url: 'http://x/y.img' }],
    ['HTTPS://x/y.img', { kind: 'http', url: 'HTTPS://x/y.img' }],
    ['file:///var/lib/ironic/y.img', { kind: 'file', path: '/var/lib/ironic/y.img' }],
    ['file:///var/lib/ironic/a%20b', { kind: 'file', path: '/var/lib/ironic/a b' }],
  ])('accepts %s', (href, expected) => {
    expect(locate(href, allowing(['/var/lib/ironic/']).options)).toEqual(expected);
  });
  it.each([
    ['y.img', 'Scheme-less image href is not a UUID.'],
    ['ftp://x/y', 'Image download protocol ftp is not supported.'],
    ['http://', 'Invalid URL.'],
    ['file:///etc/shadow', 'Security: The path /etc is not permitted in file URLs'],
    ['file:///var/lib/ironic/../../../etc/shadow', 'Security: The path /etc is not permitted in file URLs'],
    ['file:///var/lib/ironic/%2e%2e/x', 'Security: Path /var/lib/x is not allowed for image source file URLs'],
    ['file:///var/lib/ironic-not/x', 'Security: Path /var/lib/ironic-not/x is not allowed for image source file URLs'],
    ['file://host/var/lib/ironic/x', 'File URL host must be "localhost" or empty on linux'],
    ['file:///var/lib/ironic/a%2fb', 'File URL path must not include encoded / characters'],
  ])('rejects %s', (href, reason) => {
    expect(() => locate(href, allowing(['/var/lib/ironic']).options)).toThrow(`Validation of image href ${href} failed, reason: ${reason}`);
  });
});

describe('checkLocation', () => {
  it('follows redirects', async () => {
    expect(await checkLocation({ kind: 'http', url: `${base}/moved` }, never)).toEqual({ kind: 'http', url: `${base}/image` });
  });
  it('accepts an existing file', async () => {
    const location = { kind: 'file', path: join(folder, 'a.img') } as const;
    expect(await checkOwnFile(location.path)).toEqual(location);
    expect(await checkLocation(location, allowing([folder]))).toEqual(location);
  });
  it.each([
    ['a missing URL', () => `${base}/none`, 'Got HTTP code 404 instead of 200 in response to HEAD request.'],
    ['a server that cannot be reached', () => 'http://127.0.0.1:21399/x', 'ECONNREFUSED'],
  ])('rejects %s', async (_, url, reason) => {
    await expect(checkLocation({ kind: 'http', url: url() }, never)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(reason) as string,
    });
  });
  it('uses credentials in the URL but hides them in errors', async () => {
    const url = `${base.replace('//', '//user:hunter2@')}/none`;
    const error = await checkLocation({ kind: 'http', url }, never).catch((item: unknown) => item);
    expect((error as Error).message).toContain(base);
    expect((error as Error).message).not.toContain('hunter2');
    const secret = { kind: 'http', url: url.replace('/none', '/secret') } as const;
    expect(await checkLocation(secret, never)).toBe(secret);
  });
  it('sends the login of [deploy]image_server_auth_strategy only to image_server_auth_hosts', async () => {
    const location = { kind: 'http', url: `${base}/secret` } as const;
    const login = {
      'deploy.image_server_auth_strategy': 'http_basic',
      'deploy.image_server_user': 'user',
      'deploy.image_server_password': 'hunter2',
    } as const;
    const fetching = (hosts: string[]) => ({ ...never, options: optionsOf({ ...login, 'deploy.image_server_auth_hosts': hosts }) });
    expect(await checkLocation(location, fetching(['127.0.0.1']))).toEqual(location);
    await expect(checkLocation(location, fetching(['elsewhere']))).rejects.toThrow('Got HTTP code 404');
    const half = { ...never, options: optionsOf({ ...login, 'deploy.image_server_password': null }) };
    await expect(checkLocation(location, half)).rejects.toMatchObject({
      status: 400,
      message: `Validation of image href ${location.url} failed, reason: Missing ['image_server_password'] fields from HTTP(S) basic auth config`,
    });
  });
  it('fails after [DEFAULT]webserver_verify_timeout without an answer', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/image`;
    const brief = { ...never, options: optionsOf({ 'DEFAULT.webserver_verify_timeout': 1 }) };
    await expect(checkLocation({ kind: 'http', url }, brief)).rejects.toThrow(/timeout/);
    silent.closeAllConnections();
    silent.close();
  });
  it('rejects a missing file and a directory', async () => {
    for (const path of [join(folder, 'none'), folder]) {
      await expect(checkLocation({ kind: 'file', path }, allowing([folder]))).rejects.toThrow('Specified image file not found.');
    }
  });

  describe('with symbolic links', () => {
    const check = (path: string, allowed: readonly string[], own: readonly string[] = []) =>
      checkLocation({ kind: 'file', path }, allowing(allowed, own));
    let images: string;
    beforeAll(() => {
      images = join(folder, 'images');
      mkdirSync(join(images, 'inner'), { recursive: true });
      writeFileSync(join(images, 'b.img'), 'raw');
      symlinkSync('../b.img', join(images, 'inner/within'));
      symlinkSync('../a.img', join(images, 'outside'));
      symlinkSync('..', join(images, 'up'));
      symlinkSync('/etc/passwd', join(images, 'passwd'));
      symlinkSync('nothing', join(images, 'dangling'));
      symlinkSync(images, join(folder, 'linked'));
    });
    it('accepts a file whose links all lead into the allowed directory', async () => {
      const found = { kind: 'file', path: join(images, 'b.img') };
      expect(await check(join(images, 'inner/within'), [images])).toEqual(found);
      expect(await check(join(folder, 'linked/inner/within'), [join(folder, 'linked')])).toEqual(found);
    });
    it.each([
      ['outside', (path: string) => `Security: Path ${path} is not allowed for image source file URLs`],
      ['up/a.img', (path: string) => `Security: Path ${path} is not allowed for image source file URLs`],
      ['passwd', () => 'Security: The path /etc is not permitted in file URLs'],
      ['dangling', () => 'Specified image file not found.'],
    ])('rejects the link %s that leads outside the allowed directory or nowhere', async (name, reason) => {
      const path = join(images, name);
      await expect(check(path, [images])).rejects.toMatchObject({
        status: 400,
        message: `Validation of image href file://${path} failed, reason: ${reason(path)}`,
      });
    });
    it('refuses the files of the server itself, also by a link and inside an allowed directory', async () => {
      const own = join(images, 'state');
      mkdirSync(own);
      writeFileSync(join(own, 'database'), 'secret');
      symlinkSync('state/database', join(images, 'harmless'));
      for (const name of ['state/database', 'harmless'])
        await expect(check(join(images, name), [images], [own])).rejects.toMatchObject({
          status: 400,
          message: `Validation of image href file://${join(images, name)} failed, reason: Security: The path ${own} is not permitted in file URLs`,
        });
    });
    it('reads an image only while it is allowed', async () => {
      const path = join(images, 'b.img');
      const refusal = { message: expect.stringContaining(`The path ${path} is not permitted`) as string };
      await expect(checksumOf({ image_source: 'x' }, { kind: 'file', path }, allowing([images], [path]))).rejects.toMatchObject(refusal);
      await expect(readPart({ kind: 'file', path }, { offset: 0, length: 4 }, allowing([images], [path]))).rejects.toMatchObject(refusal);
    });
    it('follows any link in a path that the operator configured', async () => {
      const path = join(images, 'outside');
      expect(await checkOwnFile(path)).toEqual({ kind: 'file', path });
    });
  });
});

describe('TLS of web servers', () => {
  let secure: TlsWebServer;
  beforeAll(async () => {
    secure = await startTlsServer(join(folder, 'web.pem'), (request, response) =>
      response.end(request.method === 'HEAD' ? undefined : `${SHA256}  image\n`),
    );
  });
  afterAll(() => secure.close());
  const verifying = (verifyCa: string) => ({ ...never, options: optionsOf({ 'DEFAULT.webserver_verify_ca': verifyCa }) });
  const image = () => ({ kind: 'http', url: `${secure.url}/image` }) as const;

  it('is verified with the CA certificates of the system by default', async () => {
    for (const setting of ['True', 'yes', ''])
      await expect(checkLocation(image(), verifying(setting))).rejects.toThrow(/self-signed certificate/);
  });
  it('has at least [DEFAULT]webserver_tls_minimum_version, by default 1.3', async () => {
    const old = await startTlsServer(join(folder, 'old.pem'), (_, response) => response.end(), 'TLSv1.2');
    const least = (version?: '1.2' | '1.3') =>
      optionsOf({ 'DEFAULT.webserver_verify_ca': 'False', ...(version ? { 'DEFAULT.webserver_tls_minimum_version': version } : {}) });
    const check = (version?: '1.2' | '1.3') =>
      checkLocation({ kind: 'http', url: `${old.url}/image` }, { ...never, options: least(version) });
    await expect(check()).rejects.toThrow(/protocol/);
    await expect(check('1.3')).rejects.toThrow(/protocol/);
    expect(await check('1.2')).toMatchObject({ kind: 'http' });
    await old.close();
    rmSync(old.ca);
  });
  it('is not verified with webserver_verify_ca = False', async () => {
    expect(await checkLocation(image(), verifying('False'))).toEqual(image());
  });
  it.each(['web.pem', ''])('is verified with [DEFAULT]webserver_verify_ca: %j below a directory', async (name) => {
    const trusting = verifying(join(folder, name));
    expect(await checkLocation(image(), trusting)).toEqual(image());
    const sums = { image_source: image().url, image_checksum: `${secure.url}/SUMS` };
    expect(await checksumOf(sums, image(), trusting)).toMatchObject({ os_hash_value: SHA256 });
    expect((await readPart(image(), { offset: 0, length: 3 }, trusting)).length).toBe(3);
    expect(await checkLocation({ kind: 'http', url: `${base}/image` }, trusting)).toMatchObject({ kind: 'http' });
  });
  it('fails while the CA file cannot be read, and works after it can', async () => {
    const trusting = verifying(join(folder, 'later.pem'));
    await expect(checkLocation(image(), trusting)).rejects.toThrow(/\[DEFAULT\]webserver_verify_ca: cannot read .*later\.pem: ENOENT/);
    copyFileSync(secure.ca, join(folder, 'later.pem'));
    expect(await checkLocation(image(), trusting)).toEqual(image());
    await expect(checkLocation(image(), verifying('/dev/zero'))).rejects.toThrow('/dev/zero is not a regular file');
  });
});

describe('requireChecksum', () => {
  const said = `image_source's "image_checksum", or "image_os_hash_algo" and "image_os_hash_value" must be provided in instance_info for node ${NODE_UUID}`;
  it.each([
    [{ image_source: 'http://x/y', image_checksum: MD5 }, true],
    [{ image_source: 'http://x/y', image_os_hash_algo: 'sha256', image_os_hash_value: SHA256 }, true],
    [{ image_source: 'file:///x/y' }, true],
    [{ image_source: 'http://x/y' }, false],
    [{ image_source: 'http://x/y', image_os_hash_algo: 'sha256' }, false],
    [{ image_source: 'http://x/y', image_os_hash_value: SHA256 }, false],
    [{ image_source: 'http://x/y', image_os_hash_value: SHA256, image_checksum: MD5 }, false],
    [{ image_source: 'http://x/y', image_os_hash_algo: 'sha256', image_checksum: MD5 }, false],
  ])('for %j, is satisfied: %s', (instance_info, fine) => {
    const check = () => requireChecksum(nodeRecord({ instance_info }));
    if (fine) expect(check).not.toThrow();
    else expect(check).toThrow(said);
  });
});

describe('checkChecksumForm', () => {
  const value = 'instance_info/image_os_hash_value must be';
  it.each([
    [{}, undefined],
    [{ image_checksum: MD5 }, undefined],
    [{ image_checksum: 'https://x/SUMS' }, undefined],
    [{ image_os_hash_algo: 'sha256', image_os_hash_value: SHA256.toUpperCase() }, undefined],
    [{ image_os_hash_algo: 'SHA512', image_os_hash_value: 'https://x/SUMS' }, undefined],
    // Only the agent knows which hashes it has.
    [{ image_os_hash_algo: 'blake2b', image_os_hash_value: 'x' }, undefined],
    [{ image_os_hash_algo: 'sha512', image_os_hash_value: SHA256 }, `${value} 128 hexadecimal digits (sha512)`],
    [{ image_os_hash_algo: 'md5', image_os_hash_value: 7 }, `${value} 32`],
    [{ image_checksum: 'zz' }, 'instance_info/image_checksum must be an MD5, SHA-256 or SHA-512 checksum'],
    [{ image_checksum: 'g'.repeat(64) }, 'instance_info/image_checksum must be'],
    [{ image_checksum: ['a'] }, 'instance_info/image_checksum must be'],
  ])('for %j throws %s', (instance_info, message) => {
    const check = () => checkChecksumForm(nodeRecord({ instance_info }));
    if (message === undefined) expect(check).not.toThrow();
    else expect(check).toThrow(message);
  });
});

describe('checksumOf', () => {
  const http = { kind: 'http', url: 'http://x/image' } as const;
  it.each([
    [
      { image_os_hash_algo: 'sha512', image_os_hash_value: SHA512, image_checksum: MD5 },
      { os_hash_algo: 'sha512', os_hash_value: SHA512 },
    ],
    [{ image_checksum: MD5 }, { checksum: MD5 }],
    [{ image_checksum: SHA256 }, { checksum: SHA256, os_hash_algo: 'sha256', os_hash_value: SHA256 }],
    [{ image_checksum: SHA512 }, { checksum: SHA512, os_hash_algo: 'sha512', os_hash_value: SHA512 }],
  ])('reads %j', async (instance, expected) => {
    expect(await checksumOf(instance, http, never)).toEqual(expected);
  });
  it('downloads a checksum file', async () => {
    const instance = { image_source: 'http://y/image', image_checksum: `${base}/SUMS` };
    expect(await checksumOf(instance, http, never)).toMatchObject({ os_hash_algo: 'sha256', os_hash_value: SHA256 });
  });
  it('computes the checksum of a local file', async () => {
    const location = { kind: 'file', path: join(folder, 'a.img') } as const;
    expect(await checksumOf({}, location, allowing([folder]))).toEqual({
      os_hash_algo: 'sha256',
      os_hash_value: createHash('sha256').update('raw bytes').digest('hex'),
    });
  });
  it.each([
    ['a checksum of unknown length', () => 'abc', 'abc is not an MD5, SHA-256 or SHA-512 checksum'],
    ['a checksum with invalid characters', () => 'x'.repeat(64), 'is not an MD5, SHA-256 or SHA-512 checksum'],
    ['a missing checksum file', () => `${base}/none`, 'Got HTTP code 404 instead of 200'],
    ['a checksum file beyond the size limit', () => `${base}/huge`, 'The file is larger than'],
  ])('rejects %s', async (_, sum, reason) => {
    await expect(checksumOf({ image_source: 'http://y/image', image_checksum: sum() }, http, never)).rejects.toMatchObject({
      name: 'InvalidParameterValue',
      message: expect.stringContaining(reason) as string,
    });
  });
});

describe('findChecksum', () => {
  it.each([
    ['only the checksum', `${SHA256}\n`, SHA256],
    ['GNU', `${MD5}  other\n${SHA256}  image.raw\n`, SHA256],
    ['GNU, binary', `${SHA512} *image.raw`, SHA512],
    ['BSD', `SHA256 (other) = ${'c'.repeat(64)}\nSHA256 (image.raw) = ${SHA256}\n`, SHA256],
    ['GNU with comments', `# image.raw: 5 bytes\n# ${MD5}  image.raw\n${SHA256}  image.raw`, SHA256],
    ['GNU with carriage returns', `${MD5}  other\r\n${SHA256}  image.raw\r\n`, SHA256],
  ])('finds the checksum of the image in the format: %s', (_, text, expected) => {
    expect(findChecksum(text, 'http://x/path/image.raw?y=1', 'http://x/SUMS')).toBe(expected);
  });
  it.each([
    ['an empty file', '\n\n', 'Checksum file empty.'],
    ['text without a checksum', 'hello', 'Invalid checksum file (No valid checksum found)'],
    [
      'a file without the name of the image',
      `${SHA256}  image.raw.sig\n${MD5}  Ximage.raw`,
      'Checksum file does not contain name image.raw',
    ],
    ['the name of the image without a checksum', 'image.raw is good\nso it is', 'Checksum file does not contain name image.raw'],
  ])('rejects %s', (_, text, reason) => {
    expect(() => findChecksum(text, 'http://x/image.raw', 'http://x/SUMS')).toThrow(
      `Failed to download image http://x/SUMS, reason: ${reason}`,
    );
  });
});

describe('files that have no end, or are not images (CVE-2025-44021, CVE-2026-44919)', () => {
  it.each(['/dev/zero', '/proc/self/mem', '/etc/shadow', '/sys/power/state'])('%s is refused before it is read', async (path) => {
    const refusal = /Security: The path \/\w+ is not permitted in file URLs/;
    expect(() => locate(`file://${path}`, allowing(['/']).options)).toThrow(refusal);
    const location = { kind: 'file', path } as const;
    await expect(checksumOf({ image_source: `file://${path}` }, location, allowing(['/']))).rejects.toThrow(/is not permitted/);
    await expect(readPart(location, { offset: 0, length: 8 }, allowing(['/']))).rejects.toThrow(/is not permitted/);
  });
  it('so is a link to one, in a folder that is allowed', async () => {
    const path = join(folder, 'endless');
    symlinkSync('/dev/zero', path);
    await expect(readPart({ kind: 'file', path }, { offset: 0, length: 8 }, allowing([folder]))).rejects.toThrow(/is not permitted/);
    await expect(checksumOf({ image_source: 'x' }, { kind: 'file', path }, allowing([folder]))).rejects.toThrow(/is not permitted/);
  });
});

describe('readPart', () => {
  const part = { offset: 0, length: 8 };
  it.each([
    ['a file', () => ({ kind: 'file', path: join(folder, 'a.img') }) as const, part, 'raw byte'],
    ['the middle of a file', () => ({ kind: 'file', path: join(folder, 'a.img') }) as const, { offset: 4, length: 100 }, 'bytes'],
    ['a URL whose server ignores Range requests', () => ({ kind: 'http', url: `${base}/image` }) as const, part, 'raw byte'],
    ['a URL whose server heeds them', () => ({ kind: 'http', url: `${base}/ranged` }) as const, { offset: 4, length: 5 }, 'bytes'],
    ['an empty file', () => ({ kind: 'http', url: `${base}/empty` }) as const, part, ''],
  ])('reads %s', async (_, location, wanted, expected) => {
    expect((await readPart(location(), wanted, allowing([folder]))).toString()).toBe(expected);
  });
  it.each([
    ['a missing URL', '/none', part, /HTTP 404/],
    ['a part in the middle of a URL whose server ignores Range requests', '/image', { offset: 4, length: 8 }, /HTTP 200/],
  ])('rejects %s', async (_, path, wanted, reason) => {
    await expect(readPart({ kind: 'http', url: base + path }, wanted, never)).rejects.toThrow(reason);
  });
});

it('URLs of checksum files are refused where the operator says so (CVE-2024-47211 and its kind)', async () => {
  const strict = { ...never, options: optionsOf({ 'conductor.disable_support_for_checksum_files': true }) };
  const location = { kind: 'http', url: `${base}/image` } as const;
  for (const given of [{ image_checksum: `${base}/SUMS` }, { image_os_hash_algo: 'sha256', image_os_hash_value: `${base}/SUMS` }])
    await expect(checksumOf({ image_source: location.url, ...given }, location, strict)).rejects.toMatchObject({
      name: 'ImageChecksumURLNotSupported',
      message: 'Use of remote checksum files is not supported.',
    });
});
