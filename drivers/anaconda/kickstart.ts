/** Kickstart files of Anaconda: the template, its check, and the config drive in it. Names and messages are Ironic's. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { closeSync, openSync, readSync } from 'node:fs';
import { Fault, invalidParameter, reasonOf } from '../../model/errors';
import { withoutCredentials } from '../../model/urls';
import { configdriveOf } from '../agent/configdrive';
import { imagePart } from '../common/image-formats';
import { checkImage, download, locateImage } from '../common/images';
import type { Task } from '../interfaces';
import { renderUntrusted } from '../../wire/templates/untrusted';
import { filesOfIso } from '../../wire/images/iso9660-reader';
import { DEFAULT_TEMPLATE } from './default-template';

/** Bytes of a template. */
const MAX_TEMPLATE = 256 << 10;
/** Bytes of a config drive that goes into a kickstart file, unpacked. */
const MAX_CONFIGDRIVE = 4 << 20;
/** Bytes of a kickstart file: the config drive is in base64 there. */
const MAX_KICKSTART = 8 << 20;

/** Ironic's `ks_options`. */
interface KickstartOptions {
  /** The image or the repository. */
  readonly liveimg_url: string;
  readonly agent_token: string;
  readonly heartbeat_url: string;
  /** Sections `%post`. */
  readonly config_drive: string;
  /** `true`: liveimg_url is a repository. */
  readonly is_source_a_path?: string;
  /** `true`: the certificate of the API is not verified. */
  readonly insecure_heartbeat?: string;
}

const invalidTemplate = (message: string, cause?: unknown): Fault => invalidParameter(message, cause);

/** The file that the operator names. Throws an Error with the reason. */
export function ownTemplate(path: string | null): string {
  if (path === null) return DEFAULT_TEMPLATE;
  const bytes = Buffer.alloc(MAX_TEMPLATE + 1);
  const file = openSync(path, 'r');
  try {
    const length = readSync(file, bytes, 0, bytes.length, 0);
    if (length > MAX_TEMPLATE) throw new Error(`it has more than ${MAX_TEMPLATE} bytes`);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(file);
  }
}

/** A template that a user or an image names: a URL, a file, or an image in Glance or a registry. Throws InvalidParameterValue, ImageNotFound. */
export async function givenTemplate(task: Task, href: string): Promise<string> {
  const located = locateImage(href, task.options);
  const shown = withoutCredentials(href);
  // Glance and registries are read with the login of this program: the image must be one that the user may have.
  const source = located.kind === 'glance' || located.kind === 'oci' ? await checkImage(located, task) : located;
  const bytes = await imagePart(source, task, 0, MAX_TEMPLATE + 1).catch((error: unknown) => {
    task.signal.throwIfAborted();
    throw invalidTemplate(`The kickstart template ${shown} cannot be read: ${reasonOf(error)}`, error);
  });
  if (bytes.length > MAX_TEMPLATE) throw invalidTemplate(`The kickstart template ${shown} has more than ${MAX_TEMPLATE} bytes.`);
  return bytes.toString('utf8');
}

const render = async (template: string, options: KickstartOptions): Promise<{ text: string; unknown: readonly string[] }> => {
  try {
    return await renderUntrusted(template, { ks_options: { ...options } }, MAX_KICKSTART);
  } catch (error) {
    throw invalidTemplate(`The kickstart template cannot be rendered: ${reasonOf(error)}`, error);
  }
};

/** Values that stand for the real ones when a template is checked: each must be in what it gives. */
const STAND_INS: KickstartOptions = {
  liveimg_url: 'fake_image_url',
  agent_token: 'fake_token',
  config_drive: '',
  heartbeat_url: 'fake_heartbeat_url',
};
/** Sections that end with `%end` (the documentation of pykickstart). `%include` and `%ksappend` are single lines. */
const SECTION = /^%(?:addon|anaconda|certificate|onerror|packages|post|pre|pre-install|traceback)(?:\s|$)/;

/** Throws InvalidParameterValue, with Ironic's message, if the template lacks an option that Ironic requires, or prints one that there is not. */
export async function checkTemplate(template: string): Promise<void> {
  const { text, unknown } = await render(template, STAND_INS);
  if (unknown.length > 0)
    throw invalidTemplate(
      `The kickstart template includes a variable that is not a valid kickstart option. Rendering the template returned  ${unknown[0]!}. ` +
        `The valid options are ${Object.keys(STAND_INS).join(',')}.`,
    );
  const missing = Object.entries(STAND_INS).flatMap(([name, value]) => (text.includes(value as string) ? [] : [name]));
  if (missing.length > 0)
    throw invalidTemplate(`Following required kickstart option variables are missing from the kickstart template: ${missing.join(',')}.`);
  checkSections(text);
}
function checkSections(text: string): void {
  let open: string | undefined;
  for (const line of text.split('\n')) {
    const [word = ''] = line.split(/\s/, 1);
    const begins = SECTION.test(line);
    if (begins && open !== undefined) break;
    if (begins) open = word;
    else if (word === '%end') open = undefined;
  }
  if (open !== undefined)
    throw invalidTemplate(`The kickstart file generated does not pass validation: the section ${open} does not end with %end.`);
}

export const renderKickstart = async (template: string, options: KickstartOptions): Promise<string> =>
  (await render(template, options)).text;

/** Where cloud-init looks for the files of a config drive in the file system. */
const SEED = '/var/lib/cloud/seed/config_drive';
/** No shell reads anything but the quotes in it. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
function sectionOf(path: string, content: Buffer): string {
  // A line break would end the command, and a line `%end` the section.
  if (/\p{Cc}/u.test(path)) throw invalidParameter('A file of the config drive has a control character in its name.');
  const file = `${SEED}/${path}`;
  const folder = file.slice(0, file.lastIndexOf('/'));
  return [
    '%post',
    `/bin/mkdir -p ${quoted(folder)}`,
    `echo ${quoted(content.toString('base64'))} | /usr/bin/base64 --decode > ${quoted(file)}`,
    `/bin/chmod 600 ${quoted(file)}`,
    '%end',
    '',
  ].join('\n');
}

const PACKED = /^H4sI/;
/** A config drive in base64, or at a URL, where it may be the packed image itself. */
async function configdriveBytes(task: Task, given: string): Promise<Buffer> {
  if (!given.includes('://')) return Buffer.from(given, 'base64');
  const bytes = await download(given, task, MAX_CONFIGDRIVE);
  return PACKED.test(bytes.toString('latin1', 0, 4)) ? Buffer.from(bytes.toString('latin1'), 'base64') : bytes;
}

/** The sections that write the node's config drive. Empty: it has none. Throws InvalidParameterValue. */
export async function configdriveSections(task: Task): Promise<string> {
  const given = await configdriveOf(task);
  if (given === undefined) return '';
  const refuse = (reason: string, cause?: unknown): Fault =>
    invalidParameter(`Decoding/Extraction of config drive failed: ${reason}`, cause);
  const packed = await configdriveBytes(task, given);
  const image = await promisify(gunzip)(packed, { maxOutputLength: MAX_CONFIGDRIVE }).catch((error: unknown) => {
    throw refuse(reasonOf(error), error);
  });
  const files = filesOfIso(image, MAX_CONFIGDRIVE);
  if (files === undefined) throw refuse('it is not an ISO 9660 image with Joliet names');
  return Object.keys(files)
    .sort()
    .map((path) => sectionOf(path, files[path]!))
    .join('\n');
}
