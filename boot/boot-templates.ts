/**
 * The operator's own templates of boot scripts, in the language Jinja2 and with the names that Ironic gives them ([pxe]*_template). An
 * interpreter evaluates them: nothing of this program is in their reach. They are read at the start, and tried with an example.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import type { Options } from '../config/options';
import type { ServedBoot } from '../model/records';
import { hasCommonFiles, ownProcessors, type ChosenBoot } from './architectures';
import { ipxeArguments } from './ipxe';
import { grubWords, kernelWords } from './pxe';

type TemplateOptions = Pick<
  Options,
  | 'pxe.ipxe_config_template'
  | 'pxe.pxe_config_template'
  | 'pxe.uefi_pxe_config_template'
  | 'pxe.pxe_config_template_by_arch'
  | 'pxe.ipxe_boot_script'
  | 'pxe.initial_grub_template'
  | 'pxe.ipxe_fallback_script'
  | 'pxe.ipxe_timeout'
  | 'pxe.tftp_server'
>;
/** Bytes of a template, and of what it gives. iPXE and PXELINUX hold a script in memory. */
const MOST_BYTES = 65_536;

/** Each returns undefined where the server's own script is used. */
export interface BootTemplates {
  ipxe(boot: ChosenBoot, httpUrl: string): string | undefined;
  pxe(kind: 'pxelinux' | 'grub', boot: ServedBoot): Promise<string | undefined>;
  /** The script that all machines load first. */
  ipxeStart(httpUrl: string): string | undefined;
  grubStart(): string | undefined;
}
export const NO_TEMPLATES: BootTemplates = {
  ipxe: () => undefined,
  pxe: async () => undefined,
  ipxeStart: () => undefined,
  grubStart: () => undefined,
};

type Values = Readonly<Record<string, unknown>>;
type Render = (values: Values) => string;

