/** What a machine and its BMC must have so that the machine boots from virtual media. */
import { invalidParameter } from '../../model/errors';
import { repr } from '../../model/python';
import { member, textOf } from '../../wire/redfish';
import { urlForBmc } from '../common/media';
import { shareFor } from '../common/media-shares';
import type { Task } from '../interfaces';
import { dellBootsVirtualCd } from './makers';
import { managersOf } from './managers';
import { onSystem, type SystemView } from './target';
import { needsOfMedia, typeOfDrive, validateScheme } from './virtual-media';

const PROTOCOLS: readonly string[] = ['HTTP', 'HTTPS', 'NFS', 'CIFS'];
/** TransferProtocolType of a node's boot medium (driver_info.vmedia_transport_protocol); undefined: not set. Throws InvalidParameterValue. */
export function transportProtocol({ node }: Pick<Task, 'node'>): string | undefined {
  const given = node.driver_info['vmedia_transport_protocol'] ?? '';
  const protocol = typeof given === 'string' ? given.toUpperCase() : given;
  if (protocol === '') return undefined;
  if (typeof protocol === 'string' && PROTOCOLS.includes(protocol)) return protocol;
  throw invalidParameter(
    `Node ${node.uuid} has the invalid value ${repr(given)} in driver_info/vmedia_transport_protocol. It should be one of ${PROTOCOLS.join(', ')}.`,
  );
}

/** The vendor of a Dell machine, as the node has it. */
const dellOf = ({ properties: { vendor } }: Task['node']): string | undefined =>
  typeof vendor === 'string' && /\bdell\b/i.test(vendor) ? vendor : undefined;
async function checkDell(task: Task, system: SystemView): Promise<void> {
  const { uuid, boot_interface: name } = task.node;
  const vendor = dellOf(task.node);
  if (vendor === undefined) return;
  const managers = await managersOf(system);
  const bmc = managers.find(({ body }) => member(body, 'ManagerType') === 'BMC') ?? managers[0];
  const version = textOf(member(bmc?.body, 'FirmwareVersion'));
  if (version === undefined || dellBootsVirtualCd(version)) return;
  throw invalidParameter(
    `The ${name} boot interface is not suitable for node ${uuid} with vendor ${vendor} and BMC version ${version}, the interface only supports ` +
      'iDRAC9 versions between 6.0.0.0 and 7.x.x.x. Other versions are incompatible by default and you should use the ' +
      'idrac-redfish-virtual-media boot interface instead',
  );
}

/** Throws InvalidParameterValue when the BMC has no drive for the boot medium, or the configuration no share for it. */
export async function validateCdDrive(task: Task, check?: (system: SystemView) => Promise<void>): Promise<void> {
  shareFor(task, transportProtocol(task));
  if (check) await onSystem(task, undefined, check);
  if ((await typeOfDrive(task, ['CD'])) === undefined)
    throw invalidParameter(
      `The BMC of node ${task.node.uuid} has no virtual CD or DVD drive, which the boot interface ${task.node.boot_interface} needs${await needsOfMedia(task)}`,
    );
  await validateMediaUrl(task);
}
/** Throws InvalidParameterValue when the BMC takes no CD from the URLs of this server's images, or from the configured share. */
export async function validateMediaUrl(task: Task): Promise<void> {
  const { node } = task;
  // An image of the operator's may be elsewhere: its URL is seen when it is inserted.
  if ([node.driver_info['deploy_iso'], node.driver_info['rescue_iso'], node.instance_info['boot_iso']].some(Boolean)) return;
  const share = shareFor(task, transportProtocol(task));
  await validateScheme(task, (share?.baseUrl ?? urlForBmc(task)).split(':', 1)[0]!.toLowerCase());
}
/** Throws InvalidParameterValue when the standard's boot device for CDs is another drive of this machine. */
export const checkVirtualCd = async (task: Task): Promise<void> => {
  if (dellOf(task.node) !== undefined) await onSystem(task, undefined, (system) => checkDell(task, system));
};
/** Throws InvalidParameterValue when the machine cannot boot from a virtual CD by the standard's settings. */
export const validateVirtualCd = (task: Task): Promise<void> => validateCdDrive(task, (system) => checkDell(task, system));
