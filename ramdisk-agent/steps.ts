/** The steps that the agent offers, as a table that get_*_steps lists and execute_*_step runs. */
import type { JsonObject } from '../model/records';
import { installContainer } from './bootc/install';
import { rescan } from './disk/rescan';
import type { SourceDisk } from './disk/clusters';
import { pathsOf } from './disk/efi';
import { saveDisk } from './disk/save';
import { type Erase, eraseDisk, eraseExpress, eraseMetadata } from './erase/erase';
import { eraseEach } from './erase/each';
import { usedBlocks, withoutFree } from './disk/used-blocks';
import { sendSnapshot } from './disk/snapshot';
import { writeImage } from './disk/write';
import { type Blocks, readSaveArguments, readSnapshotArguments } from '../model/agent/save-arguments';
import { imageUrls, readWriteArguments, type WriteArguments } from '../model/agent/write-arguments';
import { readBootcArguments } from '../wire/oci/bootc-arguments';
import { concerning, describeDisk } from '../model/agent/subject';
import { nicTowards } from './towards';
import { AgentError } from '../model/agent/errors';
import { MANAGER_NAME } from '../model/agent/manager';
import { bootOf, RAID_STEPS } from '../model/agent/software-raid';
import { INJECT_FILES_ARGSINFO } from '../model/agent/inject-files';
import { burnInDisk } from './burnin/disk';
import { burnInNetwork } from './burnin/network';
import { burnInCpu, burnInGpu, burnInMemory } from './burnin/processor';
import type { FoundDisk } from './inventory/disks';
import { bootMode } from './inventory/inventory';
import type { ReportProgress } from './system/progress';
import { findRootDisk, type Machine, openDisk, openDiskToRead, raidHost, syncDisks, waitForRootDisk } from './machine';
import { injectFiles } from './managers/inject-files';
import type { HardwareManager, StepRow } from './managers/manager';
import { cleanNvram, erasePstore, NVRAM_ARGSINFO } from './managers/nvram';
import { isArray, releaseHolders } from './raid/arrays';
import { writePartitionImage } from './partition-image/write';
import { applyConfiguration, createConfiguration, deleteConfiguration } from './raid/configuration';

const BURN_IN = { interface: 'deploy', abortable: true } as const;
const STEPS: readonly StepRow[] = [
  eraseStep('erase_devices_metadata', { clean: 99, deploy: 0 }, eraseMetadata, 1),
  eraseStep('erase_devices_express', { clean: 0 }, eraseExpress),
  eraseStep('erase_devices', { clean: 10 }, eraseDisk),
  { step: 'erase_pstore', interface: 'deploy', priority: { clean: 0 }, abortable: true, run: erasePstore },
  {
    step: 'clean_uefi_nvram',
    interface: 'deploy',
    priority: { clean: 0, deploy: 0 },
    abortable: true,
    argsinfo: NVRAM_ARGSINFO,
    run: cleanNvram,
  },
  { ...BURN_IN, step: 'burnin_cpu', priority: { clean: 0, service: 0 }, run: (machine, _, progress) => burnInCpu(machine, progress) },
  { ...BURN_IN, step: 'burnin_gpu', priority: { clean: 0, service: 0 }, run: (machine, _, progress) => burnInGpu(machine, progress) },
  // It destroys what the disks hold, so it is no service step.
  { ...BURN_IN, step: 'burnin_disk', priority: { clean: 0 }, run: (machine, _, progress) => burnInDisk(machine, progress) },
  { ...BURN_IN, step: 'burnin_memory', priority: { clean: 0, service: 0 }, run: (machine, _, progress) => burnInMemory(machine, progress) },
  {
    ...BURN_IN,
    step: 'burnin_network',
    priority: { clean: 0, service: 0 },
    run: (machine, _, progress) => burnInNetwork(machine, progress),
  },
  { step: 'write_image', interface: 'deploy', priority: { deploy: 0, service: 0 }, abortable: false, run: writeStep },
  { step: 'execute_bootc_install', interface: 'deploy', priority: { deploy: 0, service: 0 }, abortable: false, run: bootcStep },
  { step: 'save_disk', interface: 'deploy', priority: { service: 0 }, abortable: true, run: saveStep },
  { step: 'snapshot', interface: 'deploy', priority: { service: 0 }, abortable: true, run: snapshotStep },
  {
    ...RAID_STEPS.delete,
    run: (machine) => deleteConfiguration(raidHost(machine), machine.state.node),
  },
  {
    ...RAID_STEPS.create,
    run: (machine) => {
      const target = machine.state.node['target_raid_config'];
      return created(machine, createConfiguration(raidHost(machine), machine.state.node, (target ?? {}) as JsonObject));
    },
  },
  {
    ...RAID_STEPS.apply,
    run: (machine, args) => created(machine, applyConfiguration(raidHost(machine), machine.state.node, args)),
  },
];

