/** A registry of one repository without a login, for tests that need none of the real registry's behaviour. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../model/records';
import { startTlsServer } from './tls-server';

const OCI = 'application/vnd.oci.image.';
const REPOSITORY = 'os/image';
const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

export interface FakeRegistry {
  /** The file with its certificate. */
  readonly ca: string;
  /** The reference of an image. */
  href(tag: string): string;
  /** Stores a container. */
  container(tag: string): void;
  /** Stores a disk image as an artifact. */
  artifact(tag: string, disk: Buffer): void;
  /** Makes it answer all requests with this status; undefined: no more. */
  fail(status: number | undefined): void;
  close(): Promise<void>;
}

/** @param ca where to write the certificate */
export async function startFakeRegistry(ca: string): Promise<FakeRegistry> {
  /** Path → type and content. */
  const served = new Map<string, readonly [type: string, content: Buffer]>([['/v2/', ['application/json', Buffer.from('{}')]]]);
  const tags: string[] = [];
  let failing: number | undefined;
  const server = await startTlsServer(ca, ({ url, method, headers: { range } }, response) => {
    const [path] = url!.split('?') as [string];
    const found =
      path === `/v2/${REPOSITORY}/tags/list`
        ? (['application/json', Buffer.from(JSON.stringify({ name: REPOSITORY, tags }))] as const)
        : served.get(path);
    if (failing !== undefined || !found) return void response.writeHead(failing ?? 404, { 'content-type': 'application/json' }).end('{}');
    const [type, content] = found;
    const [, from = '0', to] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
    const part = content.subarray(Number(from), to ? Number(to) + 1 : undefined);
    response.writeHead(range === undefined ? 200 : 206, {
      'content-type': type,
      'content-length': part.length,
      // Ironic finds a container by it.
      'docker-content-digest': digestOf(content),
    });
    response.end(method === 'HEAD' ? undefined : part);
  });
  const put = (kind: 'blobs' | 'manifests', type: string, content: Buffer, tag?: string): JsonObject => {
    const digest = digestOf(content);
    for (const name of tag === undefined ? [digest] : [digest, tag]) served.set(`/v2/${REPOSITORY}/${kind}/${name}`, [type, content]);
    return { mediaType: type, digest, size: content.length };
  };
  const manifest = (tag: string, content: JsonObject): void => {
    const mediaType = `${OCI}manifest.v1+json`;
    put('manifests', mediaType, Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, ...content })), tag);
    tags.push(tag);
  };
  const json = (type: string, content: JsonObject): JsonObject => put('blobs', type, Buffer.from(JSON.stringify(content)));
  return {
    ca,
    href: (tag) => `oci://${server.url.replace('https://', '')}/${REPOSITORY}:${tag}`,
    container: (tag) =>
      manifest(tag, {
        config: json(`${OCI}config.v1+json`, { architecture: 'amd64', os: 'linux' }),
        layers: [put('blobs', `${OCI}layer.v1.tar`, Buffer.alloc(1024))],
      }),
    artifact: (tag, disk) =>
      manifest(tag, {
        artifactType: 'application/x-disk',
        config: json('application/vnd.oci.empty.v1+json', {}),
        layers: [put('blobs', 'application/x-raw', disk)],
      }),
    fail: (status) => void (failing = status),
    close: () => server.close(),
  };
}
