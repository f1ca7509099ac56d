// The OCI image of a release.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzip, tar } from './archive.mjs';
import { WRAPPER, agent, hash, installed, manifest, within } from './contents.mjs';

/** @typedef {import('./archive.mjs').Entry} Entry */
const version = manifest.version;

/** Debian packages of the image's root: libraries for Node and PostgreSQL, a shell for initdb, boot loaders, tools for probes. */
const BASE = [
  'base-files',
  'ca-certificates',
  'coreutils',
  'curl',
  'dash',
  'grep',
  'grub-efi-amd64-bin',
  'iproute2',
  'ipxe',
  'libstdc++6',
  'netbase',
  'smartmontools',
  'tzdata',
  'util-linux',
];
const WITHOUT = [
  '/usr/lib/grub/x86_64-efi/*',
  '/etc/grub.d/*',
  '/usr/share/grub/*',
  '/usr/sbin/smartd',
  '/usr/sbin/update-smart-drivedb',
  '/var/lib/smartmontools/*',
  '/usr/share/doc/*',
  '/usr/share/man/*',
  '/usr/share/locale/*',
  '/usr/share/info/*',
  '/usr/share/lintian/*',
];
/** The user of the image; the numbers are those of metal3's image. */
const USER = { uid: 997, gid: 994 };

/** Runs a program with the capabilities of DHCP and low ports, for users other than root: Kubernetes gives them none. */
const CAPABLE = 'usr/lib/bloomery/with-capabilities';
const NETWORK = '+net_admin,+net_bind_service,+net_raw';
const withNetwork = `/${CAPABLE} --inh-caps=${NETWORK} --ambient-caps=${NETWORK} /usr/bin/bloomery`;
/** The programs of metal3's Ironic image → ours (docs/metal3.md). */
const METAL3 = {
  runironic: '/usr/bin/bloomery metal3 ironic',
  runhttpd: '/usr/bin/bloomery metal3 httpd',
  rundnsmasq: `${withNetwork} metal3 dnsmasq`,
  'runlogwatch.sh': '/usr/bin/bloomery metal3 log-watch',
  'runironic-exporter': '/usr/bin/bloomery metal3 exporter',
  'runironic-networking': '/usr/bin/bloomery metal3 networking',
  'rundatabase-upgrade': '/usr/bin/bloomery metal3 database-upgrade',
  'runonline-data-migrations': '/usr/bin/bloomery metal3 online-data-migrations',
  ironic: '/usr/bin/bloomery serve --state-dir /data "$@"',
  'ironic-dbsync': '/usr/bin/bloomery metal3 dbsync "$@"',
  'ironic-readiness': '/usr/bin/bloomery metal3 probe',
  'ironic-liveness': '/usr/bin/bloomery metal3 probe',
  'bloomery-with-capabilities': `${withNetwork} "$@"`,
};
/** The recorder of a running host (docs/recorder.md). */
const AGENT = '#!/bin/sh\nexec /usr/lib/bloomery/node /usr/lib/bloomery/bloomery-agent.js "$@"\n';
const metal3Programs = () =>
  Object.entries(METAL3).map(([name, command]) => ({
    path: `bin/${name}`,
    data: Buffer.from(`#!/bin/sh\nexec ${command}\n`),
    mode: 0o755,
  }));

/** Reads a file from the tar of the root. @param {Buffer} bytes @param {string} path */
function fileOfRoot(bytes, path) {
  return execFileSync('tar', ['-xOf', '-', `./${path}`], { input: bytes, maxBuffer: 1 << 26 });
}

