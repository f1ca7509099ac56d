/**
 * Network boot by iPXE: writes what the machine gets when it asks (a BootRecord), and tells the machine to ask. `ipxe` has its loader by
 * TFTP, `http-ipxe` by HTTP; all else comes by HTTP either way.
 */
import { Fault } from '../model/errors';
import type { BootRecord } from '../model/records';
import { setBootDevice, syncBootMode } from './boot-settings';
import { validateCapabilities } from './capabilities';
import { type ImageLocation, checkLocation, locate } from './images';
import type { BootInterface, Property, Task } from './interfaces';

/** driver_info: the ramdisk that carries the agent. */
export const ramdiskProperties: Readonly<Record<string, Property>> = {
  deploy_kernel: { description: 'Kernel of the agent ramdisk: a file:// or http(s):// URL. Default: [conductor]deploy_kernel.' },
  deploy_ramdisk: { description: 'Initramfs of the agent ramdisk: a file:// or http(s):// URL. Default: [conductor]deploy_ramdisk.' },
};

const properties: Readonly<Record<string, Property>> = {
  ...ramdiskProperties,
  rescue_kernel: { description: 'Kernel of the rescue ramdisk: a file:// or http(s):// URL. Needed for rescue only.' },
  rescue_ramdisk: { description: 'Initramfs of the rescue ramdisk: a file:// or http(s):// URL. Needed for rescue only.' },
  kernel_append_params: {
    description:
      "Arguments for the ramdisk's kernel in the place of [pxe]kernel_append_params, whose value %default% stands for. Optional.",
  },
  force_persistent_boot_device: {
    description:
      'Always: every boot device is set for good; Never: none is; Default: only the one that the instance boots from is. Optional.',
  },
};

interface Ramdisk {
  readonly kernel: string;
  readonly ramdisk: string;
  /** From the options: the operator's own word, which no list of allowed folders limits. */
  readonly trusted: boolean;
}

/** Where the agent's kernel and ramdisk are: both from the node, or both from the options. */
function ramdiskOf(task: Task): Ramdisk {
  const { deploy_kernel: ownKernel, deploy_ramdisk: ownRamdisk } = task.node.driver_info;
  if (typeof ownKernel === 'string' && typeof ownRamdisk === 'string' && ownKernel && ownRamdisk) {
    return { kernel: ownKernel, ramdisk: ownRamdisk, trusted: false };
  }
  const { 'conductor.deploy_kernel': kernel, 'conductor.deploy_ramdisk': ramdisk } = task.options;
  if (kernel && ramdisk) return { kernel, ramdisk, trusted: true };
  const missing = [kernel ? '' : "'deploy_kernel'", ramdisk ? '' : "'deploy_ramdisk'"].filter(Boolean).join(', ');
  throw new Fault('MissingParameterValue', {
    message: `Cannot validate PXE bootloader. Some parameters were missing in node's driver_info and configuration. Missing are: [${missing}]`,
  });
}

async function validateRamdisk(task: Task): Promise<void> {
  validateCapabilities(task.node);
  if (task.node.instance_info['image_source'] && task.node.instance_info['boot_iso']) {
    throw new Fault('InvalidParameterValue', {
      message: "An 'image_source' and 'boot_iso' parameter may not be specified at the same time",
    });
  }
  ramdiskOf(task);
}

async function validate(task: Task): Promise<void> {
  if (task.ports.length === 0) {
    throw new Fault('MissingParameterValue', { message: `Node ${task.node.uuid} does not have any port associated with it` });
  }
  await validateRamdisk(task);
}

/** The file is looked for, or the URL asked, before any machine is touched. Answers what the boot service takes. */
async function servable(href: string, trusted: boolean, task: Task): Promise<string> {
  const location: ImageLocation =
    trusted && !href.includes('://') ? { kind: 'file', path: href } : locate(href, trusted ? ['/'] : allowedPaths(task));
  const found = await checkLocation(location, task.signal);
  return found.kind === 'file' ? found.path : found.url;
}
const allowedPaths = (task: Task): readonly string[] => task.options['conductor.file_url_allowed_paths'];

/** The kernel's arguments; an argument with an empty value stands alone. */
export function kernelArguments(task: Task, more: Readonly<Record<string, string>>): string {
  const { instance_info: instance, driver_info: info } = task.node;
  const standard = task.options['pxe.kernel_append_params'];
  const own = instance['kernel_append_params'] ?? info['kernel_append_params'];
  const append = typeof own === 'string' ? own.replaceAll('%default%', standard) : standard;
  const named: Readonly<Record<string, string>> = {
    'ipa-api-url': task.options['service_catalog.endpoint_override'],
    ...(task.globalRequestId === undefined ? {} : { 'ipa-global-request-id': task.globalRequestId }),
    ...more,
  };
  return [
    'selinux=0 troubleshoot=0 text',
    append,
    ...Object.entries(named).map(([name, value]) => (value === '' ? name : `${name}=${value}`)),
  ]
    .join(' ')
    .replace(/[\n\r\0]/g, '')
    .replace(/ {2,}/g, ' ')
    .trim();
}

/** The addresses that may boot; when the operator allows none of several ports, all are meant (a node is found by its ports). */
function macsOf(task: Task): readonly string[] {
  const enabled = task.ports.filter((port) => port.pxe_enabled);
  return (enabled.length > 0 ? enabled : task.ports).map((port) => port.address);
}

/** HTTP boot where the machine has such a device, PXE else. */
function networkDevice(task: Task, method: BootRecord['method']): string {
  return method === 'http-ipxe' && task.driver.management.bootDevices.includes('uefihttp') ? 'uefihttp' : 'pxe';
}

const ipxe = (method: BootRecord['method']): BootInterface => ({
  properties,
  validate,
  validateInspection: async (task) => {
    try {
      await validateRamdisk(task);
    } catch (error) {
      if (!(error instanceof Fault) || error.name !== 'MissingParameterValue') throw error;
      throw new Fault(
        'Invalid',
        { message: `Insufficient information provided for managed inspection: ${error.message}` },
        { cause: error },
      );
    }
  },
  prepareRamdisk: async (task, kernelArgs) => {
    const wanted = ramdiskOf(task);
    const kernel = await servable(wanted.kernel, wanted.trusted, task);
    const ramdisk = await servable(wanted.ramdisk, wanted.trusted, task);
    const before = await task.boots.ofNode(task.node.uuid);
    await syncBootMode(task);
    await task.boots.put({
      node_uuid: task.node.uuid,
      macs: macsOf(task),
      method,
      purpose: 'ramdisk',
      kernel_args: kernelArguments(task, kernelArgs),
      // A deployment's image stays served when a step reboots the machine into the ramdisk.
      files: { ...before?.files, kernel, ramdisk },
    });
    await setBootDevice(task, networkDevice(task, method), false);
  },
  cleanUpRamdisk: (task) => task.boots.remove(task.node.uuid),
  prepareInstance: async (task) => {
    await syncBootMode(task);
    await task.boots.remove(task.node.uuid);
    // A node that is taken over or adopted runs already: nothing of the machine is changed.
    if (['active', 'adopting'].includes(task.node.provision_state)) return;
    await setBootDevice(task, 'disk', true);
  },
  cleanUpInstance: (task) => task.boots.remove(task.node.uuid),
});

export const ipxeBoot = ipxe('ipxe');
export const httpIpxeBoot = ipxe('http-ipxe');
