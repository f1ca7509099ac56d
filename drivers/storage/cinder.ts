/**
 * Storage of Cinder: volumes are attached to the machine for its instance, and the volume targets get what Cinder tells about the
 * connection.
 */
import { retry } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { toBoolean } from '../../model/python';
import type { VolumeTargetRecord } from '../../model/records';
import { machineCapabilities } from '../common/capabilities';
import type { StorageInterface, Task } from '../interfaces';
import { unknownType, writesImage } from './boot-volume';
import {
  attach,
  beginDetaching,
  connect,
  describeUse,
  detach,
  disconnect,
  findVolume,
  reserve,
  unreserve,
  type Connector,
} from './cinder-volumes';

const ISCSI_TYPES = ['iqn'];
const FIBRE_CHANNEL_TYPES = ['wwpn', 'wwnn'];
/** Volume type → what it takes. */
const KINDS = {
  iscsi: {
    capability: 'iscsi_boot',
    connectors: ISCSI_TYPES,
    label: 'iSCSI',
    missing: 'no iSCSI connectors are configured for the node.',
    notSet: "the capability 'iscsi_boot' is not set for the node.",
  },
  fibre_channel: {
    capability: 'fibre_channel_boot',
    connectors: FIBRE_CHANNEL_TYPES,
    label: 'Fibre Channel',
    missing: 'no Fibre Channel WWPNs are configured for the node volume connectors.',
    notSet: "the capability 'fibre_channel_boot' is not set on node.",
  },
} as const;
const isKind = (type: string): type is keyof typeof KINDS => Object.hasOwn(KINDS, type);

/** Throws InvalidParameterValue, StorageError. */
async function validate(task: Task): Promise<void> {
  const { node, volumes, driver } = task;
  const refuse = (reason: string, fault: 'InvalidParameterValue' | 'StorageError' = 'InvalidParameterValue'): never => {
    throw new Fault(fault, { message: `Failed to validate cinder storage interface for node ${node.uuid}. ${reason}` });
  };
  const [connectors, targets] = await Promise.all([volumes.connectors(node.uuid), volumes.targets(node.uuid)]);
  const count = (type: string): number => connectors.filter((connector) => connector.type === type).length;
  if (count('iqn') > 0 && !driver.boot.bootsVolumes)
    refuse(
      'The [pxe]/ipxe_enabled option must be set to True or the boot interface must be set to ``ipxe`` to support network booting to an iSCSI volume.',
    );
  if (count('iqn') > 1) task.log.warn('The node has several iSCSI connectors; only the first is used');
  if (count('wwpn') !== count('wwnn'))
    refuse(
      'Cinder requires both wwnn and wwpn entries for FCoE connections. There must be a wwpn entry for every wwnn entry. ' +
        `There are ${count('wwpn')} wwpn entries and ${count('wwnn')} wwnn entries.`,
      'StorageError',
    );
  const found = { iscsi: count('iqn') > 0, fibre_channel: count('wwpn') > 0 };
  const capabilities = machineCapabilities(node);
  const boots = (kind: keyof typeof KINDS): boolean => toBoolean(capabilities[KINDS[kind].capability] ?? '') === true;
  for (const kind of ['iscsi', 'fibre_channel'] as const) {
    const { capability, connectors: types, label } = KINDS[kind];
    if (boots(kind) && !found[kind])
      refuse(
        `In order to enable the '${capability}' capability for the node, an associated volume_connector type must be valid for ${label} (${types.join(', ')}).`,
      );
  }
  for (const target of targets) {
    const { uuid, volume_type: type, boot_index: index } = target;
    if (!isKind(type)) refuse(unknownType(target) ?? '');
    else if (!boots(type) && index === 0) refuse(`Volume target ${uuid} is configured for '${type}', however ${KINDS[type].notSet}`);
    else if (!found[type]) refuse(`Volume target ${uuid} is configured for '${type}', however ${KINDS[type].missing}`);
  }
  if (targets.length > 0 && !task.connections.services.cinder.isConfigured)
    refuse('Cinder is not configured: [cinder]auth_type is not set.');
}

/** Connectors of the same type beyond the first count only for Fibre Channel. Throws StorageError. @internal */
export function connectorOf(task: Task, connectors: readonly { readonly type: string; readonly connector_id: string }[]): Connector {
  const first = (type: string) => connectors.find((connector) => connector.type === type)?.connector_id;
  const all = (type: string) => connectors.filter((connector) => connector.type === type).map(({ connector_id: id }) => id);
  const given = { initiator: first('iqn'), ip: first('ip'), wwpns: all('wwpn'), wwnns: all('wwnn') };
  const known = Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string | string[]] => entry[1] !== undefined && entry[1].length > 0),
  );
  if (!['initiator', 'wwpns', 'wwnns'].some((key) => key in known))
    throw new Fault('StorageError', {
      message: `Insufficient or incompatible volume connection records for node ${task.node.uuid}. Valid connector types: ${[...FIBRE_CHANNEL_TYPES, ...ISCSI_TYPES].join(', ')}`,
    });
  const multipath = connectors.length > 1 && Object.keys(known).length > 0;
  return { ...known, host: task.node.uuid, ...(multipath ? { multipath } : {}) };
}

