/** Processors and memory in the inventory's form. */
import type { JsonObject } from '../../model/records';
import { numberIn, type Tree } from '../system/tree';

/** `machine`: of uname -m. The frequency is a text in MHz: the highest if known, otherwise the current one. */
export function readCpu(tree: Tree, machine: string): JsonObject & { readonly architecture: string; readonly count: number } {
  const blocks = (tree.text('/proc/cpuinfo') ?? '').split(/\n\s*\n/).map(fields);
  const processors = blocks.filter((block) => block.has('processor'));
  const first = processors[0] ?? new Map<string, string>();
  const highest = numberIn(tree.text('/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq'));
  const sockets = new Set(tree.list('/sys/devices/system/cpu').flatMap((name) => packageOf(tree, name)));
  return {
    // On 64-bit ARM /proc/cpuinfo has neither field, so the model is empty.
    model_name: first.get('model name') ?? first.get('cpu model') ?? '',
    frequency: highest === null ? (first.get('cpu mhz') ?? '') : (highest / 1000).toFixed(4),
    count: processors.length,
    architecture: machine,
    flags: (first.get('flags') ?? first.get('features') ?? '').split(/\s+/).filter((flag) => flag !== ''),
    socket_count: sockets.size,
  };
}

const packageOf = (tree: Tree, name: string): readonly string[] => {
  const id = /^cpu\d+$/.test(name) ? tree.text(`/sys/devices/system/cpu/${name}/topology/physical_package_id`) : null;
  return id === null ? [] : [id];
};

function fields(block: string): ReadonlyMap<string, string> {
  const pairs = block.split('\n').flatMap((line): [string, string][] => {
    const at = line.indexOf(':');
    return at < 0 ? [] : [[line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()]];
  });
  return new Map(pairs.reverse());
}

/** `total`: bytes that the kernel manages; `physical_mb`: installed memory according to the firmware. */
export function readMemory(tree: Tree, physicalMb: number | null): JsonObject {
  const total = /^MemTotal:\s+(\d+) kB/m.exec(tree.text('/proc/meminfo') ?? '');
  return { total: total ? Number(total[1]) * 1024 : null, physical_mb: physicalMb };
}
