// npm run chaos -- --rounds 200 --seed 1 [--site three|one] [--nodes 6]: kill -9 at random moments under load (docs/reliability.md).
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { build, installPackages, root } from './install.mjs';
import { cliArguments } from './cli-arguments.mjs';

cliArguments({
  command: 'npm run chaos',
  usage: '[--rounds N] [--seed N] [--site three|one]',
  about: 'kill -9 at random moments under load; what was acknowledged must be there afterwards (docs/reliability.md).',
  // tests/chaos/main.ts parses these options again.
  options: {
    rounds: { value: 'N', least: 1, help: 'number of rounds; each kills or suspends one process (20)' },
    seed: { value: 'N', least: 0, help: 'the same seed leads to the same choices (1)' },
    nodes: { value: 'N', least: 1, help: 'number of nodes in each site (6)' },
    port: { value: 'N', least: 1, most: 65_000, help: 'the first port of the servers (21600)' },
    site: { value: 'NAME', choices: ['three', 'one', 'both'], help: 'three conductors, the only process, or both (both)' },
  },
});

installPackages();
build();
const outfile = join(root, '.cache/chaos/run.cjs');
buildSync({ entryPoints: [join(root, 'tests/chaos/main.ts')], bundle: true, packages: 'external', platform: 'node', outfile });
const { status } = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], { stdio: 'inherit' });
process.exit(status ?? 1);
