/** The arguments of the agent's steps save_disk and snapshot. The conductor checks them when they are set, and the agent before it reads the disk. */
import { isUuid } from '../idents';
import type { JsonObject } from '../records';
import { reasonOf } from '../errors';
import { AgentError } from './errors';
import { parseHints } from './hints';

const MAX_URL = 2048;

/** What is wrong with a URL to which the agent sends a file; undefined: nothing. */
export function uploadUrlProblem(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_URL || !/^https?:\/\/[^\s\\]+$/i.test(value) || !URL.canParse(value))
    return `must be a URL (http, https) of at most ${MAX_URL} characters`;
  const { username, password } = new URL(value);
  // Everybody who may see the node sees the arguments of its steps.
  return username !== '' || password !== '' ? 'must have no login' : undefined;
}
/** What is wrong with the hints that select a disk; undefined: nothing. */
export function diskHintsProblem(value: unknown): string | undefined {
  try {
    return Object.keys(parseHints(value)).length === 0 ? 'must have a hint' : undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Whether an image has all blocks of a disk, or those that its file systems use. */
const BLOCKS = ['all', 'used'] as const;
export type Blocks = (typeof BLOCKS)[number];
export const blocksProblem = (value: unknown): string | undefined =>
  BLOCKS.some((known) => known === value) ? undefined : `must be one of ${BLOCKS.join(', ')}`;

export const snapshotProblem = (value: unknown): string | undefined =>
  typeof value === 'string' && isUuid(value) ? undefined : 'must be the UUID of a snapshot';

interface SaveArguments {
  readonly url: string;
  /** Gets a line with the SHA-256 checksum and the name of the file. */
  readonly checksumUrl: string | undefined;
  /** Undefined: the root disk. */
  readonly rootDevice: JsonObject | undefined;
  readonly blocks: Blocks;
}
const given = <Value>(value: Value | null | undefined): value is Value => (value ?? null) !== null;
function refuse(problems: readonly (readonly [name: string, problem: string | undefined])[]): void {
  const wrong = problems.find(([, problem]) => problem !== undefined);
  if (wrong) throw new AgentError('InvalidCommandParamsError', `${wrong[0]} ${wrong[1]}`);
}
/** Throws AgentError. */
export function readSaveArguments({ url, checksum_url: checksumUrl, root_device: hints, blocks }: JsonObject): SaveArguments {
  refuse([
    ['url', uploadUrlProblem(url)],
    ['checksum_url', given(checksumUrl) ? uploadUrlProblem(checksumUrl) : undefined],
    ['root_device', given(hints) ? diskHintsProblem(hints) : undefined],
    ['blocks', given(blocks) ? blocksProblem(blocks) : undefined],
  ]);
  return {
    url: url as string,
    checksumUrl: (checksumUrl as string | null | undefined) ?? undefined,
    rootDevice: (hints as JsonObject | null | undefined) ?? undefined,
    blocks: (blocks as Blocks | null | undefined) ?? 'used',
  };
}
/** Throws AgentError. */
export function readSnapshotArguments({ snapshot, root_device: hints, blocks }: JsonObject): {
  readonly uuid: string;
  readonly rootDevice: JsonObject | undefined;
  readonly blocks: Blocks;
} {
  refuse([
    ['snapshot', snapshotProblem(snapshot)],
    ['root_device', given(hints) ? diskHintsProblem(hints) : undefined],
    ['blocks', given(blocks) ? blocksProblem(blocks) : undefined],
  ]);
  return {
    uuid: snapshot as string,
    rootDevice: (hints as JsonObject | null | undefined) ?? undefined,
    blocks: (blocks as Blocks | null | undefined) ?? 'used',
  };
}
