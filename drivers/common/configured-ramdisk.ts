/** The kernel and ramdisk of the agent that the configuration has for a node. */
import type { NodeRecord } from '../../model/records';
import type { Task } from '../interfaces';

export type RamdiskMode = 'deploy' | 'rescue';
export interface Pair {
  readonly kernel: string | null | undefined;
  readonly ramdisk: string | null | undefined;
}
/** Undefined: the kernel or the ramdisk is missing. */
export const wholePair = ({ kernel, ramdisk }: Pair): { readonly kernel: string; readonly ramdisk: string } | undefined =>
  kernel && ramdisk ? { kernel, ramdisk } : undefined;

/** Ironic's warnings at the start about architectures that have a kernel without a ramdisk, or the reverse. */
export const ramdiskWarnings = (
  options: Pick<Task['options'], `conductor.${RamdiskMode}_${'kernel' | 'ramdisk'}_by_arch`>,
): readonly string[] =>
  (['deploy', 'rescue'] as const).flatMap((mode) =>
    (['kernel', 'ramdisk'] as const).flatMap((name, index) => {
      const other = (['ramdisk', 'kernel'] as const)[index]!;
      const lacking = Object.keys(options[`conductor.${mode}_${name}_by_arch`]).filter(
        (arch) => !Object.hasOwn(options[`conductor.${mode}_${other}_by_arch`], arch),
      );
      if (lacking.length === 0) return [];
      return [
        `The [conductor]${mode}_${name}_by_arch configuration has entries for architectures ${lacking.sort().join(', ')} that are missing from ` +
          `[conductor]${mode}_${other}_by_arch. This may result in failed ${mode === 'deploy' ? 'provisioning' : 'rescue'} operations for ` +
          'these architectures.',
      ];
    }),
  );

/** The names and sources of boot files (`BootRecord.files`) for each architecture that has both parts. */
export function filesByArchitecture(
  options: Pick<Task['options'], `conductor.${RamdiskMode}_${'kernel' | 'ramdisk'}_by_arch`>,
  mode: RamdiskMode,
): Readonly<Record<string, string>> {
  const ramdisks = options[`conductor.${mode}_ramdisk_by_arch` as const];
  const files = Object.entries(options[`conductor.${mode}_kernel_by_arch` as const]).flatMap(([cpu, own]) => {
    const pair = wholePair({ kernel: own, ramdisk: Object.hasOwn(ramdisks, cpu) ? ramdisks[cpu] : undefined });
    return pair ? Object.entries(pair).map(([name, source]) => [`${name}.${cpu}`, source] as const) : [];
  });
  return Object.fromEntries(files);
}

/** `byArch`: for the node's architecture; it takes precedence if it has both parts. `common`: for all nodes. */
export function configuredRamdisk(
  options: Task['options'],
  { properties: { cpu_arch: arch } }: Pick<NodeRecord, 'properties'>,
  mode: RamdiskMode,
): { readonly byArch: Pair; readonly common: Pair } {
  const byArch = (name: 'kernel' | 'ramdisk'): string | undefined => {
    const all = options[`conductor.${mode}_${name}_by_arch` as const];
    return typeof arch === 'string' && Object.hasOwn(all, arch) ? all[arch] : undefined;
  };
  const common = { kernel: options[`conductor.${mode}_kernel` as const], ramdisk: options[`conductor.${mode}_ramdisk` as const] };
  return { byArch: { kernel: byArch('kernel'), ramdisk: byArch('ramdisk') }, common };
}
