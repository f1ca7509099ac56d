// npm run fuzz -- --minutes 60: schemathesis against the server for so long (tests/lab/server/fuzz.test.ts).
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build, installPackages, root } from './install.mjs';
import { cliArguments } from './cli-arguments.mjs';

const { minutes } = cliArguments({
  command: 'npm run fuzz',
  usage: '[--minutes N]',
  about: 'schemathesis against the server, by its openapi.yaml (root).',
  options: { minutes: { value: 'N', least: 0.1, default: 10, help: 'for so long (10)' } },
});
installPackages();
build();
const jest = join(root, 'node_modules/jest/bin/jest.js');
const { status } = spawnSync(process.execPath, [jest, '--selectProjects', 'lab', '--testPathPatterns', 'tests/lab/server/fuzz'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, FUZZ_SECONDS: String(minutes * 60) },
});
process.exit(status ?? 1);
