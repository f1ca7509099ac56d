/** `bloomery simulate`: runs a fleet of simulated machines with BMCs until SIGINT or SIGTERM; `bloomery simulate control` controls it. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { loadOptions } from '../config/load';
import { makersOf, parseHabits, parsePersonalities, MAKERS_HELP } from './simulate-makers';
import { systemClock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { withoutUrlCredentials } from '../model/urls';
import { FAULTS, parseFaults, readFaults, type Faults } from '../simulator/bmc/faults';
import { startFleet, type Protocol } from '../simulator/fleet/fleet';
import { nodeOf, protocolOf } from '../simulator/fleet/describe-node';
import type { QemuFleet } from '../simulator/qemu/machine';
import { parseAddressRange, hostInUrl, type AddressRange } from '../simulator/fleet/address-range';
import type { Architecture } from '../simulator/qemu/platforms';
import { checkQemu } from '../simulator/qemu/programs';
import { serveRemote } from '../simulator/fleet/remote-control';
import { signatureLists } from '../simulator/qemu/uefi-variables';
import { completePausedResponses } from '../wire/http/paused-responses';
import type { HabitName } from '../simulator/redfish/makers/habits';
import type { PersonalityName } from '../simulator/redfish/makers/personalities';
import { endpoint } from './endpoint';
import { findBootUrl, registerFleet } from './register-fleet';
import { addControlCommand, CONTROL_PORT } from './simulate-control';
import { simulateTrees } from './simulate-tree';
import { printError, printJsonLine } from './output';
import { isLoopback } from '../model/idents';

const upTo =
  (most: number, least = 0) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most) throw new InvalidArgumentError(`expected a number from ${least} to ${most}.`);
    return value;
  };
const url = (text: string): string => {
  if (!/^https?:\/\/./.test(text) || !URL.canParse(text)) throw new InvalidArgumentError('expected a URL: http://…');
  return text;
};
const certificates = (path: string): Buffer => {
  try {
    return signatureLists(readFileSync(path, 'latin1'));
  } catch (error) {
    throw new InvalidArgumentError(reasonOf(error));
  }
};
/** Kind → the BMCs of a machine by its index. */
const KINDS: Readonly<Record<string, (index: number) => readonly Protocol[]>> = {
  both: () => ['ipmi', 'redfish'],
  ipmi: () => ['ipmi'],
  redfish: () => ['redfish'],
  half: (index) => (index % 2 === 0 ? ['ipmi'] : ['redfish']),
};

/** Kind → the architecture of a machine by its index. */
const ARCHITECTURES: Readonly<Record<string, (index: number) => Architecture>> = {
  x86_64: () => 'x86_64',
  aarch64: () => 'aarch64',
  half: (index) => (index % 2 === 0 ? 'x86_64' : 'aarch64'),
};

/** Parses NAME:FAULTS or FAULTS, given several times. Returns the faults of a machine by name. @internal */
export function startingFaults(given: readonly string[]): (name: string) => Faults {
  const rows = given.map((text) => {
    const [, name, faults] = /^(?:([\w.-]+):)?(.*)$/s.exec(text)!;
    return { name, faults: parseFaults(faults!) };
  });
  const ofAll = (name: string): Faults =>
    readFaults(Object.assign({}, ...rows.filter((row) => row.name === undefined || row.name === name).map(({ faults }) => faults)));
  for (const { faults } of rows) readFaults(faults);
  return ofAll;
}

/** Defaults of machines in QEMU. */
const QEMU = { memory: 2048, disk: 10, firmware: 'uefi', accelerator: 'tcg' } as const;

interface Arguments {
  readonly machines: number;
  readonly qemu: number;
  readonly qemuBridge?: string;
  readonly qemuCa?: Buffer;
  readonly qemuScreens?: string;
  readonly qemuMemory: number;
  readonly qemuDisk: number;
  readonly qemuFirmware: 'bios' | 'uefi';
  readonly qemuAccelerator: 'kvm' | 'tcg';
  readonly first: number;
  readonly seed?: number;
  readonly bmcs: string;
  readonly architecture: string;
  readonly ipmi: string;
  readonly redfish: string;
  readonly host: string;
  readonly agentPort: number;
  readonly bootUrl?: string;
  readonly configFile: readonly string[];
  readonly bootMs: number;
  readonly stepMs: number;
  readonly state?: string;
  readonly faults: readonly string[];
  readonly personality: readonly PersonalityName[];
  readonly habits: readonly HabitName[];
  readonly tree: readonly string[];
  readonly control: string;
  readonly register?: string | true;
  readonly resources?: string;
  readonly json?: boolean;
}
function qemuOf(given: Arguments): QemuFleet | undefined {
  if (given.qemu === 0) return undefined;
  const {
    qemu: count,
    qemuMemory: memoryMiB,
    qemuDisk: diskGiB,
    qemuFirmware: mode,
    qemuAccelerator: accelerator,
    qemuBridge: bridge,
    qemuCa: authorities,
    qemuScreens,
  } = given;
  const screens = qemuScreens === undefined ? undefined : resolve(qemuScreens);
  return {
    count,
    memoryMiB,
    diskGiB,
    mode,
    accelerator,
    bridge,
    authorities,
    screens,
  };
}
/** @param more of each line: which machine it is about */
function logWith(more: object): Log {
  const at = (level: string) => (message: string, fields?: object) => printError(JSON.stringify({ level, message, ...more, ...fields }));
  return { debug: () => {}, info: at('info'), warn: at('warn'), error: at('error'), child: (fields) => logWith({ ...more, ...fields }) };
}
const log = logWith({});

