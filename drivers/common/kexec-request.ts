/** Whether the instance or the ramdisk of a node is started by kexec, and what on the node prevents it (docs/kexec.md). */
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import { isDeferred } from '../../model/internal-info';
import { BOOLEAN_WORDS, str, toBoolean } from '../../model/python';
import type { JsonObject, NodeRecord, ResidentAgent } from '../../model/records';
import { shortened } from '../../model/text';
import type { Task } from '../interfaces';
import { isTrue, requestsSecureBoot } from './boot-settings';

/** The member of instance_info, then of driver_info, that overrides [deploy]kexec. */
export const KEXEC = 'deploy_kexec';
/** The member of driver_info that overrides [deploy]resident_kexec. */
export const RESIDENT_KEXEC = 'resident_kexec';
const FIELDS = ['instance_info', 'driver_info'] as const;
/** Characters of a wrong value in the message about it. */
const MAX_SHOWN = 100;

/** Undefined: no value is given. Throws InvalidParameterValue with the field's name unless it is a boolean. */
function valueIn(field: (typeof FIELDS)[number], key: string, value: unknown): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  const truth = toBoolean(value);
  if (truth !== undefined) return truth;
  throw new Fault('InvalidParameterValue', {
    message: `Invalid value of ${field}/${key}: Unrecognized value '${shortened(str(value), MAX_SHOWN)}', acceptable values are: ${BOOLEAN_WORDS}`,
  });
}
/** Checks the fields that are given, when they are set. Throws InvalidParameterValue. */
export function checkKexec(given: Readonly<Partial<Record<(typeof FIELDS)[number], JsonObject | null>>>): void {
  for (const field of FIELDS) valueIn(field, KEXEC, given[field]?.[KEXEC]);
  valueIn('driver_info', RESIDENT_KEXEC, given.driver_info?.[RESIDENT_KEXEC]);
}
/** Whether deployments of the node end with a kexec, if nothing prevents it. Throws InvalidParameterValue. */
export const wantsKexec = (node: Pick<NodeRecord, (typeof FIELDS)[number]>, options: Pick<Options, 'deploy.kexec'>): boolean => {
  const [instance, machine] = FIELDS.map((field) => valueIn(field, KEXEC, node[field][KEXEC]));
  return instance ?? machine ?? options['deploy.kexec'];
};
/** Whether the agent in the instance starts the ramdisk, if nothing prevents it. Throws InvalidParameterValue. */
export const wantsResidentKexec = (node: Pick<NodeRecord, 'driver_info'>, options: Pick<Options, 'deploy.resident_kexec'>): boolean =>
  valueIn('driver_info', RESIDENT_KEXEC, node.driver_info[RESIDENT_KEXEC]) ?? options['deploy.resident_kexec'];

type Checked = Pick<Task, 'node' | 'driver'>;
/** What prevents a kexec, with the reason that operators read. */
type Obstacles = readonly (readonly [prevents: (task: Checked) => boolean, reason: (node: NodeRecord) => string])[];
const BOTH_WAYS: Obstacles = [
  [
    ({ driver }) => driver.network.sharesNetwork !== true,
    ({ network_interface: network }) =>
      `the network interface ${network ?? ''} may move the machine to another network, which needs a reboot`,
  ],
  [({ node }) => isDeferred('fast track', node.driver_internal_info), () => 'an update of firmware needs a reboot'],
];
const OBSTACLES: Obstacles = [
  [
    ({ node }) => isTrue(node.driver_info['deploy_forces_oob_reboot']),
    () => 'driver_info/deploy_forces_oob_reboot asks for a reboot by the BMC',
  ],
  ...BOTH_WAYS,
  [({ node }) => requestsSecureBoot(node), () => 'the instance is asked for secure boot, in which the firmware checks the boot loader'],
];
const RESIDENT_OBSTACLES: Obstacles = [
  ...BOTH_WAYS,
  [
    ({ driver }) => driver.boot.bootsFromNetwork !== true,
    ({ boot_interface: boot }) => `the boot interface ${boot ?? ''} boots the ramdisk from a medium, and not from the network`,
  ],
  [({ node }) => requestsSecureBoot(node), () => 'the instance is asked for secure boot, in which its kernel starts no other'],
];
const firstOf = (obstacles: Obstacles, task: Checked): string | undefined => obstacles.find(([prevents]) => prevents(task))?.[1](task.node);
/** Why the machine will reboot into the instance; undefined: nothing on the node prevents a kexec. */
export const kexecObstacle = (task: Checked): string | undefined => firstOf(OBSTACLES, task);
/** Why the machine will reboot into the ramdisk; undefined: nothing that the server knows prevents a kexec. */
export const residentObstacle = (task: Checked, agent: ResidentAgent | undefined): string | undefined =>
  firstOf(RESIDENT_OBSTACLES, task) ??
  (agent === undefined
    ? 'the instance has no token for a resident agent'
    : agent.url === null
      ? 'the resident agent of the instance has never registered'
      : undefined);
