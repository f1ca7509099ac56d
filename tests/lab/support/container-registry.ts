/** Debian's docker-registry with TLS and a password, and container images that are pushed to it by podman. */
import { execFile, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hashSync } from 'bcryptjs';
import { until } from '../../../demo/lab/machines';

const run = promisify(execFile);
const PASSWORD = 'a secret of the registry';
const LIMIT = { timeout: 300_000, maxBuffer: 16 << 20 };

interface RegistryOptions {
  /** Where its files are kept. */
  readonly folder: string;
  /** Where it listens. */
  readonly address: string;
  readonly port: number;
  /** Other addresses by which machines reach it. */
  readonly addresses?: readonly string[];
  /** Starts a program that runs until the lab closes. */
  readonly start: (...words: readonly string[]) => ChildProcess;
  /** Runs a program where the registry can be reached. */
  readonly exec: (...words: readonly string[]) => Promise<unknown>;
}
export interface Registry {
  /** The authority of its certificate. */
  readonly ca: string;
  /** As container tools write it: base64 of user and password. */
  readonly secret: string;
  readonly password: string;
  /** What the registry was asked, a line each. */
  log(): string;
  /** Stores a tar of files as an image under the name, `lab/NAME:TAG`. @param architecture as in Go; default this host's */
  push(tar: string, name: string, architecture?: 'amd64' | 'arm64'): Promise<void>;
}

/** An authority, and a certificate for the addresses that it signed. */
async function makeCertificates(folder: string, addresses: readonly string[]): Promise<void> {
  const openssl = (...words: readonly string[]): Promise<unknown> => run('openssl', words, LIMIT);
  const file = (name: string): string => join(folder, name);
  const pair = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  await openssl('req', '-x509', ...pair, '-days', '2', '-subj', '/CN=Registry CA', '-keyout', file('ca.key'), '-out', file('ca.crt'));
  await openssl('req', ...pair, '-subj', '/CN=registry', '-keyout', file('registry.key'), '-out', file('registry.csr'));
  const names = addresses.map((address) => `IP:${address}`).join(',');
  writeFileSync(file('registry.ext'), `subjectAltName=${names}\nbasicConstraints=critical,CA:FALSE\n`);
  const signing = ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '2', '-extfile', file('registry.ext')];
  await openssl('x509', '-req', '-in', file('registry.csr'), ...signing, '-out', file('registry.crt'));
}

export async function startRegistry({ folder, address, port, addresses = [], start, exec }: RegistryOptions): Promise<Registry> {
  mkdirSync(folder, { recursive: true });
  await makeCertificates(folder, [address, ...addresses]);
  writeFileSync(join(folder, 'users'), `lab:${hashSync(PASSWORD, 8).replace(/^\$2b/, '$2y')}\n`);
  const configuration = {
    version: '0.1',
    log: { level: 'info', accesslog: { disabled: false } },
    storage: { filesystem: { rootdirectory: join(folder, 'blobs') } },
    http: { addr: `${address}:${port}`, tls: { certificate: join(folder, 'registry.crt'), key: join(folder, 'registry.key') } },
    auth: { htpasswd: { realm: 'lab', path: join(folder, 'users') } },
  };
  // JSON is YAML.
  writeFileSync(join(folder, 'config.yml'), JSON.stringify(configuration));
  let said = '';
  const child = start('docker-registry', 'serve', join(folder, 'config.yml'));
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data: Buffer) => (said += data.toString()));
  void once(child, 'exit').then(([code]) => (said += `\nended: ${String(code)}`));
  await until(
    60,
    () => `the registry to listen: ${said}`,
    () => said.includes('listening on'),
  );
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
  const podman = (...words: readonly string[]): Promise<unknown> => exec('podman', ...storage, ...words);
  return {
    ca: join(folder, 'ca.crt'),
    secret: Buffer.from(`lab:${PASSWORD}`).toString('base64'),
    password: PASSWORD,
    log: () => said,
    async push(tar, name, architecture) {
      const words = architecture === undefined ? [] : ['--arch', architecture];
      await podman('import', '--quiet', ...words, tar, `localhost/${name}`);
      const login = ['--creds', `lab:${PASSWORD}`, '--cert-dir', join(folder, 'trusted')];
      mkdirSync(join(folder, 'trusted'), { recursive: true });
      await run('cp', [join(folder, 'ca.crt'), join(folder, 'trusted')]);
      await podman('push', '--quiet', ...login, `localhost/${name}`, `docker://${address}:${port}/${name}`);
    },
  };
}
