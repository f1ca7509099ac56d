/** What the installer Anaconda boots from, and what it installs: by instance_info, or by the properties of the image in Glance. */
import { Fault, invalidParameter } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import { withoutCredentials } from '../../model/urls';
import { downloadSource } from '../agent/direct';
import { appendedArguments, apiUrlOf, requireAll } from '../agent/ramdisk';
import { findImage, validImage } from '../common/glance-images';
import { inspectImage } from '../common/image-formats';
import { checkImage, headOf, locateImage, servable, servedAs, type ImageSource } from '../common/images';
import type { Installer, Task } from '../interfaces';
import { requireDigest } from '../oci/images';
import { isKernelCommandLine } from '../../wire/kernel-arguments';
import { glanceId, type GlanceImage } from '../../wire/openstack/glance';
import { withoutEndSlashes } from '../../wire/urls';
import { configdriveSections, givenTemplate, ownTemplate, renderKickstart, checkTemplate } from './kickstart';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** `stage2` for the installer's second stage: Anaconda requests this file below the URL of `inst.stage2`. */
const STAGE2_FILE = 'LiveOS/squashfs.img';

/** Whether `image_source` is a folder of a web server: a repository. By the answer to HEAD, as in Ironic; an error is no folder. */
export async function isRepository(task: Task): Promise<boolean> {
  const { image_source: source, image_type: type } = task.node.instance_info;
  if (type || typeof source !== 'string' || !/^https?:/i.test(source) || !URL.canParse(source)) return false;
  const head = await headOf(source, task).catch(() => undefined);
  task.signal.throwIfAborted();
  if (head?.status !== 200) return false;
  const type_ = head.headers.get('content-type') ?? undefined;
  if (type_?.startsWith('text/html')) return true;
  if (type_ !== undefined && head.headers.has('content-length')) return false;
  return head.url.endsWith('/');
}

/** The URLs and images that the installer needs. Empty texts are missing. */
interface Parts {
  readonly kernel: string;
  readonly ramdisk: string;
  /** Empty for a repository, which has its own. */
  readonly stage2: string;
  /** Empty: the option's. */
  readonly template: string;
}
function partsOf({ instance_info: info }: Task['node'], properties: GlanceImage['properties'], repository: boolean): Parts {
  const [kernel, ramdisk] = [text(info['kernel']), text(info['ramdisk'])];
  // One without the other may be of another system.
  const own = kernel !== '' && ramdisk !== '';
  return {
    kernel: own ? kernel : (properties['kernel_id'] ?? ''),
    ramdisk: own ? ramdisk : (properties['ramdisk_id'] ?? ''),
    stage2: repository ? '' : text(info['stage2']) || (properties['stage2_id'] ?? ''),
    template: text(info['ks_template']) || (properties['ks_template'] ?? ''),
  };
}

/** The checks that need no file. Throws MissingParameterValue, InvalidParameterValue. */
export async function checkInstaller(task: Task): Promise<void> {
  const { node } = task;
  const source = text(node.instance_info['image_source']);
  const { kernel, ramdisk } = node.instance_info;
  const id = glanceId(source);
  requireAll(
    `Cannot validate image information for node ${node.uuid} because one or more parameters are missing from its instance_info and insufficient information is present to boot from a remote volume`,
    { image_source: source, ...(id === undefined ? { kernel, ramdisk } : {}) },
  );
  checkHref(source, task);
  const properties = id === undefined ? {} : (await validImage(task, id)).properties;
  const repository = id === undefined && (await isRepository(task));
  const parts = partsOf(node, properties, repository);
  if (id !== undefined) {
    const missing = (['kernel', 'ramdisk', 'stage2'] as const).filter((name) => parts[name] === '').map((name) => `${name}_id`);
    if (missing.length > 0)
      throw new Fault('MissingParameterValue', { message: `Image ${source} is missing the following properties: ${missing.join(', ')}` });
  } else if (parts.stage2 === '' && !repository) throw invalidParameter(withoutStage2(source));
  for (const href of [parts.kernel, parts.ramdisk, parts.stage2, parts.template]) if (href !== '') checkHref(href, task);
  appendedArguments(task);
}
function checkHref(href: string, { options }: Task): void {
  if (locateImage(href, options).kind === 'oci') requireDigest(href);
}
const withoutStage2 = (source: string): string =>
  `'stage2_id' is missing from the properties of the OS image ${withoutCredentials(source)}. The anaconda deploy interface requires this to be set with the OS image or in instance_info['stage2'].`;

