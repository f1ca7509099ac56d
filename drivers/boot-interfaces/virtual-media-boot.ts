/**
 * The boot interfaces for Redfish machines that do not use our DHCP service. The machines boot from virtual media, or by a URL that the BMC
 * passes to the firmware.
 */
import { newSecret } from '../../model/masks';
import { Fault } from '../../model/errors';
import type { MediumContent, MediumRole } from '../../model/records';
import { allowableValues, member } from '../../wire/redfish';
import { apiUrlOf, ramdiskMode } from '../agent/ramdisk';
import {
  canConfigure,
  instanceIso,
  isoProperties,
  ramdiskIso,
  validateInstanceIso,
  validateIso,
  usesConfigViaRemovable,
  type BootIso,
} from './boot-iso';
import { checkBootMode, configureSecureBoot, forgetSecureBoot, setBootDevice, syncBootMode } from '../common/boot-settings';
import { validateCapabilities } from '../common/capabilities';
import { configdriveOf } from '../agent/configdrive';
import { isFastTrack } from '../agent/fast-track';
import { download } from '../common/images';
import type { BootInterface, Property, Task } from '../interfaces';
import { publish, publishMedium, publishOnShare, unpublish, unpublishFromShare } from '../common/media';
import { shareFor } from '../common/media-shares';
import { canPowerOff } from '../common/power-cycle';
import { onSystem } from '../redfish/target';
import { checkVirtualCd, transportProtocol, validateMediaUrl, validateVirtualCd } from '../redfish/media-support';
import { ejectMedia, insertMedium, typeOfDrive, type MediaType } from '../redfish/virtual-media';
import { withoutEndSlashes } from '../../wire/urls';

/** driver_internal_info: the protocol by which the BMC got the boot ISO. */
const PROTOCOL = 'vmedia_transport_protocol';
const TRANSPORT: Readonly<Record<string, Property>> = {
  vmedia_transport_protocol: {
    description:
      "The protocol by which the BMC gets the boot ISO: 'HTTP', 'HTTPS', 'NFS' or 'CIFS'. It is sent as TransferProtocolType. NFS and CIFS need the options of [nfs] or [cifs]. If not set, the BMC takes the protocol from the URL.",
  },
};
/** The roles that boot interfaces publish. Other media belong to users. */
const ROLES: readonly MediumRole[] = ['boot', 'parameters', 'configdrive'];

const validate = async (task: Task): Promise<void> => {
  validateCapabilities(task.node);
  validateIso(task, ramdiskMode(task.node));
  if (task.driver.deploy.inMemory && (await task.driver.storage.shouldWriteImage(task))) await validateInstanceIso(task);
  await checkBootMode(task);
};

const urlFor = (task: Task, iso: BootIso): Promise<string> | string =>
  iso.kind === 'elsewhere' ? iso.url : publishMedium(task, 'boot', iso);

/**
 * The agent's parameters with its token. The token is created now: the medium is only for this machine, so no other machine may request a
 * token for the node.
 */
async function parametersFor(task: Task, kernelArgs: Readonly<Record<string, string>>): Promise<Readonly<Record<string, string>>> {
  const callback = withoutEndSlashes(task.options['deploy.external_callback_url']);
  const inspection = kernelArgs['ipa-inspection-callback-url'];
  const parameters: Record<string, string> = { ...kernelArgs, boot_method: 'vmedia' };
  if (callback !== undefined) {
    parameters['ipa-api-url'] = callback;
    if (inspection?.endsWith('/v1/continue_inspection')) parameters['ipa-inspection-callback-url'] = `${callback}/v1/continue_inspection`;
  }
  if (!canConfigure(task, ramdiskMode(task.node))) return parameters;
  const token = newSecret(task.random);
  await task.saveInternal({ agent_secret_token: token, agent_secret_token_pregenerated: true });
  return { ...parameters, 'ipa-agent-token': token };
}