/** Remembers the root volume for the image that this agent may write. */
async function created({ state }: Machine, work: ReturnType<typeof createConfiguration>): Promise<JsonObject> {
  const { config, roots } = await work;
  state.rootVolumes = roots;
  return config;
}

/** The hardware manager of every machine. `injects`: the priority of inject_files, which a kernel parameter gives. */
export const genericManager = (injects: number): HardwareManager => ({
  name: MANAGER_NAME,
  version: '4',
  support: 'generic',
  steps: [
    ...STEPS,
    {
      step: 'inject_files',
      interface: 'deploy',
      priority: { deploy: injects, service: injects },
      abortable: false,
      argsinfo: INJECT_FILES_ARGSINFO,
      run: injectFiles,
    },
  ],
});

/** @param atOnce how many disks at a time; absent: the node's setting */
function eraseStep(step: string, priority: StepRow['priority'], erase: Erase, atOnce?: number): StepRow {
  return {
    step,
    interface: 'deploy',
    priority,
    abortable: true,
    run: (machine, _, progress) => eraseEach(machine, erase, atOnce, progress),
  };
}

async function writeStep(machine: Machine, args: JsonObject, progress: ReportProgress): Promise<JsonObject> {
  const written = readWriteArguments(args);
  const disk = await waitForRootDisk(machine);
  await releaseHolders(raidHost(machine), disk.name);
  // A download concerns the interface to the server.
  const isDownload = (error: unknown): boolean => error instanceof AgentError && error.type === 'ImageDownloadError';
  return concerning(
    (error) => (isDownload(error) ? nicTowards(machine, imageUrls(written.image)[0]) : describeDisk(disk)),
    () => writeTo(machine, disk, written, progress),
  );
}

/** The firmware's own mode, in which it will start the system, and the label that the node's capabilities name for it. */
function bootFor({ state, tree, log }: Machine): ReturnType<typeof bootOf> {
  const own = bootMode(tree);
  const wanted = bootOf(state.node, own);
  if (wanted.bootMode !== own)
    log.warn(`The node asks for boot mode ${wanted.bootMode}, and the machine runs in ${own}: the partitions are for ${own}`);
  return { bootMode: own, label: own === 'uefi' ? 'gpt' : wanted.label };
}

async function writeTo(machine: Machine, disk: FoundDisk, written: WriteArguments, progress: ReportProgress): Promise<JsonObject> {
  const { parameters, state, clock, log, fetching, run, random, tree } = machine;
  const { image, configDrive, partitions } = written;
  const formats = state.config['permitted_image_formats'];
  const device = await openDisk(machine, disk);
  try {
    const options = {
      image,
      configDrive,
      device,
      fetching,
      retries: parameters.imageRetries,
      retryIntervalMs: parameters.imageRetryInterval * 1000,
      maxDurationMs: parameters.imageMaxDuration * 1000,
      md5Allowed: state.config['agent_md5_checksum_enable'] !== false,
      permittedFormats: Array.isArray(formats) ? formats.map(String) : ['raw', 'gpt', 'qcow2', 'iso'],
      inspects: state.config['disable_deep_image_inspection'] !== true,
      allowsZstd: state.config['disable_zstandard_decompression'] !== true,
      rescan: () => rescan(machine, disk.name),
      newGuid: machine.newUuid,
      conversion: { run, temporary: machine.temporary },
      progress,
      clock,
      log,
    };
    const done = (root: string, system: string | null): JsonObject => {
      state.partitionUuids = { 'root uuid': root, ...(partitions ? { 'efi system partition uuid': system } : {}) };
      const more = system === null ? '' : ` efi_system_partition_uuid=${system}`;
      return { result: `prepare_image: image (${String(image['id'])}) written to device ${disk.name} root_uuid=${root}${more}` };
    };
    if (!partitions) return done((await writeImage(options)).diskIdentifier, null);
    const boot = bootFor(machine);
    const { rootUuid, systemUuid } = await writePartitionImage({ ...options, ...boot, sizes: partitions, random, run, tree });
    return done(rootUuid, systemUuid);
  } finally {
    await device.close();
  }
}

