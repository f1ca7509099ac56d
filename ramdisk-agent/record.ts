/** `bloomery-agent record`: the recorder as a program on a running host. It only reads, and never writes a disk or a setting. */
import { hostname, machine, setPriority } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../model/clock';
import { checkUrl, identityFrom, LEAST_INTERVAL, MAX_INTERVAL, readGiven, settingsOnDrive, type Identity } from './drive-settings';
import { reasonOf } from '../model/errors';
import type { HardwareRecord } from '../model/hardware-records';
import type { InventoryDisk, JsonObject } from '../model/records';
import { createSmartReader } from './inventory/smart';
import { claimOf, registered } from './system/registration';
import { tree, type Tree } from './system/tree';
import { consoleLog } from './log';
import { cached, readHardware } from './record-hardware';
import { keepPushing, pushOnce, type Recording } from './recorder';
import { run, type Run } from './system/run';

const HELP = `bloomery-agent record: tells the bare metal service what hardware this host has, again and again. It changes nothing.

  --url URL            of the service (default: what the config drive says)
  --node UUID          of this host's node; auto (default): what the config drive says
  --token-file FILE    with the token for this node, read before each push (default: the config drive has it)
  --config-drive PATH  a device, an image, or the folder where it is mounted (default: /dev/disk/by-label/config-2)
  --bootstrap-file FILE with a token that registers this host, which then gets one of its own: if neither of the above has one
  --bootstrap-url URL  of the service for such a host, if neither --url nor the config drive says it
  --identity-file FILE where a registered host keeps its token (default: /var/lib/bloomery-recorder/identity.json)
  --ca FILE            certificates of the authorities to trust, PEM (default: the usual ones)
  --interval SECONDS   between two pushes (default: what the config drive says, else 300)
  --jitter PART        of the interval by which it varies, from 0 to 1 (default: 0.3)
  --root FOLDER        where /sys, /proc, /dev and /run/udev of the host are (default: /)
  --once               push once, and say by the exit status whether it was taken
  --help
`;
/** @internal */
export const RECORD_OPTIONS = {
  url: { type: 'string' },
  node: { type: 'string', default: 'auto' },
  'token-file': { type: 'string' },
  'config-drive': { type: 'string', default: '/dev/disk/by-label/config-2' },
  'bootstrap-file': { type: 'string' },
  'bootstrap-url': { type: 'string' },
  'identity-file': { type: 'string', default: '/var/lib/bloomery-recorder/identity.json' },
  ca: { type: 'string' },
  interval: { type: 'string' },
  jitter: { type: 'string', default: '0.3' },
  root: { type: 'string', default: '/' },
  once: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;
/** The server's key in the vendor data (conductor/core/recorders.ts). */
const KEY = 'bloomery-recorder';

function numberOf(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= least && value <= most))
    throw new Error(`--${name} is a number from ${least} to ${most}, not "${text}"`);
  return value;
}

interface Given {
  readonly url?: string | undefined;
  readonly node: string;
  readonly 'token-file'?: string | undefined;
  readonly 'config-drive': string;
  readonly 'bootstrap-file'?: string | undefined;
  readonly 'bootstrap-url'?: string | undefined;
  readonly 'identity-file': string;
}
/** The token of the options or of the config drive; if there is none, and the options say so, that of a registration. */
function identityOf(
  given: Given,
  { host, read, trust, signal }: Pick<Recording, 'read' | 'trust' | 'signal'> & { readonly host: Tree },
): Pick<Recording, 'identity' | 'pushed'> {
  const { url, node, 'token-file': token, 'config-drive': drive, 'bootstrap-file': bootstrap, 'identity-file': file } = given;
  const told = (): Identity => identityFrom(given, KEY);
  if (bootstrap === undefined || node !== 'auto' || token !== undefined) return { identity: async () => told() };
  const urlNow = (): string => {
    const found = url ?? settingsOnDrive(drive, KEY).url ?? given['bootstrap-url'];
    if (found === undefined) throw new Error(`--bootstrap-url is not given, and the config drive (${drive}) does not say the URL`);
    return found;
  };
  const addresses = async (): Promise<readonly string[]> => {
    const { interfaces } = await read();
    return (Array.isArray(interfaces) ? interfaces : []).flatMap(({ mac_address: mac }: JsonObject) =>
      typeof mac === 'string' ? [mac] : [],
    );
  };
  const own = registered({
    url: urlNow,
    bootstrap: () => readGiven('bootstrap-file', bootstrap),
    claim: async () => claimOf(host, await addresses()),
    file,
    trust,
    signal,
  });
  const identity = async (): Promise<Identity> =>
    settingsOnDrive(drive, KEY).token === undefined ? { url: urlNow(), ...(await own.identity()) } : told();
  return { identity, pushed: own.pushed };
}

/** @param words the command line behind `record` */
export async function record(words: readonly string[]): Promise<void> {
  const { values: given } = parseArgs({ args: [...words], options: RECORD_OPTIONS });
  if (given.help) {
    process.stdout.write(HELP);
    return;
  }
  const drive = given['config-drive'];
  const interval =
    given.interval === undefined
      ? (settingsOnDrive(drive, KEY).interval ?? 300)
      : numberOf('interval', given.interval, LEAST_INTERVAL, MAX_INTERVAL);
  checkUrl('url', given.url);
  checkUrl('bootstrap-url', given['bootstrap-url']);
  const host = tree(given.root);
  // With a wrong root, all hardware would seem to be gone.
  if (host.list('/sys/class').length === 0) throw new Error(`--root ${given.root} is not the root of a host: it has no sys/class`);
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
  const runNow: Run = (program, args, options) => run(program, args, { ...options, signal: stop.signal });
  const runCached = cached(runNow, systemClock);
  const trust = { insecure: false, ca: given.ca === undefined ? undefined : readGiven('ca', given.ca) };
  const read = (): Promise<HardwareRecord> =>
    readHardware({
      tree: host,
      run: runCached,
      addresses: () => ({}),
      machine: machine(),
      hostname,
      bootInterface: null,
      bootedFromMedium: false,
    });
  const smart = createSmartReader(systemClock);
  const recording: Recording = {
    pace: { intervalMs: interval * 1000, jitter: numberOf('jitter', given.jitter, 0, 1) },
    ...identityOf(given, { host, read, trust, signal: stop.signal }),
    read,
    smart: ({ disks }) =>
      smart.read({ tree: host, run: runNow, dev: join(given.root, 'dev') }, disks as readonly InventoryDisk[], stop.signal),
    bootId: host.text('/proc/sys/kernel/random/boot_id'),
    trust,
    clock: systemClock,
    random: Math.random,
    log: consoleLog((line) => process.stdout.write(line), systemClock, false),
    signal: stop.signal,
  };
  try {
    // The recorder must not disturb the host's own work.
    setPriority(19);
  } catch (error) {
    recording.log.debug('the priority cannot be lowered', { reason: reasonOf(error) });
  }
  if (given.once) recording.log.info(`The hardware is ${await pushOnce(recording)}`);
  else {
    await keepPushing(recording);
    // A program that the kernel does not let end, since its disk hangs, would keep this one too.
    process.exit();
  }
}
