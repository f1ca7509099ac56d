/**
 * References to images in a real registry, beside Ironic 39: what each gives the agent for the same registry, and what it refuses. Then the
 * HTTP boot service's cache with the same registry.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';
import { gzipSync } from 'node:zlib';
import { openCache, type Cache } from '../../../boot/cache';
import { directDeploy } from '../../../drivers/agent/direct';
import { systemClock } from '../../../model/clock';
import { ociAuthorization } from '../../../drivers/oci/images';
import { reasonOf } from '../../../model/errors';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { OCI_MANIFEST } from '../../../wire/oci/manifest';
import { blobUrl } from '../../../wire/oci/reference';
import { inIronicsPython, inPython } from '../../reference/random-cases';
import { result, startFakeAgent } from '../../support/fakes/fake-agent';
import { freePort } from '../../support/free-port';
import { optionsOf } from '../../support/options';
import { servicesOf } from '../../support/services';
import { driverOptions, testTask } from '../../support/task';
import { imageLayout, startRegistry, type LabRegistry } from '../support/registry';
import { needs } from '../support/needs';
import { programs } from '../support/venv';

jest.setTimeout(900_000);

const DISK = 'application/x-raw-disk-image';
let folder: string;
let registry: LabRegistry;
/** Name → `sha256:…` of what was pushed. */
const digests: Record<string, string> = {};
const noise = randomBytes(300_000);
/** A disk with an MBR, so that its format is `gpt`, which agents write as it is. */
const raw = Buffer.alloc(700_000);
raw[450] = 0x83;
raw.writeUInt16LE(0xaa55, 510);
noise.copy(raw, 2048);

