/** Entries of the Boot Loader Specification (https://uapi-group.org/specifications/specs/boot_loader_specification/), type 1. */
import { type BootEntry, newestFirst } from './boot-entry';
import type { ImageFiles } from './image-files';

const ENDING = '.conf';
/** `name+0-3.conf`: all its attempts to boot have failed. */
const HAS_FAILED = /\+0(?:-\d+)?\.conf$/;
const isRescue = (name: string): boolean => name.includes('rescue');

/** Whether an identifier fits `default` of loader.conf, where `*` stands for anything. */
function fits(id: string, pattern: string): boolean {
  const [start = '', ...parts] = pattern.split('*');
  if (parts.length === 0) return id === start;
  if (!id.startsWith(start)) return false;
  let at = start.length;
  for (const part of parts) {
    const found = id.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return parts.at(-1) === '' || id.endsWith(parts.at(-1)!);
}

/** Key → its values, in order: `initrd` and `options` may occur several times. */
function valuesOf(text: string): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, string[]>();
  for (const raw of text.split('\n')) {
    const line = raw.trim();
    const end = line.search(/[ \t]/);
    if (line.startsWith('#') || end < 0) continue;
    const key = line.slice(0, end);
    const known = values.get(key);
    const value = line.slice(end).trim();
    if (known) known.push(value);
    else values.set(key, [value]);
  }
  return values;
}

/**
 * The default entry of a folder `loader/entries`; undefined: there is none for Linux.
 * @param wanted the identifier that the boot loader's own configuration names, if any
 * @param expand replaces the boot loader's variables
 */
export async function loaderEntry(
  files: ImageFiles,
  folder: string,
  wanted: string | undefined,
  expand: (text: string) => string,
): Promise<BootEntry | undefined> {
  const names = newestFirst((await files.names(folder)).filter((name) => name.endsWith(ENDING) && !HAS_FAILED.test(name)));
  const idOf = (name: string): string => name.slice(0, -ENDING.length);
  const chosen =
    (wanted && names.find((name) => fits(idOf(name), wanted) || fits(name, wanted))) ?? names.find((name) => !isRescue(name)) ?? names[0];
  const text = chosen ? await files.text(`${folder}/${chosen}`) : null;
  if (text === null) return undefined;
  const values = valuesOf(text);
  const kernel = values.get('linux')?.[0];
  if (kernel === undefined) return undefined;
  const initrds = (values.get('initrd') ?? []).flatMap((line) => expand(line).split(' ').filter(Boolean));
  return { kernel: expand(kernel), initrds, commandLine: expand((values.get('options') ?? []).join(' ')).trim() };
}

/** `default` of systemd-boot's loader.conf. */
export async function loaderDefault(files: ImageFiles): Promise<string | undefined> {
  const text = await files.text('loader/loader.conf');
  return text === null ? undefined : valuesOf(text).get('default')?.[0];
}
