/** Machines whose agent has not called since they were started to boot the ramdisk over the network: they are booted once more. */
import { isDeferred } from '../../model/internal-info';
import type { NodeRecord } from '../../model/records';
import type { ProvisionState } from '../../model/states';
import type { Context } from '../core/context';
import { onNodes } from '../core/on-nodes';
import { startTask } from '../core/task';

/** Ironic's: not during inspection or servicing. */
const RETRIED: readonly ProvisionState[] = ['wait call-back', 'clean wait', 'rescue wait'];
/** A time of driver_internal_info, which is UTC without saying so. */
const timeOf = (text: string | undefined): number => (text === undefined ? 0 : Date.parse(/[Z+]/.test(text) ? text : `${text}Z`));

/** @internal */
export function missedBoot(node: NodeRecord, now: number, timeoutSeconds: number): boolean {
  const { driver_internal_info: internal, provision_state: state, provision_updated_at: since } = node;
  // An agent has called, or a reboot would interrupt work at the BMC.
  if (node.maintenance || !RETRIED.includes(state) || isDeferred('boot retry', internal)) return false;
  const latest = Math.max(...[since ?? undefined, internal.agent_last_heartbeat, internal.last_power_state_change].map(timeOf));
  return now - latest > timeoutSeconds * 1000;
}

export async function retryBoots(context: Context): Promise<void> {
  const { options, clock, log } = context;
  const timeout = options['pxe.boot_retry_timeout'];
  if (timeout === null) return;
  const missed = (node: NodeRecord): boolean => missedBoot(node, clock.now(), timeout);
  await onNodes(context, {
    purpose: 'boot retries',
    filter: { where: { provision_state: RETRIED, maintenance: false }, reserved: false },
    only: missed,
    work: ({ uuid }) =>
      startTask(context, uuid, { purpose: 'boot retries', ordinary: true }, async (task) => {
        const { boot } = task.driver;
        if (!boot.retryRamdisk || !missed(task.node)) return undefined;
        if ((await task.boots.ofNode(uuid))?.purpose !== 'ramdisk') return undefined;
        return async () => {
          log.warn('the ramdisk has not called: its machine is booted once more', { node: uuid, seconds: timeout });
          await boot.retryRamdisk?.(task);
        };
      }),
  });
}