/** Extensions by which `liveimg` knows an archive. It mounts other files. */
const EXTENSIONS = ['.img', '.tar', '.tbz', '.tgz', '.txz', '.tar.gz', '.tar.bz2', '.tar.xz'];
function extensionOf(source: ImageSource, properties: GlanceImage['properties']): string {
  const name = source.kind === 'file' ? source.path : (properties['disk_file_extension'] ?? '');
  return EXTENSIONS.filter((extension) => name.endsWith(extension)).sort((a, b) => b.length - a.length)[0] ?? '';
}

/** What the machine installs: a URL of others, or a file that the boot service serves. */
type Target = { readonly url: string } | { readonly name: string; readonly source: string };
async function targetOf(task: Task, repository: boolean, image: GlanceImage | undefined): Promise<Target> {
  const { instance_info: info } = task.node;
  const given = locateImage(text(info['image_source']), task.options);
  // `installerOf` has looked up an image in Glance.
  const source = given.kind === 'glance' ? given : await checkImage(given, task);
  if (!repository) await inspectImage(source, image?.diskFormat ?? info['image_disk_format'], task);
  if (source.kind === 'http' && (repository || downloadSource(task) !== 'local')) return { url: source.url };
  return { name: `image${extensionOf(source, image?.properties ?? {})}`, source: servedAs(source) };
}

/** Each argument of the kernel, checked: a URL may have characters that end a command of a boot loader. */
function argument(name: string, value: string): string {
  const whole = `${name}=${value}`;
  if (!isKernelCommandLine(whole))
    throw invalidParameter(`The URL ${withoutCredentials(value)} cannot be passed to the kernel as ${name}.`);
  return whole;
}

interface Prepared extends Installer {
  /** Keys of instance_info. */
  readonly facts: JsonObject;
  /** For clients, as Ironic shows them during the deployment. */
  readonly shown: { readonly stage2: string | undefined; readonly ks_template: string | undefined };
}
/**
 * All that the installer needs, read and checked: nothing is changed, and no machine is touched.
 * Throws InvalidParameterValue and the errors of images.
 */
export async function installerOf(task: Task): Promise<Prepared> {
  const { node, options } = task;
  const source = text(node.instance_info['image_source']);
  const id = glanceId(source);
  const image = id === undefined ? undefined : await findImage(task, id);
  const repository = id === undefined && (await isRepository(task));
  const parts = partsOf(node, image?.properties ?? {}, repository);
  if (parts.stage2 === '' && !repository) throw invalidParameter(withoutStage2(source));
  const template = parts.template === '' ? ownTemplate(options['anaconda.default_ks_template']) : await givenTemplate(task, parts.template);
  await checkTemplate(template);
  const target = await targetOf(task, repository, image);
  const configDrive = await configdriveSections(task);
  const heartbeatUrl = `${withoutEndSlashes(await apiUrlOf(task))}/v1/heartbeat/${node.uuid}`;
  const append = appendedArguments(task);
  const [kernel, ramdisk, stage2] = await Promise.all(
    [parts.kernel, parts.ramdisk, parts.stage2].map(async (href) => (href === '' ? undefined : servable(href, false, task))),
  );
  return {
    files: {
      kernel: kernel!,
      ramdisk: ramdisk!,
      ...(stage2 === undefined ? {} : { [STAGE2_FILE]: stage2 }),
      ...('source' in target ? { [target.name]: target.source } : {}),
    },
    at: async (folder, agentToken) => {
      const url = 'url' in target ? target.url : `${folder}/${target.name}`;
      // A line break in a URL would be a line of the kickstart file.
      if (/[\s\p{Cc}]/u.test(url)) throw invalidParameter(`The URL of the image has white space or control characters.`);
      const kickstart = await renderKickstart(template, {
        liveimg_url: url,
        agent_token: agentToken,
        heartbeat_url: heartbeatUrl,
        config_drive: configDrive,
        ...(repository ? { is_source_a_path: 'true' } : {}),
        ...(options['anaconda.insecure_heartbeat'] ? { insecure_heartbeat: 'true' } : {}),
      });
      const stage = repository ? argument('inst.repo', url) : argument('inst.stage2', folder);
      return { kickstart, kernelArgs: ['text', append, argument('inst.ks', `${folder}/ks.cfg`), stage].filter(Boolean).join(' ') };
    },
    // The URLs of the boot service are secret.
    facts: { kernel: parts.kernel, ramdisk: parts.ramdisk, image_url: 'url' in target ? target.url : null },
    shown: { stage2: parts.stage2 || undefined, ks_template: parts.template || undefined },
  };
}
