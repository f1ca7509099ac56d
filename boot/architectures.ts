/**
 * The files of a boot record by the architecture of the machine that boots. `kernel.aarch64` and `ramdisk.aarch64` are for machines of that
 * processor (a value of the property cpu_arch), `kernel` and `ramdisk` for all others.
 */
import type { ServedBoot } from '../model/records';
import { cpuOfIpxe, hasProcessor, processorOf, type Cpu } from '../wire/processors/processors';

/** `suffix` follows the names of the kernel and the ramdisk; absent: none. */
export interface ChosenBoot extends ServedBoot {
  readonly suffix?: string;
}
type ByArchitecture =
  | { readonly kind: 'boots'; readonly boot: ChosenBoot }
  /** The machine must say its architecture first. */
  | { readonly kind: 'asks' }
  | { readonly kind: 'refuses'; readonly why: string };

const isFor = (name: string): Cpu | undefined => {
  const cpu = /^kernel\.(\w+)$/.exec(name)?.[1];
  return cpu !== undefined && hasProcessor(cpu) ? cpu : undefined;
};
/** The processors for which the record has files of their own. */
export const ownProcessors = ({ files }: Pick<ServedBoot, 'files'>): readonly Cpu[] =>
  Object.keys(files).flatMap((name) => isFor(name) ?? []);
export const hasCommonFiles = ({ files }: Pick<ServedBoot, 'files'>): boolean => files['kernel'] !== undefined;

export const NO_RAMDISK = (cpu: string): string =>
  `there is no ramdisk for the architecture ${cpu}: [conductor]deploy_kernel_by_arch and deploy_ramdisk_by_arch`;
export const OTHER_MACHINE = (node: string, given: string, cpu: string): string =>
  `the node ${node} has cpu_arch ${given}, but this machine is ${cpu}`;

/** Kernels are booted; a disk and volumes have their own. */
const bootsKernel = ({ purpose }: ServedBoot): boolean => purpose === 'ramdisk' || purpose === 'instance';
/** The processor of the record's node; undefined: it is not known, or no table has it. */
export const processorOfNode = (boot: ServedBoot): Cpu | undefined =>
  bootsKernel(boot) && typeof boot.cpu_arch === 'string' && hasProcessor(boot.cpu_arch) ? boot.cpu_arch : undefined;

/** @param buildarch iPXE's; undefined: the request does not tell it */
export function byArchitecture(boot: ServedBoot, buildarch: string | undefined): ByArchitecture {
  const own = ownProcessors(boot);
  if (buildarch === undefined) return own.length > 0 && processorOfNode(boot) === undefined ? { kind: 'asks' } : { kind: 'boots', boot };
  const given = processorOfNode(boot);
  const cpu = cpuOfIpxe(buildarch);
  if (given !== undefined && !processorOf(given).ipxe.includes(buildarch))
    return { kind: 'refuses', why: OTHER_MACHINE(boot.node_uuid, given, cpu ?? shown(buildarch)) };
  if (cpu !== undefined && own.includes(cpu)) return { kind: 'boots', boot: { ...boot, suffix: `.${cpu}` } };
  return own.length === 0 || hasCommonFiles(boot) ? { kind: 'boots', boot } : { kind: 'refuses', why: NO_RAMDISK(cpu ?? shown(buildarch)) };
}
/** Text of a request, for a script and the log. */
const shown = (text: string): string => text.slice(0, 20).replace(/[^\w-]/g, '?');
