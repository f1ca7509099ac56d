/** Deployments from a registry that the test plays: what the agent and the boot service get, and the words of errors. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootcDeploy } from '../../../drivers/agent/bootc';
import { directDeploy } from '../../../drivers/agent/direct';
import { identifyOciFile } from '../../../drivers/oci/images';
import { servable } from '../../../drivers/common/images';
import type { JsonObject } from '../../../model/records';
import { blobUrl } from '../../../wire/oci/reference';
import { result, startFakeAgent, type FakeAgent } from '../../support/fakes/fake-agent';
import { startTlsServer, type TlsWebServer } from '../../support/fakes/tls-server';
import { driverOptions, testTask, type TestTask } from '../../support/task';

const OCI = 'application/vnd.oci.image.';
const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
/** A disk with an MBR. */
const disk = Buffer.alloc(4096);
disk[450] = 0x83;
disk.writeUInt16LE(0xaa55, 510);

let folder: string;
let registry: TlsWebServer;
let agent: FakeAgent;
/** Path → content. */
const served = new Map<string, Buffer>();
let status: number | undefined;
let ranges: (string | undefined)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'oci-images-'));
  registry = await startTlsServer(join(folder, 'ca.pem'), ({ url, headers }, response) => {
    const content = served.get(url!);
    if (status !== undefined || !content) return void response.writeHead(status ?? 404).end('{}');
    ranges.push(headers.range);
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
    if (from === undefined) return void response.end(content);
    if (Number(from) >= content.length) return void response.writeHead(416).end();
    response.writeHead(206).end(content.subarray(Number(from), Number(to) + 1));
  });
  agent = await startFakeAgent(() => ({ body: result('execute_deploy_step', 'RUNNING') }));
});
afterAll(async () => {
  await registry.close();
  await agent.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  served.clear();
  status = undefined;
  ranges = [];
});

const host = (): string => registry.url.replace('https://', '');
const href = (rest = ':v1'): string => `oci://${host()}/team/disk${rest}`;
function serve(name: 'blobs' | 'manifests', bytes: Buffer, tag?: string): { readonly digest: string; readonly size: number } {
  const digest = digestOf(bytes);
  for (const key of tag === undefined ? [digest] : [digest, tag]) served.set(`/v2/team/disk/${name}/${key}`, bytes);
  return { digest, size: bytes.length };
}
const manifest = (content: JsonObject, tag?: string) =>
  serve('manifests', Buffer.from(JSON.stringify({ mediaType: `${OCI}manifest.v1+json`, ...content })), tag);
const artifact = (tag?: string) =>
  manifest({ artifactType: 'application/x-disk', layers: [{ mediaType: 'application/x-raw', ...serve('blobs', disk) }] }, tag);

const deploying = (info: JsonObject = {}, properties: JsonObject = {}): TestTask =>
  testTask({
    node: {
      power_state: 'power on',
      properties,
      driver_internal_info: { agent_url: agent.url, agent_secret_token: 's3cret' },
      instance_info: { image_source: href(), image_pull_secret: 'user:password', ...info },
    },
    options: driverOptions({ 'oci.verify_ca': registry.ca, 'agent.require_tls': false }),
  });
const prepare = async (tested: TestTask): Promise<TestTask> => {
  await directDeploy.validate!(tested.task);
  await directDeploy.prepare!(tested.task);
  return tested;
};
async function sent({ task }: TestTask): Promise<JsonObject> {
  await directDeploy.steps!.find(({ step }) => step === 'write_image')!.run(task, {});
  return (agent.asked.at(-1)!.body!.params['step'] as { readonly args: { readonly image_info: JsonObject } }).args.image_info;
}

it('gives the agent the layer, by its digest', async () => {
  served.set('/v2/', Buffer.from('{}'));
  const { digest } = artifact('v1');
  const tested = await prepare(deploying({ image_disk_format: 'qcow2', kernel: 'http://k', ramdisk: 'http://r' }));
  const value = digestOf(disk);
  expect(await sent(tested)).toMatchObject({
    id: 'disk:v1',
    urls: [`https://${host()}/v2/team/disk/blobs/${value}`],
    disk_format: 'raw',
    checksum: value.slice(7),
    os_hash_algo: 'sha256',
    os_hash_value: value.slice(7),
  });
  expect(tested.node()).toMatchObject({
    instance_info: { oci_image_manifest_url: href(`@${digest}`), image_type: 'whole-disk', image_size: disk.length },
    driver_internal_info: { image_source: href(`@${digest}`), container_image_type: 'oci_artifact', is_whole_disk_image: true },
  });
  // The conductor reads the beginning only.
  expect(ranges.filter(Boolean)).toEqual(['bytes=0-131071']);
});

it('lets the boot service get the layer with image_download_source = local', async () => {
  served.set('/v2/', Buffer.from('{}'));
  artifact('v1');
  const tested = await prepare(deploying({ image_download_source: 'local' }));
  const [boot] = [...tested.boots.values()];
  expect(boot!.files['image']).toBe(blobUrl({ registry: host(), repository: 'team/disk', digest: digestOf(disk) }));
  const info = await sent(tested);
  expect(info['urls']).toEqual([expect.stringMatching(/\/boot\/[^/]+\/image$/)]);
  expect(info).not.toHaveProperty('image_request_authorization');
});

