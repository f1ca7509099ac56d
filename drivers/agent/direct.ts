/** Deployment by the agent, which downloads an image and writes it to disk. The boot service serves images by the node's BootRecord. */
import { basename } from 'node:path';
import { hasSoftwareVolumes } from '../../model/agent/software-raid';
import { invalidParameter, Fault } from '../../model/errors';
import { snapshotId } from '../../model/idents';
import { objectOf } from '../../model/json';
import { repr, str } from '../../model/python';
import type { BootRecord, JsonObject, NodeRecord } from '../../model/records';
import { commandError, withAgent } from './client';
import {
  agentDeploy,
  agentProperties,
  deploymentSteps,
  isDeployed,
  prepareAgent,
  prepareDeployed,
  prepareInstance,
  prepareVolumes,
  onlyWhenWritingImage,
  validateAgentDeploy,
} from './deploy';
import { runAgentStep } from './steps';
import { deployedSizes, isPartition, partitionFields, partitionInfo } from './partition-image';
import { bootModeOf } from '../common/boot-settings';
import { checkConfigdrive, deliveredConfigdrive } from './configdrive';
import { checkArchitecture, checkDiskRoom, checkImageType, checkMemory } from './image-checks';
import { findAnyImage, findImage, imageTempUrl, validImage } from '../common/glance-images';
import { inspectImage } from '../common/image-formats';
import { type ImageSource, checkChecksumForm, checkLocation, checksumOf, locateImage, requireChecksum, servedAs } from '../common/images';
import { factsOf, findSnapshot, snapshotUrl, sourceOf } from '../common/snapshot-images';
import { reachableFrom } from '../common/reach';
import { checkPullSecrets, identifyOciImage, ociAuthorization, parseOci, SWIFT_REFUSED } from '../oci/images';
import { imageServerLogin } from '../../wire/image-servers';
import { isOciUrl } from '../../wire/oci/reference';
import type { GlanceImage } from '../../wire/openstack/glance';
import { type DeployInterface, type Outcome, type Task, failed } from '../interfaces';

const IMAGE_TYPES = ['whole-disk', 'partition'];
const DOWNLOAD_SOURCES = ['swift', 'http', 'local'];

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

async function validate(task: Task): Promise<void> {
  const { node } = task;
  await validateAgentDeploy(task);
  if (!(await task.driver.storage.shouldWriteImage(task))) return;
  const source = text(node.instance_info['image_source']);
  if (source === '') {
    throw new Fault('MissingParameterValue', {
      message: `Node ${node.uuid} failed to validate deploy image info. Some parameters were missing. Missing are: ['instance_info.image_source']`,
    });
  }
  const type = node.instance_info['image_type'];
  if (type && !IMAGE_TYPES.includes(text(type))) {
    throw invalidParameter(`Invalid image_type "${text(type)}", valid are ${IMAGE_TYPES.join(', ')}`);
  }
  requireChecksum(node);
  checkChecksumForm(node);
  const download = downloadSource(task);
  if (!DOWNLOAD_SOURCES.includes(download)) {
    throw invalidParameter(`Invalid value for image_download_source: "${download}". Valid values are swift, http or local.`);
  }
  const image = locate(source, task);
  if (image.kind === 'oci') checkOci(task, image.href, download);
  validateProxies(node);
  if (image.kind === 'snapshot') {
    const stored = sourceOf(await findSnapshot(task, image.id));
    // Who may use the snapshot may use its image.
    if (stored.kind === 'glance') await validImage(task, stored.id, findAnyImage);
  }
  const properties = image.kind === 'glance' && !type ? (await validImage(task, image.id)).properties : undefined;
  if (needsPartitions(node.instance_info, properties)) partitionFields(task);
}

/** The registry is asked when the deployment begins, as in Ironic. */
function checkOci({ node }: Task, href: string, download: string): void {
  checkPullSecrets(node);
  if (download === 'swift' && parseOci(href).digest === undefined) throw invalidParameter(SWIFT_REFUSED);
}

/** @param properties of an image in Glance; undefined: it is elsewhere, or its properties do not count */
function needsPartitions(info: JsonObject, properties: GlanceImage['properties'] | undefined): boolean {
  if (info['image_type']) return info['image_type'] === 'partition';
  if (isOciUrl(text(info['image_source']))) return false;
  return properties ? isPartition(properties) : Boolean(info['kernel'] || info['ramdisk']);
}

