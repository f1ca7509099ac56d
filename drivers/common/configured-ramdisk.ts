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
