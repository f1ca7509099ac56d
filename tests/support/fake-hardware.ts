/** A conductor over the drivers that there are, where every interface of fake-hardware is enabled, or as the options say. */
import { randomBytes } from 'node:crypto';
import { OPTIONS } from '../../config/options';
import { startConductor, type ConductorOptions, type RunningConductor } from '../../conductor/index';
import { HARDWARE_TYPES, INTERFACES } from '../../drivers/index';
import type { Clock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import type { Store } from '../../store/store';

const defaults = Object.fromEntries(OPTIONS.map((row) => [`${row.section}.${row.name}`, row.default]));
/** For `startFake`. */
export const FAKE: Partial<ConductorOptions> = {
  'DEFAULT.enabled_hardware_types': ['fake-hardware'],
  ...Object.fromEntries(
    ['bios', 'boot', 'console', 'deploy', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'storage', 'vendor'].map(
      (kind) => [`DEFAULT.enabled_${kind}_interfaces`, ['fake']],
    ),
  ),
};

export async function startFake(store: Store, clock: Clock, changes: Partial<ConductorOptions> = {}): Promise<RunningConductor> {
  const nowhere = { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} };
  return startConductor({
    metrics: silentMetrics,
    store,
    clock,
    options: {
      ...defaults,
      'DEFAULT.host': 'here',
      'DEFAULT.my_ip': '192.0.2.1',
      'service_catalog.endpoint_override': 'http://192.0.2.1:6385',
      'deploy.http_url': 'http://192.0.2.1:8080',
      ...changes,
    } as unknown as ConductorOptions,
    log: silentLog,
    random: randomBytes,
    connections: { ipmi: nowhere, redfish: nowhere },
    interfaces: INTERFACES,
    hardwareTypes: HARDWARE_TYPES,
  });
}