/** The root of the image, without a package manager. Needs root, or a user who may use `unshare`. @param {number} time */
function baseRoot(time) {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-release-'));
  try {
    const file = join(folder, 'root.tar');
    const words = [
      '--quiet',
      '--variant=extract',
      `--include=${BASE.join(',')}`,
      ...WITHOUT.map((path) => `--dpkgopt=path-exclude=${path}`),
      '--dpkgopt=path-include=/usr/lib/grub/x86_64-efi/monolithic/gcdx64.efi',
    ];
    execFileSync('mmdebstrap', [...words, 'bookworm', file], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(time) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** An OCI image layout (image-spec 1.1) in one tar: `podman load`, `skopeo copy oci-archive:FILE`. @param {number} time @returns {Record<string, Buffer>} */
export function image(time) {
  const own = { uid: USER.uid, gid: USER.gid };
  const base = baseRoot(time);
  /** @type {Entry[]} */
  const program = [
    ...within('usr/lib/bloomery', [...installed(), agent()]),
    { path: 'usr/bin/bloomery-agent', data: Buffer.from(AGENT), mode: 0o755 },
    { path: 'usr/bin/bloomery', data: Buffer.from(WRAPPER), mode: 0o755 },
    {
      path: 'etc/passwd',
      data: Buffer.from(`root:x:0:0:root:/root:/bin/sh\nbloomery:x:${USER.uid}:${USER.gid}::/var/lib/bloomery:/bin/sh\n`),
    },
    { path: 'etc/group', data: Buffer.from(`root:x:0:\nbloomery:x:${USER.gid}:\n`) },
    { path: 'etc/ironic', folder: true },
    { path: 'var/lib/bloomery', folder: true, mode: 0o750, ...own },
    { path: 'var/lib/bloomery-images', folder: true },
    { path: CAPABLE, data: fileOfRoot(base, 'usr/bin/setpriv'), mode: 0o755, network: true },
    ...metal3Programs(),
    ...['shared', 'conf', 'data', 'tftpboot', 'templates'].map((path) => ({ path, folder: true, ...own })),
    ...['certs', 'certs/ca'].map((path) => ({ path, folder: true, mode: 0o2775, ...own })),
    { path: 'tmp', folder: true, mode: 0o1777 },
  ];
  const layers = [base, tar(program, time)].map((bytes) => ({ bytes: gzip(bytes), id: `sha256:${hash(bytes)}` }));
  const created = new Date(time * 1000).toISOString().replace('.000', '');
  const config = {
    created,
    architecture: 'amd64',
    os: 'linux',
    config: {
      User: `${USER.uid}:${USER.gid}`,
      Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/var/lib/bloomery'],
      Entrypoint: ['/usr/bin/bloomery'],
      Cmd: ['serve', '--state-dir', '/var/lib/bloomery'],
      WorkingDir: '/var/lib/bloomery',
      Volumes: { '/var/lib/bloomery': {}, '/tmp': {} },
      ExposedPorts: { '6090/tcp': {}, '6385/tcp': {} },
      StopSignal: 'SIGTERM',
      Labels: {
        'org.opencontainers.image.title': 'bloomery',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.licenses': manifest.license,
      },
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ id }) => id) },
  };
  /** @type {Map<string, Buffer>} */
  const blobs = new Map();
  /** @param {string} mediaType @param {Buffer} bytes */
  const blob = (mediaType, bytes) => {
    const digest = hash(bytes);
    blobs.set(`blobs/sha256/${digest}`, bytes);
    return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
  };
  /** @param {unknown} value */
  const json = (value) => Buffer.from(JSON.stringify(value));
  const TYPE = 'application/vnd.oci.image';
  const described = {
    schemaVersion: 2,
    mediaType: `${TYPE}.manifest.v1+json`,
    config: blob(`${TYPE}.config.v1+json`, json(config)),
    layers: layers.map(({ bytes }) => blob(`${TYPE}.layer.v1.tar+gzip`, bytes)),
  };
  const index = {
    schemaVersion: 2,
    mediaType: `${TYPE}.index.v1+json`,
    manifests: [
      {
        ...blob(`${TYPE}.manifest.v1+json`, json(described)),
        platform: { architecture: 'amd64', os: 'linux' },
        annotations: { 'org.opencontainers.image.ref.name': version, 'io.containerd.image.name': `bloomery:${version}` },
      },
    ],
  };
  const entries = [
    { path: 'oci-layout', data: json({ imageLayoutVersion: '1.0.0' }) },
    { path: 'index.json', data: json(index) },
    ...[...blobs].map(([path, data]) => ({ path, data })),
  ];
  return { [`bloomery-${version}-image.tar`]: tar(entries, time) };
}
