/** ISO images for booting from CD: the agent's ramdisk or an instance in memory, either given or built here. */
import { access } from 'node:fs/promises';
import { readAgentCaFiles } from '../../wire/agent-authorities';
import { invalidParameter, Fault } from '../../model/errors';
import type { JsonObject, MediumContent } from '../../model/records';
import {
  checkKernelArguments,
  inMemoryImages,
  instanceArguments,
  kernelArguments,
  needsAgent,
  ramdiskOf,
  requireAll,
} from '../agent/ramdisk';
import { bootModeOf, isTrue } from '../common/boot-settings';
import { imageTempUrl } from '../common/glance-images';
import type { RamdiskMode } from '../common/configured-ramdisk';
import { locateImage, servable } from '../common/images';
import { glanceId } from '../../wire/openstack/glance';
import type { Property, Task } from '../interfaces';
import { checkKernels } from './kernel-check';

export const isoProperties: Readonly<Record<string, Property>> = {
  deploy_kernel: { description: 'URL or Glance UUID of the deployment kernel. Required if deploy_iso is not set.' },
  deploy_ramdisk: {
    description: 'URL or Glance UUID of the ramdisk that is mounted at boot time. Required if deploy_iso is not set.',
  },
  deploy_iso: {
    description: 'URL or Glance UUID of the deployment ISO to use. Required if deploy_kernel/deploy_ramdisk are not set.',
  },
};

type Iso = Extract<MediumContent, { readonly kind: 'iso' }>;
const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
/** The node's own ISO of this mode. The older key is still valid. */
const isoOf = ({ node: { driver_info: info } }: Task, mode: RamdiskMode): string | undefined =>
  text(info[`${mode}_iso`]) ?? text(info[`redfish_${mode}_iso`]);
export const usesConfigViaRemovable = ({ node: { driver_info: info } }: Task): boolean =>
  isTrue(info['config_via_removable'] ?? info['config_via_floppy']);
/** Whether the ramdisk can get parameters: a given ISO is not changed. */
export const canConfigure = (task: Task, mode: RamdiskMode): boolean => isoOf(task, mode) === undefined || usesConfigViaRemovable(task);

const ISO_OPTION = 'redfish.kernel_append_params';
/** Throws MissingParameterValue, InvalidParameterValue. */
export function validateIso(task: Task, mode: RamdiskMode): void {
  if (task.options['redfish.use_swift'] && !task.connections.services.swift.isConfigured)
    throw invalidParameter('[redfish]use_swift needs [swift]auth_type: images for virtual media are uploaded to Swift');
  if (mode === 'deploy' && !needsAgent(task)) return;
  const iso = isoOf(task, mode);
  if (iso !== undefined) return void locateImage(iso, task.options);
  ramdiskOf(task, mode, "Error validating Redfish virtual media. Some parameters were missing in node's driver_info");
  checkKernelArguments(task, ISO_OPTION);
}

/** The path in Debian's package. */
const OTHER_ISOLINUX = '/usr/lib/ISOLINUX/isolinux.bin';
const LDLINUX = ['/usr/lib/syslinux/modules/bios/ldlinux.c32', '/usr/share/syslinux/ldlinux.c32'];
const firstOf = async (paths: readonly string[]): Promise<string | undefined> => {
  for (const path of paths)
    if (
      await access(path).then(
        () => true,
        () => false,
      )
    )
      return path;
  return undefined;
};

/** What a boot loader such as shim loads from its own folder. */
async function besideLoader(task: Task): Promise<Pick<Iso, 'bootloader_files'>> {
  const named = Object.entries(task.options['conductor.bootloader_files']);
  if (named.length === 0) return {};
  const files = named.map(async ([name, path]) => [name, await servable(path, true, task)] as const);
  return { bootloader_files: Object.fromEntries(await Promise.all(files)) };
}

/** Boot loaders for UEFI and BIOS. Throws InvalidParameterValue when there is none for the machine's boot mode. */
async function loaders(task: Task): Promise<Partial<Pick<Iso, 'bootloader' | 'bootloader_files' | 'isolinux' | 'ldlinux'>>> {
  const { options, node } = task;
  const own = text(node.driver_info['bootloader']);
  const byArch = options['conductor.bootloader_by_arch'];
  const arch = text(node.properties['cpu_arch']) ?? '';
  const ofArch = Object.hasOwn(byArch, arch) ? byArch[arch] : undefined;
  const common = ofArch ?? options['conductor.bootloader'] ?? options['DEFAULT.esp_image'];
  const mode = bootModeOf(task);
  const [isolinux, ldlinux] = [
    await firstOf([options['DEFAULT.isolinux_bin'], OTHER_ISOLINUX]),
    await firstOf(options['DEFAULT.ldlinux_c32'] === null ? LDLINUX : [options['DEFAULT.ldlinux_c32']]),
  ];
  const bootloader = own ?? common;
  if (mode === 'uefi' && !bootloader)
    throw invalidParameter(
      `Creating a UEFI bootable ISO image for node ${node.uuid} needs a boot loader: driver_info/bootloader or [conductor]bootloader, an image of an EFI system partition or an EFI program`,
    );
  if (mode === 'bios' && isolinux === undefined)
    throw invalidParameter(
      `Creating a BIOS bootable ISO image for node ${node.uuid} needs ISOLINUX: [DEFAULT]isolinux_bin (${options['DEFAULT.isolinux_bin']}) is not there`,
    );
  return {
    ...(bootloader ? { bootloader: await servable(bootloader, own === undefined, task), ...(await besideLoader(task)) } : {}),
    ...(isolinux === undefined ? {} : { isolinux, ...(ldlinux === undefined ? {} : { ldlinux }) }),
  };
}

