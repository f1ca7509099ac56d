import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent } from '../../../wire/http-agent';
import { createS3, createSigner, type S3 } from '../../../wire/http/s3';

/** The examples of Amazon's description of signatures. */
const ACCESS = { accessKey: 'AKIAIOSFODNN7EXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', region: 'us-east-1' };
const AT = Date.UTC(2013, 4, 24);
const HOST = 'examplebucket.s3.amazonaws.com';
const EMPTY = createHash('sha256').digest('hex');

it('signs as the examples of Amazon', () => {
  const signer = createSigner(ACCESS);
  const request = { method: 'GET', path: '/', query: { lifecycle: '' }, payload: EMPTY, host: HOST };
  expect(signer.headersOf(request, AT)['authorization']).toBe(
    'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  );
  expect(signer.queryOf({ host: HOST, path: '/test.txt' }, 86400, AT)).toMatch(
    /&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404$/,
  );
});

const MiB = 2 ** 20;
const UPLOAD = 'upload-1';
/** Takes parts as S3 does. `refuses`: the method that it refuses. */
async function withServer<T>(
  refuses: string | null,
  work: (s3: S3, log: string[], objects: Map<string, Buffer>) => Promise<T>,
): Promise<T> {
  const log: string[] = [];
  const parts: Buffer[] = [];
  const objects = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    const read: Buffer[] = [];
    request.on('data', (part: Buffer) => read.push(part));
    request.on('end', () => {
      const body = Buffer.concat(read);
      log.push(`${request.method} ${request.url}`);
      const { pathname, searchParams } = new URL(request.url!, 'http://s3');
      const isSigned = request.headers['x-amz-content-sha256'] === createHash('sha256').update(body).digest('hex');
      if (!isSigned || request.method === refuses) return response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>');
      if (searchParams.has('uploads')) return response.end(`<x><UploadId>${UPLOAD}</UploadId></x>`);
      if (request.method === 'DELETE') return response.writeHead(204).end();
      if (request.method === 'PUT') {
        parts[Number(searchParams.get('partNumber')) - 1] = body;
        return response.setHeader('etag', `"${createHash('md5').update(body).digest('hex')}"`).end();
      }
      const tags = [...body.toString().matchAll(/<ETag>"([0-9a-f]{32})"<\/ETag>/g)].map(([, tag]) => tag);
      expect(tags).toEqual(parts.map((part) => createHash('md5').update(part).digest('hex')));
      objects.set(pathname, Buffer.concat(parts));
      return response.end('<CompleteMultipartUploadResult/>');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const agent = createAgent({ connect: { timeout: 1000 }, bodyBytes: 65_536 });
  try {
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return await work(createS3({ ...ACCESS, endpoint, bucket: 'snapshots', agent, now: () => AT }), log, objects);
  } finally {
    await agent.destroy();
    server.close();
  }
}

describe('a file', () => {
  let folder: string;
  const content = randomBytes(35 * MiB);
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 's3-'));
    await writeFile(join(folder, 'file'), content);
  });
  afterAll(() => rm(folder, { recursive: true }));
  const { signal } = new AbortController();

  it('is sent in parts, and can be removed', async () => {
    await withServer(null, async (s3, log, objects) => {
      await s3.putFile('a b.qcow2', join(folder, 'file'), signal);
      expect(objects.get('/snapshots/a%20b.qcow2')!.equals(content)).toBe(true);
      expect(log.filter((line) => line.startsWith('PUT'))).toHaveLength(3);
      await s3.remove('a b.qcow2', signal);
      expect(log.at(-1)).toBe('DELETE /snapshots/a%20b.qcow2');
      expect(s3.urlOf('a b.qcow2', 60)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/snapshots\/a%20b\.qcow2\?X-Amz-Algorithm=AWS4-HMAC-SHA256&/);
    });
  });

  it('leaves no parts behind when the server refuses one', async () => {
    await withServer('PUT', async (s3, log, objects) => {
      await expect(s3.putFile('x', join(folder, 'file'), signal)).rejects.toThrow(/answered 403 to PUT: <Error><Code>AccessDenied/);
      expect(log.at(-1)).toBe(`DELETE /snapshots/x?uploadId=${UPLOAD}`);
      expect(objects.size).toBe(0);
    });
  });
});
