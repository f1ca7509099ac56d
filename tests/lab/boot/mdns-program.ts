/**
 * Multicast DNS alone, for the lab, in two forms of `node mdns-program.js`:
 * `announce SERVICE URL INTERFACE` runs until SIGTERM (prints `ready`, and warnings as lines); `lookup SERVICE` prints the URL or nothing.
 */
import { systemClock } from '../../../model/clock';
import { findService, mdnsInterfaces, urlOf } from '../../../wire/dns/mdns';
import { announcedAt } from '../../../wire/dns/mdns-endpoint';
import { announceServices } from '../../../wire/dns/mdns-responder';

async function main([verb, service = '', url = '', name = '']: readonly string[]): Promise<void> {
  if (verb === 'lookup') {
    const patience = { attempts: 5, waitMs: 1000, clock: systemClock, signal: new AbortController().signal };
    const found = await findService(service, { interfaces: mdnsInterfaces(), ...patience });
    process.stdout.write(`${(found && urlOf(found)) ?? ''}\n`);
    return;
  }
  const responder = await announceServices({
    services: [await announcedAt(service, url, { ipa_debug: 'True' })],
    interfaces: mdnsInterfaces([name]),
    attempts: 2,
    clock: systemClock,
    random: Math.random,
    warn: (message) => void process.stdout.write(`${message}\n`),
  });
  process.stdout.write('ready\n');
  process.once('SIGTERM', () => void responder.stop());
}
main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
