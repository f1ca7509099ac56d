/** The commands of the agent's API: extension.name → function. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../model/records';
import type { Command, Commands } from './commands';
import type { Device } from './disk/device';
import { installBootEntry } from './disk/efi';
import { AgentError, type ErrorType } from '../model/agent/errors';
import { concerning, describeDisk } from '../model/agent/subject';
import { reasonOf } from '../model/errors';
import { isObject } from '../model/json';
import type { FoundDisk } from './inventory/disks';
import { bootMode, readInventory } from './inventory/inventory';
import { isKernelLoaded, loadImageKernel } from './kexec/kexec';
import { collectLogs } from './logs';
import { findRootDisk, type Machine, openDisk, openDiskToRead, raidHost, syncDisks } from './machine';
import { installBiosLoader, leadToArray } from './partition-image/boot-loader';
import { fillSystemPartition } from './partition-image/system-partition';
import { arraysOf, hasArrays, isArray } from './raid/arrays';
import { installGrub, leadToConfiguration } from './raid/bios';
import { installEspArray } from './raid/esp';
import { openForRescue } from './rescue';
import { type HardwareManager, offeredSteps, type StepKind, type StepRow, versionsOf, winningSteps } from './managers/manager';
import { portsOf } from './managers/operators';
import { managersOf } from './managers/registry';

export function commandsOf(machine: Machine): Commands {
  const commands = ownCommands(machine);
  return { ...commands, 'flow.start_flow': { inBackground: true, run: (params) => startFlow(commands, params) } };
}

const MAX_FLOW = 100;
/** Runs commands one after the other: a list of {extension.command: params}. Throws before the first for one that is not there. */
async function startFlow(commands: Commands, { flow }: JsonObject): Promise<null> {
  if (!Array.isArray(flow) || flow.length > MAX_FLOW || !flow.every((task) => isObject(task) && Object.values(task).every(isObject)))
    throw new AgentError(
      'InvalidCommandParamsError',
      `flow must be a list of at most ${MAX_FLOW} objects with a command and its parameters`,
    );
  const calls = (flow as readonly JsonObject[]).flatMap((task) => Object.entries(task) as [string, JsonObject][]);
  for (const [name] of calls)
    if (!Object.hasOwn(commands, name)) throw new AgentError('InvalidCommandError', `Unknown command: ${name.slice(0, 100)}`);
  for (const [name, params] of calls)
    try {
      await commands[name]!.run(params, () => {});
    } catch (error) {
      throw new AgentError('CommandExecutionError', `${name} was failed: ${reasonOf(error)}`, { cause: error });
    }
  return null;
}

/** The ramdisk's init checks for this file when the agent has ended, and starts no other. */
const LOCKED_MARK = 'run/locked-down';
async function lockDown(machine: Machine): Promise<void> {
  for (const name of machine.tree.list('/sys/class/net').filter((each) => each !== 'lo'))
    await machine.run('ip', ['link', 'set', name, 'down']).catch((error: unknown) => machine.log.error(reasonOf(error)));
  machine.retire();
}

function ownCommands(machine: Machine): Commands {
  return {
    ...stepCommands(machine, 'clean', 'CleaningError'),
    ...stepCommands(machine, 'deploy', 'DeploymentError'),
    ...stepCommands(machine, 'service', 'ServicingError'),
    'standby.prepare_image': {
      inBackground: true,
      run: async (params, progress) =>
        String(
          ((await stepNamed(await managersOf(machine), 'write_image', 'deploy').run(machine, params, progress)) as JsonObject)['result'],
        ),
    },
    'standby.execute_bootc_install': {
      inBackground: true,
      run: async (params, progress) =>
        String(await stepNamed(await managersOf(machine), 'execute_bootc_install', 'deploy').run(machine, params, progress)),
    },
    'standby.sync': {
      run: async () => {
        await syncDisks(machine);
        return null;
      },
    },
    'standby.get_partition_uuids': { run: async () => machine.state.partitionUuids ?? {} },
    'standby.power_off': leave(machine, 'poweroff'),
    'standby.run_image': leave(machine, 'reboot'),
    'kexec.load': { inBackground: true, run: (params) => loadKernel(machine, params) },
    'kexec.execute': { run: () => startKernel(machine) },
    'image.install_bootloader': { inBackground: true, run: (params) => installBootloader(machine, params) },
    'rescue.finalize_rescue': {
      run: async ({ rescue_password: password, hashed }) => {
        await openForRescue(machine.root, password, hashed);
        machine.log.info('The rescue system is open: user rescue');
        void machine.clock.sleep(FAREWELL_MS).then(machine.retire);
        return null;
      },
    },
    'log.collect_system_logs': {
      beside: true,
      run: async () => ({ system_logs: await collectLogs(machine) }),
    },
    'poll.get_hardware_info': { run: () => readInventory(machine) },
    // ironic-python-agent takes it in its standalone mode alone, which our agent does not have.
    'poll.set_node_info': {
      run: async () => {
        const details = 'Node lookup data can only be set when the Ironic Python Agent is running in standalone mode.';
        throw new AgentError('InvalidCommandError', details);
      },
    },
    'system.lockdown': {
      run: async () => {
        machine.log.warn('The agent is locked down: no more commands and heartbeats until the machine restarts');
        await writeFile(join(machine.root, LOCKED_MARK), '');
        void machine.clock.sleep(FAREWELL_MS).then(() => lockDown(machine));
        return null;
      },
    },
  };
}