/** The boot service that the server's configuration names, else one that responds on its port. Warns if there is neither. */
async function findBootUrlOf(base: string, configFiles: readonly string[], signal: AbortSignal): Promise<string | undefined> {
  const { 'deploy.http_url': named, 'boot.http_port': port } = loadOptions(configFiles, process.env).options;
  const found =
    (named === null ? undefined : url(named)) ??
    (await findBootUrl(base, port, systemClock, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      return undefined;
    }));
  if (found === undefined && !signal.aborted)
    printError(
      `bloomery simulate: warning: no boot service answers on port ${port} of ${new URL(base).hostname}, so the machines do not boot ` +
        "from the network, and nodes that wait for their agent time out: set --boot-url to the server's [deploy]http_url, or name " +
        'its --config-file',
    );
  else if (found !== undefined)
    printError(`bloomery simulate: the machines boot from ${withoutUrlCredentials(found)} (--boot-url sets another)`);
  return found;
}

async function simulate(given: Arguments): Promise<void> {
  if (given.tree.length > 0) return simulateTrees(given, Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]));
  const began = performance.now();
  const { host, json } = given;
  const count = Math.max(given.machines, given.qemu);
  const place = (text: string): AddressRange => parseAddressRange(text, count, host);
  const remotePlace = given.control === 'no' ? undefined : parseAddressRange(given.control, 1, '127.0.0.1');
  if (remotePlace && !isLoopback(remotePlace.host)) throw new Error('--control: the address must be a loopback address');
  const qemu = qemuOf(given);
  const architectures = ARCHITECTURES[given.architecture]!;
  if (qemu) checkQemu({ ...qemu, architectures: [...new Set([0, 1].slice(0, qemu.count).map(architectures))] });
  await completePausedResponses();
  const stop = new AbortController();
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]).then(() => stop.abort(new Error('stopped')));
  const base = given.register === undefined ? undefined : endpoint(given.register === true ? undefined : given.register, process.env);
  const bootUrl = given.bootUrl ?? (base === undefined ? undefined : await findBootUrlOf(base, given.configFile, stop.signal));
  if (stop.signal.aborted) return;
  const fleet = await startFleet({
    count,
    first: given.first,
    host,
    agentPort: given.agentPort,
    protocols: KINDS[given.bmcs]!,
    log,
    ipmi: place(given.ipmi),
    redfish: place(given.redfish),
    faults: startingFaults(given.faults),
    maker: makersOf(given.personality, given.habits),
    clock: systemClock,
    random: randomBytes,
    behaviour: { bootMs: given.bootMs, stepMs: given.stepMs },
    qemu,
    seed: given.seed,
    architectures,
    bootUrl,
    stateFolder: given.state,
    onPhase: json ? (machine) => printJsonLine({ name: machine.name, phase: machine.phase() }) : undefined,
  });
  const undo: (() => Promise<void>)[] = [() => fleet.close()];
  try {
    const nodes = fleet.machines.map((machine, index) => nodeOf(machine, protocolOf(machine, index)));
    if (json)
      for (const { name, macs, protocols, redfish, ipmi } of fleet.machines) printJsonLine({ name, macs, protocols, redfish, ipmi });
    if (given.resources !== undefined)
      writeFileSync(given.resources, JSON.stringify({ nodes: nodes.map(({ node, ports }) => ({ ...node, ports })) }), { mode: 0o600 });
    if (remotePlace) {
      const { port, close } = await serveRemote(fleet, { ...remotePlace, log });
      undo.push(close);
      if (json) printJsonLine({ control: `http://${hostInUrl(remotePlace.host)}:${port}` });
    }
    if (base !== undefined) {
      const { created, updated } = await registerFleet(base, nodes, systemClock, stop.signal);
      printError(`bloomery simulate: ${created} nodes created at ${base}, ${updated} updated`);
    }
    const took = Math.round(performance.now() - began);
    printError(`bloomery simulate: ${count} machines ready after ${took} ms; Ctrl-C stops them`);
    await stopped;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

const gather = (value: string, before: readonly string[]): readonly string[] => [...before, value];
const faultsHelp = Object.entries(FAULTS)
  .map(([name, { about }]) => `  ${name.padEnd(16)} ${about}`)
  .join('\n');

export function addSimulateCommand(program: Command): void {
  const command = program
    .command('simulate')
    .description('Run simulated machines: BMCs with IPMI and Redfish, and machines behind them that boot, inspect and deploy.')
    .option('--machines <n>', 'number of machines', upTo(20_000, 1), 1)
    .option('--first <n>', 'number of the first machine; concurrent fleets need different numbers', upTo(60_000), 0)
    .option('--seed <n>', 'vary the hardware of the machines: processors, memory, disks, NICs (default: all the same)', upTo(2 ** 31))
    .addOption(
      new Option('--bmcs <kind>', 'BMCs of a machine; half: alternately IPMI and Redfish').choices(Object.keys(KINDS)).default('both'),
    )
    .addOption(
      new Option('--architecture <kind>', 'processors of a machine; half: alternately x86_64 and aarch64')
        .choices(Object.keys(ARCHITECTURES))
        .default('x86_64'),
    )
    .option(
      '--ipmi <place>',
      "address of the first machine's IPMI BMC; after PORT or ADDRESS:PORT, further machines use the next ports, after ADDRESS+:PORT the next addresses",
      '20000',
    )
    .option('--redfish <place>', "address of the first machine's Redfish BMC, in the same format", '20000')
    .option('--host <address>', 'address of the agents, and of BMCs without an address of their own', '127.0.0.1')
    .addOption(new Option('--agent-port <port>', 'port of the agents of all machines').argParser(upTo(65_535)).default(0, 'any free port'))
    .option(
      '--boot-url <url>',
      "URL of the server's HTTP boot service, [deploy]http_url (default: with --register that of the server, else no network boot)",
      url,
    )
    .addOption(
      new Option('--config-file <file>', 'configuration file of the server, for the boot service URL with --register; may be repeated')
        .argParser(gather)
        .default([], "the server's defaults"),
    )
    .option('--qemu <n>', 'run the first n machines as virtual machines in QEMU; at most 64', upTo(64), 0)
    .option(
      '--qemu-bridge <name>',
      "network bridge of the QEMU machines, on which the server's DHCP answers; needs root (default: an isolated network for each)",
    )
    .option('--qemu-memory <MiB>', 'memory of a QEMU machine', upTo(1_048_576, 64), QEMU.memory)
    .option('--qemu-disk <GiB>', 'disk of a QEMU machine; only written blocks take space', upTo(16_384, 1), QEMU.disk)
    .addOption(
      new Option('--qemu-firmware <kind>', 'firmware of a QEMU machine, unless its BMC selects one')
        .choices(['bios', 'uefi'])
        .default(QEMU.firmware),
    )
    .addOption(
      new Option('--qemu-accelerator <kind>', 'kvm is faster, if the host supports it').choices(['kvm', 'tcg']).default(QEMU.accelerator),
    )
    .option(
      '--qemu-ca <file>',
      'CA certificates (PEM) that the UEFI firmware of QEMU machines trusts for HTTPS boot (default: none)',
      certificates,
    )
    .option(
      '--qemu-screens <folder>',
      'folder of the Unix sockets on which the QEMU machines show their screens by VNC (default: they have no screens)',
    )
    .option('--boot-ms <n>', 'milliseconds that a machine takes to boot', upTo(3_600_000), 200)
    .option('--step-ms <n>', 'milliseconds that a step of the agent takes', upTo(3_600_000), 0)
    .option('--state <folder>', 'folder of the state of the machines; a restarted fleet continues with it')
    .addOption(
      new Option('--faults <faults>', 'faults of the BMCs, or NAME:FAULTS for one machine; may be repeated')
        .argParser(gather)
        .default([], 'none'),
    )
    .addOption(
      new Option('--personality <names>', 'makers whose Redfish services the BMCs behave as; the machines take turns (see below)')
        .argParser(parsePersonalities)
        .default([], 'none'),
    )
    .addOption(
      new Option('--habits <names>', 'single habits of makers that all BMCs have (see below)').argParser(parseHabits).default([], 'none'),
    )
    .addOption(
      new Option('--tree <file>', 'serve a file of `bloomery probe --record` as a Redfish BMC, instead of machines; may be repeated')
        .argParser(gather)
        .default([], 'none'),
    )
    .option('--control <place>', 'loopback address for `bloomery simulate control`; "no" disables it', String(CONTROL_PORT))
    .option('--register [url]', 'create the nodes and ports at this server (default: OS_ENDPOINT_OVERRIDE, OS_ENDPOINT)', url)
    .option('--resources <file>', 'write the nodes to a file for `openstack baremetal create FILE`')
    .option('--json', 'print a JSON line for each machine, and for each change of its phase')
    .addHelpText('after', `\nFaults, for example latency=300,loss=0.2,hang,redfish_missing=Bios+Storage:\n${faultsHelp}\n${MAKERS_HELP}`)
    // Options after `control` belong to that command.
    .enablePositionalOptions()
    .action(simulate);
  addControlCommand(command);
}
