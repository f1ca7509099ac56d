import type { Connections } from '../../drivers/interfaces';
import { measureConnections } from '../../drivers/measured-connections';
import { silentMetrics } from '../../model/metrics';
import { IpmiError, type IpmiTarget } from '../../wire/ipmi/client';
import { ServiceError, type Services } from '../../wire/keystone/services';
import { RedfishError, type RedfishTarget } from '../../wire/redfish';

const target = { address: 'https://user:secret@10.0.0.1' } as RedfishTarget & IpmiTarget;
const options = { timeoutMs: 1 };

/** What one request reports to the metrics, when it succeeds or fails with `failure`. */
async function measured(ask: (connections: Connections) => Promise<unknown>, failure?: Error): Promise<unknown> {
  const seen: unknown[] = [];
  const request = async (): Promise<never> => {
    if (failure) throw failure;
    return undefined as never;
  };
  const close = async (): Promise<void> => {};
  const connections = measureConnections(
    {
      ipmi: { request, close, runProgram: request },
      redfish: { request, close },
      consoles: { open: request, portOf: request, close, closeAll: close, openSol: request },
      services: { neutron: { request, close, endpoint: request, isConfigured: true } } as unknown as Services,
    },
    { ...silentMetrics, observe: (_, labels) => void seen.push(Object.values(labels).join(' ')) },
  );
  const outcome = ask(connections);
  if (failure) await expect(outcome).rejects.toBe(failure);
  else await outcome;
  expect(seen).toHaveLength(1);
  return seen[0];
}
const ipmi = (netFn: number, command: number) => (connections: Connections) =>
  connections.ipmi.request(target, netFn, command, Buffer.alloc(0), options);
const redfish = (method: 'GET' | 'POST', path: string) => (connections: Connections) =>
  connections.redfish.request(target, method, path, options);

const neutron = (connections: Connections) => connections.services.neutron.request('/ports/1', { method: 'PUT' });

it.each<[string, (connections: Connections) => Promise<unknown>, ...Error[]]>([
  ['neutron PUT ok', neutron],
  ['neutron PUT failing', neutron, new ServiceError('neutron', 'failing', 'HTTP status 409', 409)],
  ['ipmi chassisControl ok', ipmi(0, 2)],
  ['ipmi raw ok', ipmi(0x30, 0x99)],
  ['ipmi chassisControl completion', ipmi(0, 2), new IpmiError('completion', 'busy')],
  ['ipmi openSol ok', ({ consoles }) => consoles!.openSol(target, () => {}, options)],
  ['ipmi sdr ok', ({ ipmi }) => ipmi.runProgram!(target, ['sdr'], options)],
  ['redfish GET ok', redfish('GET', '/redfish/v1/Systems/00000000-0000-0000-0000-000000000001')],
  ['redfish POST ComputerSystem.Reset ok', redfish('POST', '/redfish/v1/Systems/1/Actions/ComputerSystem.Reset')],
  ['redfish POST ok', redfish('POST', `/redfish/v1/Systems/1/Actions/${'x'.repeat(100)}`)],
  ['redfish GET unreachable', redfish('GET', '/redfish/v1'), new RedfishError('unreachable', 'no route')],
  ['redfish GET aborted', redfish('GET', '/redfish/v1'), new Error('the conductor is stopping')],
])('reports one request as "%s"', async (expected, ask, ...[failure]) => expect(await measured(ask, failure)).toBe(expected));
