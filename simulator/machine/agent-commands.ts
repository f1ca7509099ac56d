/** The commands of a simulated agent. Of the machine they change only its power and the record of its disks' content. */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Clock } from '../../model/clock';
import type { Inventory, JsonObject } from '../../model/records';
import { AgentError } from '../../model/agent/errors';
import { keepOf, keptDisks, type ErasedDisk, type EraseMethodName } from '../../model/agent/erasure';
import { rootDisk, usableDisks } from '../../model/agent/root-disk';
import { bootOf, hasSoftwareVolumes, inOrder, layoutOf, placeVolumes, RAID_STEPS, readVolumes } from '../../model/agent/software-raid';
import { planPartitions } from '../../model/agent/partition-plan';
import { readBootcArguments } from '../../wire/oci/bootc-arguments';
import { readSnapshotArguments } from '../../model/agent/save-arguments';
import { readWriteArguments } from '../../model/agent/write-arguments';
import { fetchContent, readDrive, type DiskContent } from './image';
import { sendSnapshot } from './snapshot';
import type { HttpClient } from '../http';

/** The parts of an agent and its machine that commands use. */
export interface AgentHost {
  readonly inventory: Inventory;
  readonly http: HttpClient;
  readonly clock: Clock;
  /** Aborted when the agent ends. */
  readonly signal: AbortSignal;
  /** The least duration of a background command in milliseconds. */
  readonly stepMs: number;
  /** The reason with which write_image fails; undefined: it does not. */
  readonly failWriteImage: string | undefined;
  /** Undefined: the disk is empty. */
  contentOf(disk: string): DiskContent | undefined;
  /** `undefined`: the disk is empty. */
  setContent(disk: string, content: DiskContent | undefined): void;
  /** Switches the machine off, resets it, or starts the system on its disk without the firmware. Each ends the agent. */
  leave(how: 'off' | 'reset' | 'kexec'): void;
}
/** What the commands of an agent have. */
export interface CommandHost extends AgentHost {
  /** The API and the token of the agent; undefined: it has none yet. */
  api(): { readonly url: string; readonly token: string } | undefined;
}
export interface AgentCommand {
  /** The command continues after the answer to its request. Only one background command runs at a time. */
  readonly background?: true;
  run(host: CommandHost, params: JsonObject): Promise<unknown>;
}
type StepKind = 'clean' | 'deploy' | 'service';
interface AgentStep {
  readonly step: string;
  readonly interface: string;
  readonly priority: Readonly<Partial<Record<StepKind, number>>>;
  readonly abortable: boolean;
  readonly argsinfo?: JsonObject;
  /** Only the server gives it arguments, and it checks them itself. */
  readonly isInternal?: true;
  run(host: CommandHost, params: JsonObject, args: JsonObject): Promise<unknown>;
}

const MANAGER = 'SimulatedHardwareManager';
const VERSION = { [MANAGER]: '1.0' };
/** Milliseconds between the command and the power off, so that the command's answer reaches the server. */
const LEAVE_DELAY_MS = 50;

const object = (value: unknown): JsonObject => (typeof value === 'object' && value !== null ? (value as JsonObject) : {});
/** What the disks of the simulated machine claim: an NVMe disk knows the cryptographic format. */
const METHOD_OF = {
  metadata: () => 'metadata',
  express: (disk) => (disk.startsWith('/dev/nvme') ? 'nvme-format-crypto' : 'metadata'),
  full: (disk) => (disk.startsWith('/dev/nvme') ? 'nvme-format-crypto' : 'write-zeroes'),
} as const satisfies Readonly<Record<string, (disk: string) => EraseMethodName>>;
/** As our own agent does it (docs/erase.md). */
const erase =
  (how: keyof typeof METHOD_OF): AgentStep['run'] =>
  async (host, params) => {
    const { inventory, clock } = host;
    const disks = inventory.disks ?? [];
    const node = object(params['node']);
    const { kept, unmatched } = keptDisks(disks, keepOf(node));
    if (unmatched.length > 0)
      throw new AgentError(
        'BlockDeviceEraseError',
        `No disk matches ${JSON.stringify(unmatched)}, which is to be kept: nothing was erased`,
      );
    const erased = usableDisks(disks, node);
    const at = new Date(clock.now()).toISOString();
    for (const { name } of erased) host.setContent(name, undefined);
    const reported = disks.map((disk): ErasedDisk => {
      const { name, serial, wwn, model, size } = disk;
      const facts = { name, serial: serial ?? null, wwn: wwn ?? null, model: model ?? null, size, overwrite_seconds: null, sample: null };
      return erased.includes(disk)
        ? { ...facts, method: METHOD_OF[how](name), skipped: null, started_at: at, ended_at: at, seconds: 0 }
        : {
            ...facts,
            method: null,
            skipped: kept.includes(disk) ? 'kept' : 'skip_block_devices',
            started_at: null,
            ended_at: null,
            seconds: null,
          };
    });
    return { erased_disks: reported };
  };

