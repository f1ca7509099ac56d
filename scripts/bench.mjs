// npm run bench -- SCENARIO (see --help): measures the CPU time and latency of the built server.
//
// It starts an embedded database and a server, with fake hardware or simulated machines, and removes both at the end. `--one-core` binds
// the server to CPU 0 and the database to CPU 1. The CPU time comes from /proc, so it is available on Linux only.
// `npm run bench -- compare REF` (see `compare --help`) compares this checkout with a commit instead.
import { rows } from './bench/measure.mjs';
import { createEnd } from './bench/processes.mjs';
import { SCENARIOS } from './bench/scenarios.mjs';
import { prepareBench } from './bench/server.mjs';
import { cliArguments } from './cli-arguments.mjs';
import { build, installPackages } from './install.mjs';

// Another command, with arguments of its own.
if (process.argv[2] === 'compare') await import('./bench/compare.mjs');
const given = cliArguments({
  command: 'npm run bench',
  usage: 'SCENARIO [--nodes N] [--seconds N] [--one-core]',
  about:
    'Measures CPU time and latency of the built server. Starts a database and a server, and removes both at the end. ' +
    '`npm run bench -- compare --help` is about the comparison with a commit.',
  options: {
    nodes: { value: 'N', least: 1, help: 'number of machines (the default depends on the scenario)' },
    seconds: { value: 'N', least: 1, most: 86_400, help: 'duration of each measurement by time (default: 5; recorder: 60)' },
    'one-core': { help: 'bind the server to CPU 0 and the database to CPU 1' },
    reference: { value: 'URL', help: 'inspection: the URL of an Ironic to measure too' },
    size: { value: 'MIB', least: 16, help: 'snapshot, image-cache: the size of the disk or the image (default: 1024 or 256)' },
    'disk-rate': { value: 'MB', least: 1, help: 'snapshot: limit the reads of the disk to so many MB a second (root only)' },
    'reference-pid': { value: 'PID', least: 1, help: 'inspection: the process ID of that Ironic' },
  },
  positional: { name: 'SCENARIO', choices: [...SCENARIOS.keys()], needed: true },
});
const scenario = SCENARIOS.get(given.argument ?? '');
if (scenario === undefined) throw new Error(`there is no scenario ${given.argument}`);
installPackages();
build();
const nodes = given['nodes'] ?? scenario.nodes;
if ('runAlone' in scenario) {
  await scenario.runAlone(nodes);
  process.exit();
}
const { seconds = scenario.seconds ?? 5, reference: url, 'reference-pid': pid = -1, size, 'disk-rate': diskRate } = given;
const { atEnd, endAll, isSignalled } = createEnd();
try {
  const bench = await prepareBench(atEnd, given['one-core'] === true);
  await scenario.run(bench, { nodes, seconds, reference: url === undefined ? undefined : { url, pid }, size, 'disk-rate': diskRate });
  if (rows.length > 0) console.table(rows);
} catch (error) {
  // Requests fail after a signal has ended the server.
  if (!isSignalled()) throw error;
} finally {
  await endAll();
}
