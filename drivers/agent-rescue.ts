/** Rescue by the agent: it boots in the place of the instance, takes the password, and leaves the machine to whoever knows it. */
import { Fault, reasonOf } from '../model/errors';
import { commandError, withAgent } from './agent-client';
import { without } from './agent-view';
import { type Outcome, type RescueInterface, type Task, done, wait } from './interfaces';

/** The machine is off while `work` changes what it boots; where off is forbidden it is rebooted at the end. */
async function restarted(task: Task, work: () => Promise<void>): Promise<void> {
  if (!task.node.disable_power_off) await task.power('power off');
  await work();
  await task.power(task.node.disable_power_off ? 'rebooting' : 'power on');
}

async function validate(task: Task): Promise<void> {
  const { boot } = task.driver;
  const { uuid, driver, instance_info: instance } = task.node;
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

async function cleanUp(task: Task): Promise<void> {
  await task.save({ instance_info: without(task.node.instance_info, ['rescue_password', 'hashed_rescue_password']) });
  await task.driver.boot.cleanUpRamdisk(task);
  await task.driver.network.removeRescuingNetwork(task);
}

/** Gives the agent the password, hashed; what it answers badly is a reason. */
async function handOver(task: Task): Promise<string | undefined> {
  const password = task.node.instance_info['hashed_rescue_password'];
  if (typeof password !== 'string' || password === '') return 'Agent rescue requires rescue_password in instance_info';
  try {
    const said = await withAgent(task, (agent) =>
      agent.command('rescue.finalize_rescue', { rescue_password: password, hashed: true }, { wait: true }),
    );
    if (said.command_status === 'SUCCEEDED') return undefined;
    return `Agent returned bad result for command finalize_rescue: ${commandError(said)}`;
  } catch (error) {
    task.signal.throwIfAborted();
    return reasonOf(error);
  }
}

export const agentRescue: RescueInterface = {
  validate,
  rescue: async (task): Promise<Outcome> => {
    const { boot, network } = task.driver;
    await restarted(task, async () => {
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
    await cleanUp(task);
    await task.driver.network.configureTenantNetworks(task);
  },
  unrescue: async (task): Promise<Outcome> => {
    await restarted(task, async () => {
      await cleanUp(task);
      await task.driver.network.configureTenantNetworks(task);
      await task.driver.boot.prepareInstance(task);
    });
    return done;
  },
  cleanUp,
};
