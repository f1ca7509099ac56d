/** A unified kernel image: an EFI program (PE/COFF) whose sections are a kernel, its initrd and its command line. */
import type { FileHandle } from 'node:fs/promises';

/** A range of bytes in a file. */
export interface Piece {
  readonly file: FileHandle;
  readonly start: number;
  readonly length: number;
}

const MAX_HEAD = 64 * 1024;
const MAX_SECTIONS = 96;
const SECTION_BYTES = 40;
/** More is not accepted by any kernel. */
const MAX_COMMAND_LINE = 16 * 1024;

/** Undefined: it is no unified kernel image. */
export async function unifiedKernel(
  file: FileHandle,
): Promise<{ readonly kernel: Piece; readonly initrd: Piece | undefined; readonly commandLine: string } | undefined> {
  const { size } = await file.stat();
  const head = Buffer.alloc(Math.min(size, MAX_HEAD));
  await file.read(head, 0, head.length, 0);
  const start = head.length >= 64 && head.toString('latin1', 0, 2) === 'MZ' ? head.readUInt32LE(60) : head.length;
  if (start + 24 > head.length || head.toString('latin1', start, start + 4) !== 'PE\0\0') return undefined;
  const count = Math.min(head.readUInt16LE(start + 6), MAX_SECTIONS);
  const table = start + 24 + head.readUInt16LE(start + 20);
  const sections = new Map<string, Piece>();
  for (let at = table; at < table + count * SECTION_BYTES && at + SECTION_BYTES <= head.length; at += SECTION_BYTES) {
    const name = head.toString('latin1', at, at + 8).replaceAll('\0', '');
    const length = Math.min(head.readUInt32LE(at + 8), head.readUInt32LE(at + 16));
    const from = head.readUInt32LE(at + 20);
    if (from + length <= size && !sections.has(name)) sections.set(name, { file, start: from, length });
  }
  const kernel = sections.get('.linux');
  const line = sections.get('.cmdline');
  if (kernel === undefined || (line?.length ?? 0) > MAX_COMMAND_LINE) return undefined;
  const text = Buffer.alloc(line?.length ?? 0);
  if (line) await file.read(text, 0, text.length, line.start);
  return { kernel, initrd: sections.get('.initrd'), commandLine: text.toString('utf8').replaceAll('\0', '').trim() };
}
