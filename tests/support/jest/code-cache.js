/**
 * Loaded before the built program in the processes that tests start (setup.ts). It keeps V8's compiled code of the program (seven
 * megabytes) for the next process: to compile it takes half of a start. Node 22 has module.enableCompileCache for this.
 */
const { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { dirname, join } = require('node:path');
const vm = require('node:vm');

const PROGRAM = join(__dirname, '../../../dist/bundle/cli/bloomery.js');
const FOLDER = join(__dirname, '../../../.cache/code');
const compile = Reflect.get(Module.prototype, '_compile');

Module.prototype._compile = function (content, filename, ...more) {
  if (filename !== PROGRAM) return compile.call(this, content, filename, ...more);
  const { mtimeMs, size } = statSync(filename);
  const name = `${process.version}-${mtimeMs}-${size}`;
  const file = join(FOLDER, name);
  let cachedData;
  try {
    cachedData = readFileSync(file);
  } catch {
    // The first process since the build.
  }
  const script = new vm.Script(Module.wrap(content), {
    filename,
    cachedData,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  if (cachedData === undefined || script.cachedDataRejected)
    process.once('exit', () => {
      try {
        mkdirSync(FOLDER, { recursive: true });
        for (const other of readdirSync(FOLDER)) if (!other.startsWith(name)) rmSync(join(FOLDER, other), { force: true });
        writeFileSync(`${file}.${process.pid}`, script.createCachedData());
        renameSync(`${file}.${process.pid}`, file);
      } catch {
        // The next process compiles again.
      }
    });
  return script.runInThisContext()(this.exports, Module.createRequire(filename), this, filename, dirname(filename));
};
