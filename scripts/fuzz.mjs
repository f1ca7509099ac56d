// npm run fuzz -- --minutes 60: schemathesis against the server for that time (tests/lab/server/fuzz.test.ts).
// npm run fuzz -- --minutes 60 --parsers: random inputs for the parsers (tests/hostile/parsers.test.ts).
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build, installPackages, root } from './install.mjs';
import { cliArguments } from './cli-arguments.mjs';

const { minutes, parsers } = cliArguments({
  command: 'npm run fuzz',
  usage: '[--minutes N] [--parsers]',
  about:
    'schemathesis against the server, by its openapi.yaml (root), or random inputs for the parsers of what the network and files contain.',
  options: {
    minutes: { value: 'N', least: 0.1, default: 10, help: 'duration in minutes (10)' },
    parsers: { help: 'random inputs for the parsers; needs Node and npm only' },
  },
});
installPackages();
build();
const jest = join(root, 'node_modules/jest/bin/jest.js');
const [project, tests] = parsers
  ? /** @type {const} */ (['hostile', 'tests/hostile/parsers'])
  : /** @type {const} */ (['lab', 'tests/lab/server/fuzz']);
const { status } = spawnSync(process.execPath, [jest, '--selectProjects', project, '--testPathPatterns', tests], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, FUZZ_SECONDS: String(minutes * 60) },
});
process.exit(status ?? 1);
