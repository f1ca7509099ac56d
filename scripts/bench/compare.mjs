// npm run bench -- compare REF: whether a change makes a hot path slower or faster than a commit, as a ratio of CPU times.
//
// It runs servers of both on one machine, each with a database of its own, and measures them in turns: base, new, new, base; then
// the other way round. What else the machine does, and how fast it is, changes both sides of a ratio. The CPU time is that of the server
// and of its database, from /proc, so that the command needs Linux. One process can be a fifth slower than another of the same program for
// as long as it runs, from what was compiled and collected when: so the long form has several servers of each.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cliArguments } from '../cli-arguments.mjs';
import { build, installPackages, root } from '../install.mjs';
import { GROUPS, prepareNodes } from './compare/paths.mjs';
import { startServer } from './compare/server.mjs';
import { builtTree, commitOf, haveSameProgram, landedCommit, nameOf } from './compare/trees.mjs';
import { cpuOf } from './cpu.mjs';
import { createEnd } from './processes.mjs';

/** Above it, a path is slower: `--short` fails. */
const LIMIT = 1.15;
/** By form: rounds, servers of each side, and simulated machines of the whole deployment. */
const FORMS = { long: { rounds: 32, servers: 4, machines: 6 }, short: { rounds: 4, servers: 1, machines: 4 } };

const given = cliArguments({
  command: 'npm run bench',
  usage: 'compare [REF] [--short] [--rounds N] [--servers N] [--paths NAMES]',
  about:
    'Compares the CPU time of the hot paths of this checkout with that of a commit, and prints the ratios (below 1: faster). ' +
    'Without REF: the last landed commit.',
  options: {
    short: { help: `about two minutes; fails if a path exceeds ${LIMIT}, and again in three of four rounds` },
    rounds: { value: 'N', least: 1, most: 1000, help: `how often it measures each path (default: ${FORMS.long.rounds})` },
    servers: {
      value: 'N',
      least: 1,
      most: 16,
      help: `servers of each side, which take turns (default: ${FORMS.long.servers}; with --short ${FORMS.short.servers})`,
    },
    paths: { value: 'NAMES', help: 'only these paths, separated by commas' },
  },
  positional: { name: 'compare REF', several: true },
});
const form = given.short ? FORMS.short : FORMS.long;
const rounds = given.rounds ?? form.rounds;
const servers = given.servers ?? form.servers;
const names = given.paths?.split(',');
const known = GROUPS.flatMap(({ paths }) => paths);
const unknown = names?.find((/** @type {string} */ name) => !known.includes(name));
if (unknown !== undefined) {
  console.error(`--paths has names of ${known.join(', ')}, not "${unknown}"`);
  process.exit(2);
}
const groups = GROUPS.filter(({ paths, isSlight }) =>
  names === undefined ? !(given.short && isSlight) : paths.some((path) => names.includes(path)),
);

/**
 * @typedef {{ count: number, base: number, new: number }} Round milliseconds of all requests on each side
 * @typedef {Map<string, Round[]>} Results by path
 * @typedef {{ server: import('./compare/server.mjs').Compared, nodes: import('./compare/paths.mjs').Nodes }} Side
 */

/** Measures a group once on a side. @param {import('./compare/paths.mjs').Group} group @param {Side} side @returns {Promise<Map<string, { count: number, ms: number }>>} */
async function once(group, { server, nodes }) {
  const measured = new Map();
  await group.run(server, nodes, async (path, count, work) => {
    measured.set(path, { count, ms: await cpuOf(server.pid, work) });
  });
  return measured;
}
/**
 * @param {readonly import('./compare/paths.mjs').Group[]} of
 * @param {number} times
 * @param {readonly Readonly<Record<'base' | 'new', Side>>[]} pairs of servers, which take turns
 * @returns {Promise<Results>}
 */
