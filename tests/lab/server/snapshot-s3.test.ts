/** The client of S3 against a server that others wrote (moto). */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent } from '../../../wire/http-agent';
import { createS3 } from '../../../wire/http/s3';
import { until } from '../../support/until';
import { freePort } from '../../support/free-port';
import { programs } from '../support/venv';

jest.setTimeout(900_000);
const folder = mkdtempSync(join(tmpdir(), 'snapshot-s3-'));
const agent = createAgent({ connect: { timeout: 10_000 }, bodyBytes: 65_536 });
let server: ChildProcess;
let endpoint: string;

beforeAll(async () => {
  const bin = await programs('moto', ['moto[server]==5.2.1']);
  const port = await freePort();
  endpoint = `http://127.0.0.1:${port}`;
  server = spawn(join(bin, 'moto_server'), ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
  const answers = () =>
    fetch(`${endpoint}/snapshots`, { method: 'PUT' }).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('the bucket', answers, 200);
});
afterAll(async () => {
  const ended = once(server, 'exit');
  server.kill();
  await ended;
  await agent.destroy();
  rmSync(folder, { recursive: true });
});

it('keeps a file that was sent in parts, gives a URL for it, and removes it', async () => {
  const content = randomBytes(40 * 2 ** 20);
  const path = join(folder, 'file');
  writeFileSync(path, content);
  const s3 = createS3({
    endpoint,
    bucket: 'snapshots',
    region: 'us-east-1',
    accessKey: 'key',
    secretKey: 'secret',
    agent,
    now: Date.now,
  });
  const { signal } = new AbortController();
  await s3.putFile('a b/c.qcow2', path, signal);
  const read = await fetch(s3.urlOf('a b/c.qcow2', 60));
  expect(read.status).toBe(200);
  expect(content.equals(Buffer.from(await read.arrayBuffer()))).toBe(true);
  await s3.remove('a b/c.qcow2', signal);
  await s3.remove('a b/c.qcow2', signal);
  expect((await fetch(s3.urlOf('a b/c.qcow2', 60))).status).toBe(404);
  const missing = createS3({ endpoint, bucket: 'none', region: 'us-east-1', accessKey: 'key', secretKey: 'secret', agent, now: Date.now });
  await expect(missing.putFile('x', path, signal)).rejects.toThrow(/answered 404 to POST: .*NoSuchBucket/);
});
