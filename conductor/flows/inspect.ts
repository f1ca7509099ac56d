/** manageable, inspect failed → manageable, by way of inspect wait when the ramdisk or a service inspects. */
import { done } from '../../drivers/interfaces';
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { forgottenAt } from '../../model/internal-info';
import { FORGET_TOKEN_AND_URL } from '../core/agent-info';
import { cacheFirmware } from './hardware-facts';
import { preCreatePorts } from '../inspection/pre-created-ports';
import { runHooks } from '../inspection/runner';
import type { NodeTask } from '../core/node-task';
import type { Flow } from './flow';
import { applyOutcome } from './outcome';
import { withoutFullStop, attempt } from '../core/attempt';
import { validateInterface } from '../core/validate';

const FORGET = forgottenAt('inspect end');

/** Undoes what the inspection set up. Returns what to add to the reason of the failure. */
async function cleanUp(task: NodeTask): Promise<string> {
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

async function abort(task: NodeTask): Promise<void> {
  const { inspect: driver } = task.driver;
  if (!driver.abort)
    throw new Fault('UnsupportedDriverExtension', { driver: task.node.inspect_interface ?? task.node.driver, extension: 'abort' });
  try {
    await driver.abort(task);
  } catch (error) {
    await task.record({ type: ERROR_TYPE, event: `Failed to abort inspection: ${reasonOf(error)}`, error: true });
    throw error;
  }
  await task.record({ type: ERROR_TYPE, event: 'Inspection was aborted by request.', error: true });
  await task.fire('abort', { inspection_started_at: null }, { ...FORGET_TOKEN_AND_URL, lookup_bmc_addresses: undefined });
}
const ERROR_TYPE = 'introspection';

export const inspect: Flow = {
  errorType: ERROR_TYPE,
  admit: {
    inspect: {
      check: async (task) => {
        await validateInterface(task, 'power');
        await validateInterface(task, 'inspect');
        return {
          changes: { last_error: null, inspection_started_at: timestamp(task.clock.now()), inspection_finished_at: null },
        };
      },
    },
  },
  begin: async (task) => {
    await task.saveInternal(FORGET_TOKEN_AND_URL);
    if (task.driver.inspect.inBand) await preCreatePorts(task);
    const outcome = await task.driver.inspect.inspect(task);
    if (outcome.kind !== 'found') return outcome;
    await runHooks(task, outcome);
    return done;
  },
  // A service that inspects works on the node itself, so it is asked as soon as the node's lock is free.
  lookWhenReleased: (task) => task.driver.inspect.byService === true,
  waiting: {
    inMaintenance: 'Inspection aborted as node is in maintenance mode',
    // A ramdisk reports through `continue_inspection`; only a service that inspects wakes the flow.
    wake: async (task, _, outcome) => {
      if (outcome && outcome.kind !== 'wait') await applyOutcome(task, inspect, async () => outcome);
    },
    timeout: {
      text: () =>
        'Timeout reached while inspecting the node. Please check if the ramdisk responsible for the inspection is running on the node.',
    },
  },
  finish: async (task) => {
    // The machine is on: some BMCs describe their network adapters only then.
    await cacheFirmware(task);
    await task.end('done', { inspection_finished_at: timestamp(task.clock.now()), inspection_started_at: null }, FORGET);
  },
  fail: async (task, reason) => {
    const also = await cleanUp(task);
    const text = also === '' ? reason : `${withoutFullStop(reason)}${also}`;
    await task.end('fail', { last_error: text, inspection_started_at: null }, { ...FORGET_TOKEN_AND_URL, ...FORGET });
  },
  abort: { 'inspect wait': abort },
};
