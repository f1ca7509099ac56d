/** Measures the requests to BMCs, by protocol and operation (never by address), and the requests to OpenStack services. */
import type { Metrics } from '../model/metrics';
import { COMMANDS } from '../wire/ipmi/constants';
import type { ServiceClient, Services } from '../wire/keystone/services';
import type { Connections } from './interfaces';

const IPMI_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries(COMMANDS).map(([name, [netFn, command]]) => [`${netFn}/${command}`, name]),
);
/** All raw commands of users share one name. */
const ipmiName = (netFn: number, command: number): string => IPMI_NAMES.get(`${netFn}/${command}`) ?? 'raw';

/** The method, and the action when there is one (DSP0266 §7.12): `POST ComputerSystem.Reset`. */
const redfishName = (method: string, path: string): string => {
  const action = /\/Actions\/(?:Oem\/)?([\w.#-]{1,60})\/?$/.exec(path)?.[1];
  return action === undefined ? method : `${method} ${action.replace(/^#/, '')}`;
};

/** The `kind` of a client's error. An error without a kind comes from an aborted request. */
const outcomeOf = (error: unknown): string => {
  const kind = (error as { kind?: unknown } | null)?.kind;
  return typeof kind === 'string' ? kind : 'aborted';
};

function measureServices(services: Services, metrics: Metrics): Services {
  const measured = ([service, client]: [string, ServiceClient]): [string, ServiceClient] => [
    service,
    {
      ...client,
      async request(path, call) {
        const took = metrics.timer();
        let outcome = 'ok';
        try {
          return await client.request(path, call);
        } catch (error) {
          outcome = outcomeOf(error);
          throw error;
        } finally {
          metrics.observe('bloomery_service_request_duration_seconds', { service, method: call?.method ?? 'GET', outcome }, took());
        }
      },
    },
  ];
  return Object.fromEntries(Object.entries(services).map(measured)) as unknown as Services;
}

export function measureConnections({ ipmi, redfish, consoles, services, ...others }: Connections, metrics: Metrics): Connections {
  const measured = async <T>(protocol: string, operation: string, work: () => Promise<T>): Promise<T> => {
    const took = metrics.timer();
    let outcome = 'ok';
    try {
      return await work();
    } catch (error) {
      outcome = outcomeOf(error);
      throw error;
    } finally {
      metrics.observe('bloomery_bmc_request_duration_seconds', { protocol, operation, outcome }, took());
    }
  };
  return {
    ...others,
    services: measureServices(services, metrics),
    consoles: consoles ? { ...consoles, openSol: (...given) => measured('ipmi', 'openSol', () => consoles.openSol(...given)) } : undefined,
    ipmi: {
      ...ipmi,
      runProgram: ipmi.runProgram
        ? (target, args, ...rest) => measured('ipmi', args[0] ?? '', () => ipmi.runProgram!(target, args, ...rest))
        : undefined,
      request: (target, netFn, command, ...rest) =>
        measured('ipmi', ipmiName(netFn, command), () => ipmi.request(target, netFn, command, ...rest)),
    },
    redfish: {
      ...redfish,
      request: (target, method, path, options) =>
        measured('redfish', redfishName(method, path), () => redfish.request(target, method, path, options)),
    },
  };
}
