/**
 * Deployment by the agent: it writes an image that it fetches by HTTP to the machine's disk. The steps, their names and priorities are
 * Ironic's. Files of this host are served to the agent by the boot service, from the node's BootRecord.
 */
import { basename } from 'node:path';
import { Fault, reasonOf } from '../model/errors';
import { parseHints } from '../model/hints';
import { repr, str } from '../model/python';
import type { JsonObject, NodeRecord } from '../model/records';
import { commandError, withAgent } from './agent-client';
import { agentSteps, onHeartbeat, runAgentStep } from './agent-steps';
import { bootModeOf } from './boot-settings';
import { validateCapabilities } from './capabilities';
import { configdriveOf } from './configdrive';
import { type ImageLocation, checkLocation, checksumOf, formatOf, locate, requireChecksum } from './images';
import { type DeployInterface, type Outcome, type Property, type Step, type Task, done, failed, wait } from './interfaces';
import { ramdiskProperties } from './ipxe';
import { prepareCleaning, tearDownCleaning } from './ramdisk-cleaning';
import { tearDownAgent } from './tear-down-agent';

const properties: Readonly<Record<string, Property>> = {
  ...ramdiskProperties,
  image_http_proxy: { description: 'Proxy through which the agent fetches images by HTTP. Optional.' },
  image_https_proxy: { description: 'Proxy through which the agent fetches images by HTTPS. Optional.' },
  image_no_proxy: {
    description: 'Hosts, addresses and domains (with a leading dot; ports optional) without a proxy, separated by commas. Optional.',
  },
  image_download_source: {
    description: 'http (or swift): the agent fetches the image from where it is; local: through the boot service of this server. Optional.',
  },
  deploy_forces_oob_reboot: {
    description: 'True: after a deployment the BMC switches the machine off, without asking the agent to. Default: false. Optional.',
  },
  agent_verify_ca: {
    description: "What an agent without a certificate of its own is held against: true, false, or a path. Default: the agent's. Optional.",
  },
};

const IMAGE_TYPES = ['whole-disk', 'partition'];
const DOWNLOAD_SOURCES = ['swift', 'http', 'local'];
/** Seconds that installing a boot loader may take. */
const BOOTLOADER_SECONDS = 600;

const invalid = (message: string) => new Fault('InvalidParameterValue', { message });
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

async function validate(task: Task): Promise<void> {
  const { node } = task;
  await task.driver.boot.validate?.(task);
  validateCapabilities(node);
  validateRootDevice(node);
  const source = text(node.instance_info['image_source']);
  if (source === '') {
    throw new Fault('MissingParameterValue', {
      message: `Node ${node.uuid} failed to validate deploy image info. Some parameters were missing. Missing are: ['instance_info.image_source']`,
    });
  }
  const type = node.instance_info['image_type'];
  if (type && !IMAGE_TYPES.includes(text(type))) {
    throw invalid(`Invalid image_type "${text(type)}", valid are ${IMAGE_TYPES.join(', ')}`);
  }
  if (type === 'partition' || node.instance_info['kernel'] || node.instance_info['ramdisk']) {
    throw invalid(`The image of node ${node.uuid} is a partition image; only whole-disk images can be written`);
  }
  requireChecksum(node);
  const download = downloadSource(node);
  if (!DOWNLOAD_SOURCES.includes(download)) {
    throw invalid(`Invalid value for image_download_source: "${download}". Valid values are swift, http or local.`);
  }
  locate(source, task.options['conductor.file_url_allowed_paths']);
  validateProxies(node);
}

const downloadSource = (node: NodeRecord): string => text(node.driver_info['image_download_source']) || 'http';

/** The instance's hints, or the machine's own. */
function validateRootDevice(node: NodeRecord): void {
  const [source, hints] = node.instance_info['root_device']
    ? (['instance_info', node.instance_info['root_device']] as const)
    : (['properties', node.properties['root_device']] as const);
  try {
    parseHints(hints);
  } catch (error) {
    throw invalid(
      `Failed to validate the root device hints ${repr(hints)} (from the node's ${source}) for node ${node.uuid}: ${reasonOf(error)}`,
    );
  }
}

