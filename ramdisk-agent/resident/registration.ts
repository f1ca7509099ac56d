/** Tells the server where the agent in a deployed system listens, again and again, and keeps its certificate up to date. */
import { isIPv6 } from 'node:net';
import { reasonOf } from '../../model/errors';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { ownCertificate, type OwnCertificate } from '../../wire/http/certificate';
import { ask, type Trust } from '../system/http';

interface Service {
  readonly url: string;
  readonly node: string;
  readonly token: string;
}
export interface Registering {
  /** Read before each registration, since the token may be replaced. */
  readonly service: () => Service;
  /** The address of this host by which the server reaches it. */
  readonly address: (service: Service) => Promise<string>;
  readonly hostname: () => string;
  readonly port: number;
  readonly version: string;
  readonly bootId: string;
  readonly trust: Trust;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  /** Uses the certificate from now on. */
  readonly present: (certificate: OwnCertificate) => void;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 30_000;
const PAUSE_MS = 300_000;
/** After a failure; each one in a row doubles it, up to the pause. */
const FIRST_RETRY_MS = 5000;
/** The part of a pause by which it varies, so that hosts that start together do not register together. */
const JITTER = 0.3;
/** Only the server pins it, and the agent makes a new one at each start. */
const CERTIFICATE_DAYS = 3650;

/** Milliseconds until the next registration. @param random from 0 to 1. @internal */
export const pauseAfter = (failures: number, random: number): number =>
  (failures === 0 ? PAUSE_MS : Math.min(PAUSE_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10))) * (1 + JITTER * (2 * random - 1));

export async function keepRegistered(host: Registering): Promise<void> {
  const { clock, log, signal, random } = host;
  let known: { readonly address: string; readonly certificate: OwnCertificate } | undefined;
  let failures = 0;
  let last = '';
  const logOnce = (level: 'info' | 'warn', message: string): void => {
    if (message !== last) log[level](message);
    last = message;
  };
  while (!signal.aborted) {
    try {
      const service = host.service();
      const address = await host.address(service);
      if (known?.address !== address) {
        const certificate = ownCertificate(address, host.hostname(), clock.now(), random, { days: CERTIFICATE_DAYS });
        known = { address, certificate };
        host.present(certificate);
      }
      const url = `https://${isIPv6(address) ? `[${address}]` : address}:${host.port}`;
      await register(host, service, url, known.certificate);
      failures = 0;
      logOnce('info', `Registered at ${service.url} as ${url}`);
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      logOnce('warn', `The registration failed: ${reasonOf(error)}`);
    }
    await clock.sleep(pauseAfter(failures, random(4).readUInt32BE() / 2 ** 32), signal).catch(() => {});
  }
}

async function register(
  { version, bootId, trust, signal }: Registering,
  { url, node, token }: Service,
  own: string,
  { certificate }: OwnCertificate,
): Promise<void> {
  const { status, text } = await ask({
    method: 'PUT',
    url: `${url.replace(/(?<!\/)\/+$/, '').replace(/\/v1$/, '')}/v1/nodes/${encodeURIComponent(node)}/resident_agent`,
    headers: { 'content-type': 'application/json', accept: 'application/json', 'x-resident-token': token },
    body: JSON.stringify({ url: own, certificate, version, boot_id: bootId }),
    timeoutMs: TIMEOUT_MS,
    trust,
    signal,
  });
  if (status !== 204) throw new Error(`the service answers ${status} ${text.slice(0, 300)}`);
}
