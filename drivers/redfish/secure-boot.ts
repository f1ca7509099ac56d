/** UEFI Secure Boot of machines with a Redfish service (schema SecureBoot): on or off, and its keys. */
import { Fault } from '../../model/errors';
import {
  RedfishError,
  actionOf,
  hasMessage,
  isStatus,
  member,
  patchKept,
  patchResource,
  readLinked,
  type RedfishResource,
} from '../../wire/redfish';
import { type ManagementInterface, type Step, type Task, done } from '../interfaces';
import { bootModeOfSystem } from './boot-settings';
import { quirksOf } from './quirks';
import { onSystem, systemOf, type SystemView } from './target';
import { rebootUntilApplied } from './reboot-until-applied';

async function secureBootOf(task: Task, system: SystemView, extension: string): Promise<RedfishResource> {
  const found = await readLinked(system.ask, system, 'SecureBoot');
  if (found) return found;
  throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension });
}
const enabledOf = ({ body }: RedfishResource): boolean | null => {
  const enabled = member(body, 'SecureBootEnable');
  return typeof enabled === 'boolean' ? enabled : null;
};
const failure = (message: string): RedfishError => new RedfishError('protocol', `Redfish exception occurred. Error: ${message}`);

/** Seconds between reads of the state while the machine changes it. */
const READ_INTERVAL = 15;
export const secureBoot: NonNullable<ManagementInterface['secureBoot']> = {
  get: (task) =>
    onSystem(task, undefined, async (system) => {
      try {
        return enabledOf(await secureBootOf(task, system, 'get_secure_boot_state'));
      } catch (error) {
        // Supermicro's BMCs require a licence for it.
        if (isStatus(error, 401, 403) && hasMessage(error, 'OemLicenseNotPassed')) return null;
        throw error;
      }
    }),
  set: async (task, on) => {
    const { uuid } = task.node;
    const shown = on ? 'True' : 'False';
    const changed = await onSystem(task, undefined, async (system) => {
      const found = await secureBootOf(task, system, 'set_secure_boot_state');
      if (enabledOf(found) === on) return false;
      if (bootModeOfSystem(system) === 'bios') throw failure(`Configuring secure boot requires UEFI for node ${uuid}`);
      const change = { SecureBootEnable: on };
      const { dropsUntagged } = await quirksOf(task, system);
      // Most services show the change at the next start only.
      const written: Promise<unknown> =
        dropsUntagged && found.etag === undefined
          ? patchKept(system.ask, found, change, { clock: task.clock, signal: task.signal, isLater: true })
          : patchResource(system.ask, found, change);
      await written.catch((error: unknown) => {
        if (!(error instanceof RedfishError)) throw error;
        throw failure(`Failed to set secure boot state on node ${uuid} to ${shown}: ${error.message}`);
      });
      return true;
    });
    if (!changed) return;
    await rebootUntilApplied<boolean | null>(task, READ_INTERVAL, {
      read: async () => enabledOf(await secureBootOf(task, await systemOf(task), 'get_secure_boot_state')),
      target: on,
      timeoutMessage: (now) =>
        `Timeout reached while waiting for secure boot state of node ${uuid} to become ${shown}, current is ${now == null ? 'None' : now ? 'True' : 'False'}`,
    });
  },
};

const resetKeys =
  (type: 'ResetAllKeysToDefault' | 'DeleteAllKeys'): Step['run'] =>
  (task) =>
    onSystem(task, undefined, async (system) => {
      const { uuid } = task.node;
      const found = await secureBootOf(task, system, 'reset_keys');
      const action = actionOf(found, '#SecureBoot.ResetKeys');
      const why = (reason: string): RedfishError => failure(`Failed to reset secure boot keys on node ${uuid}: ${reason}`);
      if (!action) throw why(`The action #SecureBoot.ResetKeys is missing from the resource ${found.path}`);
      const allowed = await action.allowed(system.ask, 'ResetKeysType');
      if (allowed && !allowed.includes(type)) throw why(`${found.path} does not offer ${type}`);
      await system.ask('POST', action.target, { body: { ResetKeysType: type } }).catch((error: unknown) => {
        throw error instanceof RedfishError ? why(error.message) : error;
      });
      return done;
    });
export const SECURE_BOOT_STEPS: readonly Step[] = [
  {
    step: 'reset_secure_boot_keys_to_default',
    priority: { deploy: 0, clean: 0 },
    resumable: true,
    run: resetKeys('ResetAllKeysToDefault'),
  },
  { step: 'clear_secure_boot_keys', priority: { deploy: 0, clean: 0 }, resumable: true, run: resetKeys('DeleteAllKeys') },
];