/** USB first: hardly any machine still has floppy drives. */
const REMOVABLE: readonly MediaType[] = ['USBStick', 'Floppy'];
async function insertParameters(task: Task, parameters: Readonly<Record<string, string>>): Promise<void> {
  const type = await typeOfDrive(task, REMOVABLE);
  if (type === undefined) {
    task.log.warn('config_via_removable is set, but the BMC has neither a virtual USB stick nor a virtual floppy drive');
    return;
  }
  const api = { 'ipa-api-url': await apiUrlOf(task), ...parameters };
  await insertMedium(task, type, await publishMedium(task, 'parameters', { kind: 'parameters', parameters: api }));
}

/** Bytes of a config drive that is downloaded from a URL. */
const MAX_CONFIGDRIVE = 64 << 20;
/** The beginning of gzipped data in base64. */
const PACKED = /^H4sI[\w+/=\s]*$/;
/** The URL of a config drive may return gzipped data in base64, as a node has it, or the image itself. */
async function configdriveContent(task: Task, configdrive: string): Promise<MediumContent> {
  if (!configdrive.includes('://')) return { kind: 'packed', data: configdrive };
  const data = (await download(configdrive, task, MAX_CONFIGDRIVE)).toString('latin1');
  return PACKED.test(data) ? { kind: 'packed', data } : { kind: 'image', source: configdrive };
}
async function insertConfigdrive(task: Task): Promise<void> {
  const configdrive = await configdriveOf(task);
  if (configdrive === undefined) return;
  const url = await publishMedium(task, 'configdrive', await configdriveContent(task, configdrive));
  await insertMedium(task, 'USBStick', url).catch((error: unknown) => {
    if (!(error instanceof Fault) || error.name !== 'InvalidParameterValue') throw error;
    const message = `Cannot attach configdrive for node ${task.node.uuid}: no suitable virtual USB slot has been found (${error.message})`;
    throw new Fault('InvalidParameterValue', { message }, { cause: error });
  });
}

