/**
 * Jest's runtime, but these packages are loaded once for a worker. Jest would load and compile them again for each test file, which takes
 * longer than most files run. Not every package may be among them: ajv and prom-client look for their caller's types (`instanceof RegExp`,
 * `instanceof Object`), which Jest makes anew for each file. The program itself is loaded for each file: its state is the file's own.
 */
const { createRequire } = require('node:module');

const SHARED = new Set(['express', 'jose', 'knex', 'pg', 'undici', 'yaml']);
const requirePackage = createRequire(__filename);
const { default: Runtime } = requirePackage('jest-runtime');

module.exports = class extends Runtime {
  requireModuleOrMock(from, name) {
    return SHARED.has(name) ? requirePackage(name) : super.requireModuleOrMock(from, name);
  }
};
