/** A conductor with the real drivers. Every interface of fake-hardware is enabled, unless the options say otherwise. */
import { randomBytes } from 'node:crypto';
import type { Options } from '../../../config/options';
import { startConductor, type RunningConductor } from '../../../conductor/index';
import { HARDWARE_TYPES, INTERFACES } from '../../../drivers/index';
import type { Clock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { silentMetrics } from '../../../model/metrics';
import type { Store } from '../../../store/store';
import { optionsOf } from '../options';
import { servicesOf } from '../services';

/** Options for `startFake`. */
export const FAKE: Partial<Options> = {
  'DEFAULT.enabled_hardware_types': ['fake-hardware'],
  ...Object.fromEntries(
    ['bios', 'boot', 'console', 'deploy', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'storage', 'vendor'].map(
      (kind) => [`DEFAULT.enabled_${kind}_interfaces`, ['fake']],
    ),
  ),
};

export async function startFake(store: Store, clock: Clock, changes: Partial<Options> = {}): Promise<RunningConductor> {
  const nowhere = { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} };
  return startConductor({
    metrics: silentMetrics,
    store,
    clock,
    options: optionsOf(changes),
    log: silentLog,
    random: randomBytes,
    connections: { ipmi: nowhere, redfish: nowhere, services: servicesOf() },
    interfaces: INTERFACES,
    hardwareTypes: HARDWARE_TYPES,
  });
}
