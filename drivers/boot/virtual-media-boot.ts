/** The boot interfaces of Redfish machines that need no DHCP server of ours: from virtual media, and by a URL that the BMC tells the firmware. */
import { Fault } from '../../model/errors';
import type { MediumContent, MediumRole } from '../../model/records';
import { member, textsOf } from '../../wire/redfish';
import { ramdiskMode } from '../agent/ramdisk';
import {
  canConfigure,
  instanceIso,
  isoProperties,
  ramdiskIso,
  validateInstanceIso,
  validateIso,
  viaRemovable,
  type BootIso,
} from './boot-iso';
import { checkBootMode, configureSecureBoot, forgetSecureBoot, setBootDevice, syncBootMode } from '../common/boot-settings';
import { validateCapabilities } from '../common/capabilities';
import { configdriveOf } from '../agent/configdrive';
import { isFastTrack } from '../agent/fast-track';
import { download } from '../common/images';
import type { BootInterface, Task } from '../interfaces';
import { publish, unpublish } from '../common/media';
import { canBeOff } from '../common/power-cycle';
import { onSystem } from '../redfish/target';
import { ejectMedia, insertMedium, typeOfDrive, type MediaType } from '../redfish/virtual-media';

const TOKEN_BYTES = 32;
/** Roles of what a boot needs; what users attach is theirs. */
const ROLES: readonly MediumRole[] = ['boot', 'parameters', 'configdrive'];

const validate = async (task: Task): Promise<void> => {
  validateCapabilities(task.node);
  validateIso(task, ramdiskMode(task.node));
  if (task.driver.deploy.inMemory && (await task.driver.storage.shouldWriteImage(task))) validateInstanceIso(task);
  await checkBootMode(task);
};

const urlFor = (task: Task, iso: BootIso): Promise<string> | string => (iso.kind === 'elsewhere' ? iso.url : publish(task, 'boot', iso));

/**
 * What the agent is told, with the token that it shows us then: made now, since the medium is its alone, so that no other machine may ask
 * for it.
 */
async function parametersFor(task: Task, kernelArgs: Readonly<Record<string, string>>): Promise<Readonly<Record<string, string>>> {
  const callback = task.options['deploy.external_callback_url']?.replace(/\/+$/, '');
  const inspection = kernelArgs['ipa-inspection-callback-url'];
  const told: Record<string, string> = { ...kernelArgs, boot_method: 'vmedia' };
  if (callback !== undefined) {
    told['ipa-api-url'] = callback;
    if (inspection?.endsWith('/v1/continue_inspection')) told['ipa-inspection-callback-url'] = `${callback}/v1/continue_inspection`;
  }
  if (!canConfigure(task, ramdiskMode(task.node))) return told;
  const token = task.random(TOKEN_BYTES).toString('base64url');
  await task.saveInternal({ agent_secret_token: token, agent_secret_token_pregenerated: true });
  return { ...told, 'ipa-agent-token': token };
}

/** USB before floppy disks, which hardly any machine has now. */
const REMOVABLE: readonly MediaType[] = ['USBStick', 'Floppy'];
async function insertParameters(task: Task, parameters: Readonly<Record<string, string>>): Promise<void> {
  const type = await typeOfDrive(task, REMOVABLE);
  if (type === undefined) {
    task.log.warn('config_via_removable is asked for, but the BMC has neither a virtual USB stick nor a floppy drive');
    return;
  }
  const api = { 'ipa-api-url': task.options['service_catalog.endpoint_override'], ...parameters };
  await insertMedium(task, type, await publish(task, 'parameters', { kind: 'parameters', parameters: api }));
}

/** Bytes, of a config drive behind a URL. */
const MAX_CONFIGDRIVE = 64 << 20;
/** As gzipped images look in base64. */
const PACKED = /^H4sI[\w+/=\s]*$/;
/** Behind a URL there is the same text as in the node, or the image itself. */
async function configdriveContent(task: Task, given: string): Promise<MediumContent> {
  if (!given.includes('://')) return { kind: 'packed', data: given };
  const data = (await download(given, task.signal, MAX_CONFIGDRIVE)).toString('latin1');
  return PACKED.test(data) ? { kind: 'packed', data } : { kind: 'image', source: given };
}
async function insertConfigdrive(task: Task): Promise<void> {
  const given = await configdriveOf(task);
  if (given === undefined) return;
  const url = await publish(task, 'configdrive', await configdriveContent(task, given));
  await insertMedium(task, 'USBStick', url).catch((error: unknown) => {
    if (!(error instanceof Fault) || error.name !== 'InvalidParameterValue') throw error;
    const message = `Cannot attach configdrive for node ${task.node.uuid}: no suitable virtual USB slot has been found (${error.message})`;
    throw new Fault('InvalidParameterValue', { message }, { cause: error });
  });
}