async function bootcStep(machine: Machine, args: JsonObject, progress: ReportProgress): Promise<string> {
  const { run, tree, root, temporary, fetching, clock, log } = machine;
  const given = readBootcArguments(args, machine.state.node);
  const disk = await waitForRootDisk(machine);
  if (isArray(disk)) throw new AgentError('InvalidImage', 'a bootable container cannot be installed on software RAID');
  await releaseHolders(raidHost(machine), disk.name);
  return concerning(
    () => describeDisk(disk),
    async () => {
      const device = await openDisk(machine, disk);
      try {
        await installContainer({
          given,
          host: { run, tree, root, temporary, trust: fetching.trust, signal: fetching.signal },
          device,
          bootMode: bootMode(tree),
          fetching,
          conversion: { run, temporary },
          rescan: () => rescan(machine, disk.name),
          sync: () => syncDisks(machine),
          newGuid: machine.newUuid,
          progress,
          clock,
          log,
        });
      } finally {
        await device.close();
      }
      return `Container image (oci://${given.image.name}) written to device ${disk.name}`;
    },
  );
}

/** The disk that the hints select; undefined: the root disk. */
const savedDisk = async (machine: Machine, hints: JsonObject | undefined): Promise<FoundDisk> =>
  hints ? findRootDisk(machine, { ...machine.state.node, instance_info: { root_device: hints } }) : waitForRootDisk(machine);

/** Opens the disk, with zeros in place of what its file systems do not use, unless all blocks are wanted. */
async function withSaved(
  machine: Machine,
  { rootDevice, blocks }: { readonly rootDevice: JsonObject | undefined; readonly blocks: Blocks },
  work: (device: SourceDisk) => Promise<object>,
): Promise<JsonObject> {
  const disk = await savedDisk(machine, rootDevice);
  const device = await openDiskToRead(machine, disk);
  const { run, log, temporary, tree, fetching } = machine;
  const tools = { run, log, temporary, signal: fetching.signal, partition: pathsOf(tree, disk.name).partition };
  try {
    const { partitions, free } = blocks === 'all' ? { partitions: [], free: [] } : await usedBlocks(device, tools);
    const leftOut = partitions.reduce((sum, { left_out: bytes }) => sum + bytes, 0);
    return { ...(await work(withoutFree(device, free))), disk: disk.name, blocks, left_out: leftOut, partitions };
  } finally {
    await device.close();
  }
}

async function saveStep(machine: Machine, args: JsonObject, progress: ReportProgress): Promise<JsonObject> {
  const { url, checksumUrl, ...which } = readSaveArguments(args);
  return withSaved(machine, which, (device) => saveDisk({ ...sending(machine), device, url, checksumUrl, progress }));
}

async function snapshotStep(machine: Machine, args: JsonObject, progress: ReportProgress): Promise<JsonObject> {
  const { uuid, ...which } = readSnapshotArguments(args);
  const { api } = machine.state;
  if (!api) throw new AgentError('ServicingError', 'the agent has no token for the API');
  const url = `${api.url.replace(/(?<!\/)\/+$/, '')}/v1/snapshots/${uuid}`;
  return withSaved(machine, which, (device) => sendSnapshot({ ...sending(machine), device, url, token: api.token, progress }));
}

const sending = ({ parameters: { imageRetries, imageRetryInterval }, clock, log, fetching }: Machine) => ({
  fetching,
  retries: imageRetries,
  retryIntervalMs: imageRetryInterval * 1000,
  clock,
  log,
});
