/** The URLs of the API and the introspection service: from the command line, or by multicast DNS if configured. */
import { urlOf, type DiscoveredService } from '../wire/dns/mdns';
import { AgentError } from '../model/agent/errors';
import type { Machine } from './machine';

const BY_MDNS = 'mdns';
interface Endpoints {
  readonly apiUrls: readonly string[];
  readonly inspectionUrls: readonly string[];
}

async function find(
  machine: Machine,
  service: string,
  signal: AbortSignal,
): Promise<(DiscoveredService & { readonly url: string }) | undefined> {
  const found = await machine.findService(service, signal);
  const url = found && urlOf(found);
  if (!found || url === undefined) return undefined;
  machine.log.info(`Multicast DNS: ${service} is at ${url}`);
  return { ...found, url };
}
const notFound = (service: string): AgentError =>
  new AgentError('ServiceLookupFailure', `No service ${service} was found by multicast DNS`);

/**
 * Multicast DNS is not authenticated. It is used only for the URL `mdns`, or with ipa-use-mdns and no URL. Rejects when a service that the
 * command line requires is not found.
 */
export async function endpoints(machine: Machine, signal: AbortSignal): Promise<Endpoints> {
  const { apiUrls: given, inspectionUrls: inspection, useMdns } = machine.parameters;
  const required = given.includes(BY_MDNS);
  const api = required || (useMdns && given.length === 0) ? await find(machine, 'baremetal', signal) : undefined;
  if (required && !api) throw notFound('baremetal');
  const apiUrls = api ? [api.url] : given.filter((url) => url !== BY_MDNS);
  if (inspection.includes(BY_MDNS)) {
    const service = await find(machine, 'baremetal-introspection', signal);
    if (!service) throw notFound('baremetal-introspection');
    return { apiUrls, inspectionUrls: [`${service.url}/v1/continue`] };
  }
  // Without a configured URL, the API's mDNS record may name the one for inspection data. ironic-python-agent also takes a time server
  // from the record.
  const announced = api?.params['ipa_inspection_callback_url'];
  return { apiUrls, inspectionUrls: announced !== undefined && inspection.length === 0 ? [announced] : inspection };
}
