/** Whether a deployment is asked to end with a kexec, and what on the node prevents it (docs/kexec.md). */
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import { isDeferred } from '../../model/internal-info';
import { BOOLEAN_WORDS, str, toBoolean } from '../../model/python';
import type { JsonObject, NodeRecord } from '../../model/records';
import { shortened } from '../../model/text';
import type { Task } from '../interfaces';
import { isTrue, requestsSecureBoot } from './boot-settings';

/** The member of instance_info, then of driver_info, that overrides [deploy]kexec. */
export const KEXEC = 'deploy_kexec';
const FIELDS = ['instance_info', 'driver_info'] as const;
/** Characters of a wrong value in the message about it. */
const MAX_SHOWN = 100;

/** Undefined: no value is given. Throws InvalidParameterValue with the field's name unless it is a boolean. */
function valueIn(field: (typeof FIELDS)[number], value: unknown): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  const truth = toBoolean(value);
  if (truth !== undefined) return truth;
  throw new Fault('InvalidParameterValue', {
    message: `Invalid value of ${field}/${KEXEC}: Unrecognized value '${shortened(str(value), MAX_SHOWN)}', acceptable values are: ${BOOLEAN_WORDS}`,
  });
}
/** Checks the fields that are given, when they are set. Throws InvalidParameterValue. */
export function checkKexec(given: Readonly<Partial<Record<(typeof FIELDS)[number], JsonObject | null>>>): void {
  for (const field of FIELDS) valueIn(field, given[field]?.[KEXEC]);
}
/** Whether deployments of the node end with a kexec, if nothing prevents it. Throws InvalidParameterValue. */
export const wantsKexec = (node: Pick<NodeRecord, (typeof FIELDS)[number]>, options: Pick<Options, 'deploy.kexec'>): boolean => {
  const [instance, machine] = FIELDS.map((field) => valueIn(field, node[field][KEXEC]));
  return instance ?? machine ?? options['deploy.kexec'];
};

/** What prevents a kexec, with the reason that operators read. */
const OBSTACLES: readonly (readonly [prevents: (task: Pick<Task, 'node' | 'driver'>) => boolean, reason: (node: NodeRecord) => string])[] =
  [
    [
      ({ node }) => isTrue(node.driver_info['deploy_forces_oob_reboot']),
      () => 'driver_info/deploy_forces_oob_reboot asks for a reboot by the BMC',
    ],
    [
      ({ driver }) => driver.network.sharesNetwork !== true,
      ({ network_interface: network }) =>
        `the network interface ${network ?? ''} may move the machine to another network, which needs a reboot`,
    ],
    [({ node }) => requestsSecureBoot(node), () => 'the instance is asked for secure boot, in which the firmware checks the boot loader'],
    [({ node }) => isDeferred('fast track', node.driver_internal_info), () => 'an update of firmware needs a reboot'],
  ];
/** Why the machine will reboot; undefined: nothing on the node prevents a kexec. */
export const kexecObstacle = (task: Pick<Task, 'node' | 'driver'>): string | undefined =>
  OBSTACLES.find(([prevents]) => prevents(task))?.[1](task.node);
