/** Rescue by the agent: it boots instead of the instance, sets the password, and hands the machine over to the user. */
import { Fault, reasonOf } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import { AgentError, type AgentClient, commandError, withAgent } from './client';
import { bootRamdiskInInstance } from './resident';
import { without } from './view';
import { withPowerCycle } from '../common/power-cycle';
import { type Outcome, type RescueInterface, type Task, done, wait } from '../interfaces';

const TOO_OLD =
  'Unable to rescue node due to an out of date agent ramdisk. Please contact the administrator to update the rescue ramdisk to contain ' +
  'an ironic-python-agent version of at least 6.0.0.';

async function validate(task: Task): Promise<void> {
  const { boot, network } = task.driver;
  const { uuid, driver, instance_info: instance } = task.node;
  await network.validateRescue?.(task);
  await boot.validate?.(task);
  if (!boot.validateRescue) throw new Fault('UnsupportedDriverExtension', { driver, extension: 'validate_rescue' });
  await boot.validateRescue(task);
  const password = instance['rescue_password'];
  if (password === undefined || password === null)
    throw new Fault('MissingParameterValue', {
      message: `Node ${uuid} is missing 'instance_info/rescue_password'. It is required for rescuing node.`,
    });
  if (typeof password !== 'string' || password.trim() === '')
    throw new Fault('InvalidParameterValue', {
      message:
        `The 'instance_info/rescue_password' is an empty string for node ${uuid}. ` +
        "The 'rescue_password' must be a non-empty string value.",
    });
}

async function leaveRescuing(task: Task): Promise<void> {
  await task.driver.boot.cleanUpRamdisk(task);
  await task.driver.network.removeRescuingNetwork(task);
}
const forgetPasswords = (task: Task): Promise<void> =>
  task.save({ instance_info: without(task.node.instance_info, ['rescue_password', 'hashed_rescue_password']) });
async function cleanUp(task: Task): Promise<void> {
  await forgetPasswords(task);
  await leaveRescuing(task);
}

/** Gives the agent the hashed password. @returns the reason of a failure */
async function handOver(task: Task): Promise<string | undefined> {
  const { hashed_rescue_password: hashed, rescue_password: plain } = task.node.instance_info;
  if (typeof hashed !== 'string' || hashed === '') return 'Agent rescue requires rescue_password in instance_info';
  const finalize = (agent: AgentClient, params: JsonObject) => agent.command('rescue.finalize_rescue', params, { wait: true });
  try {
    const result = await withAgent(task, (agent) =>
      finalize(agent, { rescue_password: hashed, hashed: true }).catch((error: unknown) => {
        // Agents older than hashed passwords do not know the argument.
        if (!(error instanceof AgentError) || error.kind !== 'refused') throw error;
        if (task.options['conductor.require_rescue_password_hashed']) throw new Error(TOO_OLD, { cause: error });
        return finalize(agent, { rescue_password: plain ?? null });
      }),
    );
    if (result.command_status === 'SUCCEEDED') return undefined;
    return `Agent returned bad result for command finalize_rescue: ${commandError(result)}`;
  } catch (error) {
    task.signal.throwIfAborted();
    return reasonOf(error);
  }
}

export const agentRescue: RescueInterface = {
  validate,
  rescue: async (task): Promise<Outcome> => {
    const { boot, network } = task.driver;
    await bootRamdiskInInstance(task, async () => {
      await boot.cleanUpInstance(task);
      await network.unconfigureTenantNetworks(task);
      await network.addRescuingNetwork(task);
      await boot.prepareRamdisk(task, {});
    });
    return wait;
  },
  finish: async (task) => {
    const { uuid: node, instance_uuid: instance } = task.node;
    const reason = await handOver(task);
    if (reason !== undefined) throw new Fault('InstanceRescueFailure', { instance: instance ?? 'None', node, reason });
    await leaveRescuing(task);
    await task.driver.network.configureTenantNetworks(task);
    // Last: a conductor that continues the rescue needs the passwords.
    await forgetPasswords(task);
  },
  unrescue: async (task): Promise<Outcome> => {
    await withPowerCycle(task, async () => {
      await cleanUp(task);
      await task.driver.network.configureTenantNetworks(task);
      await task.driver.boot.prepareInstance(task);
    });
    return done;
  },
  cleanUp,
};