/** Takes out what a boot put in, and serves it no more. */
async function ejectAll(task: Task): Promise<void> {
  const stick = await task.media.ofNode(task.node.uuid, 'configdrive');
  const types: readonly MediaType[] = ['CD', ...(viaRemovable(task) ? REMOVABLE : []), ...(stick ? (['USBStick'] as const) : [])];
  await ejectMedia(task, types);
  await unpublish(task, ROLES);
}

/** Where a rescue system or an instance runs, it goes on. */
const mustRunOn = ({ node }: Task): boolean => ramdiskMode(node) === 'rescue';
/** Taken over by another conductor: it runs already. An adopted instance on a disk does too. */
const runsAlready = ({ node, driver }: Task): boolean =>
  node.provision_state === 'active' || (node.provision_state === 'adopting' && !driver.deploy.inMemory);

export const redfishVirtualMediaBoot: BootInterface = {
  properties: isoProperties,
  bootsInMemory: true,
  attachesConfigdrive: true,
  validate,
  validateInspection: async (task) => validateIso(task, 'deploy'),
  validateRescue: async (task) => validateIso(task, 'rescue'),
  prepareRamdisk: async (task, kernelArgs) => {
    const mode = ramdiskMode(task.node);
    if (await isFastTrack(task)) {
      if ((await typeOfDrive(task, ['CD'], true)) !== undefined) return;
      task.log.warn('Fast track is possible, but no ISO is inserted: the ramdisk is booted anew');
    }
    if (canBeOff(task)) await task.power('power off');
    const parameters = await parametersFor(task, kernelArgs);
    await syncBootMode(task);
    const iso = await ramdiskIso(task, mode, parameters);
    if (viaRemovable(task)) await insertParameters(task, parameters);
    await insertMedium(task, 'CD', await urlFor(task, iso));
    await setBootDevice(task, 'cdrom', false);
  },
  cleanUpRamdisk: async (task) => {
    if (await isFastTrack(task)) return;
    if (canBeOff(task) && !mustRunOn(task)) await task.power('power off');
    await ejectAll(task);
  },
  prepareInstance: async (task) => {
    if (runsAlready(task)) return;
    await ejectAll(task);
    await syncBootMode(task);
    await configureSecureBoot(task);
    if (!task.driver.deploy.inMemory) return setBootDevice(task, 'disk', true);
    await insertMedium(task, 'CD', await urlFor(task, await instanceIso(task)));
    await insertConfigdrive(task);
    await setBootDevice(task, 'cdrom', true);
  },
  cleanUpInstance: async (task) => {
    await ejectAll(task);
    await forgetSecureBoot(task);
  },
};

/** Throws UnsupportedHardwareFeature: the firmware must say that it boots by HTTP. */
const validateHttp = (task: Task): Promise<void> =>
  onSystem(task, undefined, async ({ body }) => {
    const allowed = textsOf(member(body, 'Boot', 'BootSourceOverrideTarget@Redfish.AllowableValues')) ?? [];
    if (!allowed.includes('UefiHttp')) throw new Fault('UnsupportedHardwareFeature', { node: task.node.uuid, feature: 'UefiHttp boot' });
  });

export const redfishHttpsBoot: BootInterface = {
  properties: isoProperties,
  bootsInMemory: true,
  validate: async (task) => {
    await validateHttp(task);
    await validate(task);
  },
  validateInspection: async (task) => validateIso(task, 'deploy'),
  validateRescue: async (task) => validateIso(task, 'rescue'),
  prepareRamdisk: async (task, kernelArgs) => {
    if (await isFastTrack(task)) return;
    if (canBeOff(task)) await task.power('power off');
    const parameters = await parametersFor(task, kernelArgs);
    await syncBootMode(task);
    await publishFor(task, await ramdiskIso(task, ramdiskMode(task.node), parameters));
    await setBootDevice(task, 'uefihttp', false);
  },
  cleanUpRamdisk: async (task) => {
    if (!(await isFastTrack(task))) await unpublish(task, ROLES);
  },
  prepareInstance: async (task) => {
    if (runsAlready(task)) return;
    await unpublish(task, ROLES);
    await syncBootMode(task);
    await configureSecureBoot(task);
    if (!task.driver.deploy.inMemory) return setBootDevice(task, 'disk', true);
    await publishFor(task, await instanceIso(task));
    await setBootDevice(task, 'uefihttp', true);
  },
  cleanUpInstance: async (task) => {
    await unpublish(task, ROLES);
    await forgetSecureBoot(task);
  },
};
/** The management interface finds the URL in the row. */
async function publishFor(task: Task, iso: BootIso): Promise<void> {
  await publish(task, 'boot', iso.kind === 'elsewhere' ? { kind: 'image', source: iso.url } : iso);
}
