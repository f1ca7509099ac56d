/**
 * Jest's runtime, but these packages are loaded once for a worker. Jest would load and compile them again for each test file, which takes
 * longer than most files run. Not every package may be among them: ajv and prom-client look for their caller's types (`instanceof RegExp`,
 * `instanceof Object`), which Jest makes anew for each file. The program itself is loaded for each file: its state is the file's own.
 * docs/decisions/0018-jest-runtime.md says what each part saves.
 */
const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname, join } = require('node:path');
const v8 = require('node:v8');
const vm = require('node:vm');

const SHARED = new Set(['express', 'jose', 'knex', 'pg', 'puppeteer-core', 'undici', 'yaml']);
const requirePackage = createRequire(__filename);
const { transformSync } = requirePackage('@swc/core');
const { default: Runtime } = requirePackage('jest-runtime');

/** Checks all responses of all files. It gets and returns texts only, so it is loaded once for a worker too, with what it has compiled. */
const ANSWERS = join(__dirname, '../answers');
const isAnswers = (from, name) => name.endsWith('/answers') && join(dirname(from), name) === ANSWERS;
require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), {
    filename,
    jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
    module: { type: 'commonjs' },
    sourceMaps: 'inline',
  });
  module._compile(code, filename);
};

/**
 * V8 optimizes a function after this many bytes of bytecode (its default is 67,584). Test files end too soon to gain from that, and all
 * processors are busy: the optimization, beside the tests, costs more than it saves. Later versions of V8 have no such flag.
 */
if (process.version.startsWith('v20.')) v8.setFlagsFromString('--interrupt-budget=400000');

/**
 * Jest compiles each module anew for each test file. A script is compiled once for a worker instead, and runs in the context of each file:
 * V8 keeps what it has parsed and compiled with the script.
 */
const scripts = new Map();
const { compileFunction } = vm;
vm.compileFunction = (code, parameters, options) => {
  const { filename, parsingContext } = options ?? {};
  if (filename === undefined || parsingContext === undefined) return compileFunction(code, parameters, options);
  let found = scripts.get(filename);
  if (found?.code !== code) {
    const start = `(function (${parameters.join(', ')}) {`;
    found = { code, script: new vm.Script(`${start}${code}\n})`, { filename, columnOffset: -start.length }) };
    scripts.set(filename, found);
  }
  return found.script.runInContext(parsingContext);
};

module.exports = class extends Runtime {
  requireModuleOrMock(from, name) {
    if (SHARED.has(name)) return requirePackage(name);
    return isAnswers(from, name) ? require(`${ANSWERS}.ts`) : super.requireModuleOrMock(from, name);
  }
};