/** A host name with a port, but without a scheme, has one to Ironic (`proxy:3128`): refused as there. */
function validateProxies(node: NodeRecord): void {
  const given = ['image_http_proxy', 'image_https_proxy'].map((key) => [key, text(node.driver_info[key])] as const);
  const wrong = given.filter(([, url]) => /^[a-z][a-z0-9+.-]*:/i.test(url) && !/^https?:/i.test(url));
  if (wrong.length > 0) {
    throw invalid(
      `Proxy URL should either have HTTP(S) scheme or no scheme at all, the following URLs are invalid: ${repr(Object.fromEntries(wrong))}.`,
    );
  }
  const without = node.driver_info['image_no_proxy'];
  if (without === undefined || without === null || (typeof without === 'string' && without.split(',').every(isHost))) return;
  throw invalid(
    `image_no_proxy should be a list of host names, IP addresses or domain names to exclude from proxying, the specified list ${str(without)} is incorrect. To denote a domain name, prefix it with a dot (instead of e.g. '.*').`,
  );
}

/** A host name, an address or a domain with a leading dot, with or without a port; nothing is passed over. */
function isHost(entry: string): boolean {
  const name = entry.trim().split(':')[0]!.replace(/^\./, '');
  return entry.trim() === '' || (name.length <= 253 && name.split('.').every((part) => /^(?!-)[a-z\d-]{1,63}(?<!-)$/i.test(part)));
}

/** Where the agent gets the image: its own URL, or this server's when it must come from a file here or shall come `local`. */
interface Source {
  readonly location: ImageLocation;
  readonly served: boolean;
}
async function sourceOf(task: Task): Promise<Source> {
  const href = text(task.node.instance_info['image_source']);
  const location = await checkLocation(locate(href, task.options['conductor.file_url_allowed_paths']), task.signal);
  return { location, served: location.kind === 'file' || downloadSource(task.node) === 'local' };
}

/** What can go wrong with the image goes wrong here, before the machine is touched. */
async function prepare(task: Task): Promise<void> {
  const { driver } = task;
  if (['active', 'adopting', 'unrescuing'].includes(task.node.provision_state)) {
    await driver.boot.prepareInstance(task);
    return;
  }
  const { location, served } = await sourceOf(task);
  if (/^https?:/.test(text(task.node.instance_info['image_checksum']))) await checksumOf(task.node.instance_info, location, task.signal);
  const url = location.kind === 'http' && !served ? location.url : `${task.options['deploy.http_url']}/boot/${task.node.uuid}/image`;
  await task.save({ instance_info: { ...task.node.instance_info, image_url: url, image_type: 'whole-disk' } });
  await task.saveInternal({ is_whole_disk_image: true });
  if (!task.node.disable_power_off) await task.power('power off');
  await driver.network.unconfigureTenantNetworks(task);
  await driver.network.addProvisioningNetwork(task);
  await driver.boot.prepareRamdisk(task, {});
  await serveImage(task, served ? location : undefined);
}

/** Adds the image to what the machine may fetch, or takes an earlier deployment's away. A boot interface without a row gets one for it. */
async function serveImage(task: Task, location: ImageLocation | undefined): Promise<void> {
  const row = await task.boots.ofNode(task.node.uuid);
  if (location === undefined && row?.files['image'] === undefined) return;
  const files = Object.fromEntries(Object.entries(row?.files ?? {}).filter(([name]) => name !== 'image'));
  const image = location === undefined ? {} : { image: location.kind === 'file' ? location.path : location.url };
  const bare = { node_uuid: task.node.uuid, macs: [], method: 'ipxe', purpose: 'disk', kernel_args: '' } as const;
  await task.boots.put({ ...(row ?? bare), files: { ...files, ...image } });
}

async function bootRamdisk(task: Task): Promise<Outcome> {
  const off = task.node.power_state === 'power off' && !task.node.disable_power_off;
  await task.power(off ? 'power on' : 'rebooting');
  return wait;
}

async function writeImage(task: Task): Promise<Outcome> {
  const { location } = await sourceOf(task);
  const configdrive = await configdriveOf(task.node, task.clock.now());
  const args = { image_info: await imageInfo(task, location, configdrive), configdrive: configdrive ?? null };
  return runAgentStep(task, 'deploy', { interface: 'deploy', step: 'write_image', priority: 80, args });
}