/** Stores the node that the parameters of step commands contain: without secrets, but with its current hints and settings. */
function remember(machine: Machine, params: JsonObject): void {
  const node = params['node'];
  if (typeof node === 'object' && node !== null) machine.state.node = node as JsonObject;
  machine.state.ports = portsOf(params);
}

function stepNamed(managers: readonly HardwareManager[], name: unknown, kind: StepKind): StepRow {
  const found = winningSteps(managers, kind).get(String(name));
  if (!found) throw new AgentError('InvalidCommandParamsError', `Unknown ${kind} step: ${String(name)}`);
  return found.row;
}

function stepCommands(machine: Machine, kind: StepKind, failure: ErrorType): Commands {
  return {
    [`${kind}.get_${kind}_steps`]: {
      run: async (params) => {
        remember(machine, params);
        const managers = await managersOf(machine);
        return { [`${kind}_steps`]: offeredSteps(managers, kind), hardware_manager_version: versionsOf(managers) };
      },
    },
    [`${kind}.execute_${kind}_step`]: {
      inBackground: true,
      run: async (params, progress) => {
        remember(machine, params);
        const managers = await managersOf(machine);
        checkVersion(versionsOf(managers), params[`${kind}_version`]);
        const step = params['step'] as JsonObject | undefined;
        const args = step?.['args'];
        const row = stepNamed(managers, step?.['step'], kind);
        try {
          const result = await row.run(machine, (args ?? {}) as JsonObject, progress);
          return { [`${kind}_result`]: result, [`${kind}_step`]: withoutSecrets(step!) };
        } catch (error) {
          if (error instanceof AgentError) throw error;
          throw new AgentError(failure, `Unexpected exception performing ${kind} step ${row.step}: ${reasonOf(error)}`, { cause: error });
        }
      },
    },
  };
}

/** The step without its arguments. Conductors request results repeatedly, so results must not contain config drives or passwords. */
function withoutSecrets(step: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(step).filter(([key]) => key !== 'args'));
}

function checkVersion(own: Readonly<Record<string, string>>, given: unknown): void {
  if (!isObject(given)) return;
  const names = Object.keys(own);
  if (Object.keys(given).length === names.length && names.every((name) => given[name] === own[name])) return;
  throw new AgentError('VersionMismatch', `Agent version: ${JSON.stringify(own)}, node version: ${JSON.stringify(given)}`);
}

/** The UUID of the root file system, if a partition image was written. */
const rootOf = ({ state: { partitionUuids: written } }: Machine): string | null =>
  written && 'efi system partition uuid' in written ? String(written['root uuid']) : null;

/**
 * A BIOS boots whole-disk images without further setup. UEFI needs a boot entry, an array a boot loader on each of its disks, and a partition
 * image a boot loader.
 */