function readTemplate(path: string): string {
  const bytes = Buffer.alloc(MOST_BYTES + 1);
  const file = openSync(path, 'r');
  try {
    const length = readSync(file, bytes, 0, bytes.length, 0);
    if (length > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes`);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(file);
  }
}
/** What is used of the package, whose own types name their files without an ending: the compiler does not find these. */
interface Jinja {
  readonly tokenize: (text: string) => unknown;
  readonly parse: (tokens: unknown) => unknown;
  readonly Environment: new () => { set(name: string, value: unknown): unknown };
  readonly Interpreter: new (scope: object) => { run(program: unknown): { readonly value: unknown } };
}

async function compile(text: string): Promise<Render> {
  // Loaded only where there is a template.
  const { Environment, Interpreter, parse, tokenize } = (await import('@huggingface/jinja')) as unknown as Jinja;
  const program = parse(tokenize(text));
  return (values) => {
    // No globals but these. Loops run over given lists only, since there is no range().
    const scope = new Environment();
    const all = { true: true, false: false, none: null, True: true, False: false, None: null, ...values };
    for (const [name, value] of Object.entries(all)) scope.set(name, value);
    const rendered = String(new Interpreter(scope).run(program).value);
    if (Buffer.byteLength(rendered) > MOST_BYTES) throw new Error(`it gives more than ${MOST_BYTES} bytes`);
    return rendered;
  };
}

/** What the first lines of Ironic's templates select, and what Ironic writes there for an instance or the disk. */
const LABELS: Readonly<Record<ServedBoot['purpose'], string>> = {
  ramdisk: 'deploy',
  instance: 'boot_ramdisk',
  installer: 'boot_anaconda',
  disk: 'boot_whole_disk',
  volume: 'boot_iscsi',
};
const SELECTIONS = { ipxe: /^(goto) .*$/gm, pxelinux: /^(default) .*$/gm, grub: /^((?:set )?default=).*$/gm } as const;
type Kind = keyof typeof SELECTIONS;
function select(kind: Kind, text: string, { purpose }: ServedBoot): string {
  if (purpose === 'ramdisk') return text;
  return text.replace(SELECTIONS[kind], (_, before: string) => `${before}${kind === 'grub' ? '' : ' '}${LABELS[purpose]}`);
}

/** Ironic's templates have these arguments themselves. */
const BEFORE = /^(?:selinux=0 troubleshoot=0 text|root=\/dev\/ram0 text|text) ?/;
/** The arguments of an installer that Ironic's templates have, and the names of their values. */
const INSTALLER = / ?inst\.(ks|stage2|repo)=(\S+)/g;
const INSTALLER_VALUES: Readonly<Record<string, string>> = { ks: 'ks_cfg_url', stage2: 'stage2_url', repo: 'repo_url' };
const ARGUMENTS: Readonly<Record<Kind, (args: string) => string>> = {
  ipxe: (args) => ipxeArguments(args).join(' '),
  pxelinux: kernelWords,
  grub: grubWords,
};
/** Ironic's `pxe_options`. @param files the URL or path of the folder with the machine's files */
function valuesOf(kind: Kind, boot: ChosenBoot, files: string, options: TemplateOptions): Values {
  const [kernel, ramdisk] = ['kernel', 'ramdisk'].map((name) => `${files}/${name}${boot.suffix ?? ''}`);
  const iso = boot.purpose === 'instance' && boot.files['boot_iso'] !== undefined;
  const own = boot.purpose === 'installer' ? [...boot.kernel_args.matchAll(INSTALLER)] : [];
  const args = own.length > 0 ? boot.kernel_args.replaceAll(INSTALLER, '') : boot.kernel_args;
  return {
    pxe_options: {
      deployment_aki_path: kernel,
      deployment_ari_path: ramdisk,
      aki_path: kernel,
      ari_path: ramdisk,
      initrd_filename: 'ramdisk',
      pxe_append_params: ARGUMENTS[kind](args.replace(BEFORE, '')),
      ramdisk_opts: '',
      tftp_server: options['pxe.tftp_server'],
      // Milliseconds, as iPXE counts.
      ipxe_timeout: options['pxe.ipxe_timeout'] * 1000,
      ...Object.fromEntries(own.map(([, name, value]) => [INSTALLER_VALUES[name!]!, value!])),
      ...(iso ? { boot_iso_url: `${files}/boot_iso` } : {}),
    },
    // Ironic keeps these for a later replacement.
    ROOT: '{{ ROOT }}',
    DISK_IDENTIFIER: '{{ DISK_IDENTIFIER }}',
  };
}

const EXAMPLE: ServedBoot = {
  node_uuid: '00000000-0000-0000-0000-000000000000',
  token: '00000000000000000000000000000000',
  macs: ['00:00:00:00:00:00'],
  method: 'ipxe',
  purpose: 'ramdisk',
  kernel_args: 'selinux=0 troubleshoot=0 text nofb',
  files: { kernel: '/kernel', ramdisk: '/ramdisk' },
};

/**
 * @param cpuOf the node's property cpu_arch
 * @throws an Error that names the option, if a template cannot be read or evaluated
 */
export async function loadBootTemplates(
  options: TemplateOptions,
  cpuOf: (nodeUuid: string) => Promise<string | undefined>,
): Promise<BootTemplates> {
  const load = async (name: string, path: string | null, example: Values): Promise<Render | undefined> => {
    if (path === null) return undefined;
    try {
      const render = await compile(readTemplate(path));
      render(example);
      return render;
    } catch (error) {
      throw new Error(`[pxe]${name} = ${path}: ${(error as Error).message}`, { cause: error });
    }
  };
  const example = (kind: Kind): Values => valuesOf(kind, EXAMPLE, `/boot/${EXAMPLE.token}`, options);
  const starting = (httpUrl: string): Values => ({
    ipxe_for_mac_uri: `${httpUrl}/ipxe/`,
    ipxe_fallback_script: options['pxe.ipxe_fallback_script'],
  });
  const GRUB_VALUES = { tftp_root: '' };
  const ipxe = await load('ipxe_config_template', options['pxe.ipxe_config_template'], example('ipxe'));
  const usual = {
    pxelinux: await load('pxe_config_template', options['pxe.pxe_config_template'], example('pxelinux')),
    grub: await load('uefi_pxe_config_template', options['pxe.uefi_pxe_config_template'], example('grub')),
  };
  const byCpu = new Map<string, Render | undefined>();
  for (const [cpu, path] of Object.entries(options['pxe.pxe_config_template_by_arch']))
    byCpu.set(cpu, await load(`pxe_config_template_by_arch, ${cpu}`, path, example('grub')));
  const ipxeStart = await load('ipxe_boot_script', options['pxe.ipxe_boot_script'], starting('http://192.0.2.1'));
  const grubStart = await load('initial_grub_template', options['pxe.initial_grub_template'], GRUB_VALUES);
  return {
    // A template cannot hold the secrets of volumes safely; the server's own script writes them as hexadecimal digits.
    ipxe: (boot, httpUrl) =>
      boot.purpose === 'volume'
        ? undefined
        : ipxe && select('ipxe', ipxe(valuesOf('ipxe', boot, `${httpUrl}/boot/${boot.token}`, options)), boot),
    pxe: async (kind, boot) => {
      // A template does not choose between the files of architectures.
      const isOne = hasCommonFiles(boot) || ownProcessors(boot).length === 0;
      if (boot.purpose === 'volume' || boot.purpose === 'disk' || !isOne) return undefined;
      const cpu = byCpu.size > 0 ? await cpuOf(boot.node_uuid) : undefined;
      const render = (cpu === undefined ? undefined : byCpu.get(cpu)) ?? usual[kind];
      return render && select(kind, render(valuesOf(kind, boot, `/boot/${boot.token}`, options)), boot);
    },
    ipxeStart: (httpUrl) => ipxeStart?.(starting(httpUrl)),
    grubStart: () => grubStart?.(GRUB_VALUES),
  };
}
