/** Reminds of nodes whose time out of service is over. They stay out of service until a person ends it. */
import { timestamp } from '../../model/clock';
import { announceNode } from '../../model/notifications';
import { isReminderDue, outageOf, outageText } from '../../model/rules/out-of-service';
import type { NodeRecord } from '../../model/records';
import type { Context } from '../core/context';
import { onNodes } from '../core/on-nodes';
import { changeUnlocked } from '../core/task';
import { recording } from '../requests/out-of-service';

const isDue = ({ clock }: Context, node: NodeRecord): boolean => {
  const outage = outageOf(node);
  return outage !== undefined && isReminderDue(outage, clock.now());
};

/** The event follows from the write. A reserved node is reminded of in the next round. */
export const remindOfOutages = (context: Context): Promise<void> =>
  onNodes(context, {
    purpose: 'reminder',
    filter: { outOfService: true },
    only: (node) => isDue(context, node),
    work: async ({ uuid }) => {
      let reminds = false;
      const after = await changeUnlocked(
        context,
        uuid,
        async (node) => {
          reminds = isDue(context, node);
          return reminds ? { out_of_service: { ...outageOf(node)!, reminded_at: timestamp(context.clock.now()) } } : {};
        },
        { also: recording(context, (node) => (reminds ? `The time is over. ${outageText(outageOf(node)!)}` : undefined)) },
      );
      const outage = outageOf(after);
      if (!reminds || !outage) return;
      context.log.warn(`node ${after.name ?? uuid} should be in service again: ${outageText(outage)}`);
      const { before: _, ...said } = outage;
      announceNode(
        context.notifier,
        'ironic-conductor',
        'out_of_service_overdue',
        'success',
        after,
        { out_of_service: { ...said } },
        undefined,
      );
    },
  });
