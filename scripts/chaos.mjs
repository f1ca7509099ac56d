// npm run chaos -- --rounds 200 --seed 1 [--site three|one] [--nodes 6]: kill -9 at random moments under load (docs/reliability.md).
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { build, installPackages, root } from './install.mjs';

installPackages();
build();
const outfile = join(root, '.cache/chaos/run.cjs');
buildSync({ entryPoints: [join(root, 'tests/chaos/main.ts')], bundle: true, packages: 'external', platform: 'node', outfile });
const { status } = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], { stdio: 'inherit' });
process.exit(status ?? 1);
