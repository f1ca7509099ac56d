/** Announces the services by multicast DNS. */
import type { Options } from '../config/options';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { mdnsInterfaces } from '../wire/dns/mdns';
import { announcedAt } from '../wire/dns/mdns-endpoint';
import { announceServices } from '../wire/dns/mdns-responder';
import type { StoreContext } from './context';
import type { HttpListener } from './http-listener';
import { urlOf } from './listeners';
import { StartError } from './settings';

/** @param services names and URLs @returns the function that withdraws them */
async function announceByMdns(
  options: Options,
  services: readonly (readonly [name: string, url: string])[],
  log: Log,
  clock: Clock,
): Promise<() => Promise<void>> {
  const named = options['mdns.interfaces'];
  const interfaces = mdnsInterfaces(named);
  if (interfaces.length === 0)
    throw new StartError(
      named.length === 0
        ? 'mDNS: no interface has an IPv4 address'
        : `[mdns]interfaces: none of ${named.join(', ')} exists, is up and has an IPv4 address`,
    );
  const params = { ...options['mdns.params'], ...(options['DEFAULT.debug'] ? { ipa_debug: 'True' } : {}) };
  try {
    const responder = await announceServices({
      services: await Promise.all(services.map(([name, url]) => announcedAt(name, url, params))),
      interfaces,
      attempts: options['mdns.registration_attempts'],
      clock,
      random: Math.random,
      warn: (message, fields) => log.warn(message, fields),
    });
    return () => responder.stop();
  } catch (error) {
    throw new StartError(`mDNS: ${reasonOf(error)}`);
  }
}

/** Announces the services for which the options enable mDNS. */
export async function announce(
  { given, options, log, clock, stops }: StoreContext,
  hasConductor: boolean,
  inspector: HttpListener | undefined,
): Promise<void> {
  const services: (readonly [string, string])[] = [];
  if (options['conductor.enable_mdns'] && hasConductor) services.push(['baremetal', options['service_catalog.endpoint_override']]);
  if (options['DEFAULT.enable_mdns'] && inspector) {
    const callback = options['inspector_service.callback_url'];
    const own = urlOf(inspector, given, options['DEFAULT.listen_address'])!;
    services.push(['baremetal-introspection', callback === 'mdns' ? own : callback.replace(/\/v1\/continue\/?$/, '')]);
  }
  if (services.length > 0) stops.push(await announceByMdns(options, services, log, clock));
}
