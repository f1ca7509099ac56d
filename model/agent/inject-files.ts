/** The files that the step inject_files puts into an instance: ironic-python-agent's members, rules and messages. */
import { isObject } from '../json';
import type { JsonObject } from '../records';
import { shortened } from '../text';
import { AgentError } from './errors';

export interface InjectedFile {
  readonly path: string;
  /** A number of the root device, or a device. Absent: the partition that has the first folder of the path. */
  readonly partition?: string | number;
  /** Base64, or a URL. */
  readonly content?: string;
  readonly deleted?: boolean;
  readonly mode?: number;
  readonly dirmode?: number;
  readonly owner?: number;
  readonly group?: number;
}
export const INJECT_FILES_ARGSINFO = {
  files: {
    description:
      "Files to inject, a list of file structures with keys: 'path' (path to the file), 'partition' (partition specifier), 'content' (base64 encoded string or URL), 'deleted', 'mode' (new file mode), 'dirmode' (mode for the leaf directory, if created), 'owner' and 'group'. Merged with the values from node.properties[inject_files].",
    required: false,
  },
  verify_ca: { description: 'Whether to verify TLS certificates. Global agent options are used by default.', required: false },
} as const;

const MEMBERS = new Set(['path', 'partition', 'content', 'deleted', 'mode', 'dirmode', 'owner', 'group']);
/** The largest: those of chmod(2), and of chown(2), for which all bits mean `unchanged`. */
const [MAX_MODE, MAX_ID] = [0o7777, 2 ** 32 - 2];
const NUMBERS = { owner: MAX_ID, group: MAX_ID, mode: MAX_MODE, dirmode: MAX_MODE } as const;
const MAX_FILES = 1000;
const MAX_PATH = 4096;
/** A device, a number, or a label or UUID as mount(8) takes it. */
const PARTITION = /^(?:\d{1,4}|\/dev\/[\w/.!-]{1,200}|(?:UUID|LABEL|PARTUUID|PARTLABEL)=[\w.-]{1,100})$/;

const typeOf = (value: unknown): string => {
  if (value === null || value === undefined) return 'NoneType';
  if (Array.isArray(value)) return 'list';
  return { string: 'str', number: 'int', boolean: 'bool' }[typeof value as string] ?? 'dict';
};
const isIn = (value: unknown, most: number): boolean => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;
const refused = (details: string): AgentError => new AgentError('InvalidCommandParamsError', details);
const shown = (file: JsonObject): string => shortened(JSON.stringify({ ...file, ...('content' in file ? { content: '…' } : {}) }), 200);

function complaintsAbout(file: unknown): readonly string[] {
  if (!isObject(file)) return [`expected an object, got ${typeOf(file)}`];
  const { path, partition, content, deleted } = file;
  const unknown = Object.keys(file).filter((name) => !MEMBERS.has(name));
  const text = shown(file);
  const isInRoot = typeof path === 'string' && path.lastIndexOf('/') === 0;
  const complaints = [
    unknown.length > 0 && `unexpected fields in ${text}: ${unknown.join(', ')}`,
    typeof path !== 'string' || path === ''
      ? `expected a path in ${text}`
      : isInRoot && !partition
        ? `${text} in root directory requires "partition"`
        : path.endsWith('/') && `directories not supported for ${text}`,
    typeof path === 'string' &&
      (path.length > MAX_PATH || path.includes('\0') || path.split('/').includes('..')) &&
      `the path must not have .. in ${text}`,
    Boolean(content) && Boolean(deleted) && `content cannot be used with deleted in ${text}`,
    !deleted && typeof content !== 'string' && `expected a text as content in ${text}`,
    Boolean(partition) && !PARTITION.test(String(partition)) && `expected a number or a device as partition in ${text}`,
    ...Object.entries(NUMBERS).map(
      ([name, most]) =>
        name in file &&
        !isIn(file[name], most) &&
        `${name} must be a number in ${text}${isIn(file[name], Infinity) ? `, at most ${most}` : ''}`,
    ),
  ];
  return complaints.filter((complaint) => complaint !== false);
}

/** @param fromProperties node.properties.inject_files @throws InvalidCommandParamsError with all complaints */
export function readInjectedFiles(fromProperties: unknown, fromArguments: unknown): readonly InjectedFile[] {
  const [own, given] = [fromProperties || [], fromArguments ?? []];
  if (!Array.isArray(own)) throw refused(`The \`inject_files\` node property must be a list, got ${typeOf(own)}`);
  if (!Array.isArray(given)) throw refused(`The \`files\` argument must be a list, got ${typeOf(given)}`);
  const files: readonly unknown[] = [...(own as readonly unknown[]), ...(given as readonly unknown[])];
  if (files.length > MAX_FILES) throw refused(`Validation of files failed: at most ${MAX_FILES} files are possible`);
  const complaints = files.flatMap(complaintsAbout);
  if (complaints.length > 0) throw refused(shortened(`Validation of files failed: ${complaints.join('; ')}`, 2000));
  return files as readonly InjectedFile[];
}

/** Fills in `{node[uuid]}` and `{ports[0][address]}`, as Python's str.format does. Throws InvalidCommandParamsError for what is not there. */
export function filledUrl(url: string, values: { readonly node: JsonObject; readonly ports: readonly JsonObject[] }): string {
  return url.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (whole, field: string | undefined) => {
    if (field === undefined) return whole[0]!;
    const [, name, rest] = /^(node|ports)((?:\[[\w.-]{1,100}\]){0,10})$/.exec(field) ?? [];
    const keys = name === undefined ? [] : [name, ...rest!.split(/[[\]]/).filter((key) => key !== '')];
    const value = keys.reduce<unknown>(
      (at, key) => (typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? (at as JsonObject)[key] : undefined),
      values,
    );
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw refused(`the URL ${shortened(url, 200)} names ${shortened(field, 100)}, which is not there`);
    return String(value);
  });
}
