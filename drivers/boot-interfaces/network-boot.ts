/**
 * Network boot: writes the machine's boot files (a BootRecord), and sets the boot device to network. The boot services serve them by the
 * record's method: see BootRecord.method.
 */
import { Fault } from '../../model/errors';
import { BOOT_METHODS, type BootRecord, type JsonObject } from '../../model/records';
import {
  checkKernelArguments,
  inMemoryImages,
  instanceArguments,
  kernelArguments,
  needsAgent,
  ramdiskMode,
  ramdiskOf,
  ramdiskProperties,
  requireAll,
  rescueProperties,
} from '../agent/ramdisk';
import { checkBootMode, configureSecureBoot, forgetSecureBoot, setBootDevice, syncBootMode } from '../common/boot-settings';
import { validateCapabilities } from '../common/capabilities';
import { locateImage, servable } from '../common/images';
import { withPowerCycle } from '../common/power-cycle';
import { checkKernels } from './kernel-check';
import { updateDhcp } from '../dhcp-providers/providers';
import type { BootInterface, Property, Task } from '../interfaces';
import { bootsFromVolume } from '../storage/boot-volume';

const properties: Readonly<Record<string, Property>> = {
  ...ramdiskProperties,
  ...rescueProperties,
  kernel_append_params: {
    description:
      'Additional kernel parameters to pass down to instance kernel. These parameters can be consumed by the kernel or by the applications by reading /proc/cmdline. Mind severe cmdline size limit. When used with virtual media, only applies to ISO images that Ironic builds, but not to pre-built ISOs provided via e.g. deploy_iso. Overrides the [pxe]/kernel_append_params configuration option, use %default% to insert its value.',
  },
  force_persistent_boot_device: {
    description:
      "Controls the persistency of boot order changes. 'Always' will make all changes persistent, 'Default' will make all but the final one upon instance deployment non-persistent, and 'Never' will make no persistent changes at all. The old values 'True' and 'False' are still supported but deprecated in favor of the new ones.Defaults to 'Default'. Optional.",
  },
};

function validateRamdisk(task: Task): void {
  validateCapabilities(task.node);
  if (task.node.instance_info['image_source'] && task.node.instance_info['boot_iso']) {
    throw new Fault('InvalidParameterValue', {
      message: "An 'image_source' and 'boot_iso' parameter may not be specified at the same time",
    });
  }
  if (!needsAgent(task)) return;
  ramdiskOf(task, 'deploy');
  checkKernelArguments(task);
}

/** Checks the instance's kernel and ramdisk, or its ISO image, which only iPXE can boot. An image in Glance may name them. */
async function validateInstance(task: Task, method: BootRecord['method']): Promise<void> {
  const { uuid, instance_info: instance } = task.node;
  const { boot_iso: iso, image_source: image, kernel, ramdisk } = { ...instance, ...(await inMemoryImages(task)) } as JsonObject;
  const required = iso ? { boot_iso: iso } : !kernel && !ramdisk && image ? { image_source: image } : { kernel, ramdisk };
  requireAll(
    `Cannot validate image information for node ${uuid} because one or more parameters are missing from its instance_info and insufficient information is present to boot from a remote volume`,
    required,
  );
  if (iso) {
    if (BOOT_METHODS[method].loader === 'pxe')
      throw new Fault('InvalidParameterValue', {
        message: `The boot interface ${method} cannot boot the ISO image that boot_iso of node ${uuid} names; ipxe and http-ipxe can.`,
      });
    locateImage(typeof iso === 'string' ? iso : JSON.stringify(iso), task.options);
  } else if (!kernel || !ramdisk)
    throw new Fault('MissingParameterValue', {
      message: `Image ${String(image)} is missing the following properties: kernel, ramdisk`,
    });
  instanceArguments(task);
}

/** The boot files of an instance in memory, checked before the machine is touched. */
async function instanceFiles(task: Task): Promise<BootRecord['files']> {
  const sources = ['boot_iso', 'kernel', 'ramdisk'].map((name) => [name, task.node.instance_info[name]] as const);
  const iso = sources.filter(([name, href]) => name === 'boot_iso' && href);
  const files = (iso.length > 0 ? iso : sources).filter(
    (source): source is [string, string] => typeof source[1] === 'string' && source[1] !== '',
  );
  return Object.fromEntries(await Promise.all(files.map(async ([name, href]) => [name, await servable(href, false, task)] as const)));
}

/** The addresses that may boot. Without any port enabled for PXE, all ports may (a node is identified by its ports). */
function macsOf(task: Task): readonly string[] {
  const enabled = task.ports.filter((port) => port.pxe_enabled);
  return (enabled.length > 0 ? enabled : task.ports).map((port) => port.address);
}

/** The architecture that the node claims. A machine that says another one is told so, and does not boot. */
const cpuOf = ({ node: { properties } }: Task): string | null =>
  typeof properties['cpu_arch'] === 'string' && properties['cpu_arch'] !== '' ? properties['cpu_arch'] : null;
const withoutRamdisks = (files: BootRecord['files'] = {}): BootRecord['files'] =>
  Object.fromEntries(Object.entries(files).filter(([name]) => !/^(?:kernel|ramdisk)(?:\.|$)/.test(name)));