/** Checks the configuration as the agent of the ramdisk does, and makes no disk of it. */
const createVolumes = async (host: AgentHost, params: JsonObject, config: JsonObject): Promise<JsonObject> => {
  if (!hasSoftwareVolumes(config)) return {};
  const [node, disks] = [object(params['node']), host.inventory.disks ?? []];
  const placed = inOrder(placeVolumes(readVolumes(config, node, disks.length), disks));
  const boot = bootOf(node, host.inventory.boot?.current_boot_mode === 'uefi' ? 'uefi' : 'bios');
  for (const disk of disks) layoutOf(placed, disk, boot);
  return config;
};

const STEPS: readonly AgentStep[] = [
  {
    step: 'erase_devices_metadata',
    interface: 'deploy',
    priority: { clean: 99, deploy: 0, service: 0 },
    abortable: true,
    run: erase('metadata'),
  },
  { step: 'erase_devices_express', interface: 'deploy', priority: { clean: 0 }, abortable: true, run: erase('express') },
  { step: 'erase_devices', interface: 'deploy', priority: { clean: 10 }, abortable: true, run: erase('full') },
  {
    step: 'write_image',
    interface: 'deploy',
    priority: { deploy: 0 },
    abortable: false,
    argsinfo: {
      image_info: { description: 'The image, as standby.prepare_image has it', required: true },
      configdrive: { description: 'Base64 of gzip, or a URL', required: false },
    },
    run: async (host, params, args) => {
      const { image, configDrive, partitions: sizes } = readWriteArguments(args);
      const node = object(params['node']);
      const disk = rootDisk(host.inventory.disks ?? [], node);
      if (sizes) {
        const boot = bootOf(node, host.inventory.boot?.current_boot_mode === 'uefi' ? 'uefi' : 'bios');
        planPartitions({ ...boot, sizes, configDrive: 0 }, { path: disk.name, size: disk.size, sectorSize: 512 });
      }
      host.setContent(disk.name, undefined);
      if (host.failWriteImage !== undefined) throw new AgentError('ImageWriteError', host.failWriteImage);
      const content = await fetchContent(image, configDrive, disk, host.http, host.signal);
      host.setContent(disk.name, sizes ? { ...content, hasPartitions: true } : content);
      return `prepare_image: image (${String(image['id'])}) written to device ${disk.name} `;
    },
  },
  {
    step: 'execute_bootc_install',
    interface: 'deploy',
    priority: { deploy: 0 },
    abortable: false,
    isInternal: true,
    // No registry is asked: the content is a hash of the name.
    run: async (host, params, args) => {
      const node = object(params['node']);
      const { image, configDrive } = readBootcArguments(args, node);
      const disk = rootDisk(host.inventory.disks ?? [], node);
      host.setContent(disk.name, undefined);
      if (host.failWriteImage !== undefined) throw new AgentError('ImageWriteError', host.failWriteImage);
      const volume = configDrive === null ? undefined : await readDrive(configDrive, host.http, host.signal);
      const sha256 = createHash('sha256').update(image.name).digest('hex');
      host.setContent(disk.name, { url: `oci://${image.name}`, size: 0, sha256, configDrive: volume });
      return `Container image (oci://${image.name}) written to device ${disk.name}`;
    },
  },
  {
    step: 'snapshot',
    interface: 'deploy',
    priority: { service: 0 },
    abortable: true,
    isInternal: true,
    run: async (host, params, args) => {
      const { uuid, rootDevice } = readSnapshotArguments(args);
      const node = object(params['node']);
      const disk = rootDisk(host.inventory.disks ?? [], rootDevice ? { ...node, instance_info: { root_device: rootDevice } } : node);
      return sendSnapshot(host, uuid, disk);
    },
  },
  {
    ...RAID_STEPS.delete,
    run: async () => null,
  },
  {
    ...RAID_STEPS.create,
    run: async (host, params) => createVolumes(host, params, object(object(params['node'])['target_raid_config'])),
  },
  {
    ...RAID_STEPS.apply,
    run: async (host, params, { raid_config: config }) => createVolumes(host, params, object(config)),
  },
];

