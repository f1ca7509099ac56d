/** The health check and the metrics: for the API, and on a port of their own if one is configured. */
import { watchDelay } from '../api/http/event-loop';
import { createHealthcheck } from '../api/http/healthcheck';
import { createProbes, probeListener, type Probes } from '../api/http/probes';
import { serverOptions } from '../api/server';
import { tlsOf } from '../config/tls';
import type { OpenStore } from '../store/postgres';
import type { StartContext } from './context';
import { listenHttp } from './http-listener';
import { clientLimits } from './listeners';
import { withoutMachines } from './metrics';

/** @returns those of the API */
export async function startProbes(
  { given, log, clock, metrics, scrape, stops, reloads, loginStatus }: StartContext,
  store: OpenStore,
): Promise<Probes> {
  const delay = watchDelay();
  stops.push(async () => delay.stop());
  const healthcheck = createHealthcheck(
    given,
    { isDatabaseUp: () => store.isUp(), lastingDelay: () => delay.lasting(), loginRefusal: () => loginStatus.refusal },
    () => clock.now(),
  );
  const [port, path] = [given['metrics.prometheus_port'], given['metrics.prometheus_unix_socket']];
  if (port !== null || path !== null) {
    const listener = await listenHttp({
      options: { ...serverOptions(given), expectsProxyHeaders: path !== null && given['api.unix_socket_proxy_protocol'] },
      limits: clientLimits(given, metrics, 'metrics'),
      ...(path === null
        ? {
            address: { host: given['metrics.prometheus_host'], port: port! },
            what: 'metrics, [metrics]prometheus_host and prometheus_port',
          }
        : { address: { path, mode: 0o600 }, what: 'metrics, [metrics]prometheus_unix_socket' }),
      tls: tlsOf(given, 'metrics'),
      log,
    });
    reloads.push(() => listener.reload());
    stops.push(() => listener.close());
    const answer = probeListener(createProbes({ scrape, healthcheck }), log);
    listener.answer((request, response) => void answer(request, response));
  }
  return createProbes({
    scrape: given['metrics.public'] ? withoutMachines(scrape) : undefined,
    healthcheck: given['healthcheck.enabled'] ? healthcheck : undefined,
  });
}
