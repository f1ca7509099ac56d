/** The writer of each image format. */
import { type ImageWriter, rawWriter, type Sink } from '../disk/image';
import { qcow2Writer } from './qcow2';
import { vhdWriter } from './vhd';
import { vhdxWriter } from './vhdx';
import { vmdkWriter } from './vmdk';

const WRITERS: Readonly<Record<string, (sink: Sink) => ImageWriter>> = {
  raw: rawWriter,
  gpt: rawWriter,
  iso: rawWriter,
  qcow2: qcow2Writer,
  vmdk: vmdkWriter,
  vhdx: vhdxWriter,
  vhd: (sink) => vhdWriter(sink, true),
};
/**
 * @param format by the image's first bytes
 * @param declared what the user or Glance says
 * @returns undefined for a format that cannot be written
 */
export function writerFor(sink: Sink, format: string, declared: string | null): ImageWriter | undefined {
  if (declared === 'vhd' && format !== 'vhd') return vhdWriter(sink, false);
  return Object.hasOwn(WRITERS, format) ? WRITERS[format]!(sink) : undefined;
}
/** Whether the file has the disk's bytes, one after another. */
export const isUnchanged = (format: string, declared: string | null): boolean => WRITERS[format] === rawWriter && declared !== 'vhd';
