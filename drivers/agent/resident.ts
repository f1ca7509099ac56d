/** Boots the ramdisk on a machine with an instance: by kexec, which the agent in the instance is asked for, or by a power cycle. */
import { createHash } from 'node:crypto';
import { printable } from '../../model/log';
import { shortened } from '../../model/text';
import { openUrl } from '../common/images';
import { residentObstacle, wantsResidentKexec } from '../common/kexec-request';
import { withPowerCycle } from '../common/power-cycle';
import type { Task } from '../interfaces';
import { AgentError, type AgentClient, commandError, withAgentAt } from './client';
import { reasonOf } from '../../model/errors';
import type { JsonObject, ResidentAgent, ServedBoot } from '../../model/records';

const MAX_REASON = 500;
/** Seconds for an answer: a host that is gone must not delay the reboot for long. */
const ANSWER_SECONDS = 10;
/** Seconds. The agent flushes the disks before it answers. */
const START_SECONDS = 60;

const rebootsBecause = (task: Task, reason: string): Promise<void> =>
  task.recordBoot({ of: 'ramdisk', by: 'reboot', reason: printable(shortened(reason, MAX_REASON)) });

/**
 * Boots the ramdisk, which the caller then waits for.
 * @param prepare writes what the machine boots, and changes its networks. The machine is off meanwhile, unless the agent in the instance
 * starts the ramdisk
 */
export async function bootRamdiskInInstance(task: Task, prepare: () => Promise<void>): Promise<void> {
  if (!wantsResidentKexec(task.node, task.options)) return withPowerCycle(task, prepare);
  const agent = await task.residentAgent();
  const obstacle = residentObstacle(task, agent);
  if (obstacle !== undefined) {
    await rebootsBecause(task, obstacle);
    return withPowerCycle(task, prepare);
  }
  const registered = agent as ResidentAgent & { readonly url: string; readonly certificate: string };
  return withAgentAt(task, registered, async (client) => bootBy(task, client, registered, prepare));
}

async function bootBy(task: Task, client: AgentClient, agent: ResidentAgent, prepare: () => Promise<void>): Promise<void> {
  const told = task.node.driver_internal_info.resident_kexec;
  let isGoing = false;
  const before = await refusal(task, async () => {
    isGoing = await identify(task, client, agent);
  });
  if (told !== undefined && (isGoing || before !== undefined)) {
    // An earlier conductor has told the agent, and the ramdisk is starting. Its agent may have looked the node up already.
    if (task.node.driver_internal_info.agent_secret_token === undefined)
      await task.recordBoot({ of: 'ramdisk', by: 'kexec', kernel: told.kernel });
    return;
  }
  if (before !== undefined) {
    await rebootsBecause(task, before);
    return withPowerCycle(task, prepare);
  }
  await prepare();
  const failure = await refusal(task, async () => {
    const kernel = await load(task, client);
    // If this conductor dies now, another one knows that the ramdisk may be starting.
    await task.saveInternal({ resident_kexec: { at: task.clock.now(), kernel } });
    await start(task, client);
    await task.recordBoot({ of: 'ramdisk', by: 'kexec', kernel });
  });
  if (failure !== undefined) await rebootInto(task, failure);
}

/** The reason of a failure of the agent, or of the files that it is given; undefined: it did what was asked. */
async function refusal(task: Task, work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof AgentError)) throw error;
    return error.message;
  }
}

/** Reboots a machine that was to start the ramdisk by kexec: everything is prepared for a boot over the network. */
export async function rebootInto(task: Task, reason: string): Promise<void> {
  await task.saveInternal({ resident_kexec: undefined });
  await rebootsBecause(task, reason);
  await task.power('rebooting');
}

const succeeded = (command: { readonly command_status: string; readonly command_result?: JsonObject | null }): JsonObject => {
  if (command.command_status !== 'SUCCEEDED') throw new AgentError('refused', commandError(command as never));
  return command.command_result ?? {};
};

/**
 * Asks the agent who it is. Throws AgentError unless it is that of this node, and of the boot that it registered with. Returns whether it
 * was told to start the ramdisk.
 */
async function identify(task: Task, client: AgentClient, { boot_id: bootId }: ResidentAgent): Promise<boolean> {
  const found = succeeded(await client.command('resident.identify', {}, { attempts: 1, timeout: ANSWER_SECONDS }));
  if (found['node'] !== task.node.uuid) throw new AgentError('refused', 'the resident agent says that it belongs to another node');
  if (found['boot_id'] !== bootId) throw new AgentError('refused', 'the resident agent has not registered since its system started');
  return found['going'] === true;
}

/** Makes the agent load what the machine would boot over the network. Returns the name of the kernel. */
async function load(task: Task, client: AgentClient): Promise<string> {
  const boot = await task.boots.ofNode(task.node.uuid);
  if (boot?.purpose !== 'ramdisk') throw new AgentError('refused', 'the ramdisk is not served over HTTP');
  const [kernel, initrd] = [await fileOf(task, boot, 'kernel'), await fileOf(task, boot, 'ramdisk')];
  const loading = await client.command('resident.load', {
    node: task.node.uuid,
    kernel,
    initrd,
    command_line: commandLine(boot),
  });
  succeeded(await client.finished(loading));
  return boot.files['kernel']!.replace(/^.*\//, '').slice(0, 200);
}

/** As iPXE adds it, where it is known which interface boots. */
const commandLine = ({ kernel_args: args, macs }: ServedBoot): string => (macs.length === 1 ? `${args} BOOTIF=${macs[0]!}` : args);

/** What the boot service serves, so that the agent can check what it fetches. */
async function fileOf(task: Task, { token }: ServedBoot, name: 'kernel' | 'ramdisk'): Promise<JsonObject> {
  const url = `${task.options['deploy.http_url']}/boot/${token}/${name}`;
  try {
    const { body, size } = await openUrl(url, task);
    const hash = createHash('sha256');
    for await (const chunk of body) hash.update(chunk as Uint8Array);
    return { url, size, sha256: hash.digest('hex') };
  } catch (error) {
    task.signal.throwIfAborted();
    throw new AgentError('refused', `the ${name} cannot be read from the boot service: ${reasonOf(error)}`, { cause: error });
  }
}

/** Throws AgentError unless the agent says that it goes. Services may take a while to stop, so its silence is not awaited. */
async function start(task: Task, client: AgentClient): Promise<void> {
  const answer = succeeded(await client.command('resident.start', { node: task.node.uuid }, { attempts: 1, timeout: START_SECONDS }));
  if (answer['going'] !== true) throw new AgentError('refused', 'the resident agent does not say that it starts the ramdisk');
}