const locate = (href: string, { options }: Pick<Task, 'options'>): ImageSource => {
  const id = snapshotId(href);
  return id === undefined ? locateImage(href, options) : { kind: 'snapshot', id };
};

export const downloadSource = ({ node, options }: Task): string =>
  text(node.instance_info['image_download_source']) ||
  text(node.driver_info['image_download_source']) ||
  options['agent.image_download_source'];

/** Ironic takes the host of `proxy:3128` for a scheme, and refuses it. So do we. */
function validateProxies(node: NodeRecord): void {
  const proxies = ['image_http_proxy', 'image_https_proxy'].map((key) => [key, text(node.driver_info[key])] as const);
  const wrong = proxies.filter(([, url]) => /^[a-z][a-z0-9+.-]*:/i.test(url) && !/^https?:/i.test(url));
  if (wrong.length > 0) {
    throw invalidParameter(
      `Proxy URL should either have HTTP(S) scheme or no scheme at all, the following URLs are invalid: ${repr(Object.fromEntries(wrong))}.`,
    );
  }
  const without = node.driver_info['image_no_proxy'];
  if (without === undefined || without === null || (typeof without === 'string' && without.split(',').every(isHost))) return;
  throw invalidParameter(
    `image_no_proxy should be a list of host names, IP addresses or domain names to exclude from proxying, the specified list ${str(without)} is incorrect. To denote a domain name, prefix it with a dot (instead of e.g. '.*').`,
  );
}

/** A host name, an address or a domain with a leading dot, with or without a port. Every character is checked. */
function isHost(entry: string): boolean {
  const name = entry.trim().split(':')[0]!.replace(/^\./, '');
  return entry.trim() === '' || (name.length <= 253 && name.split('.').every((part) => /^(?!-)[a-z\d-]{1,63}(?<!-)$/i.test(part)));
}

/** What the agent has to know about the image, and the URL to download it: the image's own, Swift's, or this server's. */
interface ImageFacts {
  /** Of an image in Glance. */
  readonly properties?: GlanceImage['properties'];
  /** Absent: the boot service serves the image. */
  readonly url?: string | undefined;
  readonly source: ImageSource;
  /** For instance_info. */
  readonly facts: JsonObject;
  /** Bytes of an image in Glance. */
  readonly size?: number | null;
}
async function imageFacts(task: Task): Promise<ImageFacts> {
  const download = downloadSource(task);
  const given = locate(text(task.node.instance_info['image_source']), task);
  if (given.kind === 'snapshot') {
    const snapshot = await findSnapshot(task, given.id);
    const source = sourceOf(snapshot);
    const image = source.kind === 'glance' ? await findAnyImage(task, source.id) : undefined;
    const url = image && download === 'swift' ? await swiftUrl(task, image) : await snapshotUrl(task, snapshot);
    return { source, facts: factsOf(snapshot), url };
  }
  if (given.kind === 'oci') return ociFacts(task, given.href, download);
  if (given.kind === 'http' || given.kind === 'file') {
    const source = await checkLocation(given, task);
    return { source, facts: {}, url: source.kind === 'http' && download !== 'local' ? source.url : undefined };
  }
  if (given.kind !== 'glance') throw new Error(`no user names a ${given.kind}`);
  const image = await findImage(task, given.id);
  const facts = {
    image_checksum: image.checksum,
    image_os_hash_algo: image.hashAlgorithm,
    image_os_hash_value: image.hash,
    image_disk_format: image.diskFormat,
    image_container_format: image.containerFormat,
    image_tags: [...image.tags],
    image_properties: { ...image.properties },
  };
  checkMemory(task, image);
  const { properties, size } = image;
  checkArchitecture(task.node, properties);
  return { source: given, facts, properties, size, url: download === 'swift' ? await swiftUrl(task, image) : undefined };
}
/** Of a disk image in a registry: by the digest of its file, so that what is written is what was inspected. */
async function ociFacts(task: Task, href: string, download: string): Promise<ImageFacts> {
  const image = await identifyOciImage(task, href, download).catch((error: unknown) => {
    throw error instanceof Fault ? named(error) : error;
  });
  if (image.kind === 'bootc')
    throw invalidParameter(`image_source: ${href} is a bootable container, which the deploy interface direct cannot write to a disk`);
  return { source: { kind: 'blob', blob: image.blob }, facts: image.facts, url: download === 'local' ? undefined : image.url };
}
/** With the name of the field. */
const named = (error: Fault): Fault =>
  new Fault(
    error.status < 500 ? 'InvalidParameterValue' : 'DriverOperationError',
    { message: `image_source: ${error.message}` },
    { cause: error },
  );

