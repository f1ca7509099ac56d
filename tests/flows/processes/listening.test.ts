/** Where `bloomery serve` listens, and with which certificate. Runs the built program (npm test builds it). */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request as plainRequest, type IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { ownCertificate } from '../../../wire/http/certificate';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';

const database = useDatabase();
const folder = mkdtempSync(join(tmpdir(), 'bloomery-listening-'));
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill('SIGTERM');
    await ended;
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
/** @returns the process and its ready line */
async function serve(settings: string, roles = 'api,conductor'): Promise<{ readonly child: ChildProcess; readonly ready: string }> {
  const config = join(folder, `${++files}.conf`);
  writeFileSync(config, settings);
  const words = ['serve', '--config-file', config, '--state-dir', join(folder, `state-${files}`), '--roles', roles];
  const child = spawn(process.execPath, [join(__dirname, '../../../bin/bloomery'), ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DATABASE_URL: database.connection() },
  });
  children.push(child);
  let [output, errors] = ['', ''];
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  await until('the ready line', () => output.includes('ready in') || child.exitCode !== null);
  if (child.exitCode !== null) throw new Error(errors);
  return { child, ready: output.trim() };
}
const COMMON = '[DEFAULT]\nhost = listening\nmy_ip = 127.0.0.1\nenabled_hardware_types = fake-hardware\n';

const textOf = (response: IncomingMessage): Promise<string> =>
  new Promise((done) => {
    let text = '';
    response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    response.once('end', () => done(text));
  });
const secure = (port: number, path: string, ca: readonly string[]): Promise<{ readonly text: string; readonly subject: unknown }> =>
  new Promise((done, fail) => {
    request({ host: '127.0.0.1', port, path, ca: [...ca], agent: false }, (response) => {
      const subject = (response.socket as TLSSocket).getPeerCertificate().subject.CN;
      void textOf(response).then((text) => done({ text, subject }));
    })
      .once('error', fail)
      .end();
  });

it('answers with TLS, has https links, and reads the certificate again at SIGHUP', async () => {
  const [first, second] = ['first', 'second'].map((name) => ownCertificate('127.0.0.1', name, Date.now(), randomBytes)) as [
    ReturnType<typeof ownCertificate>,
    ReturnType<typeof ownCertificate>,
  ];
  const [cert, key] = [join(folder, 'api.crt'), join(folder, 'api.key')];
  const write = ({ certificate, privateKey }: typeof first): void => {
    writeFileSync(cert, certificate);
    writeFileSync(key, privateKey);
  };
  write(first);
  const { child, ready } = await serve(
    `${COMMON}[api]\nhost_ip = 127.0.0.1\nport = 0\nenable_ssl_api = true\ncert_file = ${cert}\nkey_file = ${key}\n`,
  );
  const port = Number(/API https:\/\/127\.0\.0\.1:(\d+),/.exec(ready)?.[1]);
  const ca = [first.certificate, second.certificate];
  const { text, subject } = await secure(port, '/v1/', ca);
  expect(subject).toBe('first');
  expect((JSON.parse(text) as { links: readonly { href: string }[] }).links[0]!.href).toBe(`https://127.0.0.1:${port}/v1/`);
  write(second);
  child.kill('SIGHUP');
  await until('the second certificate', async () => (await secure(port, '/', ca)).subject === 'second');
});

it('answers at a Unix socket, without authentication', async () => {
  const path = join(folder, 'api.sock');
  const { ready } = await serve(`${COMMON}[api]\nunix_socket = ${path}\nunix_socket_mode = 660\n`);
  expect(ready).toContain(`API unix:${path},`);
  const version = await new Promise<string>((done, fail) => {
    plainRequest({ socketPath: path, path: '/v1/' }, (response) => void textOf(response).then(done))
      .once('error', fail)
      .end();
  });
  expect(JSON.parse(version)).toMatchObject({ id: 'v1' });
});

it('writes its audit log to the standard output, or to a file that it opens again at SIGHUP', async () => {
  const create = (socketPath: string): Promise<string> =>
    new Promise((done, fail) => {
      plainRequest({ socketPath, path: '/v1/chassis', method: 'POST' }, (response) => void textOf(response).then(done))
        .once('error', fail)
        .end('{}');
    });
  const [one, two] = ['one.sock', 'two.sock'].map((name) => join(folder, name)) as [string, string];
  const first = await serve(`${COMMON}[api]\nunix_socket = ${one}\n[audit]\nenabled = true\n`);
  let output = '';
  first.child.stdout!.on('data', (data: Buffer) => (output += data.toString()));
  await create(one);
  await until('the entry', () => output.endsWith('\n'));
  expect(JSON.parse(output)).toMatchObject({ operation: 'createChassis', address: null, outcome: 'success' });

  const file = join(folder, 'audit.log');
  const second = await serve(`${COMMON}host = other\n[api]\nunix_socket = ${two}\n[audit]\nenabled = true\nlog_file = ${file}\n`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  renameSync(file, `${file}.1`);
  second.child.kill('SIGHUP');
  await until('a new file', () => existsSync(file));
  await create(two);
  await until('the entry in it', () => readFileSync(file, 'utf8').endsWith('\n'));
  expect(readFileSync(`${file}.1`, 'utf8')).toBe('');
});

it('prints the address on which it listens', async () => {
  expect((await serve(`${COMMON}[api]\nport = 0\n`)).ready).toMatch(/API http:\/\/127\.0\.0\.1:\d+,/);
  expect((await serve(`${COMMON}host = other\nauth_strategy = noauth\n[api]\nport = 0\n`)).ready).toMatch(/API http:\/\/0\.0\.0\.0:\d+,/);
});
