/** Nodes that wait too long for their machine: failed as their flow fails. */
import type { NodeRecord } from '../../model/records';
import { STATES, type ProvisionState } from '../../model/states';
import type { Context } from '../core/context';
import { clean } from '../flows/clean';
import { deploy } from '../flows/deploy';
import type { Flow } from '../flows/flow';
import { inspect } from '../flows/inspect';
import { rescue } from '../flows/rescue';
import { service } from '../flows/service';
import { onNodes } from '../core/on-nodes';
import { showStep } from '../steps/steps';
import { startTask } from '../core/task';

interface Limit {
  readonly flow: Flow;
  readonly option: `conductor.${'deploy_callback' | 'clean_callback' | 'service_callback' | 'rescue_callback' | 'inspect_wait'}_timeout`;
  /** Since when it waits: heartbeats that are acted on start a wait anew, but for an inspection there are none. */
  readonly since: 'provision_updated_at' | 'inspection_started_at';
  readonly text: (node: NodeRecord) => string;
  /** How often it is looked for; default: [conductor]check_provision_state_interval. */
  readonly every?: 'conductor.check_rescue_state_interval';
}
const LIMITS: Readonly<Partial<Record<ProvisionState, Limit>>> = {
  'wait call-back': {
    flow: deploy,
    option: 'conductor.deploy_callback_timeout',
    since: 'provision_updated_at',
    text: ({ uuid }) => `Timeout reached while waiting for callback for node ${uuid}`,
  },
  'clean wait': {
    flow: clean,
    option: 'conductor.clean_callback_timeout',
    since: 'provision_updated_at',
    text: ({ clean_step: step }) =>
      'Timeout reached while cleaning the node. Please check if the ramdisk responsible for the cleaning is running on the node. ' +
      `Failed on step ${showStep(step)}.`,
  },
  'service wait': {
    flow: service,
    option: 'conductor.service_callback_timeout',
    since: 'provision_updated_at',
    text: ({ service_step: step }) =>
      'Timeout reached while servicing the node. Please check if the ramdisk responsible for the servicing is running on the node. ' +
      `Failed on step ${showStep(step)}.`,
  },
  'rescue wait': {
    flow: rescue,
    option: 'conductor.rescue_callback_timeout',
    since: 'provision_updated_at',
    text: () => 'Timeout reached while waiting for rescue ramdisk callback for node',
    every: 'conductor.check_rescue_state_interval',
  },
  'inspect wait': {
    flow: inspect,
    option: 'conductor.inspect_wait_timeout',
    since: 'inspection_started_at',
    text: () =>
      'Timeout reached while inspecting the node. Please check if the ramdisk responsible for the inspection is running on the node.',
  },
};
/** The states that have a limit. */
export const LIMITED = (Object.keys(STATES) as ProvisionState[]).filter((state) => LIMITS[state] !== undefined);

/** Whether the wait is over its limit; a node in maintenance waits for its operator. */
function isLate(context: Context, node: NodeRecord): boolean {
  const limit = LIMITS[node.provision_state];
  if (!limit || node.maintenance) return false;
  const seconds = context.options[limit.option];
  const since = node[limit.since] ?? node.provision_updated_at;
  return seconds > 0 && since !== null && context.clock.now() - Date.parse(since) > seconds * 1000;
}

/** Fails the nodes that have been in this state for too long. */
export const failLate =
  (state: ProvisionState) =>
  (context: Context): Promise<void> =>
    onNodes(context, {
      purpose: 'callback timeout',
      filter: { where: { provision_state: state, maintenance: false }, reserved: false },
      only: (node) => isLate(context, node),
      work: ({ uuid }) =>
        startTask(context, uuid, { purpose: 'callback timeout', ordinary: true }, async (task) => {
          const limit = LIMITS[task.node.provision_state];
          if (!limit || !isLate(context, task.node)) return undefined;
          return () => limit.flow.fail(task, limit.text(task.node), { late: true });
        }),
    });

/** How often to look, in seconds: as the options say, and often enough for the limit; 0: never. */
export function lookEvery(state: ProvisionState, options: Context['options']): number {
  const { option, every = 'conductor.check_provision_state_interval' } = LIMITS[state]!;
  const limit = options[option];
  return options[every] === 0 || limit === 0 ? 0 : Math.min(options[every], Math.max(0.25, limit / 10));
}