async function swiftUrl(task: Task, image: GlanceImage): Promise<string> {
  const url = await imageTempUrl(task, image);
  await checkLocation({ kind: 'http', url }, task).catch((error: unknown) => {
    // The URL is a secret.
    throw error instanceof Fault ? invalidParameter(error.message.replaceAll(/\?temp_url_sig=\S*/g, '?***')) : error;
  });
  return url;
}

/** Finds errors of the image before the machine is touched. */
async function prepare(task: Task): Promise<void> {
  if (isDeployed(task)) {
    await prepareDeployed(task);
    return;
  }
  if (!(await task.driver.storage.shouldWriteImage(task))) {
    await prepareVolumes(task);
    return;
  }
  await checkConfigdrive(task);
  const { source, facts, properties, size = null, url: own } = await imageFacts(task);
  const hasPartitions = needsPartitions(task.node.instance_info, properties);
  const image_type = hasPartitions ? 'partition' : 'whole-disk';
  const instance: JsonObject = { ...task.node.instance_info, ...facts, ...(hasPartitions ? partitionFields(task) : {}), image_type };
  const sums = [instance['image_checksum'], instance['image_os_hash_value']].map(text);
  if (sums.some((sum) => /^https?:/.test(sum))) await checksumOf(instance, source, task);
  const declared = instance['image_disk_format'] ?? null;
  const found = await inspectImage(source, declared, task);
  // A registry may not say the format; ironic-python-agent streams an image only if it is told that it is raw.
  const format = source.kind === 'blob' && (declared === null || declared === 'unknown') ? { image_disk_format: found ?? declared } : {};
  const described: JsonObject = { ...instance, ...format };
  await checkImageType(task, source, instance);
  await checkDiskRoom(task, source, instance, size);
  if (own !== undefined) await stopServingImage(task);
  const url = own ?? (await serveImage(task, servedAs(source)));
  await task.save({ instance_info: { ...described, image_url: url } });
  const manifest = source.kind === 'blob' ? text(facts['oci_image_manifest_url']) : undefined;
  const container = manifest === undefined ? undefined : 'oci_artifact';
  await task.saveInternal({ is_whole_disk_image: !hasPartitions, image_source: manifest, container_image_type: container });
  await prepareAgent(task);
}

/** Adds the image to the files of the boot service, and returns its URL. Creates the node's row if there is none. */
async function serveImage({ boots, node, options }: Task, source: string): Promise<string> {
  const bare = { node_uuid: node.uuid, macs: [], method: 'ipxe', purpose: 'disk', kernel_args: '', files: {} } as const;
  const row: BootRecord = (await boots.ofNode(node.uuid)) ?? bare;
  const { token } = await boots.put({ ...row, files: { ...row.files, image: source } });
  return `${options['deploy.http_url']}/boot/${token}/image`;
}

/** Removes the image of an earlier deployment. */
async function stopServingImage({ boots, node }: Task): Promise<void> {
  const row = await boots.ofNode(node.uuid);
  if (row?.files['image'] === undefined) return;
  await boots.put({ ...row, files: Object.fromEntries(Object.entries(row.files).filter(([name]) => name !== 'image')) });
}

/** Snapshots and images of Glance are not checked again: that was done when the deployment began, when the caller was still known. */
async function writtenImage(task: Task): Promise<ImageSource> {
  const source = locate(text(task.node.instance_info['image_source']), task);
  return source.kind === 'http' || source.kind === 'file' ? checkLocation(source, task) : source;
}

async function writeImage(task: Task): Promise<Outcome> {
  const location = await writtenImage(task);
  const configdrive = await deliveredConfigdrive(task);
  const args = { image_info: await imageInfo(task, location, configdrive), configdrive: configdrive ?? null };
  return runAgentStep(task, 'deploy', { interface: 'deploy', step: 'write_image', priority: 80, args });
}

