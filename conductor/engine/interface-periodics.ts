/** The periodic work of interfaces: for instance, asking a BMC or a service about the state of its own task. */
import { ServiceUnavailable, type Interface, type InterfacePeriodic } from '../../drivers/interfaces';
import { reasonOf } from '../../model/errors';
import { INTERFACE_KINDS, type InterfaceKind, type NodeRecord } from '../../model/records';
import type { NodeFilter } from '../../store/store';
import type { Context } from '../core/context';
import { onNodes } from '../core/on-nodes';
import { sharedTaskOf, startTask } from '../core/task';
import { wake } from './waiting';

interface InterfacePeriodicRow {
  readonly kind: InterfaceKind;
  readonly name: string;
  readonly periodic: InterfacePeriodic;
}
export const interfacePeriodics = ({ interfaces }: Pick<Context, 'interfaces'>): readonly InterfacePeriodicRow[] =>
  INTERFACE_KINDS.flatMap((kind) =>
    Object.entries(interfaces[kind] as Readonly<Record<string, Interface>>).flatMap(([name, { periodics = [] }]) =>
      periodics.map((periodic) => ({ kind, name, periodic })),
    ),
  );

const appliesTo = (periodic: InterfacePeriodic, node: NodeRecord): boolean =>
  periodic.states.includes(node.provision_state) && periodic.only?.(node) !== false;

/** Runs on the nodes with this interface in its states: holds each, or only reads it (`check`). An outcome is that of the waiting step. */
export async function runInterfacePeriodic(context: Context, { kind, name, periodic }: InterfacePeriodicRow): Promise<void> {
  const where = {
    [`${kind}_interface`]: name,
    provision_state: periodic.states,
    ...(periodic.inMaintenance ? {} : { maintenance: false }),
  } satisfies NodeFilter['where'];
  const away = new AbortController();
  await onNodes(context, {
    purpose: periodic.name,
    filter: { where, reserved: false },
    only: (node) => appliesTo(periodic, node),
    signal: AbortSignal.any([context.signal, away.signal]),
    work: async (node) => {
      try {
        await (periodic.check ? runCheck(context, periodic, node) : runHeld(context, periodic, node));
      } catch (error) {
        if (!(error instanceof ServiceUnavailable)) throw error;
        away.abort();
      }
    },
  });
}

const runHeld = (context: Context, periodic: InterfacePeriodic, { uuid }: NodeRecord): Promise<void> =>
  startTask(context, uuid, { purpose: periodic.name, ordinary: true }, async (task) => {
    if (!appliesTo(periodic, task.node)) return undefined;
    return async () => {
      const outcome = await periodic.run?.(task);
      if (outcome) await wake(task, 'poll', outcome);
    };
  });

/** Reads the node without a lock. Holds it only for a new outcome, and only if it still waits for the same step. */
async function runCheck(context: Context, periodic: InterfacePeriodic, listed: NodeRecord): Promise<void> {
  const { uuid } = listed;
  const { nodesBeingRead: lookedAt } = context;
  if (lookedAt.has(uuid)) return;
  lookedAt.add(uuid);
  try {
    const node = periodic.needsFreshNode?.(listed) ? await context.store.nodes.find(uuid) : listed;
    if (appliesTo(periodic, node)) await runCheckAlone(context, periodic, node);
  } finally {
    lookedAt.delete(uuid);
  }
}
async function runCheckAlone(context: Context, periodic: InterfacePeriodic, node: NodeRecord): Promise<void> {
  const { uuid, provision_updated_at: since } = node;
  const found = await periodic.check!(sharedTaskOf(context, node));
  if (!found) return;
  const { internal, outcome } = found;
  if (!outcome) {
    if (internal) await context.store.nodes.mergeInternal(uuid, internal);
    return;
  }
  await startTask(context, uuid, { purpose: periodic.name, ordinary: true, retry: true }, async (task) => {
    if (!appliesTo(periodic, task.node) || task.node.provision_updated_at !== since) return undefined;
    return async () => {
      if (internal) await task.saveInternal(internal);
      await wake(task, 'poll', outcome);
    };
  });
}

/** Runs the `check` of a node's interfaces at once for a node that has just begun to wait, before the next round of periodic work. */
export function startInterfaceChecks(context: Context, uuid: string): void {
  const work = async (): Promise<void> => {
    const node = await context.store.nodes.find(uuid);
    for (const { kind, name, periodic } of interfacePeriodics(context))
      if (periodic.check && node[`${kind}_interface`] === name && appliesTo(periodic, node)) await runCheck(context, periodic, node);
  };
  context.track(work()).catch((error: unknown) => {
    if (!(error instanceof ServiceUnavailable) && !context.signal.aborted)
      context.log.warn(`could not check node ${uuid}: the next round checks it again`, { reason: reasonOf(error) });
  });
}