/** A given ISO: from its own URL, or through the HTTP boot service. */
async function givenIso(
  task: Task,
  href: string,
  source: unknown,
): Promise<MediumContent | { readonly kind: 'elsewhere'; readonly url: string }> {
  const location = await servable(href, false, task);
  const downloadSource = text(source) ?? task.options['deploy.ramdisk_image_download_source'];
  const id = glanceId(href);
  if (id !== undefined && downloadSource === 'swift') return { kind: 'elsewhere', url: await imageTempUrl(task, { id }) };
  if (downloadSource !== 'local' && /^https?:/i.test(location)) return { kind: 'elsewhere', url: location };
  return { kind: 'image', source: location };
}
/** The content of the CD, or its URL on another server. */
export type BootIso = Awaited<ReturnType<typeof givenIso>>;

const INSPECTION: readonly string[] = ['inspecting', 'inspect wait'];
/** The static network configuration, which the ramdisk uses instead of DHCP: that of the network interface, otherwise node.network_data. */
async function networkFiles(task: Task): Promise<Readonly<Record<string, string>>> {
  const { node, options, driver } = task;
  if (options['inspector.force_dhcp'] && INSPECTION.includes(node.provision_state)) return {};
  const data = (await driver.network.networkData?.(task)) ?? node.network_data;
  return Object.keys(data).length === 0 ? {} : { 'openstack/latest/network_data.json': JSON.stringify(data, null, 2) };
}

/** The certificate authorities with which the agent verifies the API. Throws InvalidParameterValue. */
async function authorityFiles({ options }: Task): Promise<Readonly<Record<string, string>>> {
  const path = options['agent.api_ca_file'];
  if (!path) return {};
  try {
    return await readAgentCaFiles(path);
  } catch (error) {
    throw new Fault('InvalidParameterValue', { message: (error as Error).message }, { cause: error });
  }
}

/** @param parameters for the ramdisk's kernel command line */
export async function ramdiskIso(task: Task, mode: RamdiskMode, parameters: Readonly<Record<string, string>>): Promise<BootIso> {
  const iso = isoOf(task, mode);
  if (iso !== undefined) return givenIso(task, iso, undefined);
  const { kernel, ramdisk, trusted } = ramdiskOf(task, mode);
  const publisher = task.random(16).toString('hex');
  const served = await servable(kernel, trusted, task);
  await checkKernels(task.node, `${mode}_kernel`, { kernel: served });
  return {
    kind: 'iso',
    kernel: served,
    ramdisk: await servable(ramdisk, trusted, task),
    ...(await loaders(task)),
    kernel_args: await kernelArguments(task, { ...parameters, ir_pub_id: publisher }, ISO_OPTION),
    publisher,
    files: { ...(await networkFiles(task)), ...(await authorityFiles(task)) },
    grub_config_path: task.options['DEFAULT.grub_config_path'],
  };
}

/** Throws MissingParameterValue, InvalidParameterValue. */
export async function validateInstanceIso(task: Task): Promise<void> {
  const { uuid, instance_info: instance } = task.node;
  const { boot_iso: own, image_source: image } = instance;
  if (own && image) throw invalidParameter("An 'image_source' and 'boot_iso' parameter may not be specified at the same time.");
  const { boot_iso: iso, kernel, ramdisk } = { ...instance, ...(await inMemoryImages(task)) } as JsonObject;
  if (text(iso) !== undefined) return void locateImage(String(iso), task.options);
  requireAll(`Cannot validate image information for node ${uuid} because one or more parameters are missing from its instance_info`, {
    kernel,
    ramdisk,
  });
  instanceArguments(task);
}

export async function instanceIso(task: Task): Promise<BootIso> {
  await validateInstanceIso(task);
  const { boot_iso: iso, kernel, ramdisk, ramdisk_image_download_source: source } = task.node.instance_info;
  if (text(iso) !== undefined) return givenIso(task, String(iso), source);
  return {
    kind: 'iso',
    kernel: await servable(String(kernel), false, task),
    ramdisk: await servable(String(ramdisk), false, task),
    ...(await loaders(task)),
    kernel_args: instanceArguments(task),
    publisher: '',
    files: {},
    grub_config_path: task.options['DEFAULT.grub_config_path'],
  };
}
