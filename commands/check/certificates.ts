/** The check of the certificates of the listeners. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { tlsOf } from '../../config/tls';
import { sharesDatabaseOf, tlsListeners } from '../../server/settings';
import { tlsContextOf } from '../../wire/http/listener-tls';
import type { HostCheck, Result } from './check-row';

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;

/** @internal @param now in milliseconds since the epoch */
export function certificateFinding(certificate: Pick<X509Certificate, 'validFrom' | 'validTo'>, path: string, now: number): Result {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  if (now < from) return ['warning', `${path} is valid only from ${certificate.validFrom}: compare the clock`];
  if (now > to) return ['warning', `${path} expired at ${certificate.validTo}`];
  const days = Math.floor((to - now) / DAY_MS);
  return [days < SOON_DAYS ? 'warning' : 'ok', `${path} is valid for ${days} more days`];
}

export const certificates: HostCheck = {
  what: 'certificates',
  check: async ({ options, roles, databaseUrl }) => {
    const results: Result[] = [];
    for (const listener of tlsListeners(roles, sharesDatabaseOf(options, databaseUrl))) {
      const tls = tlsOf(options, listener);
      if (!tls) continue;
      // Reads the files as the listener does: certificate, key and authorities.
      tlsContextOf(tls);
      results.push(certificateFinding(new X509Certificate(readFileSync(tls.cert.path)), tls.cert.path, Date.now()));
    }
    return results;
  },
};
