/** The simulator as a command: a fleet of machines, printed as JSON lines, until SIGINT or SIGTERM. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { systemClock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { startFleet } from './fleet';

const USAGE = `simulator: machines behind Redfish and IPMI BMCs, that boot from an HTTP boot service and answer as its agent does

  --boot-url URL       of the HTTP boot service: the server's [deploy]http_url (needed)
  --count N            machines (1)
  --first N            number of the first machine (0)
  --host ADDRESS       for BMCs and agents (127.0.0.1)
  --redfish-port PORT  one Redfish service for all of them (any free port)
  --ipmi-port PORT     of the first machine's IPMI BMC; the others count up from it (any free ports)
  --boot-ms N          milliseconds that a machine takes to boot (200)
  --step-ms N          milliseconds that a step of the agent takes (0)

A machine is a line on the standard output; what the machines do follows, line by line, as {name, phase}.`;

const number = (text: string, name: string, most: number): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > most) throw new Error(`--${name} must be a number, ${most} at most`);
  return value;
};
const toStderr = (level: string) => (message: string, fields?: object) =>
  void process.stderr.write(`${JSON.stringify({ level, message, ...fields })}\n`);
const log: Log = { debug: () => {}, info: toStderr('info'), warn: toStderr('warn'), error: toStderr('error'), child: () => log };
const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

async function main(words: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...words],
    options: {
      'boot-url': { type: 'string' },
      count: { type: 'string', default: '1' },
      first: { type: 'string', default: '0' },
      host: { type: 'string', default: '127.0.0.1' },
      'redfish-port': { type: 'string', default: '0' },
      'ipmi-port': { type: 'string', default: '0' },
      'boot-ms': { type: 'string', default: '200' },
      'step-ms': { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return;
  }
  const bootUrl = values['boot-url'];
  if (bootUrl === undefined || !/^https?:\/\//.test(bootUrl)) throw new Error('--boot-url is needed: the URL of the HTTP boot service');
  const fleet = await startFleet({
    bootUrl,
    count: number(values.count, 'count', 10_000),
    first: number(values.first, 'first', 50_000),
    host: values.host,
    redfishPort: number(values['redfish-port'], 'redfish-port', 65_535),
    ipmiPort: number(values['ipmi-port'], 'ipmi-port', 65_535),
    behaviour: { bootMs: number(values['boot-ms'], 'boot-ms', 3_600_000), stepMs: number(values['step-ms'], 'step-ms', 3_600_000) },
    log,
    clock: systemClock,
    random: randomBytes,
    onPhase: (machine) => print({ name: machine.name, phase: machine.phase() }),
  });
  for (const { name, macs, redfish, ipmi } of fleet.machines) print({ name, macs, redfish, ipmi });
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  await fleet.close();
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`simulator: ${reasonOf(error)}\n`);
    process.exit(1);
  },
);