beforeAll(async () => {
  needs({ 'docker-registry': 'docker-registry', skopeo: 'skopeo' });
  folder = mkdtempSync(join(tmpdir(), 'oci-references-'));
  const start = (program: string, ...words: string[]) => spawn(program, words, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  const ports = [await freePort(), await freePort()] as const;
  registry = await startRegistry({ folder, address: '127.0.0.1', ports, auth: 'token', start });
  await pushAll();
});
afterAll(async () => {
  await registry?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function pushAll(): Promise<void> {
  const layout = imageLayout(join(folder, 'layout'));
  const disk = { ...layout.add(DISK, raw), annotations: { 'org.opencontainers.image.title': 'disk.img' } };
  const packed = layout.add('application/zstd', Buffer.from('28b52ffd04600d00000000', 'hex'));
  const config = layout.add(
    'application/vnd.oci.image.config.v1+json',
    Buffer.from('{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}'),
  );
  const layers = [
    layout.add('application/vnd.oci.image.layer.v1.tar', Buffer.alloc(1024)),
    layout.add('application/vnd.oci.image.layer.v1.tar', Buffer.alloc(2048)),
  ];
  const push = async (name: string, found: { readonly digest: string }): Promise<void> => {
    digests[name] = found.digest;
    await registry.push(join(folder, 'layout'), 'team/disk', name);
  };
  const artifact = (content: JsonObject = {}) => layout.manifest({ artifactType: 'application/x-disk', layers: [disk], ...content });
  await push('artifact', artifact());
  await push('oras1', layout.manifest({ layers: [disk] }));
  await push('packed', artifact({ layers: [packed] }));
  await push('gz', artifact({ layers: [layout.add('application/gzip', gzipSync(raw))] }));
  const xz = execFileSync('xz', ['-c'], { input: raw, maxBuffer: 2 ** 24 });
  await push('xz', artifact({ layers: [layout.add('application/x-xz', xz)] }));
  const bySha512 = { ...disk, digest: await pushBlob('sha512', raw) };
  const { digest } = artifact({ layers: [bySha512] });
  digests['sha512'] = await pushManifest('sha512', readFileSync(join(folder, 'layout/blobs/sha256', digest.replace('sha256:', ''))));
  await push('two-layers', artifact({ layers: [disk, packed] }));
  await push('container', layout.manifest({ config, layers }));
  const [one, two, three] = [
    artifact({ annotations: { n: '1' } }),
    artifact({ annotations: { n: '2' } }),
    artifact({ annotations: { n: '3' } }),
  ];
  const entry = (found: JsonObject, architecture: string, disktype?: string): JsonObject => ({
    ...found,
    platform: { architecture, os: 'linux' },
    ...(disktype === undefined ? {} : { annotations: { disktype } }),
  });
  await push('index', layout.index([entry(one, 'x86_64', 'qcow2'), entry(two, 'x86_64', 'raw'), entry(three, 'aarch64', 'raw')]));
  await push('applehv', layout.index([entry(one, 'amd64', 'hyperv'), entry(two, 'amd64', 'applehv')]));
  await push('qemu', layout.index([entry(one, 'amd64', 'qemu'), entry(two, 'arm64', 'applehv')]));
  const container = layout.manifest({ config, layers });
  await push('mixed', layout.index([entry(container, 'amd64'), entry(two, 'arm64', 'raw')]));
  await push('unknown-types', layout.index([entry(one, 'amd64', 'hyperv'), entry(two, 'amd64', 'vmware')]));
  digests['one'] = one.digest;
}

/** What skopeo cannot push: it knows blobs by SHA-256 only. @returns the digest */
async function pushBlob(algorithm: 'sha512', bytes: Buffer): Promise<string> {
  const digest = `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
  const started = await upload('POST', '/v2/team/disk/blobs/uploads/', Buffer.alloc(0));
  const place = new URL(started, `https://${registry.host}`);
  place.searchParams.set('digest', digest);
  await upload('PUT', `${place.pathname}${place.search}`, bytes);
  return digest;
}
async function pushManifest(tag: string, bytes: Buffer): Promise<string> {
  await upload('PUT', `/v2/team/disk/manifests/${tag}`, bytes);
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
/** @returns where the answer leads */
async function upload(method: 'POST' | 'PUT', path: string, bytes: Buffer): Promise<string> {
  const ca = readFileSync(registry.caFile);
  const ask = (url: string, headers: Readonly<Record<string, string>>, body?: Buffer): Promise<IncomingMessage> =>
    new Promise((done, fail) => {
      request(url, { ca, method: body ? method : 'GET', headers }, done)
        .on('error', fail)
        .end(body);
    });
  const { username, password } = registry;
  const login = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const url = `${registry.tokenUrl}?service=lab%20registry&scope=repository:team/disk:pull,push`;
  const { token } = JSON.parse(await text(await ask(url, { authorization: login }))) as { readonly token: string };
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': path.includes('/manifests/') ? OCI_MANIFEST : 'application/octet-stream',
  };
  const answer = await ask(`https://${registry.host}${path}`, headers, bytes);
  const said = await text(answer);
  if (answer.statusCode! >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${said}`);
  return String(answer.headers.location);
}

interface Case {
  readonly source: string;
  readonly properties?: JsonObject;
  readonly instance_info?: JsonObject;
}
interface Answer {
  readonly error?: string;
  readonly crash?: string;
  readonly sent?: JsonObject;
  readonly authorization?: string | null;
  readonly facts?: JsonObject;
}
const at = (reference: string): string => `oci://${registry.host}/team/disk${reference}`;
const secret = () => `${registry.username}:${registry.password}`;
const names = [
  'image_size',
  'image_filename',
  'image_media_type',
  'image_compression_type',
  'oci_image_manifest_url',
  'image_container_manifest_digest',
];

/** What this program gives the agent. */
async function ours({ source, properties = {}, instance_info: info = {} }: Case): Promise<Answer> {
  const agent = await startFakeAgent(() => ({ body: result('execute_deploy_step', 'RUNNING') }));
  try {
    const { task, node } = testTask({
      node: {
        uuid: 'u',
        power_state: 'power on',
        driver_internal_info: { is_whole_disk_image: true, agent_url: agent.url, agent_secret_token: 's3cret' },
        instance_info: { image_source: source, image_pull_secret: secret(), ...info },
        properties,
      },
      options: driverOptions({ 'oci.verify_ca': registry.caFile, 'agent.require_tls': false }),
    });
    await directDeploy.validate!(task);
    await directDeploy.prepare!(task);
    await directDeploy.steps!.find(({ step }) => step === 'write_image')!.run(task, {});
    const { args } = agent.asked.at(-1)!.body!.params['step'] as { readonly args: { readonly image_info: JsonObject } };
    const { id, urls, disk_format, checksum, image_request_authorization: authorization } = args.image_info;
    return {
      sent: { id, urls, disk_format, checksum },
      authorization: typeof authorization === 'string' ? Buffer.from(authorization, 'base64').toString().split(' ')[0]! : null,
      facts: Object.fromEntries(names.map((name) => [name, node().instance_info[name] ?? null])),
    };
  } catch (error) {
    return { error: reasonOf(error) };
  } finally {
    await agent.close();
  }
}

it('gives the agent what Ironic gives it', async () => {
  const cases: readonly Case[] = [
    { source: at(':artifact') },
    { source: at(':oras1') },
    { source: at(':packed') },
    { source: at(':gz') },
    { source: at(':xz') },
    { source: at(':sha512') },
    { source: at(`@${digests['sha512']!}`) },
    { source: at(':two-layers') },
    { source: at(':container') },
    { source: at(':index') },
    { source: at(':index'), properties: { cpu_arch: 'x86_64' } },
    { source: at(':index'), properties: { cpu_arch: 'aarch64' } },
    { source: at(':index'), properties: { cpu_arch: 'riscv64' } },
    { source: at(':applehv'), properties: { cpu_arch: 'x86_64' } },
    { source: at(':qemu'), properties: { cpu_arch: 'x86_64' } },
    { source: at(':mixed'), properties: { cpu_arch: 'x86_64' } },
    { source: at(':mixed'), properties: { cpu_arch: 'aarch64' } },
    { source: at(':unknown-types') },
    { source: at(':nothing') },
    { source: at('') },
    { source: `oci://${registry.host}/team/absent:1` },
    { source: at(`@${digests['artifact']!}`) },
    { source: at(`:artifact@${digests['artifact']!}`) },
    { source: at(`@${digests['one']!}`) },
    { source: at(`@${digests['container']!}`) },
    { source: at(`@${digests['index']!}`) },
    { source: at(`@sha256:${'0'.repeat(64)}`) },
    { source: at('@sha256:00') },
    { source: at('@nothing') },
    { source: at('@md5:00') },
    { source: at(':artifact'), instance_info: { image_pull_secret: 'puller:wrong' } },
    { source: at(':artifact'), instance_info: { image_pull_secret: '' } },
    { source: at(':index'), instance_info: { image_download_source: 'swift' } },
  ];
  const asked = cases.map(({ source, properties = {}, instance_info: info = {} }) => ({
    source,
    properties,
    instance_info: { image_pull_secret: secret(), ...info },
    ca: registry.caFile,
  }));
  const theirs = await inIronicsPython<Answer>(join(__dirname, 'oci-references.py'), asked, 600_000);
  const mine: Answer[] = [];
  for (const each of cases) mine.push(await ours(each));
  const counts = { same: 0, formats: 0, words: 0, refused: 0, beyond: 0 };
  const differences = cases.flatMap((each, n) => {
    const kind = compared(mine[n]!, theirs[n]!);
    if (kind === undefined) return [{ each, mine: mine[n], theirs: theirs[n] }];
    counts[kind]++;
    return [];
  });
  expect(differences).toEqual([]);
  expect(counts).toEqual({ same: 14, formats: 6, words: 5, refused: 7, beyond: 1 });
});

/**
 * `same`: what is sent and all facts, or the error with the name of the field before it. `formats`: Ironic leaves a format to the agent that
 * this program has found out. `words`: an error that is a Python exception there, or that names the image otherwise. `refused`: Ironic
 * sends what no agent can write, or ends with an exception. `beyond`: of a tag with a digest, Ironic asks the token server for a repository
 * whose name has the tag. Undefined: none of these.
 */
function compared(mine: Answer, theirs: Answer): 'same' | 'formats' | 'words' | 'refused' | 'beyond' | undefined {
  const { kind: _, ...rest } = theirs as Answer & { readonly kind?: string };
  const error = mine.error?.replace(/^image_source: /, '');
  if (isDeepStrictEqual(error === undefined ? mine : { error }, rest)) return 'same';
  const format = theirs.sent?.['disk_format'];
  if (mine.sent && (format === null || format === 'unknown'))
    return isDeepStrictEqual({ ...mine, sent: { ...mine.sent, disk_format: format } }, rest) ? 'formats' : undefined;
  if (error === undefined)
    return /requires authentication/.test(theirs.error ?? '') && /:\w+@/.test(String(mine.sent?.['id'])) ? 'beyond' : undefined;
  const bare = (message: string): string => message.replace(/@sha256:[0-9a-f]{64}/, '').replace(/manifests\/artifact/, 'tags/list');
  if (theirs.error !== undefined) return bare(error) === bare(theirs.error) ? 'words' : undefined;
  if (/Unauthorized|Not Found/.test(theirs.crash ?? '')) return 'words';
  return theirs.crash !== undefined || format === 'bootc' || /Expected format was qcow2/.test(error) ? 'refused' : undefined;
}

describe('the image cache of the HTTP boot service', () => {
  let cache: Cache;
  const warnings: string[] = [];
  beforeAll(async () => {
    cache = await openCache({
      folder: join(folder, 'cache'),
      maxBytes: 2 ** 30,
      options: optionsOf({ 'oci.verify_ca': registry.caFile }),
      glance: servicesOf().glance,
      log: { ...silentLog, warn: (message, fields) => void warnings.push(`${message} ${JSON.stringify(fields)}`) },
      clock: systemClock,
      random: randomBytes,
    });
  });
  afterAll(() => cache.close());
  const pushed = async (name: string, bytes: Buffer): Promise<string> => {
    const layout = imageLayout(join(folder, `layout-${name}`));
    const { digest } = layout.add(DISK, bytes);
    layout.manifest({ artifactType: 'application/x-disk', layers: [{ ...layout.add(DISK, bytes) }] });
    await registry.push(join(folder, `layout-${name}`), 'team/cached', name);
    return digest;
  };
  const open = async (digest: string, image_pull_secret: string | undefined = secret()): Promise<Buffer> => {
    const node = async () => ({ instance_info: { image_pull_secret }, driver_info: {} });
    const file = await cache.open(blobUrl({ registry: registry.host, repository: 'team/cached', digest }), { node, permitsUser: true });
    try {
      return await buffer(file.read(0, file.size - 1));
    } finally {
      await file.release();
    }
  };

  it('reads a blob once, for whoever has the secret', async () => {
    const bytes = randomBytes(400_000);
    const digest = await pushed('good', bytes);
    await expect(open(digest, 'puller:wrong')).rejects.toThrow('401');
    const [one, two] = await Promise.all([open(digest), open(digest)]);
    expect(one.equals(bytes) && two.equals(bytes)).toBe(true);
  });

  it('refuses a blob whose bytes do not have the digest, and one that is cut', async () => {
    const damaged = await pushed('damaged', randomBytes(400_000));
    const bytes = readFileSync(registry.blobFile(damaged));
    bytes[300_000]! ^= 1;
    writeFileSync(registry.blobFile(damaged), bytes);
    await expect(open(damaged)).rejects.toThrow('the sha256 checksum does not match');
    const cut = await pushed('cut', randomBytes(400_000));
    truncateSync(registry.blobFile(cut), 100_000);
    await expect(open(cut)).rejects.toThrow(/checksum does not match|ended after|answers/);
    expect(warnings.join('\n')).not.toContain(registry.password);
  });
});

it('the real agent downloads with what it is given', async () => {
  const agent = await programs('agent-functions', ['ironic-python-agent==13.0.0']);
  const authorized = await ociAuthorization(
    testTask({
      node: { instance_info: { image_pull_secret: secret() } },
      options: driverOptions({ 'oci.verify_ca': registry.caFile }),
    }).task,
    at(':artifact'),
  );
  const digest = createHash('sha256').update(raw).digest('hex');
  const info = {
    id: 'disk:artifact',
    urls: [`https://${registry.host}/v2/team/disk/blobs/sha256:${digest}`],
    checksum: digest,
    os_hash_algo: 'sha256',
    os_hash_value: digest,
    image_request_authorization: Buffer.from(authorized!).toString('base64'),
  };
  const cases = [info, { ...info, image_request_authorization: undefined }].map((image_info) => ({ image_info, ca: registry.caFile }));
  const [good, bad] = await inPython<{ readonly bytes?: number; readonly error?: string }>(
    agent,
    join(__dirname, 'oci-agent.py'),
    cases,
    200_000,
  );
  expect(good).toEqual({ bytes: raw.length });
  expect(bad!.error).toContain('401');
});
