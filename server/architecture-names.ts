/** Names of architectures in the options `*_by_arch`, whose keys are values of the node's property cpu_arch. */
import type { Options } from '../config/options';

/** What Debian, Docker and others call an architecture → the value of cpu_arch. Of other names, nobody knows whether a node has them. */
const ALIASES: Readonly<Record<string, string>> = { amd64: 'x86_64', x64: 'x86_64', 'x86-64': 'x86_64', arm64: 'aarch64' };
const BY_ARCH = [
  'conductor.deploy_kernel_by_arch',
  'conductor.deploy_ramdisk_by_arch',
  'conductor.rescue_kernel_by_arch',
  'conductor.rescue_ramdisk_by_arch',
  'conductor.bootloader_by_arch',
  'pxe.pxe_bootfile_name_by_arch',
  'pxe.ipxe_bootfile_name_by_arch',
  'pxe.pxe_config_template_by_arch',
] as const satisfies readonly (keyof Options)[];

/** Warns of names that no node and no machine has. The keys for boot files may have a mode: `aarch64-uefi`. */
export const architectureWarnings = (options: Pick<Options, (typeof BY_ARCH)[number]>): readonly string[] =>
  BY_ARCH.flatMap((key) =>
    Object.keys(options[key]).flatMap((given) => {
      const name = given.replace(/-(?:bios|uefi)$/, '');
      if (!Object.hasOwn(ALIASES, name)) return [];
      return [`[${key.replace('.', ']')}: no node has the architecture ${name}: the name is ${ALIASES[name]}`];
    }),
  );