/** The agent's description of the image (agent protocol, image_info). */
async function imageInfo(task: Task, location: ImageSource, configdrive: string | undefined): Promise<JsonObject> {
  const { instance_info: instance, driver_info: info, uuid } = task.node;
  const proxies = Object.fromEntries(
    ['http', 'https'].map((scheme) => [scheme, text(info[`image_${scheme}_proxy`])]).filter(([, url]) => url !== ''),
  ) as JsonObject;
  return {
    id: basename(text(instance['image_source'])),
    urls: [reachableFrom(task.node.driver_internal_info['agent_url'], text(instance['image_url']), task.options)],
    disk_format: instance['image_disk_format'] ?? (await inspectImage(location, null, task)) ?? null,
    container_format: instance['image_container_format'] ?? null,
    stream_raw_images: task.options['agent.stream_raw_images'],
    ...(await checksumOf(instance, location, task)),
    ...(Object.keys(proxies).length > 0 ? { proxies, ...(info['image_no_proxy'] ? { no_proxy: info['image_no_proxy'] } : {}) } : {}),
    ...(location.kind === 'oci' && downloadSource(task) !== 'local' ? await registryLogin(task, location.href) : serverOf(task)),
    node_uuid: uuid,
    ...(isOfWholeDisk(task) ? { image_type: 'whole-disk' } : partitionInfo(task)),
    ...(configdrive === undefined ? {} : { configdrive }),
  };
}

/**
 * The login for the image's server. The HTTP boot service of this program needs none, and only its reasons for errors may be shown to users
 * (`served_by_conductor`, which ironic-python-agent does not read).
 */
function serverOf({ node, options }: Task): JsonObject {
  const url = text(node.instance_info['image_url']);
  if (url.startsWith(`${options['deploy.http_url']}/`)) return { served_by_conductor: true };
  const login = imageServerLogin(url, options);
  if (!login) return {};
  const { username, password } = login;
  return { image_server_auth_strategy: 'http_basic', image_server_user: username, image_server_password: password };
}

/** The authorization for the image's registry, made now: that of `prepare` may be too old for it. Masked wherever the step is shown. */
async function registryLogin(task: Task, href: string): Promise<JsonObject> {
  const authorization = await ociAuthorization(task, href);
  return authorization === undefined ? {} : { image_request_authorization: Buffer.from(authorization).toString('base64') };
}

const isOfWholeDisk = ({ node }: Task): boolean => node.driver_internal_info.is_whole_disk_image !== false;

/** Whether the agent has made arrays, or will: no firmware reads them. */
const hasArrays = ({ target_raid_config: target, raid_config: made }: Task['node']): boolean => [target, made].some(hasSoftwareVolumes);

/**
 * Makes the agent install the boot loader, then prepares the boot from disk. A BIOS boots whole-disk images as they are, but neither arrays nor
 * partition images.
 */
async function prepareInstanceBoot(task: Task): Promise<Outcome> {
  const { node } = task;
  if (!(await task.driver.storage.shouldWriteImage(task))) return prepareInstance(task);
  const bootMode = bootModeOf(task);
  const failure = await withAgent(task, async (agent) => {
    const uuids = await agent.command('standby.get_partition_uuids', {}, { wait: true });
    const { 'root uuid': rootUuid, 'efi system partition uuid': systemUuid } = uuids.command_result ?? {};
    const isWhole = isOfWholeDisk(task);
    // An agent that asks before the kernel has read the new file system answers with an empty one.
    if (typeof rootUuid === 'string' && rootUuid !== '')
      await task.saveInternal({ root_uuid_or_disk_id: rootUuid, ...(isWhole ? {} : { instance: deployedSizes(node) }) });
    else if (!isWhole) return 'the agent returned no UUID of the root partition';
    const isArray = hasArrays(node);
    if (bootMode !== 'uefi' && !isArray && isWhole) return undefined;
    // The root file system of the image: as the operator names it, or the image's property in Glance.
    const { image_rootfs_uuid: given, image_properties: properties } = node.instance_info;
    const named = isArray ? [given, objectOf(properties)['rootfs_uuid']] : [];
    const started = await agent.command('image.install_bootloader', {
      root_uuid: [...named, rootUuid].find((uuid) => typeof uuid === 'string' && uuid !== '') ?? null,
      efi_system_part_uuid: !isWhole && bootMode === 'uefi' ? (systemUuid ?? null) : null,
      prep_boot_part_uuid: null,
      target_boot_mode: bootMode,
    });
    const installed = await agent.finished(started);
    return installed.command_status === 'FAILED' ? commandError(installed) : undefined;
  });
  if (failure !== undefined) return failed(`Failed to install a bootloader when deploying node ${node.uuid}: ${failure}`);
  return prepareInstance(task);
}

export const directDeploy: DeployInterface = {
  ...agentDeploy,
  properties: agentProperties,
  validate,
  steps: deploymentSteps({ write_image: [80, onlyWhenWritingImage(writeImage)], prepare_instance_boot: [60, prepareInstanceBoot] }),
  prepare,
};
