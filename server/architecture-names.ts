/** Names of architectures in the options `*_by_arch`, whose keys are values of the node's property cpu_arch. */
import type { Options } from '../config/options';
import { cpuNamed } from '../wire/processors/processors';

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

/** Warns of names that others have for an architecture: no node and no machine has them. The keys for boot files may have a mode: `aarch64-uefi`. */
export const architectureWarnings = (options: Pick<Options, (typeof BY_ARCH)[number]>): readonly string[] =>
  BY_ARCH.flatMap((key) =>
    Object.keys(options[key]).flatMap((given) => {
      const name = given.replace(/-(?:bios|uefi)$/, '');
      const cpu = cpuNamed(name);
      return cpu === undefined || cpu === name
        ? []
        : [`[${key.replace('.', ']')}: no node has the architecture ${name}: the name is ${cpu}`];
    }),
  );