/** The steps of a kind in the form of a command's result. */
const listedSteps = (kind: StepKind): readonly JsonObject[] =>
  STEPS.filter(({ priority }) => priority[kind] !== undefined).map(({ step, interface: on, priority, abortable, argsinfo }) => ({
    step,
    interface: on,
    priority: priority[kind],
    abortable,
    reboot_requested: false,
    argsinfo: argsinfo ?? null,
    ...(kind === 'clean' ? { requires_ramdisk: true } : {}),
  }));

const stepCommands = (kind: StepKind): Readonly<Record<string, AgentCommand>> => ({
  [`${kind}.get_${kind}_steps`]: {
    run: async () => ({ [`${kind}_steps`]: { [MANAGER]: listedSteps(kind) }, hardware_manager_version: VERSION }),
  },
  [`${kind}.execute_${kind}_step`]: {
    background: true,
    run: async (host, params) => {
      const { args, ...step } = object(params['step']);
      const known = STEPS.find((candidate) => candidate.step === step['step'] && candidate.priority[kind] !== undefined);
      if (!known) throw new AgentError('InvalidCommandParamsError', `Unknown ${kind} step: ${String(step['step'])}`);
      const strange = known.isInternal ? [] : Object.keys(object(args)).filter((name) => !Object.hasOwn(known.argsinfo ?? {}, name));
      if (strange.length > 0)
        throw new AgentError('InvalidCommandParamsError', `${known.step}() got an unexpected argument '${strange[0]}'`);
      return { [`${kind}_result`]: await known.run(host, params, object(args)), [`${kind}_step`]: step };
    },
  },
});
/** Of the partition image on a disk: what its hash gives. */
function partitionUuids(contents: readonly (DiskContent | undefined)[]): JsonObject {
  const found = contents.find((content) => content?.hasPartitions);
  if (!found) return {};
  const [, ...groups] = /^(.{8})(.{4})(.{4})(.{4})(.{12})/.exec(found.sha256)!;
  return { 'root uuid': groups.join('-'), 'efi system partition uuid': `${groups[1]!}-${groups[2]!}`.toUpperCase() };
}

const doNothing = async (): Promise<null> => null;
const leave = (how: 'off' | 'reset'): AgentCommand => ({
  background: true,
  run: async (host) => {
    await host.clock.sleep(LEAVE_DELAY_MS, host.signal);
    host.leave(how);
    return null;
  },
});

/** As our own agent does it (docs/kexec.md). The answer comes first. */
const kexec = async (host: AgentHost): Promise<JsonObject> => {
  void host.clock.sleep(LEAVE_DELAY_MS, host.signal).then(
    () => host.leave('kexec'),
    () => {},
  );
  return { going: true };
};

/** By extension.name. */
export const COMMANDS: Readonly<Record<string, AgentCommand>> = {
  ...stepCommands('clean'),
  ...stepCommands('deploy'),
  ...stepCommands('service'),
  'standby.sync': { run: doNothing },
  'standby.get_partition_uuids': {
    run: async (host) => partitionUuids((host.inventory.disks ?? []).map(({ name }) => host.contentOf(name))),
  },
  'standby.power_off': leave('off'),
  'standby.run_image': leave('reset'),
  'kexec.load': { background: true, run: async () => ({ kernel: '/boot/vmlinuz', from: '/dev/sda1:/boot/grub/grub.cfg' }) },
  'kexec.execute': { run: kexec },
  'image.install_bootloader': { background: true, run: doNothing },
  'log.collect_system_logs': { run: async () => ({ system_logs: gzipSync('a simulated machine has no logs\n').toString('base64') }) },
  'poll.get_hardware_info': { run: async (host) => host.inventory },
  'poll.set_node_info': { run: doNothing },
  'rescue.finalize_rescue': { run: doNothing },
};
