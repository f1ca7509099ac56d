/** A real container registry (Debian's docker-registry) with TLS, to which skopeo pushes disk images and containers. */
import type { ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hash } from 'bcryptjs';
import type { JsonObject } from '../../../model/records';
import { ownCertificate } from '../../../wire/http/certificate';
import { until } from '../../support/until';

interface RegistrySetup {
  /** A folder that exists, for its files. */
  readonly folder: string;
  readonly address: string;
  /** By which machines reach it, where that differs. */
  readonly reachedAt?: string;
  /** Of the registry, and of its token server. */
  readonly ports: readonly [number, number];
  /** `token`: a server of the test gives tokens. `basic`: htpasswd. */
  readonly auth: 'none' | 'basic' | 'token';
  /** Starts a program where the address is. */
  readonly start: (...words: readonly string[]) => ChildProcess;
}
export interface LabRegistry {
  /** Address and port, as references of machines name it. */
  readonly host: string;
  readonly tokenUrl: string;
  /** The certificate of the registry and of the token server, which is its own authority. */
  readonly caFile: string;
  readonly username: string;
  readonly password: string;
  /** As container tools write it: base64 of user and password. */
  readonly secret: string;
  /** Pushes an image layout (OCI image specification) with all that its index has, by skopeo. */
  push(layout: string, repository: string, tag: string): Promise<void>;
  /** Pushes a tar of files as the container `lab/NAME:1`. */
  pushContainer(tar: string, name: string, architecture?: 'amd64' | 'arm64'): Promise<void>;
  /** The file of a blob in the registry's storage. */
  blobFile(digest: string): string;
  /** What the token server was asked, a line for each request. */
  tokens(): string;
  log(): string;
  stop(): Promise<void>;
}

export async function startRegistry(setup: RegistrySetup): Promise<LabRegistry> {
  const {
    folder,
    address,
    reachedAt = address,
    ports: [port, tokenPort],
    auth,
    start,
  } = setup;
  mkdirSync(folder, { recursive: true });
  const file = (name: string): string => join(folder, name);
  const [username, password] = ['puller', randomBytes(12).toString('hex')];
  const { certificate, privateKey } = ownCertificate(reachedAt, 'registry', Date.now(), randomBytes);
  writeFileSync(file('registry.crt'), certificate);
  writeFileSync(file('registry.key'), privateKey, { mode: 0o600 });
  writeFileSync(file('htpasswd'), `${username}:${await hash(password, 5)}\n`);
  mkdirSync(file('certs'), { recursive: true });
  copyFileSync(file('registry.crt'), file('certs/ca.crt'));
  const service = 'lab registry';
  const tokenUrl = `https://${address}:${tokenPort}/token`;
  const token = { realm: tokenUrl, service, issuer: 'lab', rootcertbundle: file('registry.crt') };
  const ways: Readonly<Record<RegistrySetup['auth'], JsonObject>> = {
    none: {},
    basic: { auth: { htpasswd: { realm: 'lab', path: file('htpasswd') } } },
    token: { auth: { token } },
  };
  const config: JsonObject = {
    version: '0.1',
    log: { level: 'info' },
    storage: { filesystem: { rootdirectory: file('storage') } },
    http: { addr: `${address}:${port}`, tls: { certificate: file('registry.crt'), key: file('registry.key') } },
    ...ways[auth],
  };
  // YAML has JSON.
  writeFileSync(file('registry.yml'), JSON.stringify(config));
  let [log, asked] = ['', ''];
  const children: ChildProcess[] = [];
  if (auth === 'token') {
    const words = [address, String(tokenPort), file('registry.crt'), file('registry.key'), service, `${username}:${password}`];
    const child = start(process.execPath, join(__dirname, 'token-server.mjs'), ...words);
    child.stdout!.on('data', (data: Buffer) => (asked += data.toString()));
    children.push(child);
    await until('the token server listens', () => asked.includes('ready'));
  }
  const server = start('docker-registry', 'serve', file('registry.yml'));
  for (const stream of [server.stdout!, server.stderr!]) stream.on('data', (data: Buffer) => (log += data.toString()));
  children.push(server);
  await until('the registry listens', () => log.includes('listening on'));
  const push: LabRegistry['push'] = async (layout, repository, tag) => {
    const login = auth === 'none' ? ['--dest-no-creds'] : ['--dest-creds', `${username}:${password}`];
    const trust = reachedAt === address ? ['--dest-cert-dir', file('certs')] : ['--dest-tls-verify=false'];
    const words = ['copy', '--all', '--preserve-digests', ...trust, ...login];
    const child = start('skopeo', '--insecure-policy', ...words, `oci:${layout}`, `docker://${address}:${port}/${repository}:${tag}`);
    let said = '';
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (data: Buffer) => (said += data.toString()));
    await new Promise<void>((done, fail) => {
      child.once('close', (code) => (code === 0 ? done() : fail(new Error(`skopeo ended with ${code}: ${said}\n${log.slice(-2000)}`))));
    });
  };
  return {
    host: `${reachedAt}:${port}`,
    tokenUrl,
    caFile: file('registry.crt'),
    username,
    password,
    secret: Buffer.from(`${username}:${password}`).toString('base64'),
    push,
    pushContainer: async (tar, name, architecture = process.arch === 'arm64' ? 'arm64' : 'amd64') => {
      const layout = join(folder, `layout-${name}`);
      containerLayout(layout, tar, architecture);
      await push(layout, `lab/${name}`, '1');
    },
    blobFile: (digest) => {
      const [algorithm, value] = digest.split(':') as [string, string];
      return join(file('storage'), 'docker/registry/v2/blobs', algorithm, value.slice(0, 2), value, 'data');
    },
    tokens: () => asked.replace(/^ready\n/, ''),
    log: () => log,
    stop: async () => {
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          const ended = new Promise((done) => child.once('close', done));
          child.kill('SIGTERM');
          await ended;
        }),
      );
    },
  };
}

type Descriptor = { readonly mediaType: string; readonly digest: string; readonly size: number };
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const EMPTY = 'application/vnd.oci.empty.v1+json';

/** An image layout in a folder: blobs, manifests and indexes, of which the last one is pushed. */
export function imageLayout(folder: string) {
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true });
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  const add = (mediaType: string, bytes: Buffer): Descriptor => {
    const value = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(folder, 'blobs/sha256', value), bytes);
    return { mediaType, digest: `sha256:${value}`, size: bytes.length };
  };
  const json = (mediaType: string, content: JsonObject): Descriptor => {
    const found = add(mediaType, Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, ...content })));
    writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [found] }));
    return found;
  };
  return {
    add,
    addFile: (mediaType: string, path: string) => add(mediaType, readFileSync(path)),
    /** A manifest, by default of an artifact with an empty config. */
    manifest: (content: JsonObject): Descriptor => json(MANIFEST, { config: add(EMPTY, Buffer.from('{}')), ...content }),
    index: (manifests: readonly JsonObject[]): Descriptor => json(INDEX, { manifests }),
  };
}

/** The layout of a container with one layer: a tar of files. */
function containerLayout(folder: string, tar: string, architecture: string): void {
  const layout = imageLayout(folder);
  const layer = layout.addFile('application/vnd.oci.image.layer.v1.tar', tar);
  const config = { architecture, os: 'linux', config: {}, rootfs: { type: 'layers', diff_ids: [layer.digest] } };
  const added = layout.add('application/vnd.oci.image.config.v1+json', Buffer.from(JSON.stringify(config)));
  layout.manifest({ config: added, layers: [layer] });
}
