/** The scripts that take arguments: each has a --help, and rejects a wrong argument with one line. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { until } from './support/until';

interface Said {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}
type Call = readonly [script: string, ...words: string[]];
async function sayingOf(calls: readonly Call[]): Promise<readonly Said[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(__dirname, '../scripts/testing/say-arguments.mjs'),
    JSON.stringify(calls),
  ]);
  return JSON.parse(stdout) as readonly Said[];
}

const SCRIPTS = [
  'bench',
  'chaos',
  'fuzz',
  'hostile',
  'mutate',
  'release',
  'test',
  'test-lab',
  'test-long',
  'test-node',
  'test-openstack',
  'test-reference',
  'types',
];
const REFUSED: readonly (readonly [script: string, words: readonly string[], problem: string])[] = [
  ['bench', [], 'SCENARIO is one of provisioning, '],
  ['bench', ['everything'], ', not "everything"'],
  ['bench', ['recorder', '--seconds', '0'], '--seconds is a whole number from 1 to 86400, not "0"'],
  ['bench', ['recorder', '--nodes', '1.5'], '--nodes is a whole number, at least 1, not "1.5"'],
  ['bench', ['recorder', 'inspection'], "Unexpected argument 'inspection'"],
  ['bench', ['compare', '--paths', 'GET nodes'], ', not "GET nodes"'],
  ['mutate', [], 'PATH is needed'],
  ['chaos', ['--site', 'four'], '--site is one of three, one, both, not "four"'],
  ['fuzz', ['--minutes', 'x'], '--minutes is a number, at least 0.1, not "x"'],
  ['test-lab', ['boot/dhcp', 'nothing'], ', not "nothing"'],
  ['test-lab', ['--all', 'ipmi'], '--all and NAME exclude each other'],
  ['test-node', ['22'], 'VERSION is one like 22.23.3, not "22"'],
  ['fuzz', ['--minutes'], "Option '--minutes <value>' argument missing"],
];
const LIST: Call = ['test-lab', '--list'];
const CALLS: readonly Call[] = [
  ...SCRIPTS.flatMap((script): Call[] => [
    [script, '--help'],
    [script, '--nonsense'],
  ]),
  ...REFUSED.map(([script, words]): Call => [script, ...words]),
  LIST,
];
const saying = sayingOf(CALLS).then((all) => new Map(CALLS.map((call, at) => [call.join(' '), all[at]!])));
// A failure belongs to the tests that wait for it.
saying.catch(() => {});
const said = async (...call: Call): Promise<Said> => (await saying).get(call.join(' '))!;

it.each(SCRIPTS)('%s prints its usage with --help, and refuses an unknown option', async (script) => {
  const [help, wrong] = [await said(script, '--help'), await said(script, '--nonsense')];
  expect(help).toMatchObject({ code: 0, errors: '' });
  expect(help.output).toMatch(/^usage: npm /);
  expect(wrong).toMatchObject({ code: 2, output: '' });
  expect(wrong.errors).toMatch(/^Unknown option '--nonsense' \(npm (?:run )?[\w:]+ -- --help tells more\)\n$/);
});
it.each(REFUSED)('%s refuses the arguments %j', async (script, words, problem) => {
  const { code, errors } = await said(script, ...words);
  expect(code).toBe(2);
  expect(errors).toMatch(/^[^\n]+\n$/);
  expect(errors).toContain(problem);
});

it('test-lab --list names every test of the lab, and the groups of packages that the tests need', async () => {
  const { output } = await said(...LIST);
  const files = ['lab', 'chaos'].flatMap((folder) =>
    readdirSync(join(__dirname, folder), { encoding: 'utf8', recursive: true })
      .filter((file) => file.endsWith('.test.ts'))
      .map((file) => (folder === 'lab' ? file : join(folder, file)).replace('.test.ts', '')),
  );
  const [parts, groups] = output.split('\n\n') as [string, string];
  const lines = parts.split('\n').map((line) => /^(\S+) +\d+ s {2}root(?:.*packages: (.*))?$/.exec(line)!);
  expect(lines.map(([, part]) => part).toSorted()).toEqual(files.toSorted());
  const listed = [...groups.matchAll(/^([a-z-]+): ./gm)].map(([, group]) => group!);
  const needed = lines.flatMap(([, , names]) => names?.split(', ') ?? []);
  // Only `npm run test:reference` needs these two.
  expect(new Set([...needed, 'databases', 'web'])).toEqual(new Set(listed));
});

/** Results by name, before and after the repetition → passed, failed and flaky of all. */
type Results = Readonly<Record<string, { readonly passed: number; readonly failed: readonly string[] }>>;
const FLAKY: readonly (readonly [name: string, first: Results, again: Results, judged: object])[] = [
  ['nothing failed', { a: { passed: 2, failed: [] } }, {}, { passed: 2, failed: [], flaky: [] }],
  [
    'it passes by itself',
    { a: { passed: 1, failed: ['a: x'] }, b: { passed: 3, failed: [] } },
    { a: { passed: 2, failed: [] } },
    { passed: 5, failed: [], flaky: ['a: x'] },
  ],
  [
    'it fails again, with another test',
    { a: { passed: 1, failed: ['a: x'] } },
    { a: { passed: 1, failed: ['a: y'] } },
    { passed: 1, failed: ['a: y'], flaky: [] },
  ],
  [
    'one of two passes',
    { a: { passed: 0, failed: ['a: x', 'a: y'] }, b: { passed: 0, failed: ['b: z'] } },
    { a: { passed: 2, failed: [] }, b: { passed: 0, failed: ['b: z'] } },
    { passed: 2, failed: ['b: z'], flaky: ['a: x', 'a: y'] },
  ],
  ['it does not run again', { a: { passed: 1, failed: ['a: x'] } }, {}, { passed: 1, failed: ['a: x'], flaky: [] }],
  [
    'it runs again without a test',
    { a: { passed: 1, failed: ['a: x'] } },
    { a: { passed: 0, failed: [] } },
    { passed: 1, failed: ['a: x'], flaky: [] },
  ],
];
it('repeatFailed() judges a failed test as flaky if it passes when repeated, else as failed', async () => {
  const program = `import { repeatFailed, summary } from ${JSON.stringify(join(__dirname, '../scripts/testing/flaky.mjs'))};
    const judged = [];
    for (const [, first, again] of ${JSON.stringify(FLAKY)}) {
      const names = [];
      const all = await repeatFailed(new Map(Object.entries(first)), async (failed) => (names.push(...failed), new Map(Object.entries(again))));
      judged.push({ all, names, lines: summary(all) });
    }
    console.log(JSON.stringify(judged));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  const judged = JSON.parse(stdout) as readonly { all: object; names: readonly string[]; lines: readonly string[] }[];
  expect(judged.map(({ all }, at) => [FLAKY[at]![0], all])).toEqual(FLAKY.map(([name, , , expected]) => [name, expected]));
  expect(judged.map(({ names }) => names)).toEqual([[], ['a'], ['a'], ['a', 'b'], ['a'], ['a']]);
  expect(judged[3]!.lines).toEqual([
    'FAILED: b: z',
    'flaky: a: x (failed, then passed by itself)',
    'flaky: a: y (failed, then passed by itself)',
    '2 passed, 1 failed',
  ]);
});

/** Whether a process runs. A zombie (`man 5 proc`, state Z) does not. */
async function runs(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return !stat.includes(') Z ');
}
it.each([
  ['SIGTERM', 143, 'sleep 600 & echo $!; wait'],
  ['SIGINT', 130, "trap '' INT; sh -c 'echo $$; sleep 600' & wait"],
] as const)('runInGroup() ends a program and the processes that it started on %s', async (signal, status, script) => {
  const program = `import { runInGroup } from ${JSON.stringify(join(__dirname, '../scripts/testing/process-group.mjs'))};
    process.exit((await runInGroup(['sh', '-c', ${JSON.stringify(script)}], {}, 300)).status);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const line = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    ended.then((how) => Promise.reject(new Error(`it ended: ${String(how)}`))),
  ]);
  const started = Number(line[0]);
  try {
    expect(await runs(started)).toBe(true);
    child.kill(signal);
    expect(await ended).toEqual([status, null]);
    await until('the process that it started has ended', async () => !(await runs(started)));
  } finally {
    if (await runs(started)) process.kill(started, 'SIGKILL');
  }
});
it('runInGroup() returns the exit status of the program', async () => {
  const program = `import { runInGroup } from ${JSON.stringify(join(__dirname, '../scripts/testing/process-group.mjs'))};
    process.exit((await runInGroup(['sh', '-c', 'exit 3'])).status);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'ignore' });
  expect(await once(child, 'exit')).toEqual([3, null]);
});
