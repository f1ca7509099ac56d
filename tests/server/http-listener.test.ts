import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request as plainRequest, type IncomingMessage } from 'node:http';
import { Agent, request as tlsRequest } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { listenHttp, type HttpListener, type ListenAddress } from '../../server/http-listener';
import { silentLog, type Log } from '../../model/log';
import { ownCertificate, type OwnCertificate } from '../../wire/http/certificate';
import type { ClientLimits } from '../../wire/http/client-limits';
import type { TlsSettings } from '../../wire/http/listener-tls';
import { until } from '../support/until';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-listeners-'));
const open: HttpListener[] = [];
afterEach(() => Promise.all(open.splice(0).map((listener) => listener.close())));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LIMITS: ClientLimits = { connections: { inAll: 100, ofSource: 100 }, readTimeoutMs: 30_000 };
const LOCAL: ListenAddress = { host: '127.0.0.1', port: 0 };
let count = 0;
const made = (name: string): OwnCertificate => ownCertificate('127.0.0.1', name, Date.now(), randomBytes);
/** Writes the certificate to files of its own, or to those of `to`. */
function files({ certificate, privateKey }: OwnCertificate, to?: TlsSettings): TlsSettings {
  const base = join(folder, String(++count));
  const settings: TlsSettings = to ?? {
    cert: { option: '[api]cert_file', path: `${base}.crt` },
    key: { option: '[api]key_file', path: `${base}.key` },
    minVersion: 'TLSv1.3',
    maxVersion: 'TLSv1.3',
  };
  writeFileSync(settings.cert.path, certificate);
  writeFileSync(settings.key.path, privateKey);
  return settings;
}
async function listening(address: ListenAddress, tls?: TlsSettings, log: Log = silentLog, limits = LIMITS): Promise<HttpListener> {
  const listener = await listenHttp({ options: {}, limits, address, what: 'a test, [test]option', tls, log });
  open.push(listener);
  listener.answer((_, response) => void response.end('answer'));
  return listener;
}
const told = (response: IncomingMessage): Promise<string> =>
  new Promise((done, fail) => {
    let text = '';
    response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    response.once('end', () => done(text)).once('error', fail);
  });
interface Answer {
  readonly text: string;
  readonly subject: unknown;
  readonly version: string | null;
}
const ask = (port: number, options: object): Promise<Answer> =>
  new Promise((done, fail) => {
    tlsRequest({ host: '127.0.0.1', port, ...options }, (response) => {
      const socket = response.socket as TLSSocket;
      const answer = { subject: socket.getPeerCertificate().subject.CN, version: socket.getProtocol() };
      told(response).then((text) => done({ text, ...answer }), fail);
    })
      .once('error', fail)
      .end();
  });

