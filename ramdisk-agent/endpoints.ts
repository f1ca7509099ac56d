/** Where the API and the introspection service are: as the command line says, or as multicast DNS tells, where it is asked to. */
import { urlOf, type DiscoveredService } from '../wire/dns/mdns';
import { AgentError } from './system/errors';
import type { Machine } from './machine';

const BY_MDNS = 'mdns';
export interface Endpoints {
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
 * Nobody proves that he is who answers: it is asked only where the command line says `mdns`, or ipa-use-mdns and no URL. Rejects when what
 * the command line wants to be found is not.
 */
export async function endpoints(machine: Machine, signal: AbortSignal): Promise<Endpoints> {
  const { apiUrls: given, inspectionUrls: inspection, useMdns } = machine.parameters;
  const wanted = given.includes(BY_MDNS);
  const api = wanted || (useMdns && given.length === 0) ? await find(machine, 'baremetal', signal) : undefined;
  if (wanted && !api) throw notFound('baremetal');
  const apiUrls = api ? [api.url] : given.filter((url) => url !== BY_MDNS);
  if (inspection.includes(BY_MDNS)) {
    const service = await find(machine, 'baremetal-introspection', signal);
    if (!service) throw notFound('baremetal-introspection');
    return { apiUrls, inspectionUrls: [`${service.url}/v1/continue`] };
  }
  // Of what the API's record tells besides, ironic-python-agent takes this (and a time server) unless told otherwise.
  const told = api?.params['ipa_inspection_callback_url'];
  return { apiUrls, inspectionUrls: told !== undefined && inspection.length === 0 ? [told] : inspection };
}