/**
 * Key of driver_internal_info: the volume whose attachment has begun and is not saved yet. A conductor that finds it knows that a
 * reservation of this volume is its own, and that the target has no connection information.
 */
const ATTACHING = 'attaching_volume';
const isBegun = ({ node }: Task, id: string): boolean => node.driver_internal_info[ATTACHING] === id;
const forgetBegun = (task: Task): Promise<void> => task.saveInternal({ [ATTACHING]: undefined });

async function attachVolume(task: Task, { uuid, volume_id: id }: VolumeTargetRecord, connector: Connector): Promise<void> {
  const volume = await findVolume(task, id);
  if (!volume)
    throw new Fault('StorageError', {
      message: `Failed to get volume ${id} from cinder for node ${task.node.uuid}: Volume ${id} could not be found.`,
    });
  const isAttached = volume.attachment !== undefined;
  // Whoever attached the volume has also saved its connection information.
  if (isAttached && !isBegun(task, id)) return;
  if (!isAttached && !(isBegun(task, id) && volume.status === 'attaching')) {
    await task.saveInternal({ [ATTACHING]: id });
    try {
      await reserve(task, id);
    } catch (error) {
      // What was not reserved here is not released here.
      task.signal.throwIfAborted();
      await forgetBegun(task);
      throw error;
    }
  }
  const properties = await connect(task, id, connector);
  if (!isAttached) await attach(task, id);
  await task.volumes.saveProperties(uuid, properties);
  await forgetBegun(task);
  await describeUse(task, id, 'attached');
}

/** @param tolerate whether an error is only logged, so that the rest is still done */
async function detachVolume(task: Task, id: string, connector: Connector, tolerate: boolean): Promise<void> {
  const tolerating = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      task.signal.throwIfAborted();
      if (!tolerate) throw error;
      task.log.warn('A volume cannot be detached', { volume: id, reason: reasonOf(error) });
      return undefined;
    }
  };
  const found = await tolerating(async () => ({ volume: await findVolume(task, id) }));
  const volume = found?.volume;
  const { attachment } = volume ?? {};
  let isReleased = found !== undefined;
  if (volume && attachment) {
    // An earlier attempt may have set the status `detaching`.
    if (volume.status !== 'detaching') await tolerating(() => beginDetaching(task, id));
    await tolerating(async () => {
      await disconnect(task, id, connector);
      await tolerating(() => detach(task, id, attachment.id));
      await describeUse(task, id, 'detached');
    });
  } else if (volume?.status === 'attaching' && isBegun(task, id)) {
    // It may never have been connected.
    await tolerating(() => disconnect(task, id, connector));
    isReleased = false;
    await tolerating(async () => {
      await unreserve(task, id);
      isReleased = true;
    });
  }
  // Otherwise the reservation may still be there, and the next attempt must recognise it as this node's.
  if (isReleased && isBegun(task, id)) await forgetBegun(task);
}

/** Repeated as [cinder]action_retries says. */
async function detachAll(task: Task, aborting: boolean): Promise<void> {
  const { node, volumes, options, log } = task;
  const targets = await volumes.targets(node.uuid);
  if (targets.length === 0) return;
  const connector = connectorOf(task, await volumes.connectors(node.uuid));
  const retries = options['cinder.action_retries'];
  const detach = async (attempt: number): Promise<void> => {
    // The machine of an active node is off or being powered off, which ends its connections too.
    // Without retries, the first attempt of an abort is the last: it goes on to the other volumes.
    const tolerate = node.provision_state === 'active' || (aborting && attempt > Math.min(1, retries));
    for (const { volume_id: id } of targets) await detachVolume(task, id, connector, tolerate);
  };
  await retry(task, detach, (error, attempt) => {
    if (!(error instanceof Fault) || attempt > retries) return undefined;
    log.warn('Volumes cannot be detached; trying again', { reason: error.message, attempt: attempt - 1 });
    return options['cinder.action_retry_interval'] * 1000;
  });
}

export const cinderStorage: StorageInterface = {
  validate,
  attachVolumes: async (task) => {
    const { node, volumes, signal, log } = task;
    const targets = await volumes.targets(node.uuid);
    if (targets.length === 0) return;
    const connector = connectorOf(task, await volumes.connectors(node.uuid));
    try {
      for (const target of targets) await attachVolume(task, target, connector);
    } catch (error) {
      signal.throwIfAborted();
      await detachAll(task, true).catch((also: unknown) => {
        signal.throwIfAborted();
        log.error('Volumes stay attached after a failure', { reason: reasonOf(also) });
      });
      throw error;
    }
  },
  detachVolumes: (task) => detachAll(task, false),
  shouldWriteImage: writesImage,
};
