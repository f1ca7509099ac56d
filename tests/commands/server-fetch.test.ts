/** The requests of commands to a server: authorities of OS_CACERT, and what they say of a connection that fails. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serverFetch } from '../../commands/server-fetch';
import { runCommand } from '../support/command';
import { ownCertificate } from '../../wire/http/certificate';

const own = ownCertificate('127.0.0.1', 'test', Date.now(), randomBytes);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-cacert-'));
const file = join(folder, 'ca.pem');
writeFileSync(file, own.certificate);
const servers: Server[] = [];
let [plain, tls] = ['', ''];
beforeAll(async () => {
  const answer = (_: unknown, response: { end(text: string): void }): void => response.end('{}');
  servers.push(createHttpServer(answer), createHttpsServer({ cert: own.certificate, key: own.privateKey }, answer));
  for (const server of servers) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  [plain, tls] = servers.map((server) => `127.0.0.1:${(server.address() as AddressInfo).port}`) as [string, string];
});
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
  rmSync(folder, { recursive: true });
});
const why = (url: string, OS_CACERT?: string) => runCommand(['why', 'x', '--url', url], { OS_CACERT });

it('speaks TLS without authorities only to servers that Node trusts', async () => {
  expect((await why(`https://${tls}`)).errors).toBe(
    `bloomery: https://${tls} does not answer: self-signed certificate: name its authority by OS_CACERT\n`,
  );
  expect((await why(`https://${tls}`, join(folder, 'none.pem'))).errors).toMatch(
    /^bloomery: cannot read the certificates of OS_CACERT: ENOENT/,
  );
});
it('trusts the authorities in the file that OS_CACERT names', async () => {
  process.env['OS_CACERT'] = file;
  try {
    const response = await serverFetch(`https://${tls}`, '/v1', {});
    expect([response.status, await response.text()]).toEqual([200, '{}']);
  } finally {
    delete process.env['OS_CACERT'];
  }
});
it('says in words that a server speaks no TLS', async () => {
  expect((await why(`https://${plain}`)).errors).toBe(`bloomery: https://${plain} does not answer: what answers there speaks no TLS\n`);
});
