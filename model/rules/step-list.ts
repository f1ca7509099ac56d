/** The list of steps of a node's running flow, as `bloomery why`, `bloomery steps` and the page show it. */
import { isObject, type JsonObject } from '../json';
import type { NodeRecord } from '../records';
import { stateRow } from '../states';

export interface ListedStep {
  /** `deploy.write_image` */
  readonly step: string;
  readonly state: 'done' | 'skipped' | 'failed' | 'running' | 'waiting' | 'next';
  readonly note: string | null;
}
const FLOWS = ['clean', 'deploy', 'service'] as const;
const nameOf = (step: JsonObject): string => `${String(step['interface'])}.${String(step['step'])}`;
const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Where the arguments come from that a default config filled in. */
const defaultsIn = ({ defaults }: JsonObject): readonly string[] =>
  isObject(defaults) ? Object.entries(defaults).map(([name, origin]) => `${name} from ${String(origin)}`) : [];

function runningStep(running: JsonObject, name: string): ListedStep {
  const { waits_for: waits, attempt, ends_at: end, confirm } = running;
  const isHeld = waits === 'operator' || name === 'power.hold';
  const notes = [
    ...(isHeld ? [`waits for an operator${typeof confirm === 'string' ? `: ${confirm}` : ''}`] : []),
    ...(typeof attempt === 'number' ? [`attempt ${attempt}`] : []),
    ...(waits === 'retry' ? ['runs again after a pause'] : []),
    ...(typeof end === 'string' ? [`ends by ${end}`] : []),
    ...defaultsIn(running),
  ];
  return { step: name, state: waits !== undefined || isHeld ? 'waiting' : 'running', note: notes.length > 0 ? notes.join(', ') : null };
}
/** Empty if no flow with steps runs on the node. */
export function stepListOf(node: NodeRecord): readonly ListedStep[] {
  const flow = FLOWS.find((name) => name === stateRow(node.provision_state).flow);
  if (flow === undefined || !isObject(node.driver_internal_info)) return [];
  const { [`${flow}_steps` as const]: list, [`${flow}_step_index` as const]: place } = node.driver_internal_info;
  if (!Array.isArray(list)) return [];
  const running = node[`${flow}_step`];
  const now = typeof place === 'number' ? place : 0;
  return (list as readonly unknown[]).filter(isObject).map((step, at) => {
    const name = nameOf(step);
    if (at === now && typeof running.step === 'string') return runningStep(running, name);
    const { result, reason } = step;
    if (result === 'skipped' || result === 'failed') return { step: name, state: result, note: textOf(reason) };
    const confirm = textOf(step['confirm']);
    const notes = [...(at >= now && confirm !== null ? [`asks first: ${confirm}`] : []), ...defaultsIn(step)];
    return { step: name, state: at < now ? 'done' : 'next', note: notes.length > 0 ? notes.join('; ') : null };
  });
}
