/** The roles api and inspector: the APIs, with their policies and the audit log. */
import type { AuditLog } from '../api/http/audit';
import type { Probes } from '../api/http/probes';
import { createIntrospectionApi } from '../api/introspection/server';
import type { Document } from '../api/schema/document';
import { createApi } from '../api/server';
import type { ScreenPlaces } from '../conductor/conductor';
import type { RunningConductor } from '../conductor/index';
import { createRouter } from '../conductor/rpc/router';
import type { Consoles } from '../drivers/consoles';
import type { HealthRule } from '../model/rules/health-rules';
import type { Notifier } from '../model/notifications';
import type { Enforcer } from '../policy/enforcer';
import { startEnforcer } from '../policy/live';
import type { UpgradeListener } from '../wire/http/upgrades';
import type { StartContext, StoreContext } from './context';
import type { Listeners } from './listeners';
import type { Rpc } from './rpc';

interface ApiParts {
  readonly document: Document;
  readonly healthRules: readonly HealthRule[];
  readonly listeners: Listeners;
  readonly probes: Probes;
  readonly notifier: Notifier;
  readonly rpc: Rpc | undefined;
  readonly conductor: RunningConductor | undefined;
  /** The consoles of the conductor in this process. */
  readonly consoles: Consoles;
  /** Absent: this process shows no screens. */
  readonly screens: ScreenPlaces | undefined;
  readonly audit: AuditLog | undefined;
  /** Absent: without the roles `api` and `inspector`. */
  readonly enforcer: Enforcer | undefined;
}

/** Throws an Error for the operator if the policy files cannot be used. */
export async function startPolicies({ given, log, stops, reloads }: StartContext): Promise<Enforcer> {
  const live = await startEnforcer(given, log.child({ component: 'api' }));
  stops.push(() => live.stop());
  reloads.push(() => live.reload());
  return live.enforcer;
}

/** Sets the handlers of the listeners. At a stop, the APIs end first, because they use all other services. */
export function startApis(context: StoreContext, parts: ApiParts): void {
  const { store, options, clock, metrics, log, stops, loginStatus, stopping } = context;
  const { listeners, document, healthRules, probes, notifier, rpc, conductor: localConductor, consoles, screens, audit, enforcer } = parts;
  const { api, inspector } = listeners;
  const conductor = createRouter({
    store,
    clock,
    log: log.child({ component: 'api' }),
    options,
    here: localConductor,
    client: rpc?.client,
  });
  const audited = audit ? { audit } : {};
  const policies = enforcer ? { enforcer } : {};
  if (inspector) {
    const introspectionLog = log.child({ component: 'introspection' });
    inspector.answer(
      createIntrospectionApi({
        store,
        conductor,
        options,
        log: introspectionLog,
        clock,
        metrics,
        document,
        loginStatus,
        signal: stopping,
        ...policies,
        ...audited,
      }),
    );
    stops.push(() => inspector.close());
  }
  if (api) {
    const apiLog = log.child({ component: 'api' });
    const services = { store, conductor, options, log: apiLog, clock, metrics, probes, notifier, document, healthRules, loginStatus };
    const apiConsoles = {
      portOf: (uuid: string): Promise<number | undefined> => consoles.portOf(uuid),
      screens,
      upgrade: (listener: UpgradeListener): void => api.upgrade(listener),
    };
    api.answer(createApi({ ...services, ...policies, consoles: apiConsoles, signal: stopping, ...audited }));
    stops.push(() => api.close());
  }
}