/** HTTP boot if the machine has such a device, otherwise PXE. */
function networkDevice(task: Task, method: BootRecord['method']): string {
  return BOOT_METHODS[method].byUrl && task.driver.management.bootDevices.includes('uefihttp') ? 'uefihttp' : 'pxe';
}

/** The instance of a node that is taken over or adopted already runs: the machine is not changed. */
const runsAlready = (task: Task): boolean => ['active', 'adopting'].includes(task.node.provision_state);

/** Removes the boot files. With [pxe]enable_netboot_fallback, a machine that boots from the network all the same is sent to its disk. */
async function prepareDisk(task: Task, method: BootRecord['method']): Promise<void> {
  const macs = macsOf(task);
  await task.boots.remove(task.node.uuid);
  if (!task.options['pxe.enable_netboot_fallback'] || macs.length === 0) return;
  await task.boots.put({ node_uuid: task.node.uuid, macs, method, purpose: 'disk', kernel_args: '', files: {} });
}

const networkBoot = (method: BootRecord['method']): BootInterface => ({
  properties,
  bootsFromNetwork: true,
  bootsInMemory: true,
  // Only iPXE is an iSCSI initiator.
  ...(BOOT_METHODS[method].loader === 'ipxe' ? { bootsVolumes: true } : {}),
  validate: async (task) => {
    if (task.ports.length === 0) {
      throw new Fault('MissingParameterValue', { message: `Node ${task.node.uuid} does not have any port associated with it` });
    }
    validateRamdisk(task);
    if (task.driver.deploy.checkInstaller && (await task.driver.storage.shouldWriteImage(task)))
      await task.driver.deploy.checkInstaller(task);
    if (task.driver.deploy.inMemory && (await task.driver.storage.shouldWriteImage(task))) await validateInstance(task, method);
    await checkBootMode(task);
  },
  validateInspection: async (task) => {
    try {
      validateRamdisk(task);
    } catch (error) {
      if (!(error instanceof Fault) || error.name !== 'MissingParameterValue') throw error;
      throw new Fault(
        'Invalid',
        { message: `Insufficient information provided for managed inspection: ${error.message}` },
        { cause: error },
      );
    }
  },
  validateRescue: async (task) => {
    ramdiskOf(task, 'rescue');
    checkKernelArguments(task);
  },
  prepareRamdisk: async (task, kernelArgs) => {
    const mode = ramdiskMode(task.node);
    const { trusted, byArchitecture, ...common } = ramdiskOf(task, mode);
    const files: Record<string, string> = {};
    for (const [name, source] of Object.entries({ ...common, ...byArchitecture })) files[name] = await servable(source, trusted, task);
    await checkKernels(task.node, `${mode}_kernel`, files);
    const before = await task.boots.ofNode(task.node.uuid);
    await syncBootMode(task);
    await updateDhcp(task, method);
    await task.boots.put({
      node_uuid: task.node.uuid,
      macs: macsOf(task),
      method,
      purpose: 'ramdisk',
      kernel_args: await kernelArguments(task, kernelArgs),
      cpu_arch: cpuOf(task),
      // A deployment's image stays available when a step reboots the machine into the ramdisk.
      files: { ...withoutRamdisks(before?.files), ...files },
    });
    await setBootDevice(task, networkDevice(task, method), false);
  },
  cleanUpRamdisk: (task) => task.boots.remove(task.node.uuid),
  // A failed boot may have used up a boot device that is set for one start.
  retryRamdisk: (task) => withPowerCycle(task, () => setBootDevice(task, networkDevice(task, method), false)),
  prepareInstaller: async (task, installer, agentToken) => {
    const { uuid: node_uuid } = task.node;
    await syncBootMode(task);
    await updateDhcp(task, method);
    const row = { node_uuid, macs: macsOf(task), method, purpose: 'installer', files: installer.files } as const;
    // The URLs of the files have the token of the row.
    const { token } = await task.boots.put({ ...row, kernel_args: '' });
    const { kernelArgs, kickstart } = await installer.at(`${task.options['deploy.http_url']}/boot/${token}`, agentToken);
    await task.boots.put({ ...row, kernel_args: kernelArgs }, kickstart);
    await setBootDevice(task, networkDevice(task, method), true);
  },
  prepareInstance: async (task) => {
    if (!runsAlready(task)) {
      await syncBootMode(task);
      await configureSecureBoot(task);
    }
    const onVolume = await bootsFromVolume(task);
    if (!task.driver.deploy.inMemory && !onVolume) {
      await prepareDisk(task, method);
      if (!runsAlready(task)) await setBootDevice(task, 'disk', true);
      return;
    }
    await updateDhcp(task, method);
    await task.boots.put({
      node_uuid: task.node.uuid,
      macs: macsOf(task),
      method,
      ...(onVolume
        ? { purpose: 'volume', kernel_args: '', files: {} }
        : { purpose: 'instance', kernel_args: instanceArguments(task), files: await instanceFiles(task) }),
      cpu_arch: cpuOf(task),
    });
    if (!runsAlready(task)) await setBootDevice(task, networkDevice(task, method), true);
  },
  cleanUpInstance: async (task) => {
    await task.boots.remove(task.node.uuid);
    await forgetSecureBoot(task);
  },
});

export const pxeBoot = networkBoot('pxe');
export const ipxeBoot = networkBoot('ipxe');
export const httpIpxeBoot = networkBoot('http-ipxe');
export const httpBoot = networkBoot('http');
