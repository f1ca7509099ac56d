/** The OCI image, run by crun: a read-only root, the user 997, no capabilities. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needs } from '../support/needs';
import { release, startInstalled, useServer } from './release';

interface Descriptor {
  readonly digest: string;
  readonly size: number;
}
interface ImageConfiguration {
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly WorkingDir: string;
  };
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-image-'));
const layout = join(folder, 'layout');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
/** The path of a blob, whose size and digest are right. */
function blob({ digest, size }: Descriptor): string {
  const path = join(layout, 'blobs', digest.replace(':', '/'));
  const bytes = readFileSync(path);
  expect({ digest: sha256(bytes), size: bytes.length }).toEqual({ digest, size });
  return path;
}
const json = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

let configuration: ImageConfiguration;
beforeAll(async () => {
  needs({ mmdebstrap: 'mmdebstrap', crun: 'crun' });
  const [file] = await release(join(folder, 'out'), ['image']);
  for (const name of ['layout', 'rootfs', 'state']) mkdirSync(join(folder, name));
  execFileSync('tar', ['-xf', file!, '-C', layout]);
  const { manifests } = json(join(layout, 'index.json')) as { readonly manifests: readonly Descriptor[] };
  const manifest = json(blob(manifests[0]!)) as { readonly config: Descriptor; readonly layers: readonly Descriptor[] };
  configuration = json(blob(manifest.config)) as ImageConfiguration;
  for (const layer of manifest.layers) execFileSync('tar', ['-xzf', blob(layer), '-C', join(folder, 'rootfs')]);
  const plain = manifest.layers.map((layer) => sha256(execFileSync('gunzip', ['-c', blob(layer)], { maxBuffer: 1 << 30 })));
  expect(plain).toEqual(configuration.rootfs.diff_ids);
});

it('serves with a read-only root, as its user, without capabilities', async () => {
  const { User: user, Env: env, Entrypoint: entry, Cmd: words, WorkingDir: cwd } = configuration.config;
  expect(user).toBe('997:994');
  const [uid, gid] = user.split(':').map(Number) as [number, number];
  chownSync(join(folder, 'state'), uid, gid);
  const none = { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] };
  const scratch = (destination: string) => ({ destination, type: 'tmpfs', source: 'tmpfs', options: ['mode=1777'] });
  const bundle = {
    ociVersion: '1.0.2',
    process: {
      ...{ user: { uid, gid }, args: [...entry, ...words], cwd, noNewPrivileges: true, capabilities: none },
      env: [...env, 'OS_API__PORT=0', 'OS_API__HOST_IP=127.0.0.1', 'OS_BOOT__HTTP_PORT=0', 'OS_BOOT__TFTP=false'],
    },
    root: { path: 'rootfs', readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
      ...[scratch('/dev/shm'), scratch('/tmp')],
      { destination: '/var/lib/bloomery', type: 'bind', source: join(folder, 'state'), options: ['bind', 'rw'] },
    ],
    linux: { namespaces: [{ type: 'pid' }, { type: 'mount' }, { type: 'ipc' }] },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(bundle));
  // crun reads the second version of control groups, which a host may have beside the first.
  const script = `mount -t tmpfs none /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup &&
    cd "$0" && exec crun --root "$0/crun" --cgroup-manager=disabled run --bundle "$0" bloomery-lab`;
  const server = await startInstalled(['unshare', '--mount', 'sh', '-c', script, folder]);
  await useServer(server.url);
  expect(() => execFileSync('test', ['-e', join(folder, 'state/postgres/data/PG_VERSION')])).not.toThrow();
  expect(await server.stop()).toBe(0);
});
