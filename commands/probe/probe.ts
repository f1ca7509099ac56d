/** `bloomery probe BMC`: says what works with a BMC and what does not, and changes nothing. It needs no server and no database. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { programVersion } from '../../server/version';
import { createIpmiPool, type IpmiTarget } from '../../wire/ipmi/client';
import { createRedfishPool, type RedfishTarget } from '../../wire/redfish';
import { TREE_LIMITS } from '../../wire/redfish/recorded-tree';
import { timeoutSignal } from '../../wire/timeout-signal';
import { withoutEndSlashes } from '../../wire/urls';
import { print, printError, printJson, printProgress, reported } from '../output';
import { lacks, type ProbeReport } from './check';
import { passwordOf } from './password';
import { recordingOf, writeNew } from './record';
import { reportText } from './report';
import { probeIpmi, probeRedfish } from './run-probe';
import { walkService } from './walk';

interface Given {
  readonly username?: string;
  readonly passwordFile?: string;
  readonly auth: 'auto' | 'session' | 'basic';
  readonly ca?: string;
  readonly insecure?: true;
  readonly systemId?: string;
  readonly privilege: IpmiTarget['privilege'];
  readonly timeout?: number;
  readonly record?: string;
  readonly json?: true;
}
/** Seconds. */
const TIMEOUT = { probe: 60, record: 600, most: 7200 } as const;
/** RMCP+ cipher suites, as the driver's. */
const CIPHER_SUITES = [17, 3];
const IPMI_PORT = 623;

const seconds = (text: string): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > TIMEOUT.most)
    throw new InvalidArgumentError(`expected seconds from 1 to ${TIMEOUT.most}.`);
  return value;
};
/** The URL of a BMC. @throws Error for the operator @internal */
export function bmcUrl(text: string): URL {
  const full = text.includes('://') ? text : `https://${isIPv6(text) ? `[${text}]` : text}`;
  if (!/^(?:https?|ipmi):\/\//i.test(full) || !URL.canParse(full.replace(/^ipmi:/i, 'http:')))
    throw new Error('the BMC must be https://ADDRESS, http://ADDRESS or ipmi://ADDRESS');
  const url = new URL(full);
  // Others see the arguments in the list of processes.
  if (url.username !== '' || url.password !== '' || full.includes('@'))
    throw new Error('the URL must have no account: use --username and --password-file');
  if (url.hostname === '') throw new Error('the URL names no host');
  return url;
}

async function overRedfish(url: URL, given: Given, password: string | undefined, signal: AbortSignal): Promise<ProbeReport> {
  const { username, auth, ca, insecure, systemId, record } = given;
  const address = `${url.origin}${withoutEndSlashes(url.pathname)}`;
  const target: RedfishTarget = { address, username, password, authType: auth, verifyCa: insecure ? false : (ca ?? true) };
  const pool = createRedfishPool();
  const surroundings = {
    signal,
    now: () => systemClock.now(),
    log: silentLog,
    progress: (text: string) => printProgress(`bloomery probe: ${text} …`),
  };
  try {
    const most = record === undefined ? undefined : TREE_LIMITS.resources + 600;
    const { report, service } = await probeRedfish(pool, target, systemId, surroundings, most);
    if (record === undefined || !service) return report;
    const walked = await walkService(service, signal, (count) => surroundings.progress(`recording, ${count} resources`));
    const about = { program: programVersion(), recorded: new Date(systemClock.now()).toISOString(), key: randomBytes(32), target };
    const recording = recordingOf(walked, about);
    await writeNew(record, recording.text);
    printProgress('');
    const replaced = Object.entries(recording.replaced).map(([kind, count]) => `${count} × ${kind}`);
    printError(
      `bloomery probe: ${record} has ${recording.resources} resources${recording.complete ? '' : '; the service has more, or some did not answer'}.\n` +
        `Replaced: ${replaced.join(', ') || 'nothing'}. Look through the file before you give it to others: free texts may tell more.`,
    );
    return report;
  } finally {
    await pool.close();
  }
}
async function overIpmi(url: URL, given: Given, password: string | undefined, signal: AbortSignal): Promise<ProbeReport> {
  if (given.record !== undefined) throw new Error('--record is for Redfish only');
  const address = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? IPMI_PORT : Number(url.port);
  const pool = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes });
  const { username = '', privilege } = given;
  const target: IpmiTarget = { address, port, username, password: password ?? '', privilege, cipherSuites: CIPHER_SUITES };
  try {
    const progress = (text: string): void => printProgress(`bloomery probe: ${text} …`);
    return await probeIpmi(pool, target, { signal, now: () => systemClock.now(), log: silentLog, progress });
  } finally {
    await pool.close();
  }
}

async function probe(bmc: string, given: Given): Promise<void> {
  const url = bmcUrl(bmc);
  const { record, username, passwordFile, json } = given;
  if (record !== undefined && existsSync(record)) throw new Error(`${record} exists, and is not overwritten`);
  const password = username === undefined ? undefined : await passwordOf(username, passwordFile, process.env);
  const stop = new AbortController();
  const interrupted = (): void => stop.abort(new Error('stopped'));
  process.once('SIGINT', interrupted);
  process.once('SIGTERM', interrupted);
  const signal = timeoutSignal((given.timeout ?? (record === undefined ? TIMEOUT.probe : TIMEOUT.record)) * 1000, stop.signal);
  try {
    const report = await (url.protocol === 'ipmi:' ? overIpmi : overRedfish)(url, given, password, signal);
    printProgress('');
    if (json) printJson(report);
    else print(reportText(report));
    if (lacks(report)) process.exitCode = 1;
  } finally {
    process.off('SIGINT', interrupted);
    process.off('SIGTERM', interrupted);
  }
}

export function addProbeCommand(program: Command): void {
  program
    .command('probe')
    .description('Say what works with a BMC and what does not, before it is a node. Nothing is changed.')
    .argument('<bmc>', 'https://ADDRESS[:PORT], http://… or ipmi://ADDRESS[:PORT]')
    .option('--username <name>', 'account of the BMC; its password: BLOOMERY_BMC_PASSWORD, --password-file, or typed')
    .option('--password-file <file>', 'file whose first line is the password; "-": standard input')
    .addOption(
      new Option('--auth <kind>', 'login of Redfish; basic needs no session').choices(['auto', 'session', 'basic']).default('auto'),
    )
    .option('--ca <path>', 'file or folder with the authorities of its certificate (default: those of the system)')
    .option('--insecure', 'do not check its certificate')
    .option('--system-id <path>', 'path of the system, if the service has several: /redfish/v1/Systems/1')
    .addOption(
      new Option('--privilege <level>', 'privilege of the IPMI session')
        .choices(['USER', 'OPERATOR', 'ADMINISTRATOR'])
        .default('ADMINISTRATOR'),
    )
    .option('--timeout <seconds>', `most time for all (default: ${TIMEOUT.probe}, with --record ${TIMEOUT.record})`, seconds)
    .option('--record <file>', 'keep the resources of the service in a new file, with serial numbers, addresses and secrets replaced')
    .option('--json', 'print JSON')
    .action((bmc: string, given: Given) => reported(() => probe(bmc, given)));
}
