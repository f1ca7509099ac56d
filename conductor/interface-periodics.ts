/** Periodic work that interfaces bring along: asking a BMC how a task of its own stands, say. */
import type { Interface, InterfacePeriodic } from '../drivers/interfaces';
import { INTERFACE_KINDS, type InterfaceKind } from '../model/records';
import type { Context } from './context';
import { onNodes } from './on-nodes';
import { startTask } from './task';
import { advance } from './waiting';

export interface OfInterface {
  readonly kind: InterfaceKind;
  readonly name: string;
  readonly periodic: InterfacePeriodic;
}
export const interfacePeriodics = ({ interfaces }: Pick<Context, 'interfaces'>): readonly OfInterface[] =>
  INTERFACE_KINDS.flatMap((kind) =>
    Object.entries(interfaces[kind] as Readonly<Record<string, Interface>>).flatMap(([name, { periodics = [] }]) =>
      periodics.map((periodic) => ({ kind, name, periodic })),
    ),
  );

/** On the nodes of this interface that are in one of its states, each held; its outcome is that of the step that runs there. */
export const runInterfacePeriodic = (context: Context, { kind, name, periodic }: OfInterface): Promise<void> =>
  onNodes(context, {
    purpose: periodic.name,
    filter: {
      where: { [`${kind}_interface`]: name, provision_state: periodic.states, ...(periodic.inMaintenance ? {} : { maintenance: false }) },
      reserved: false,
    },
    only: (node) => periodic.only?.(node) ?? true,
    work: ({ uuid }) =>
      startTask(context, uuid, { purpose: periodic.name, ordinary: true }, async (task) => {
        if (!periodic.states.includes(task.node.provision_state) || periodic.only?.(task.node) === false) return undefined;
        return async () => {
          const said = await periodic.run(task);
          if (said) await advance(task, 'poll', said);
        };
      }),
  });
