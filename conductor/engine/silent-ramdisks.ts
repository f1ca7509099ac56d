/** Ramdisks that an agent in an instance was told to start, and from which no agent looks the node up: their machines are rebooted. */
import { rebootInto } from '../../drivers/agent/resident';
import type { NodeRecord } from '../../model/records';
import { STATES, stateRow, type ProvisionState } from '../../model/states';
import type { Context } from '../core/context';
import { onNodes } from '../core/on-nodes';
import { startTask } from '../core/task';

const WAITING = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).heartbeat === 'resume');

export async function rebootSilentRamdisks(context: Context): Promise<void> {
  const { options, clock } = context;
  const oldest = clock.now() - options['deploy.resident_kexec_timeout'] * 1000;
  const isSilent = ({ driver_internal_info: internal, provision_state: state }: NodeRecord): boolean =>
    internal.resident_kexec !== undefined &&
    internal.resident_kexec.at < oldest &&
    // The lookup of the ramdisk's agent makes a token.
    internal.agent_secret_token === undefined &&
    WAITING.includes(state);
  await onNodes(context, {
    purpose: 'silent ramdisks',
    filter: { where: { provision_state: WAITING, maintenance: false }, internal: 'resident_kexec', reserved: false },
    only: isSilent,
    work: ({ uuid }) =>
      startTask(context, uuid, { purpose: 'silent ramdisks', ordinary: true }, async (task) =>
        isSilent(task.node)
          ? () => rebootInto(task, `no agent looked the node up within ${options['deploy.resident_kexec_timeout']} s after the kexec`)
          : undefined,
      ),
  });
}
