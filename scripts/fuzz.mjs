// npm run fuzz -- --minutes 60: schemathesis against the server for so long (tests/lab/fuzz.test.ts).
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, installPackages, root } from './install.mjs';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } });
installPackages();
build();
const jest = join(root, 'node_modules/jest/bin/jest.js');
const { status } = spawnSync(process.execPath, [jest, '--selectProjects', 'lab', '--testPathPatterns', 'tests/lab/fuzz'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, FUZZ_SECONDS: String(Number(values.minutes) * 60) },
});
process.exit(status ?? 1);
