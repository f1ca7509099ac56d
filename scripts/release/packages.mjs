// The packages of a release: npm, tarball, Debian, OCI image, Helm chart, kustomize base.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../install.mjs';
import { ar, gzip, tar } from './archive.mjs';
import { licences, manifest, moduleFiles, programFiles } from './contents.mjs';
import { nodeProgram } from './node.mjs';

const hash = (bytes, algorithm = 'sha256', encoding = 'hex') => createHash(algorithm).update(bytes).digest(encoding);
const version = manifest.version;
const below = (folder, entries) => entries.map((entry) => ({ ...entry, path: `${folder}/${entry.path}` }));

/** Everything below the folder of the installation. */
const installed = () => [...programFiles(), ...moduleFiles(), licences(), { path: 'node', data: nodeProgram(), mode: 0o755 }];
const WRAPPER = '#!/bin/sh\nexec /usr/lib/bloomery/node /usr/lib/bloomery/bin/bloomery "$@"\n';
const program = (...words) => execFileSync(process.execPath, [join(root, 'bin/bloomery'), ...words], { maxBuffer: 1 << 24 });

function npmPackage(time) {
  return { [`bloomery-${version}.tgz`]: gzip(tar(below('package', [...programFiles(), licences()]), time)) };
}

/** Can be unpacked anywhere: the wrapper `bloomery` starts the program with its own Node. */
function tarball(time) {
  const name = `bloomery-${version}-linux-x64`;
  const wrapper = `#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nexec "$here/node" "$here/bin/bloomery" "$@"\n`;
  const entries = [...installed(), { path: 'bloomery', data: Buffer.from(wrapper), mode: 0o755 }];
  return { [`${name}.tar.gz`]: gzip(tar(below(name, entries), time)) };
}

const debianFile = (name) => readFileSync(join(root, 'scripts/release/debian', name));
function debianPackage(time) {
  const manual = (page, section) => ({ path: `usr/share/man/man${section}/${page}.gz`, data: gzip(program('manual', page)) });
  const entries = [
    ...below('usr/lib/bloomery', installed()),
    { path: 'usr/bin/bloomery', data: Buffer.from(WRAPPER), mode: 0o755 },
    { path: 'lib/systemd/system/bloomery.service', data: debianFile('bloomery.service') },
    { path: 'etc/bloomery/ironic.conf', data: debianFile('ironic.conf'), mode: 0o640 },
    { path: 'usr/share/bash-completion/completions/bloomery', data: program('completion', 'bash') },
    { path: 'usr/share/zsh/vendor-completions/_bloomery', data: program('completion', 'zsh') },
    {
      path: 'usr/share/doc/bloomery/copyright',
      data: Buffer.concat([readFileSync(join(root, 'LICENSE')), Buffer.from('\n'), licences().data]),
    },
    // Messages of the program name pages as docs/install.md.
    { path: 'usr/share/doc/bloomery/docs', target: '../../../lib/bloomery/docs' },
    { path: 'usr/share/doc/bloomery/changelog.gz', data: gzip(readFileSync(join(root, 'CHANGELOG.md'))) },
    manual('bloomery.1', 1),
    manual('bloomery.conf.5', 5),
  ];
  const sums = entries.filter(({ data }) => data).map(({ path, data }) => `${hash(data, 'md5')}  ${path}\n`);
  const size = Math.ceil(entries.reduce((sum, { data }) => sum + (data?.length ?? 0), 0) / 1024);
  const control = [
    'Package: bloomery',
    `Version: ${version}`,
    'Architecture: amd64',
    'Maintainer: The developers of Bloomery <bloomery@localhost>',
    `Installed-Size: ${size}`,
    'Depends: libc6 (>= 2.28), libstdc++6, adduser',
    'Recommends: ipxe, apache2-utils',
    'Suggests: ipmitool',
    'Section: admin',
    'Priority: optional',
    "Description: bare-metal server with OpenStack Ironic's API",
    ` ${manifest.description}.`,
    '',
  ].join('\n');
  const controls = [
    { path: 'control', data: Buffer.from(control) },
    { path: 'conffiles', data: Buffer.from('/etc/bloomery/ironic.conf\n') },
    { path: 'md5sums', data: Buffer.from(sums.sort().join('')) },
    ...['postinst', 'prerm', 'postrm'].map((name) => ({ path: name, data: debianFile(name), mode: 0o755 })),
  ];
  const members = [
    ['debian-binary', Buffer.from('2.0\n')],
    ['control.tar.gz', gzip(tar(controls, time, './'))],
    ['data.tar.gz', gzip(tar(entries, time, './'))],
  ];
  return { [`bloomery_${version}_amd64.deb`]: ar(members, time) };
}

