/** `bloomery simulate --tree FILE`: serves files of `bloomery probe --record` as BMCs. */
import { randomBytes } from 'node:crypto';
import { systemClock } from '../model/clock';
import { addressOfMachine, hostInUrl, parseAddressRange } from '../simulator/fleet/address-range';
import { serveTree } from '../simulator/recorded/serve-tree';
import { readTree } from '../wire/redfish/recorded-tree';
import { printError, printJsonLine } from './output';

/** The login of all simulated BMCs. */
const LOGIN = { username: 'admin', password: 'password' } as const;
interface Given {
  readonly tree: readonly string[];
  readonly redfish: string;
  readonly host: string;
  readonly json?: boolean | undefined;
}
/** Serves until `stopped` is fulfilled. @throws Error that names the file, or the address */
export async function simulateTrees({ tree: files, redfish, host, json }: Given, stopped: Promise<unknown>): Promise<void> {
  const range = parseAddressRange(redfish, files.length, host);
  const services: { readonly close: () => Promise<void> }[] = [];
  try {
    for (const [index, file] of files.entries()) {
      const place = addressOfMachine(range, index);
      const tree = await readTree(file);
      const service = await serveTree({ tree, ...place, ...LOGIN, clock: systemClock, random: randomBytes });
      services.push(service);
      const address = `http://${hostInUrl(place.host)}:${service.port}`;
      if (json) printJsonLine({ tree: file, redfish: { address, ...LOGIN } });
      printError(`bloomery simulate: ${file} is at ${address}, user ${LOGIN.username}, password ${LOGIN.password}; Ctrl-C stops it`);
    }
    await stopped;
  } finally {
    for (const { close } of services) await close();
  }
}