/** Ejects the media of a boot, and stops serving them. */
async function ejectAll(task: Task): Promise<void> {
  const stick = await task.media.ofNode(task.node.uuid, 'configdrive');
  const types: readonly MediaType[] = ['CD', ...(usesConfigViaRemovable(task) ? REMOVABLE : []), ...(stick ? (['USBStick'] as const) : [])];
  await ejectMedia(task, types);
  await unpublish(task, ROLES);
  const protocol = task.node.driver_internal_info[PROTOCOL];
  if (typeof protocol !== 'string') return;
  const share = sharesOf(task, protocol);
  if (share) await unpublishFromShare(task, share, 'boot');
  await task.saveInternal({ [PROTOCOL]: undefined });
}
/** Undefined also for a share that is no longer configured. */
function sharesOf(task: Task, protocol: string): ReturnType<typeof shareFor> {
  try {
    return shareFor(task, protocol);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

/** In the states of rescue and unrescue, a running rescue ramdisk or instance is not interrupted. */
const mustRunOn = ({ node }: Task): boolean => ramdiskMode(node) === 'rescue';
/** The instance already runs: another conductor took the node over, or an instance on disk is adopted. */
const runsAlready = ({ node, driver }: Task): boolean =>
  node.provision_state === 'active' || (node.provision_state === 'adopting' && !driver.deploy.inMemory);

async function insertBootIso(task: Task, iso: BootIso): Promise<void> {
  const protocol = transportProtocol(task);
  const share = shareFor(task, protocol);
  // Saved before the image is: then it is removed, whatever happens.
  if (protocol !== undefined) await task.saveInternal({ [PROTOCOL]: protocol });
  const content: MediumContent = iso.kind === 'elsewhere' ? { kind: 'image', source: iso.url } : iso;
  const url = share === undefined ? await urlFor(task, iso) : await publishOnShare(task, share, 'boot', content);
  await insertMedium(task, 'CD', url, { protocol, credentials: share?.credentials });
}
/** How machines of a kind boot from a virtual CD. */
interface VirtualCd {
  /** Throws when the machine cannot, which would otherwise show at the end of a long wait. */
  readonly validate: (task: Task) => Promise<void>;
  /** Throws when the machine would boot something else. Not every boot of a ramdisk is validated before. Absent: it boots the virtual CD. */
  readonly check?: (task: Task) => Promise<void>;
  /** Prepares the BMC before the first medium is inserted. Absent: it needs nothing. */
  readonly prepare?: (task: Task) => Promise<void>;
  readonly setBootDevice: (task: Task, persistent: boolean) => Promise<void>;
}
/** The boot interface of machines that boot from virtual media. */
export const virtualMediaBoot = (virtualCd: VirtualCd): BootInterface => {
  const withVirtualCd =
    (check: (task: Task) => Promise<void>) =>
    async (task: Task): Promise<void> => {
      await check(task);
      await virtualCd.validate(task);
    };
  return {
    properties: { ...isoProperties, ...TRANSPORT },
    bootsInMemory: true,
    attachesConfigdrive: true,
    validate: withVirtualCd(validate),
    validateInspection: withVirtualCd(async (task) => validateIso(task, 'deploy')),
    validateRescue: withVirtualCd(async (task) => validateIso(task, 'rescue')),
    prepareRamdisk: async (task, kernelArgs) => {
      const mode = ramdiskMode(task.node);
      if (await isFastTrack(task)) {
        if ((await typeOfDrive(task, ['CD'], true)) !== undefined) return;
        task.log.warn('Fast track is possible, but no ISO is inserted: the ramdisk is booted again');
      }
      await virtualCd.check?.(task);
      await validateMediaUrl(task);
      if (canPowerOff(task)) await task.power('power off');
      const parameters = await parametersFor(task, kernelArgs);
      await syncBootMode(task);
      const iso = await ramdiskIso(task, mode, parameters);
      await virtualCd.prepare?.(task);
      await insertBootIso(task, iso);
      if (usesConfigViaRemovable(task)) await insertParameters(task, parameters);
      await virtualCd.setBootDevice(task, false);
    },
    cleanUpRamdisk: async (task) => {
      if (await isFastTrack(task)) return;
      if (canPowerOff(task) && !mustRunOn(task)) await task.power('power off');
      await ejectAll(task);
    },
    prepareInstance: async (task) => {
      if (runsAlready(task)) return;
      await ejectAll(task);
      await syncBootMode(task);
      await configureSecureBoot(task);
      if (!task.driver.deploy.inMemory) return setBootDevice(task, 'disk', true);
      await virtualCd.prepare?.(task);
      await insertBootIso(task, await instanceIso(task));
      await insertConfigdrive(task);
      await virtualCd.setBootDevice(task, true);
    },
    cleanUpInstance: async (task) => {
      await ejectAll(task);
      await forgetSecureBoot(task);
    },
  };
};
export const redfishVirtualMediaBoot: BootInterface = virtualMediaBoot({
  validate: validateVirtualCd,
  check: checkVirtualCd,
  setBootDevice: (task, persistent) => setBootDevice(task, 'cdrom', persistent),
});

/** Throws UnsupportedHardwareFeature when the firmware lists its boot targets, without HTTP boot. */
const validateHttp = (task: Task): Promise<void> =>
  onSystem(task, undefined, async ({ body }) => {
    const allowed = allowableValues(member(body, 'Boot'), 'BootSourceOverrideTarget');
    if (allowed?.includes('UefiHttp') === false)
      throw new Fault('UnsupportedHardwareFeature', { node: task.node.uuid, feature: 'UefiHttp boot' });
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
    if (canPowerOff(task)) await task.power('power off');
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
/** Publishes an ISO on another server too: the management interface takes the boot URL from the medium's row. */
async function publishFor(task: Task, iso: BootIso): Promise<void> {
  await publish(task, 'boot', iso.kind === 'elsewhere' ? { kind: 'image', source: iso.url } : iso);
}