it.each([
  [401, /^image_source: The requested image https:\S+\/v2\/ requires authentication which has not been provided\. Unable to proceed\.$/],
  [403, /^image_source: Image oci:\S+:v1 could not be found\.$/],
  [404, /^image_source: Image oci:\S+:v1 could not be found\.$/],
  [429, /^image_source: The image registry has indicates the rate limit has been exceeded for url https:\S+\/v2\/\. /],
  [500, /^image_source: Resource temporarily unavailable, please retry\.$/],
  [418, /^image_source: Validation of image href oci:\S+:v1 failed, reason: https:\S+: the server answers 418$/],
])('has Ironic’s words for %s', async (answer, message) => {
  status = answer;
  await expect(prepare(deploying())).rejects.toThrow(message);
});

it.each([
  ['a container', () => manifest({ config: { mediaType: `${OCI}config.v1+json` }, layers: [{}, {}] }, 'v1'), /is a bootable container/],
  ['several layers', () => manifest({ artifactType: 'a', layers: [{}, {}] }, 'v1'), /has no disk image or bootable container in it/],
  [
    'a layer without a digest',
    () => manifest({ artifactType: 'a', layers: [{ digest: 'sha256:../..' }] }, 'v1'),
    /digest length incorrect/,
  ],
  ['no manifest', () => serve('manifests', Buffer.from('{"mediaType":"text/html"}'), 'v1'), /Invalid image href oci:\S+:v1\.$/],
  ['no tags', () => served.set('/v2/team/disk/tags/list', Buffer.from('{"tags":null}')), /Image oci:\S+:v1 does not have any tags$/],
])('refuses %s', async (_, publish, message) => {
  served.set('/v2/', Buffer.from('{}'));
  publish();
  await expect(prepare(deploying())).rejects.toThrow(message);
});

it('asks for some of the entries of an endless index only', async () => {
  served.set('/v2/', Buffer.from('{}'));
  const entries = Array.from({ length: 200 }, (_, n) => ({ ...manifest({ artifactType: 'a', layers: [{ n }, {}] }), artifactType: 'a' }));
  serve('manifests', Buffer.from(JSON.stringify({ mediaType: `${OCI}index.v1+json`, manifests: entries })), 'v1');
  await expect(prepare(deploying())).rejects.toThrow(/has no disk image or bootable container in it/);
  // The API's version, the index, and the manifests.
  expect(ranges).toHaveLength(34);
});

it('tells bootc of a bootable container, and of nothing else', async () => {
  served.set('/v2/', Buffer.from('{}'));
  const supports = (info: JsonObject) => bootcDeploy.supports!(deploying(info).task);
  manifest({ config: { mediaType: `${OCI}config.v1+json` }, layers: [{}, {}] }, 'container');
  artifact('v1');
  await expect(supports({ image_source: href(':container') })).resolves.toBe(true);
  await expect(supports({ image_source: href() })).resolves.toBe(false);
  await expect(supports({ image_source: href(':absent') })).resolves.toBe(false);
  await expect(supports({ image_source: 'oci://' })).resolves.toBe(false);
  await expect(supports({ image_source: 'http://127.0.0.1:1/image.raw' })).resolves.toBe(false);
  await expect(supports({ image_source: null })).resolves.toBe(false);
});

it.each([
  [{ image_pull_secret: 7 }, 'instance_info/image_pull_secret is not a string'],
  [
    { image_download_source: 'swift' },
    'An image_download_source of swift is incompatible with retrieval of artifacts from an OCI container registry.',
  ],
  [{ image_source: 'oci://quay.io' }, 'Validation of image href oci://quay.io failed, reason: It does not name a repository.'],
])('validates %j without the registry', async (info, message) => {
  await expect(directDeploy.validate!(deploying(info).task)).rejects.toMatchObject({ status: 400, message });
});

it('finds kernels and ramdisks by digest, with the secret of driver_info', async () => {
  served.set('/v2/', Buffer.from('{}'));
  const { digest } = artifact('v1');
  const { task } = deploying();
  const blob = { registry: host(), repository: 'team/disk', digest: digestOf(disk) };
  await expect(identifyOciFile(task, href(`@${digest}`))).resolves.toEqual(blob);
  await expect(servable(href(`@${digest}`), true, task)).resolves.toBe(blobUrl(blob));
  await expect(servable(href(), true, task)).rejects.toThrow(/was not specific/);
  const two = manifest({ layers: [{}, {}] });
  await expect(servable(href(`@${two.digest}`), true, task)).rejects.toThrow(
    'Incorrect number of layers. Expected 1 layer, found 2 layers.',
  );
  await expect(servable(href(`@sha256:${randomBytes(32).toString('hex')}`), true, task)).rejects.toMatchObject({ name: 'ImageNotFound' });
});
