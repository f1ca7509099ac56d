/** Sets up the network of the ramdisk by network_data.json, before the agent starts: `agent network FILE`. */
import { spawn } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { waitUntil, type Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { numberIn, type Tree } from '../system/tree';
import { isPhysical } from '../inventory/interfaces';
import { reasonOf } from '../../model/errors';
import type { Run } from '../system/run';
import { neededMacs, type NetworkOperation, type NetworkPlan, planNetwork } from './plan';

interface NetworkEnvironment {
  readonly tree: Tree;
  readonly run: Run;
  readonly clock: Clock;
  readonly log: Log;
  readonly write: (path: string, text: string) => void;
  /** Starts a program that keeps running. */
  readonly start: (words: readonly string[]) => void;
}

const MAX_BYTES = 1 << 20;
const POLL_MS = 100;
/** USB controllers show their interfaces late. */
const INTERFACES_MS = 20_000;
/** A switch port forwards only after about 30 s of spanning tree or LACP. */
const LINK_MS = 60_000;
/** A flag in /proc/net/if_inet6: duplicate address detection has not ended. */
const TENTATIVE = 0x40;

/** MAC address → name of the machine's interfaces. */
const interfacesOf = (tree: Tree): ReadonlyMap<string, string> =>
  new Map(
    tree.list('/sys/class/net').flatMap((name): readonly (readonly [string, string])[] => {
      const mac = isPhysical(tree, name) ? tree.text(`/sys/class/net/${name}/address`) : null;
      return mac === null ? [] : [[mac.toLowerCase(), name]];
    }),
  );

/** Waits for a condition. @returns whether it held in time */
async function holds(condition: () => boolean, timeoutMs: number, clock: Clock): Promise<boolean> {
  const end = clock.now() + timeoutMs;
  return waitUntil({ clock }, condition, () => (clock.now() >= end ? undefined : POLL_MS));
}

/** Whether the interfaces have a link, and their addresses are usable. */
function areReady(tree: Tree, names: readonly string[]): boolean {
  const rows = (tree.text('/proc/net/if_inet6') ?? '').split('\n').map((line) => line.trim().split(/ +/));
  const tentative = rows.filter(([, , , , flags]) => (parseInt(flags ?? '0', 16) & TENTATIVE) !== 0).map((row) => row[5]);
  return names.every((name) => numberIn(tree.text(`/sys/class/net/${name}/carrier`)) === 1 && !tentative.includes(name));
}

const DHCP = ['udhcpc', '-f', '-R', '-t', '5', '-T', '2', '-A', '5', '-s', '/bin/lease', '-i'];

async function perform(operation: NetworkOperation, { run, write, start }: NetworkEnvironment): Promise<void> {
  if (operation.kind === 'set') write(operation.path, operation.value);
  else if (operation.kind === 'dhcp') start([...DHCP, operation.name]);
  else if (operation.kind === 'dhcpv6') start(['/bin/agent', 'dhcpv6', operation.name]);
  else await run(operation.words[0]!, operation.words.slice(1));
}

async function applyPlan({ operations, nameServers, addressed, warnings }: NetworkPlan, environment: NetworkEnvironment): Promise<void> {
  const { tree, clock, log, write } = environment;
  for (const warning of warnings) log.warn(`Network: ${warning}`);
  for (const operation of operations) {
    // A failed operation does not stop the others, which may still make the machine reachable.
    await perform(operation, environment).catch((error: unknown) => log.warn(`Network: ${reasonOf(error)}`));
  }
  if (nameServers.length > 0) write('/etc/resolv.conf', nameServers.map((server) => `nameserver ${server}\n`).join(''));
  if (!(await holds(() => areReady(tree, addressed), LINK_MS, clock)))
    log.warn(`Network: no link at ${addressed.join(', ')} within ${LINK_MS / 1000} s`);
}

/**
 * @param text the content of network_data.json
 * @throws Error when it is not network data of this machine
 * @internal
 */
export async function setUpNetwork(text: string, environment: NetworkEnvironment): Promise<void> {
  const { tree, clock, log } = environment;
  const data: unknown = JSON.parse(text);
  const macs = typeof data === 'object' && data !== null ? neededMacs(data as Parameters<typeof neededMacs>[0]) : [];
  await holds(() => macs.every((mac) => interfacesOf(tree).has(mac)), INTERFACES_MS, clock);
  await applyPlan(planNetwork(data, interfacesOf(tree)), environment);
  log.info('Network set up by network_data');
}

/** Runs the command. @throws Error as setUpNetwork does, and for a file that is missing or too large */
export async function network(
  [path = '']: readonly string[],
  environment: Pick<NetworkEnvironment, 'tree' | 'run' | 'clock' | 'log'>,
): Promise<void> {
  if (statSync(path).size > MAX_BYTES) throw new Error(`${path} is larger than ${MAX_BYTES} bytes`);
  await setUpNetwork(readFileSync(path, 'utf8'), {
    ...environment,
    write: (file, text) => writeFileSync(file, text),
    start: ([program, ...words]) =>
      spawn(program!, words, { detached: true, stdio: 'ignore' })
        .on('error', (error) => environment.log.warn(`Network: ${reasonOf(error)}`))
        .unref(),
  });
}