async function measure(of, times, pairs) {
  /** @type {Results} */
  const results = new Map();
  for (let round = 0; round < times; round++) {
    console.error(`round ${round + 1} of ${times}`);
    const turn = Math.floor(round / pairs.length);
    const sides = pairs[round % pairs.length];
    if (sides === undefined) throw new Error('no servers');
    for (const group of of) {
      const [first, second] = turn % 2 === 0 ? /** @type {const} */ (['base', 'new']) : /** @type {const} */ (['new', 'base']);
      /** @type {Map<string, Round>} */
      const sums = new Map();
      for (const side of [first, second, second, first])
        for (const [path, { count, ms }] of await once(group, sides[side])) {
          const sum = sums.get(path) ?? { count: 0, base: 0, new: 0 };
          sum.count += count / 2;
          sum[side] += ms;
          sums.set(path, sum);
        }
      for (const [path, sum] of sums) results.set(path, [...(results.get(path) ?? []), sum]);
    }
  }
  return results;
}

/** @param {readonly number[]} values @param {number} part */
function quantile(values, part) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = part * (sorted.length - 1);
  const [low = 0, high = 0] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}
/** The figures of a path. @param {readonly Round[]} all */
function figures(all) {
  const ratios = all.map((item) => item.new / item.base);
  const each = (/** @type {'base' | 'new'} */ side) =>
    quantile(
      all.map((item) => item[side] / item.count),
      0.5,
    );
  return { ratio: quantile(ratios, 0.5), low: quantile(ratios, 0.25), high: quantile(ratios, 0.75), base: each('base'), new: each('new') };
}
/** Prints a table. @param {Results} results */
function print(results) {
  const rows = [...results].map(([path, all]) => {
    const { ratio, low, high, base, new: ours } = figures(all);
    return [path, base.toFixed(3), ours.toFixed(3), ratio.toFixed(2), `${low.toFixed(2)} to ${high.toFixed(2)}`];
  });
  const table = [['CPU ms each', 'base', 'new', 'ratio', 'half of the rounds'], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of table)
    console.log(row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  '));
}

const pass = (/** @type {string} */ why) => {
  console.log(`nothing to compare: ${why}`);
  process.exit(0);
};
installPackages();
const [, ref] = given.positionals;
const landed = ref === undefined ? landedCommit() : { commit: commitOf(ref), how: ref };
if (landed === undefined) pass('this clone has no earlier commit');
const { commit, how } = /** @type {{ commit: string | undefined, how: string }} */ (landed);
if (commit === undefined) {
  console.error(`this clone has no commit ${how}`);
  process.exit(2);
}
build();
console.log(`base: ${how}, ${nameOf(commit)}`);
const tree = builtTree(commit);
if (ref === undefined && haveSameProgram(root, tree)) pass('both have the same program');

const folder = mkdtempSync(join(tmpdir(), 'bloomery-bench-'));
// The embedded database may run as another user, who must be able to enter the folder.
chmodSync(folder, 0o755);
let failed = false;
const { atEnd, endAll, isSignalled } = createEnd();
atEnd(() => rmSync(folder, { recursive: true, force: true }));
try {
  const start = async (/** @type {string} */ of, /** @type {string} */ name) => {
    const server = await startServer(of, join(folder, name), form.machines, atEnd);
    return { server, nodes: await prepareNodes(server) };
  };
  const pairs = [];
  for (let number = 1; number <= servers; number++)
    pairs.push({ base: await start(tree, `base${number}`), new: await start(root, `new${number}`) });
  // The first requests compile the code, and fill the caches.
  await measure(groups, servers, pairs);
  const results = await measure(groups, rounds, pairs);
  print(results);
  if (given.short) {
    const slower = (/** @type {Results} */ of, /** @type {'ratio' | 'low'} */ figure) =>
      [...of].filter(([, all]) => figures(all)[figure] > LIMIT).map(([path]) => path);
    const suspects = slower(results, 'ratio');
    if (suspects.length > 0) {
      console.log(`above ${LIMIT}: ${suspects.join(', ')}; again, with twice as many rounds:`);
      const again = await measure(
        groups.filter(({ paths }) => paths.some((path) => suspects.includes(path))),
        2 * rounds,
        pairs,
      );
      print(again);
      // In three of four rounds, which noise alone does not make.
      const slow = slower(again, 'low').filter((path) => suspects.includes(path));
      failed = slow.length > 0;
      if (failed) console.error(`slower than ${how} by more than ${LIMIT}: ${slow.join(', ')}`);
    }
  }
} catch (error) {
  // Requests fail after a signal has ended the servers.
  if (!isSignalled()) throw error;
} finally {
  await endAll();
}
process.exit(failed || isSignalled() ? 1 : 0);
