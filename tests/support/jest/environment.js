/**
 * The environment of a test file: a folder of its worker, for temporary files and as the home folder. A file that leaves something there
 * fails. setup.ts makes the folder of the run.
 */
const { chmodSync, mkdirSync, readdirSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { TestEnvironment } = require('jest-environment-node');

const PLACES = ['TMPDIR', 'HOME'];
/** At most so many names are in a message. */
const MAX_NAMES = 10;

/** @returns the paths of all files, and of empty folders, below a folder */
const leftIn = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const below = entry.isDirectory() ? leftIn(join(folder, entry.name)) : [];
    return below.length === 0 ? [entry.name] : below.map((name) => join(entry.name, name));
  });

module.exports = class extends TestEnvironment {
  constructor(config, context) {
    const folder = join(process.env.BLOOMERY_TEST_FOLDER, process.env.JEST_WORKER_ID);
    mkdirSync(folder, { recursive: true });
    // PostgreSQL's own user needs search permission, whatever the umask is.
    chmodSync(folder, 0o755);
    const before = PLACES.map((name) => [name, process.env[name]]);
    // Before the constructor, which copies the variables for the test file.
    for (const name of PLACES) process.env[name] = folder;
    super(config, context);
    this.folder = folder;
    this.before = before;
  }
  async teardown() {
    await super.teardown();
    for (const [name, value] of this.before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    const left = leftIn(this.folder);
    rmSync(this.folder, { recursive: true, force: true });
    if (left.length > 0)
      throw new Error(`the test file left ${left.length} files in its temporary folder: ${left.slice(0, MAX_NAMES).join(', ')}`);
  }
};
