/** The OCI image of a release: unpacked, and run by crun. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { release } from './release';

interface Descriptor {
  readonly digest: string;
  readonly size: number;
}
export interface ImageConfiguration {
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly WorkingDir: string;
  };
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const json = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

/** Makes the image and unpacks it to `rootfs` in the folder. */
export async function unpackImage(folder: string): Promise<ImageConfiguration> {
  const layout = join(folder, 'layout');
  /** The path of a blob, after a check of its size and digest. */
  const blob = ({ digest, size }: Descriptor): string => {
    const path = join(layout, 'blobs', digest.replace(':', '/'));
    const bytes = readFileSync(path);
    expect({ digest: sha256(bytes), size: bytes.length }).toEqual({ digest, size });
    return path;
  };
  const [file] = await release(join(folder, 'out'), ['image']);
  for (const name of ['layout', 'rootfs']) mkdirSync(join(folder, name));
  execFileSync('tar', ['-xf', file!, '-C', layout]);
  const { manifests } = json(join(layout, 'index.json')) as { readonly manifests: readonly Descriptor[] };
  const manifest = json(blob(manifests[0]!)) as { readonly config: Descriptor; readonly layers: readonly Descriptor[] };
  const configuration = json(blob(manifest.config)) as ImageConfiguration;
  // With the attributes of file capabilities, as container runtimes unpack them.
  for (const layer of manifest.layers)
    execFileSync('tar', ['--xattrs', '--xattrs-include=*', '-xzf', blob(layer), '-C', join(folder, 'rootfs')]);
  const plain = manifest.layers.map((layer) => sha256(execFileSync('gunzip', ['-c', blob(layer)], { maxBuffer: 1 << 30 })));
  expect(plain).toEqual(configuration.rootfs.diff_ids);
  return configuration;
}

const NETWORK = ['CAP_NET_ADMIN', 'CAP_NET_BIND_SERVICE', 'CAP_NET_RAW'];
export interface ContainerSetup {
  /** The folder that unpackImage filled. */
  readonly folder: string;
  readonly name: string;
  readonly words: readonly string[];
  readonly cwd?: string;
  readonly env: readonly string[];
  /** Folder in the container → folder of the host. */
  readonly mounts: Readonly<Record<string, string>>;
  /** Empty folders, writable, beside /tmp. */
  readonly scratch?: readonly string[];
  /**
   * As Kubernetes does for a user other than root: these capabilities are in the bounding set only, so the program may gain them, and has
   * none.
   */
  readonly network?: boolean;
}
/** @returns the command that runs the container in this network namespace, as 997:994 with a read-only root */
export function containerCommand({ folder, name, words, cwd = '/', env, mounts, scratch = [], network = false }: ContainerSetup): string[] {
  const none = { effective: [], permitted: [], inheritable: [], ambient: [] };
  const empty = (destination: string) => ({ destination, type: 'tmpfs', source: 'tmpfs', options: ['mode=1777'] });
  const bundle = {
    ociVersion: '1.0.2',
    process: {
      user: { uid: 997, gid: 994 },
      args: words,
      cwd,
      env,
      noNewPrivileges: !network,
      capabilities: { ...none, bounding: network ? NETWORK : [] },
    },
    root: { path: join(folder, 'rootfs'), readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
      ...['/dev/shm', '/tmp', ...scratch].map(empty),
      ...Object.entries(mounts).map(([destination, source]) => ({ destination, type: 'bind', source, options: ['bind', 'rw'] })),
    ],
    linux: { namespaces: [{ type: 'pid' }, { type: 'mount' }, { type: 'ipc' }] },
  };
  const place = join(folder, name);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'config.json'), JSON.stringify(bundle));
  // crun needs version 2 of control groups, which a host may have beside version 1.
  const script = `mount -t tmpfs none /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup &&
    cd "$0" && exec crun --root "$0/crun" --cgroup-manager=disabled run --bundle "$0" bloomery-lab`;
  return ['unshare', '--mount', 'sh', '-c', script, place];
}
