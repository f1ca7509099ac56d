/** manageable, inspect failed → manageable, by way of inspect wait when the ramdisk looks. */
import { done, type Outcome } from '../../drivers/interfaces';
import { timestamp } from '../../model/clock';
import { FORGET_TOKEN_AND_URL } from '../core/agent-info';
import { cacheFirmware } from '../core/hardware-facts';
import { preCreatePorts } from '../inspection/pre-created-ports';
import { runHooks } from '../inspection/runner';
import type { NodeTask } from '../core/node-task';
import type { Flow } from './flow';
import { withoutFullStop, attempt } from '../core/attempt';

const FORGET = { lookup_bmc_addresses: undefined, inspector_manage_boot: undefined, discoverd_asked: undefined };

export async function beginInspect(task: NodeTask): Promise<Outcome> {
  await task.saveInternal({ ...FORGET_TOKEN_AND_URL });
  if (task.driver.inspect.inBand) await preCreatePorts(task);
  const outcome = await task.driver.inspect.inspect(task);
  if (outcome.kind !== 'found') return outcome;
  await runHooks(task, outcome);
  return done;
}

/** Undoes what the inspection set up. Answers what to add to the reason. */
async function cleanUpInspect(task: NodeTask): Promise<string> {
  const { uuid } = task.node;
  const aborted = await attempt(task, 'aborting the inspection', async () =>
    task.driver.inspect.abort ? task.driver.inspect.abort(task) : task.driver.boot.cleanUpRamdisk(task),
  );
  const networked = await attempt(task, 'removing the inspection network', async () => task.driver.network.removeInspectionNetwork(task));
  return [
    aborted === undefined ? '' : `. Also Failed to abort inspection on node ${uuid}, reason: ${aborted}`,
    networked === undefined ? '' : `. Also Failed to remove inspection network for node ${uuid}, reason: ${networked}`,
  ].join('');
}

export const inspect: Flow = {
  finish: async (task) => {
    // The machine is on: some tell of their network adapters only then.
    await cacheFirmware(task);
    await task.fire('done', { inspection_finished_at: timestamp(task.clock.now()), inspection_started_at: null }, FORGET);
  },
  fail: async (task, reason) => {
    const also = await cleanUpInspect(task);
    const text = also === '' ? reason : `${withoutFullStop(reason)}${also}`;
    await task.fire('fail', { last_error: text, inspection_started_at: null }, { ...FORGET_TOKEN_AND_URL, ...FORGET });
  },
};