/** What the agent is told of the image (agent protocol, image_info). */
async function imageInfo(task: Task, location: ImageLocation, configdrive: string | undefined): Promise<JsonObject> {
  const { instance_info: instance, driver_info: info, uuid } = task.node;
  const proxies = Object.fromEntries(
    ['http', 'https'].map((scheme) => [scheme, text(info[`image_${scheme}_proxy`])]).filter(([, url]) => url !== ''),
  ) as JsonObject;
  return {
    id: basename(text(instance['image_source'])),
    urls: [instance['image_url']],
    disk_format: instance['image_disk_format'] ?? (await formatOf(location, task.signal)) ?? null,
    container_format: instance['image_container_format'] ?? null,
    stream_raw_images: task.options['agent.stream_raw_images'],
    ...(await checksumOf(instance, location, task.signal)),
    ...(Object.keys(proxies).length > 0 ? { proxies, ...(info['image_no_proxy'] ? { no_proxy: info['image_no_proxy'] } : {}) } : {}),
    node_uuid: uuid,
    image_type: 'whole-disk',
    ...(configdrive === undefined ? {} : { configdrive }),
  };
}

/** Has the agent make the disk bootable (UEFI only: a BIOS boots whole-disk images by themselves), then hands over to the disk. */
async function prepareInstanceBoot(task: Task): Promise<Outcome> {
  const { node } = task;
  const bootMode = bootModeOf(task);
  const failure = await withAgent(task, async (agent) => {
    const found = await agent.command('standby.get_partition_uuids', {}, { wait: true });
    const rootUuid = found.command_result?.['root uuid'];
    if (typeof rootUuid === 'string') await task.saveInternal({ root_uuid_or_disk_id: rootUuid });
    if (bootMode !== 'uefi') return undefined;
    const started = await agent.command('image.install_bootloader', {
      root_uuid: typeof rootUuid === 'string' ? rootUuid : null,
      efi_system_part_uuid: null,
      prep_boot_part_uuid: null,
      target_boot_mode: bootMode,
    });
    const installed = await agent.finished(started, BOOTLOADER_SECONDS);
    return installed.command_status === 'FAILED' ? commandError(installed) : undefined;
  });
  if (failure !== undefined) return failed(`Failed to install a bootloader when deploying node ${node.uuid}: ${failure}`);
  try {
    await task.driver.boot.prepareInstance(task);
  } catch (error) {
    return failed(`Failed to prepare instance for booting: ${reasonOf(error)}`);
  }
  // The image is on the disk; nobody fetches it any more.
  await task.boots.remove(node.uuid);
  return done;
}

async function switchNetwork(task: Task): Promise<Outcome> {
  try {
    await task.driver.network.removeProvisioningNetwork(task);
    await task.driver.network.configureTenantNetworks(task);
    return done;
  } catch (error) {
    return failed(`Error changing node ${task.node.uuid} to tenant networks after deploy. ${reasonOf(error)}`);
  }
}

async function bootInstance(task: Task): Promise<Outcome> {
  try {
    await task.power(task.node.disable_power_off ? 'rebooting' : 'power on');
    return done;
  } catch (error) {
    return failed(`Error booting node ${task.node.uuid} after deploy. ${reasonOf(error)}`);
  }
}

/** Every one of them may run again: booting and switching end in the same state, and an image that is written again is the same image. */
const steps: readonly Step[] = (
  [
    ['deploy', 100, bootRamdisk],
    ['write_image', 80, writeImage],
    ['prepare_instance_boot', 60, prepareInstanceBoot],
    ['tear_down_agent', 40, tearDownAgent],
    ['switch_to_tenant_network', 30, switchNetwork],
    ['boot_instance', 20, bootInstance],
  ] as const
).map(([step, priority, run]) => ({ step, priority: { deploy: priority }, resumable: true, run }));

export const directDeploy: DeployInterface = {
  properties,
  steps,
  validate,
  prepare,
  cleanUp: async (task) => {
    await task.driver.boot.cleanUpRamdisk(task);
    await task.driver.boot.cleanUpInstance(task);
    await task.boots.remove(task.node.uuid);
    if (task.node.disable_power_off) await task.power('rebooting');
  },
  tearDown: async (task) => {
    if (!task.node.disable_power_off) await task.power('power off');
    await task.driver.network.unconfigureTenantNetworks(task);
    await task.driver.network.removeProvisioningNetwork(task);
    return done;
  },
  prepareCleaning,
  tearDownCleaning,
  agentSteps,
  runAgentStep,
  onHeartbeat,
};