async function installBootloader(machine: Machine, params: JsonObject): Promise<null> {
  const isBios = bootMode(machine.tree) === 'bios';
  const root = rootOf(machine);
  if (isBios && root === null && !hasArrays(machine.tree)) return null;
  const ignore = params['ignore_bootloader_failure'] ?? machine.parameters.ignoreBootloaderFailure;
  const disk = await findRootDisk(machine);
  if (isBios && root === null && !isArray(disk)) return null;
  return concerning(
    () => describeDisk(disk),
    () => installLoader(machine, disk, root, ignore === true, params['root_uuid']),
  );
}
async function installLoader(machine: Machine, disk: FoundDisk, root: string | null, isIgnored: boolean, rootUuid: unknown): Promise<null> {
  try {
    await (isArray(disk)
      ? installOnMembers(machine, disk, root, typeof rootUuid === 'string' ? rootUuid : null)
      : installOnDisk(machine, disk, root));
  } catch (error) {
    if (!isIgnored) throw error;
    machine.log.error(`Error setting up bootloader. Error ${reasonOf(error)}`);
  }
  return null;
}
async function installOnDisk(machine: Machine, disk: FoundDisk, root: string | null): Promise<void> {
  if (root !== null && bootMode(machine.tree) === 'bios') {
    machine.log.info(`The firmware boots ${await installBiosLoader(raidHost(machine), disk, root)}`);
    return;
  }
  // The guard opens a disk whose partitions are changed.
  const device = await (root === null ? openDiskToRead : openDisk)(machine, disk);
  try {
    if (root !== null) await fillSystemPartition(raidHost(machine), device, root);
    const loader = await installBootEntry(device, machine.run, machine.tree, machine.temporary);
    machine.log.info(`The firmware boots ${loader.path} of ${disk.name} as ${loader.label}`);
  } finally {
    await device.close();
  }
}
/**
 * @param root as in `rootOf`
 * @param rootUuid of the root file system in the image of a whole disk, if somebody has told it
 */
async function installOnMembers(machine: Machine, disk: FoundDisk, root: string | null, rootUuid: string | null): Promise<void> {
  const host = raidHost(machine);
  const array = (await arraysOf(host)).find(({ name }) => name === disk.name);
  if (!array) throw new AgentError('DeviceNotFound', `${disk.name} is no array`);
  const lead = root === null ? leadToConfiguration(host, disk, rootUuid) : leadToArray(host, disk, root);
  const fill = root === null ? undefined : (device: Device) => fillSystemPartition(host, device, root);
  const loaders =
    bootMode(machine.tree) === 'bios'
      ? [`${await installGrub(host, array, disk, lead)} by GRUB`]
      : (await installEspArray(host, array, disk, fill)).map(({ path, label }) => `${path} as ${label}`);
  machine.log.info(`The firmware boots ${loaders.join(', ')}, from each of ${array.holders.join(', ')}`);
}

/** Milliseconds before the agent ends, in which it sends the response to the command. */
const FAREWELL_MS = 300;
const leave = (machine: Machine, program: 'poweroff' | 'reboot'): Command => ({
  inBackground: true,
  run: async () => {
    await machine.clock.sleep(FAREWELL_MS);
    await syncDisks(machine).catch((error: unknown) => machine.log.warn(`Failed to sync file system buffers: ${reasonOf(error)}`));
    machine.log.info(`Leaving: ${program}`);
    await machine.run(program, ['-f']);
    return null;
  },
});

/** Loads the kernel of the written image. Nothing of the running system changes. */
async function loadKernel(machine: Machine, { boot_mode: wanted }: JsonObject): Promise<JsonObject> {
  const mode = bootMode(machine.tree);
  if (typeof wanted === 'string' && wanted !== mode)
    throw new AgentError('CommandExecutionError', `The machine runs in boot mode ${mode}, and the instance needs ${wanted}`);
  const device = await openDiskToRead(machine, await findRootDisk(machine));
  try {
    const loaded = await loadImageKernel(device, machine);
    machine.log.info(`Loaded the kernel ${String(loaded['kernel'])}, as ${String(loaded['from'])} says`);
    return loaded;
  } finally {
    await device.close();
  }
}
/** Says that it goes, and goes after the response. When that fails, the agent still answers, and the conductor reboots the machine. */
async function startKernel(machine: Machine): Promise<JsonObject> {
  if (!isKernelLoaded(machine.tree)) throw new AgentError('CommandExecutionError', 'No kernel is loaded');
  await syncDisks(machine);
  const go = async (): Promise<void> => {
    await machine.clock.sleep(FAREWELL_MS);
    machine.log.info('Leaving: kexec');
    await machine.kernelCalls.start();
  };
  void go().catch((error: unknown) => machine.log.error(reasonOf(error)));
  return { going: true };
}
