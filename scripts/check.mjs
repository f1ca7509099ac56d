// npm run check: types, lint, unused exports, format. Runs all, whatever fails.
import { spawnSync } from 'node:child_process';
import { CHECKS } from './checks.mjs';
import { root } from './install.mjs';

let failed = 0;
for (const { name, command } of CHECKS) {
  const { status } = spawnSync(process.execPath, command, { cwd: root, stdio: 'inherit' });
  console.log(`${status === 0 ? 'ok' : 'FAILED'}: ${name}`);
  if (status !== 0) failed++;
}
process.exit(failed === 0 ? 0 : 1);
