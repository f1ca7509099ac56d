/** Shows each machine's progress as a line on the terminal. */
import type { ShownNode } from './client';

/** State → percent of the way from enroll to active. In a range, the finished steps give the percentage. */
const STATES: Readonly<Record<string, readonly [from: number, to: number, steps?: 'clean' | 'deploy']>> = {
  enroll: [0, 0],
  verifying: [3, 3],
  manageable: [5, 5],
  inspecting: [8, 8],
  'inspect wait': [12, 12],
  cleaning: [30, 45, 'clean'],
  'clean wait': [30, 45, 'clean'],
  available: [50, 50],
  deploying: [50, 98, 'deploy'],
  'wait call-back': [50, 98, 'deploy'],
  active: [100, 100],
};

/** Percent of the whole way; undefined: the state is not on it. */
function percent(node: ShownNode): number | undefined {
  const row = STATES[node.provision_state];
  if (!row) return undefined;
  const [from, to, kind] = row;
  if (!kind) return from;
  const steps = node.driver_internal_info[`${kind}_steps`];
  const index = node.driver_internal_info[`${kind}_step_index`];
  if (!Array.isArray(steps) || steps.length === 0 || typeof index !== 'number') return from;
  return Math.round(from + ((to - from) * index) / steps.length);
}

/** One line: name, a bar, percent, state, power, step. */
function line(node: ShownNode, seconds: number): string {
  const done = percent(node);
  const bar = done === undefined ? '?'.repeat(20) : '#'.repeat(Math.round(done / 5)).padEnd(20, '.');
  const step = node.clean_step.step ?? node.deploy_step.step ?? '';
  return `${seconds.toFixed(1).padStart(6)} s  ${node.name.padEnd(10)} [${bar}] ${String(done ?? '?').padStart(3)} %  ${node.provision_state.padEnd(15)} ${(node.power_state ?? '-').padEnd(9)}  ${step}`;
}

export interface Display {
  /** Shows the nodes. Where lines cannot be replaced, it prints only the lines that have changed. */
  show(nodes: readonly ShownNode[]): void;
}

/** On a terminal it replaces the lines; in a file or a pipe each change is a new line. */
export function openDisplay(output: NodeJS.WriteStream, now: () => number): Display {
  const started = now();
  const last = new Map<string, string>();
  let drawn = 0;
  return {
    show: (nodes) => {
      const lines = nodes.map((node) => line(node, (now() - started) / 1000));
      if (output.isTTY) {
        output.write(`${drawn > 0 ? `\u001b[${drawn}A` : ''}${lines.map((text) => `\u001b[2K${text}\n`).join('')}`);
        drawn = lines.length;
        return;
      }
      for (const [index, text] of lines.entries()) {
        const what = text.slice(10);
        if (last.get(nodes[index]!.uuid) !== what) output.write(`${text}\n`);
        last.set(nodes[index]!.uuid, what);
      }
    },
  };
}