/** Debian packages of the image's root: libraries for Node and PostgreSQL, a shell for initdb, boot loaders, tools for probes. */
const BASE = [
  ...['base-files', 'ca-certificates', 'coreutils', 'curl', 'dash', 'grep', 'grub-efi-amd64-bin', 'iproute2', 'ipxe'],
  ...['libstdc++6', 'netbase', 'tzdata', 'util-linux'],
];
const WITHOUT = [
  ...['/usr/lib/grub/x86_64-efi/*', '/etc/grub.d/*', '/usr/share/grub/*'],
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
const metal3Programs = () =>
  Object.entries(METAL3).map(([name, command]) => ({
    ...{ path: `bin/${name}`, data: Buffer.from(`#!/bin/sh\nexec ${command}\n`), mode: 0o755 },
  }));

/** Reads a file from the tar of the root. */
function fileOfRoot(bytes, path) {
  return execFileSync('tar', ['-xOf', '-', `./${path}`], { input: bytes, maxBuffer: 1 << 26 });
}

/** The root of the image, without a package manager. Needs root, or a user who may use `unshare`. */
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

/** An OCI image layout (image-spec 1.1) in one tar: `podman load`, `skopeo copy oci-archive:FILE`. */
function image(time) {
  const own = { uid: USER.uid, gid: USER.gid };
  const base = baseRoot(time);
  const program = [
    ...below('usr/lib/bloomery', installed()),
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
    ...{ created, architecture: 'amd64', os: 'linux' },
    config: {
      User: `${USER.uid}:${USER.gid}`,
      Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/var/lib/bloomery'],
      Entrypoint: ['/usr/bin/bloomery'],
      Cmd: ['serve', '--state-dir', '/var/lib/bloomery'],
      WorkingDir: '/var/lib/bloomery',
      Volumes: { '/var/lib/bloomery': {}, '/tmp': {} },
      ExposedPorts: { '6385/tcp': {} },
      StopSignal: 'SIGTERM',
      Labels: {
        'org.opencontainers.image.title': 'bloomery',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.licenses': manifest.license,
      },
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ id }) => id) },
  };
  const blobs = new Map();
  const blob = (mediaType, bytes) => {
    const digest = hash(bytes);
    blobs.set(`blobs/sha256/${digest}`, bytes);
    return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
  };
  const json = (value) => Buffer.from(JSON.stringify(value));
  const TYPE = 'application/vnd.oci.image';
  const described = {
    ...{ schemaVersion: 2, mediaType: `${TYPE}.manifest.v1+json` },
    config: blob(`${TYPE}.config.v1+json`, json(config)),
    layers: layers.map(({ bytes }) => blob(`${TYPE}.layer.v1.tar+gzip`, bytes)),
  };
  const index = {
    ...{ schemaVersion: 2, mediaType: `${TYPE}.index.v1+json` },
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

/** All files below a folder of the checkout, with paths from there. */
const filesBelow = (folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((path) => statSync(join(root, folder, path)).isFile())
    .map((path) => ({ path, data: readFileSync(join(root, folder, path)) }));

/** The Helm chart with this version, as `helm package` lays it out. */
function chart(time) {
  const withVersion = (data) => Buffer.from(data.toString().replaceAll(/^((?:appV|v)ersion): .*$/gm, `$1: ${version}`));
  const entries = filesBelow('packaging/helm/bloomery').map(({ path, data }) => ({
    path,
    data: path === 'Chart.yaml' ? withVersion(data) : data,
  }));
  return { [`bloomery-chart-${version}.tgz`]: gzip(tar(below('bloomery', entries), time)) };
}

/** The kustomize base with its components, for the image of this version. */
function kustomize(time) {
  const entries = filesBelow('packaging/kustomize');
  return { [`bloomery-kustomize-${version}.tar.gz`]: gzip(tar(below(`bloomery-kustomize-${version}`, entries), time)) };
}

/** Name → the files of the package. @param time seconds since 1970 */
export const PACKAGES = { npm: npmPackage, tarball, deb: debianPackage, image, chart, kustomize };
export const materials = () => ({ 'bloomery.cdx.json': readFileSync(join(root, 'dist/bloomery.cdx.json')) });