describe('an HTTP listener with TLS', () => {
  it('presents its certificate, and does not answer plain HTTP', async () => {
    const first = made('first');
    const { port, bound, scheme } = await listening(LOCAL, files(first));
    expect(await ask(port!, { ca: first.certificate, agent: false })).toEqual({ text: 'answer', subject: 'first', version: 'TLSv1.3' });
    expect([bound, scheme]).toEqual([`https://127.0.0.1:${port}`, 'https']);
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed');
  });

  it('accepts only the configured TLS versions and ciphers', async () => {
    const own = made('own');
    const ciphers = 'ECDHE-ECDSA-AES256-GCM-SHA384';
    const { port } = await listening(LOCAL, { ...files(own), minVersion: 'TLSv1.2', ciphers });
    const version = async (most: string, names?: string): Promise<string | null> =>
      (await ask(port!, { ca: own.certificate, agent: false, maxVersion: most, ciphers: names })).version;
    expect(await version('TLSv1.3')).toBe('TLSv1.3');
    expect(await version('TLSv1.2')).toBe('TLSv1.2');
    await expect(version('TLSv1.2', 'ECDHE-ECDSA-AES128-GCM-SHA256')).rejects.toThrow(/alert handshake failure/);
    const strict = await listening(LOCAL, files(own));
    await expect(ask(strict.port!, { ca: own.certificate, agent: false, maxVersion: 'TLSv1.2' })).rejects.toThrow(/protocol version/);
  });

  it('accepts only clients with a certificate of the configured authority', async () => {
    const [own, client, stranger] = [made('own'), made('client'), made('stranger')];
    const ca = { option: '[ssl]ca_file', path: join(folder, 'clients.crt') };
    writeFileSync(ca.path, client.certificate);
    const { port } = await listening(LOCAL, { ...files(own), ca });
    const as = (who?: OwnCertificate): Promise<Answer> =>
      ask(port!, { ca: own.certificate, agent: false, cert: who?.certificate, key: who?.privateKey });
    expect((await as(client)).text).toBe('answer');
    await expect(as(stranger)).rejects.toThrow();
    await expect(as()).rejects.toThrow();
  });

  it('reloads its certificate without closing connections, and keeps the old one when the new files are invalid', async () => {
    const [first, second] = [made('first'), made('second')];
    const settings = files(first);
    const errors: string[] = [];
    const listener = await listening(LOCAL, settings, { ...silentLog, error: (message) => void errors.push(message) });
    const ca = [first.certificate, second.certificate];
    const sameConnection = new Agent({ keepAlive: true, maxSockets: 1, ca });
    const over = async (agent: Agent | false): Promise<unknown> => (await ask(listener.port!, { ca, agent })).subject;
    expect(await over(sameConnection)).toBe('first');

    writeFileSync(settings.key.path, 'no key');
    listener.reload();
    expect(errors).toEqual(['the new certificate cannot be used; the previous one stays in use']);
    expect(await over(false)).toBe('first');

    files(second, settings);
    listener.reload();
    expect(await over(false)).toBe('second');
    expect(await over(sameConnection)).toBe('first');
    sameConnection.destroy();
  });

  it('reloads its certificate by itself when the files change', async () => {
    const [first, second] = [made('first'), made('second')];
    const settings = files(first);
    const { port } = await listening(LOCAL, settings);
    files(second, settings);
    const ca = [first.certificate, second.certificate];
    await until('the new certificate', async () => (await ask(port!, { ca, agent: false })).subject === 'second');
  });

  it.each<[string, (settings: TlsSettings) => TlsSettings, RegExp]>([
    [
      'a file that does not exist',
      (settings) => ({ ...settings, cert: { option: '[api]cert_file', path: '/nonexistent.crt' } }),
      /^\[api\]cert_file: cannot read \/nonexistent\.crt: ENOENT/,
    ],
    [
      'the key of another certificate',
      (settings) => ({ ...settings, key: files(made('other')).key }),
      /^\[api\]cert_file .*\.crt and \[api\]key_file .*\.key are not a certificate in PEM and its private key: .*mismatch/,
    ],
    ['unknown ciphers', (settings) => ({ ...settings, ciphers: 'NONE-SUCH' }), /or OpenSSL does not know the ciphers/],
  ])('refuses %s', async (_, change, message) => {
    await expect(listening(LOCAL, change(files(made('own'))))).rejects.toThrow(message);
  });
});

describe('an HTTP listener on a Unix socket', () => {
  const at = (name: string, mode: number | null = null): ListenAddress => ({ path: join(folder, name), mode });
  const answered = (path: string): Promise<string> =>
    new Promise((done, fail) => {
      plainRequest({ socketPath: path }, (response) => void told(response).then(done, fail))
        .once('error', fail)
        .end();
    });

  it('creates the socket with the configured permissions, and removes it when it closes', async () => {
    const path = join(folder, 'a.sock');
    const listener = await listening(at('a.sock', 0o620));
    expect(statSync(path).mode & 0o777).toBe(0o620);
    expect([listener.port, listener.bound]).toEqual([undefined, `unix:${path}`]);
    expect(await answered(path)).toBe('answer');
    await listener.close();
    expect(existsSync(path)).toBe(false);
  });

  it('replaces a stale socket, but neither a socket in use nor a regular file', async () => {
    const path = join(folder, 'b.sock');
    const left = createServer().listen(path);
    await new Promise((done) => left.once('listening', done));
    await expect(listening(at('b.sock'))).rejects.toThrow(/another process listens there/);
    // The socket's file stays, as after SIGKILL.
    const aside = `${path}.aside`;
    renameSync(path, aside);
    await new Promise((done) => left.close(done));
    renameSync(aside, path);
    await listening(at('b.sock'));
    expect(await answered(path)).toBe('answer');

    writeFileSync(join(folder, 'file'), 'precious');
    await expect(listening(at('file'))).rejects.toThrow(/file \(a test, \[test\]option\): the file exists and is not a socket/);
  });
});

it.each<[string, ListenAddress, RegExp]>([
  ['an address of another host', { host: '192.0.2.1', port: 0 }, /192\.0\.2\.1 port 0 \(a test, \[test\]option\): this host does not have/],
])('listenHttp() names the address and the option when it cannot listen on %s', async (_, address, message) => {
  await expect(listening(address)).rejects.toThrow(message);
});
