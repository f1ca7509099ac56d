/** Step clean_uefi_nvram: removes boot entries of the firmware, and the records of crashes that firmware keeps for the kernel. */
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentError } from '../../model/agent/errors';
import type { JsonObject } from '../../model/records';
import { createThread } from '../../wire/worker-thread';
import type { Machine } from '../machine';

/** Of entries for boot loaders on disks: what earlier instances left. */
const DEFAULT_PATTERNS = ['^HD\\(', 'shim.*\\.efi', 'grub.*\\.efi'];
export const NVRAM_ARGSINFO = {
  match_patterns: {
    description: `A list of regular expressions: boot entries whose device path fits one of them are deleted. Default: ${JSON.stringify(DEFAULT_PATTERNS)}`,
    required: false,
  },
};
const [MAX_PATTERNS, MAX_PATTERN] = [100, 500];
/** Characters of an entry's path that patterns see. */
const MAX_PATH = 2000;

/** Throws InvalidCommandParamsError in ironic-python-agent's words. */
function patternsOf(given: unknown): readonly string[] {
  const patterns = given ?? DEFAULT_PATTERNS;
  const refused = new AgentError(
    'InvalidCommandParamsError',
    `The match_patterns must be a list of strings: ${JSON.stringify(patterns).slice(0, 500)}`,
  );
  if (!Array.isArray(patterns) || patterns.length > MAX_PATTERNS) throw refused;
  for (const pattern of patterns as readonly unknown[]) {
    if (typeof pattern !== 'string' || pattern.length > MAX_PATTERN) throw refused;
    try {
      new RegExp(pattern, 'i');
    } catch {
      throw refused;
    }
  }
  return patterns as readonly string[];
}

interface BootEntry {
  readonly number: string;
  readonly label: string;
  readonly path: string;
}
/** @param output of `efibootmgr -v` @internal */
export const bootEntriesIn = (output: string): readonly BootEntry[] =>
  [...output.matchAll(/^Boot([0-9A-Fa-f]{4})\*? ([^\t\n]*)\t([^\n]*)$/gm)].map(([, number, label, path]) => ({
    number: number!,
    label: label!.trim(),
    path: path!.slice(0, MAX_PATH),
  }));

/** A pattern of an operator may take for ever: the thread that matches it ends after this time. Milliseconds. */
const MATCH_MS = 10_000;
const MATCHER = `const { parentPort } = require('node:worker_threads');
parentPort.on('message', ({ patterns, paths }) => {
  const expressions = patterns.map((pattern) => new RegExp(pattern, 'i'));
  parentPort.postMessage(paths.map((path) => expressions.some((expression) => expression.test(path))));
});`;
const matching = createThread<{ readonly patterns: readonly string[]; readonly paths: readonly string[] }, readonly boolean[]>(MATCHER, {
  idleMs: 0,
});
/** For each path whether one of the patterns fits it. */
const matches = (patterns: readonly string[], paths: readonly string[]): Promise<readonly boolean[]> =>
  matching
    .use((ask) => ask({ patterns, paths }, MATCH_MS))
    .catch(() => {
      throw new AgentError(
        'InvalidCommandParamsError',
        `The match_patterns take longer than ${MATCH_MS / 1000} s: ${patterns.join(' ').slice(0, 500)}`,
      );
    });

/** @returns the entries that were removed @throws AgentError */
export async function cleanNvram(machine: Machine, { match_patterns: given }: JsonObject): Promise<JsonObject> {
  const patterns = patternsOf(given);
  const entries = bootEntriesIn(await machine.run('efibootmgr', ['-v']));
  const wanted = await matches(
    patterns,
    entries.map(({ path }) => path),
  );
  const removed = entries.filter((_, index) => wanted[index]);
  for (const { number, label, path } of removed) {
    machine.log.info(`Boot entry ${number} (${label}, ${path}) is deleted`);
    await machine.run('efibootmgr', ['--quiet', '--bootnum', number, '--delete-bootnum']);
  }
  return { removed: removed.map(({ number, label, path }) => ({ number, label, path })) };
}

/** Step erase_pstore: deletes what kernels that crashed left with the firmware. */
export async function erasePstore(machine: Machine): Promise<JsonObject> {
  const mounts = machine.tree.text('/proc/mounts') ?? '';
  const [, place] = /^pstore (\S+) pstore /m.exec(mounts) ?? [];
  if (place === undefined) {
    machine.log.debug('No pstore found');
    return { erased: [] };
  }
  const folder = join(machine.root, place);
  const names = await readdir(folder);
  machine.log.info(`Cleaning up pstore in ${place}`);
  for (const name of names) {
    const path = join(folder, name);
    await rm(path, { recursive: (await lstat(path)).isDirectory() });
  }
  return { erased: names };
}
