/**
 * Files with the resources of a Redfish service, as `bloomery probe --record` writes them and `bloomery simulate --tree` serves them: JSON
 * lines, of which the first is the header.
 */
import { isObject, objectOf } from '../../model/json';
import { readRegularFile } from '../authorities';
import { JSON_LIMITS, parseJson } from '../bounded-json';
import { linkKey } from './json';

const FORMAT = 1;
/** Limits of a file: resources, bytes of all of them, and characters of a path. */
export const TREE_LIMITS = { resources: 2000, bytes: 64 << 20, path: 1024 } as const;
/** Bytes of a file: its paths and statuses come on top of the resources. */
const MAX_FILE = TREE_LIMITS.bytes + TREE_LIMITS.resources * (TREE_LIMITS.path + 200) + 4096;

interface TreeHeader {
  /** Version of the program that wrote the file. */
  readonly program: string;
  /** ISO 8601. */
  readonly recorded: string;
  /** False: the service has more than was read. */
  readonly complete: boolean;
  /** Kind of values → how many of them have replacements. */
  readonly replaced: Readonly<Record<string, number>>;
}
export interface RecordedResource {
  /** With its query, if it is a page of a collection. */
  readonly path: string;
  /** The status of its GET. */
  readonly status: number;
  /** Absent for errors, and for what was left out. */
  readonly body?: unknown;
  /** The header of this name. */
  readonly allow?: string | undefined;
  /** It was not asked for, since it has nothing that a driver needs. */
  readonly left_out?: true | undefined;
}
export interface RecordedTree {
  readonly header: TreeHeader;
  /** By `linkKey` of the path. */
  readonly resources: ReadonlyMap<string, RecordedResource>;
}

export const treeText = (header: TreeHeader, resources: readonly RecordedResource[]): string =>
  [{ bloomery_tree: FORMAT, ...header }, ...resources].map((line) => `${JSON.stringify(line)}\n`).join('');

/** A path below /redfish without what could lead out of it. A query may follow. */
const PATH = /^\/redfish(?:\/[\w.~!$&'()*+,;=:@%|{}[\]-]*)*(?:\?[\w.~!$&'()*+,;=:@%|{}[\]/?-]*)?$/;
export const isTreePath = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= TREE_LIMITS.path && PATH.test(value) && !/\/\.{1,2}(?:\/|$)/.test(value);

function headerOf(line: unknown): TreeHeader {
  if (!isObject(line) || !('bloomery_tree' in line))
    throw new Error('the first line is no header: bloomery probe --record makes such files');
  if (line['bloomery_tree'] !== FORMAT) throw new Error(`its format is not ${FORMAT}: another version of bloomery wrote it`);
  const { program, recorded, complete, replaced } = line;
  if (typeof recorded !== 'string' || Number.isNaN(Date.parse(recorded))) throw new Error('the header has no time in "recorded"');
  return {
    program: typeof program === 'string' ? program : '',
    recorded,
    complete: complete === true,
    replaced: isObject(replaced) ? (replaced as Readonly<Record<string, number>>) : {},
  };
}
function resourceOf(line: unknown): RecordedResource {
  const { path, status, body, allow, left_out: leftOut } = objectOf(line);
  if (!isTreePath(path)) throw new Error('"path" is not a path below /redfish');
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599)
    throw new Error('"status" is no status of HTTP');
  if (body !== undefined && !isObject(body)) throw new Error('"body" is no object');
  if (allow !== undefined && (typeof allow !== 'string' || !/^[A-Z, ]{0,100}$/.test(allow)))
    throw new Error('"allow" is no list of methods');
  return { path, status, body, allow, left_out: leftOut === true ? true : undefined };
}
/**
 * Reads a recorded file within its limits.
 * @param file path of a regular file
 * @throws Error that names the file, the line and the cause
 */
export async function readTree(file: string): Promise<RecordedTree> {
  const text = await readRegularFile(file, MAX_FILE);
  const resources = new Map<string, RecordedResource>();
  let header: TreeHeader | undefined;
  let number = 0;
  for (let from = 0; from < text.length;) {
    const end = text.indexOf('\n', from);
    const line = text.slice(from, end < 0 ? undefined : end);
    from = end < 0 ? text.length : end + 1;
    number++;
    if (line.trim() === '') continue;
    try {
      const value = await parseJson(Buffer.from(line), JSON_LIMITS.bmc);
      if (header) {
        const resource = resourceOf(value);
        resources.set(linkKey(resource.path), resource);
      } else header = headerOf(value);
      if (resources.size > TREE_LIMITS.resources) throw new Error(`more than ${TREE_LIMITS.resources} resources`);
    } catch (error) {
      throw new Error(`${file}, line ${number}: ${(error as Error).message}`, { cause: error });
    }
  }
  if (!header) throw new Error(`${file} is empty`);
  return { header, resources };
}
