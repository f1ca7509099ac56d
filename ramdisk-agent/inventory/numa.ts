/** Which memory, processors and network interfaces belong together (NUMA), from /sys/devices/system/node. */
import type { JsonObject } from '../../model/records';
import { numberIn, type Tree } from '../system/tree';

const NODES = '/sys/devices/system/node';
const numbered = (names: readonly string[], kind: string): readonly number[] =>
  names
    .flatMap((name) => (name.startsWith(kind) && /^\d+$/.test(name.slice(kind.length)) ? [Number(name.slice(kind.length))] : []))
    .sort((a, b) => a - b);

/** Null: the kernel tells nothing of it. Threads of one core stand together. */
export function readNuma(tree: Tree): JsonObject | null {
  const nodes = numbered(tree.list(NODES), 'node');
  if (nodes.length === 0) return null;
  return {
    ram: nodes.map((node) => ({
      numa_node: node,
      size_kb: numberIn(/MemTotal:\s+(\d+) kB/.exec(tree.text(`${NODES}/node${node}/meminfo`) ?? '')?.[1] ?? null),
    })),
    cpus: nodes.flatMap((node) => coresOf(tree, node)),
    nics: tree.list('/sys/class/net').flatMap((name) => {
      const node = numberIn(tree.text(`/sys/class/net/${name}/device/numa_node`));
      return node === null ? [] : [{ name, numa_node: node }];
    }),
  };
}

function coresOf(tree: Tree, node: number): readonly JsonObject[] {
  const threads = new Map<number, number[]>();
  for (const thread of numbered(tree.list(`${NODES}/node${node}`), 'cpu')) {
    const core = numberIn(tree.text(`${NODES}/node${node}/cpu${thread}/topology/core_id`));
    if (core !== null) threads.set(core, [...(threads.get(core) ?? []), thread]);
  }
  return [...threads].map(([cpu, siblings]) => ({ cpu, numa_node: node, thread_siblings: siblings }));
}
