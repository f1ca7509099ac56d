// The packages of a release: npm, tarball, Debian, OCI image, Helm chart, kustomize base.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../install.mjs';
import { ar, gzip, tar } from './archive.mjs';
import { WRAPPER, hash, installed, licences, manifest, programFiles, within } from './contents.mjs';
import { image } from './image.mjs';

const version = manifest.version;
/** @typedef {import('./archive.mjs').Entry} Entry */
/** @param {string[]} words */
const program = (...words) => execFileSync(process.execPath, [join(root, 'bin/bloomery'), ...words], { maxBuffer: 1 << 24 });

/** @typedef {Record<string, Buffer>} Files of a package, by name */
/** @param {number} time @returns {Files} */
function npmPackage(time) {
  return { [`bloomery-${version}.tgz`]: gzip(tar(within('package', [...programFiles(), licences()]), time)) };
}

/** Can be unpacked anywhere: the wrapper `bloomery` starts the program with its own Node. @param {number} time @returns {Files} */
function tarball(time) {
  const name = `bloomery-${version}-linux-x64`;
  const wrapper = `#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nexec "$here/node" "$here/bin/bloomery" "$@"\n`;
  const entries = [...installed(), { path: 'bloomery', data: Buffer.from(wrapper), mode: 0o755 }];
  return { [`${name}.tar.gz`]: gzip(tar(within(name, entries), time)) };
}

/** @param {string} name */
const debianFile = (name) => readFileSync(join(root, 'scripts/release/debian', name));
/** @param {number} time @returns {Files} */
function debianPackage(time) {
  /** @param {string} page @param {number} section */
  const manual = (page, section) => ({ path: `usr/share/man/man${section}/${page}.gz`, data: gzip(program('manual', page)) });
  /** @type {Entry[]} */
  const entries = [
    ...within('usr/lib/bloomery', installed()),
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
  const sums = entries.flatMap(({ path, data }) => (data ? [`${hash(data, 'md5')}  ${path}\n`] : []));
  const size = Math.ceil(entries.reduce((sum, { data }) => sum + (data?.length ?? 0), 0) / 1024);
  const control = [
    'Package: bloomery',
    `Version: ${version}`,
    'Architecture: amd64',
    'Maintainer: The developers of Bloomery <bloomery@localhost>',
    `Installed-Size: ${size}`,
    'Depends: libc6 (>= 2.28), libstdc++6, adduser',
    'Recommends: ipxe, apache2-utils',
    'Suggests: ipmitool, smartmontools',
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
  /** @type {[string, Buffer][]} */
  const members = [
    ['debian-binary', Buffer.from('2.0\n')],
    ['control.tar.gz', gzip(tar(controls, time, './'))],
    ['data.tar.gz', gzip(tar(entries, time, './'))],
  ];
  return { [`bloomery_${version}_amd64.deb`]: ar(members, time) };
}

/** All files below a folder of the checkout, with paths from there. @param {string} folder */
const filesBelow = (folder) =>
  readdirSync(join(root, folder), { encoding: 'utf8', recursive: true })
    .filter((path) => statSync(join(root, folder, path)).isFile())
    .map((path) => ({ path, data: readFileSync(join(root, folder, path)) }));

/** The Helm chart with this version, as `helm package` lays it out. @param {number} time @returns {Files} */
function chart(time) {
  /** @param {Buffer} data */
  const withVersion = (data) => Buffer.from(data.toString().replaceAll(/^((?:appV|v)ersion): .*$/gm, `$1: ${version}`));
  const entries = filesBelow('packaging/helm/bloomery').map(({ path, data }) => ({
    path,
    data: path === 'Chart.yaml' ? withVersion(data) : data,
  }));
  return { [`bloomery-chart-${version}.tgz`]: gzip(tar(within('bloomery', entries), time)) };
}

/** The kustomize base with its components, for the image of this version. @param {number} time @returns {Files} */
function kustomize(time) {
  const entries = filesBelow('packaging/kustomize');
  return { [`bloomery-kustomize-${version}.tar.gz`]: gzip(tar(within(`bloomery-kustomize-${version}`, entries), time)) };
}

/** Name → the files of the package, at a time in seconds since 1970. */
export const PACKAGES = { npm: npmPackage, tarball, deb: debianPackage, image, chart, kustomize };
export const materials = () => ({ 'bloomery.cdx.json': readFileSync(join(root, 'dist/bloomery.cdx.json')) });
