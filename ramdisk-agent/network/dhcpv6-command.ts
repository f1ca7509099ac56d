/** `agent dhcpv6 INTERFACE…`: the DHCPv6 client on sockets of these interfaces. */
import { createSocket, type Socket } from 'node:dgram';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import type { NetworkInterfaceInfo } from 'node:os';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { reasonOf } from '../../model/errors';
import type { Run } from '../system/run';
import { maintainAddress, type Dhcpv6Link, type Lease } from './dhcpv6';

/** §7.2, §7.1 of RFC 8415. */
const [CLIENT_PORT, SERVER_PORT, ALL_SERVERS] = [546, 547, 'ff02::1:2'];
/** The most messages that wait to be read; further ones are dropped. */
const MAX_WAITING = 64;
/** Between attempts on an interface that has no link-local address, or whose attempt failed. */
const PAUSE_MS = 1000;

interface CommandEnvironment {
  readonly addresses: () => NodeJS.Dict<NetworkInterfaceInfo[]>;
  readonly run: Run;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  /** The file with the name servers. */
  readonly resolver: string;
}

/** A link with a socket that is bound to the interface's link-local address, so that it receives no messages of other interfaces. */
async function openLink(name: string, address: string, signal: AbortSignal): Promise<Dhcpv6Link & { close(): void }> {
  const socket: Socket = createSocket({ type: 'udp6', signal });
  const waiting: Buffer[] = [];
  let failure: Error | undefined;
  let wake = (): void => {};
  socket.on('message', (message: Buffer) => {
    if (waiting.length < MAX_WAITING) waiting.push(message);
    wake();
  });
  const bound = once(socket, 'listening');
  socket.bind(CLIENT_PORT, `${address}%${name}`);
  await bound;
  socket.on('error', (error) => {
    failure = error;
    wake();
  });
  return {
    send: (message) => {
      // Drops the answers to earlier messages.
      waiting.length = 0;
      return new Promise((resolve, reject) =>
        socket.send(message, SERVER_PORT, `${ALL_SERVERS}%${name}`, (error) => (error ? reject(error) : resolve())),
      );
    },
    receive: async (withinMs) => {
      if (waiting.length === 0 && failure === undefined)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, withinMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      if (failure !== undefined) throw failure;
      return waiting.shift();
    },
    close: () => socket.close(),
  };
}

async function applyTo(
  name: string,
  { run, resolver }: CommandEnvironment,
  lease: Lease | undefined,
  former: Lease | undefined,
): Promise<void> {
  // /128, since router advertisements give the link's prefix. The kernel removes an address whose lifetime nothing renews.
  if (lease) {
    const times = ['valid_lft', `${lease.valid ?? 'forever'}`, 'preferred_lft', `${lease.preferred ?? 'forever'}`];
    await run('ip', ['-6', 'addr', 'replace', `${lease.address}/128`, 'dev', name, ...times]);
  }
  if (former && former.address !== lease?.address) await run('ip', ['-6', 'addr', 'del', `${former.address}/128`, 'dev', name]);
  const known = existsSync(resolver) ? readFileSync(resolver, 'utf8').split('\n') : [];
  for (const line of (lease?.nameServers ?? []).map((server) => `nameserver ${server}`))
    if (!known.includes(line)) appendFileSync(resolver, `${line}\n`);
}

async function serve(name: string, environment: CommandEnvironment): Promise<never> {
  const { addresses, clock, random, log } = environment;
  for (;;) {
    const own = (addresses()[name] ?? []).find(({ family, address }) => family === 'IPv6' && address.startsWith('fe80:'));
    if (own !== undefined) {
      const stop = new AbortController();
      try {
        const link = await openLink(name, own.address, stop.signal);
        await maintainAddress({
          link,
          mac: own.mac,
          clock,
          random,
          log: log.child({ interface: name }),
          signal: stop.signal,
          apply: (lease, former) => applyTo(name, environment, lease, former),
        });
      } catch (error) {
        // The bind fails while the address is tentative (about a second), and the interface may disappear.
        log.debug(`DHCPv6 at ${name}: ${reasonOf(error)}`);
      } finally {
        stop.abort();
      }
    }
    await clock.sleep(PAUSE_MS);
  }
}

/** Runs the command, which does not end. */
export async function dhcpv6(names: readonly string[], environment: CommandEnvironment): Promise<void> {
  await Promise.all(names.map((name) => serve(name, environment)));
}
