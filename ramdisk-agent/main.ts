/** The program in the ramdisk: creates the agent's dependencies and starts it. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname, machine as architecture, networkInterfaces, uptime } from 'node:os';
import { AGENT_CA_PATH } from '../wire/agent-authorities';
import { systemClock } from '../model/clock';
import type { Log } from '../model/log';
import { findService, mdnsInterfaces } from '../wire/dns/mdns';
import { firstFrames } from '../wire/sockets/packet-socket';
import { runAgent } from './agent';
import { burnIn } from './burnin/load';
import { reasonOf } from '../model/errors';
import { kernelCalls } from './kexec/kernel-calls';
import { tree } from './system/tree';
import { createKept } from './kept';
import { consoleLog } from './log';
import type { Machine } from './machine';
import { dhcpv6 } from './network/dhcpv6-command';
import { network } from './network/network';
import { timeOf } from './network/sntp';
import { mediumWords, parseParameters } from './parameters';
import { record } from './record';
import { resident } from './resident';
import { run } from './system/run';

/** The parameters that the ramdisk's init found on a medium of the BMC. */
const MEDIUM = '/run/parameters';

/** Memory that only root may read. */
const MEMORY = '/run';

/** The certificate authorities that the server added to the ramdisk. */
const ADDED_CA = `/${AGENT_CA_PATH}`;

/** The search takes at most nine seconds, as in ironic-python-agent. */
const MDNS_PATIENCE = { attempts: 9, waitMs: 1000 };

async function main(): Promise<void> {
  const mediumParameters = existsSync(MEDIUM) ? mediumWords(readFileSync(MEDIUM, 'utf8')) : '';
  const commandLine = `${readFileSync('/proc/cmdline', 'utf8').trim()} ${mediumParameters}`;
  const early = parseParameters(commandLine);
  const kept = createKept(MEMORY);
  const log = consoleLog((line) => process.stdout.write(line), systemClock, early.debug, {
    earlier: kept.earlierLines(),
    also: (line) => kept.addLine(line),
  });
  const parameters = parseParameters(commandLine, (message) => log.warn(message));
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  log.info(`Agent started, ${process.uptime().toFixed(1)} s after its program, ${uptime().toFixed(0)} s after the kernel`);
  const before = await kept.howTheLastEnded(run, process.pid);
  if (before !== null) log.warn(before);
  const caFile = parameters.caFile ?? (existsSync(ADDED_CA) ? ADDED_CA : null);
  const machine: Machine = {
    tree: tree(),
    run,
    addresses: networkInterfaces,
    machine: architecture(),
    hostname,
    bootInterface: parameters.bootInterface,
    bootedFromMedium: parameters.bootMethod === 'vmedia',
    parameters,
    frames: firstFrames,
    findService: (service, signal) => findService(service, { interfaces: mdnsInterfaces(), ...MDNS_PATIENCE, clock: systemClock, signal }),
    ntpTime: (server, signal) => timeOf(server, { random: randomBytes, monotonic: () => performance.now(), clock: systemClock, signal }),
    kernelCalls: kernelCalls(architecture()),
    clock: systemClock,
    log,
    kept,
    fetching: {
      trust: {
        now: () => systemClock.now(),
        insecure: parameters.insecure,
        ca: caFile === null ? undefined : readFileSync(caFile, 'utf8'),
      },
      timeoutMs: parameters.imageTimeout * 1000,
      signal: stop.signal,
    },
    random: randomBytes,
    newUuid: randomUUID,
    root: '/',
    retire: () => {
      kept.forget();
      stop.abort();
    },
    temporary: '/tmp',
    state: { node: {}, config: {}, partitionUuids: null, api: null },
  };
  await runAgent(machine, stop.signal);
}

const plainLog = (): Log => consoleLog((line) => process.stdout.write(line), systemClock, false);
const COMMANDS: Readonly<Record<string, (words: readonly string[]) => Promise<void>>> = {
  // The same program runs on hosts, as `bloomery-agent record` and `bloomery-agent resident`.
  record,
  resident,
  'burn-in': async (words) => {
    // If the memory is used up, the kernel ends this program, and not the agent.
    writeFileSync('/proc/self/oom_score_adj', '1000');
    burnIn(
      words,
      () => performance.now(),
      (line) => process.stdout.write(line),
    );
  },
  network: (words) => network(words, { tree: tree(), run, clock: systemClock, log: plainLog() }),
  dhcpv6: (words) =>
    dhcpv6(words, {
      addresses: networkInterfaces,
      run,
      clock: systemClock,
      random: randomBytes,
      log: plainLog(),
      resolver: '/etc/resolv.conf',
    }),
};
const [name = '', ...words] = process.argv.slice(2);
(COMMANDS[name] ?? main)(words).catch((error: unknown) => {
  process.stderr.write(`Agent failed: ${reasonOf(error)}\n`);
  process.exitCode = 1;
});
