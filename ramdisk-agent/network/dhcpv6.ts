/** A DHCPv6 client (RFC 8415): one address for an interface, renewed as long as the ramdisk runs. */
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { codeOf, decode6, duidOfMac, encode6, MESSAGE6, NO_ASSOCIATIONS, STATUS6, type Dhcpv6Message } from '../../wire/dhcp/dhcpv6';
import { reasonOf } from '../../model/errors';

export interface Dhcpv6Link {
  /** Sends a message to all DHCPv6 servers of the link. */
  send(message: Buffer): Promise<void>;
  /** The next message that arrives. Undefined: none within this time. */
  receive(withinMs: number): Promise<Buffer | undefined>;
}
export interface Lease {
  readonly address: string;
  /** Lifetimes in seconds from the receipt on; undefined: infinite. The preferred lifetime is never longer than the valid one. */
  readonly valid: number | undefined;
  readonly preferred: number | undefined;
  readonly nameServers: readonly string[];
}
interface Dhcpv6Environment {
  readonly link: Dhcpv6Link;
  readonly mac: string;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Replaces the former lease of the interface by `lease`. Undefined: the interface has no lease (any longer, or yet). */
  readonly apply: (lease: Lease | undefined, former: Lease | undefined) => Promise<void>;
}
interface Binding extends Lease {
  readonly server: Buffer;
  /** When to ask this server to renew, when to ask any server, and when the address expires: milliseconds of the clock. */
  readonly renewAt: number;
  readonly rebindAt: number;
  readonly endsAt: number;
}

/**
 * §7.6, in milliseconds. Only the longest pause between Solicit messages is shorter than SOL_MAX_RT (3600 s): a switch port may drop the
 * first messages during half a minute of spanning tree.
 */
const SOLICIT = { first: 1000, most: 120_000, attempts: Infinity };
const REQUEST = { first: 1000, most: 30_000, attempts: 10 };
const RENEW = { first: 10_000, most: 600_000, attempts: Infinity };
/** An infinite lifetime (§7.7). */
const FOREVER = 0xffffffff;
/** The longest pause: Node's timers have 31 bits. */
const MAX_MS = 2_000_000_000;
const MAX_NAME_SERVERS = 3;
/** The least time before a renewal, for servers that give lifetimes near zero. */
const LEAST_RENEW_MS = 10_000;

const milliseconds = (seconds: number): number => (seconds === FOREVER ? Infinity : seconds * 1000);
const lifetime = (seconds: number): number | undefined => (seconds === FOREVER ? undefined : seconds);
const iaidOf = (mac: string): number => Buffer.from(mac.replaceAll(':', ''), 'hex').readUInt32BE(2);

/** The binding that a server's message contains. Undefined: it contains no valid one. */
function bindingIn({ options, associations }: Dhcpv6Message, { mac, clock }: Dhcpv6Environment): Binding | undefined {
  const own = associations.addresses.find(({ iaid }) => iaid === iaidOf(mac));
  const isRefused = [options.status, own?.status].some((status) => status !== undefined && status.code !== STATUS6.success);
  // §21.6: an address whose preferred lifetime exceeds its valid lifetime is invalid.
  const given = own?.addresses.find(({ preferred, valid }) => valid > 0 && preferred <= valid);
  if (own === undefined || given === undefined || isRefused || options.serverIdentifier === undefined) return undefined;
  // §21.4: an IA_NA whose T1 exceeds T2 is invalid.
  if (own.t1 > own.t2 && own.t2 > 0) return undefined;
  const now = clock.now();
  // A deprecated address has no preferred lifetime left, but the client renews it too.
  const basis = milliseconds(given.preferred === 0 ? given.valid : given.preferred);
  const [t1, t2] = [own.t1 === 0 ? basis * 0.5 : milliseconds(own.t1), own.t2 === 0 ? basis * 0.8 : milliseconds(own.t2)];
  const endsAt = now + milliseconds(given.valid);
  const atLeast = now + LEAST_RENEW_MS;
  const rebindAt = Math.min(Math.max(now + t2, atLeast), endsAt);
  return {
    address: given.address,
    valid: lifetime(given.valid),
    preferred: lifetime(given.preferred),
    nameServers: (options.dnsServers ?? []).slice(0, MAX_NAME_SERVERS),
    server: Buffer.from(options.serverIdentifier),
    renewAt: Math.min(Math.max(now + t1, atLeast), rebindAt),
    rebindAt,
    endsAt,
  };
}

/** Repeats a message until `accept` returns a result for an answer (§15). Undefined: no attempt got such an answer. */
async function exchange<Answer>(
  message: Pick<Dhcpv6Message, 'type' | 'options'> & { readonly address?: string },
  { first, most, attempts, until = Infinity }: { first: number; most: number; attempts: number; until?: number },
  accept: (answer: Dhcpv6Message) => Answer | undefined,
  { link, mac, clock, random, log, signal }: Dhcpv6Environment,
): Promise<Answer | undefined> {
  const duid = duidOfMac(mac);
  const xid = random(3).readUIntBE(0, 3);
  const begun = clock.now();
  const addresses = message.address === undefined ? [] : [{ address: message.address, preferred: 0, valid: 0 }];
  let pause = first;
  for (let attempt = 0; attempt < attempts && clock.now() < until; attempt++) {
    signal.throwIfAborted();
    const elapsedTime = Math.min(Math.floor((clock.now() - begun) / 10), 0xffff);
    const options = { clientIdentifier: duid, elapsedTime, optionRequest: [codeOf('dnsServers')], ...message.options };
    const associations = { ...NO_ASSOCIATIONS, addresses: [{ iaid: iaidOf(mac), t1: 0, t2: 0, addresses }] };
    await link.send(encode6({ relays: [], message: { type: message.type, xid, options, associations } })).catch((error: unknown) => {
      // A failure to send a Solicit message makes the caller open the link again. Later failures count as lost messages.
      if (message.type === MESSAGE6.solicit) throw error;
      log.debug(`DHCPv6 cannot send: ${reasonOf(error)}`);
    });
    // Varies by up to 10 % (§15), so that machines that start together do not send together.
    const end = Math.min(clock.now() + pause * (0.9 + random(1)[0]! / 1275), until);
    for (let left = end - clock.now(); left > 0; left = end - clock.now()) {
      const bytes = await link.receive(Math.min(left, MAX_MS));
      signal.throwIfAborted();
      if (bytes === undefined) break;
      const read = decode6(bytes);
      if ('malformed' in read || read.relays.length > 0 || read.message.xid !== xid) continue;
      if (read.message.options.clientIdentifier?.equals(duid) !== true) continue;
      const answer = accept(read.message);
      if (answer !== undefined) return answer;
    }
    pause = Math.min(pause * 2, most);
  }
  return undefined;
}

/** Gets an address from the first server that offers one (§18.2.1, §18.2.2). */
async function obtain(environment: Dhcpv6Environment): Promise<Binding> {
  for (;;) {
    const offer = await exchange(
      { type: MESSAGE6.solicit, options: { rapidCommit: true } },
      SOLICIT,
      ({ type, ...rest }) => {
        const isFinal = type === MESSAGE6.reply && rest.options.rapidCommit === true;
        const binding = isFinal || type === MESSAGE6.advertise ? bindingIn({ type, ...rest }, environment) : undefined;
        return binding && { isFinal, binding };
      },
      environment,
    );
    if (offer === undefined) continue;
    const { isFinal, binding } = offer;
    if (isFinal) return binding;
    const answered = await exchange(
      { type: MESSAGE6.request, options: { serverIdentifier: binding.server }, address: binding.address },
      REQUEST,
      (answer) => (answer.type === MESSAGE6.reply ? { given: bindingIn(answer, environment) } : undefined),
      environment,
    );
    if (answered?.given) return answered.given;
    // A server may refuse at once and each time, so the client pauses.
    await environment.clock.sleep(SOLICIT.first, environment.signal);
  }
}

/** Renews or rebinds the lease (§18.2.4, §18.2.5). Undefined: no server prolongs it, or one refuses. */
async function prolong({ server, address, rebindAt, endsAt }: Binding, environment: Dhcpv6Environment): Promise<Binding | undefined> {
  const accept = (answer: Dhcpv6Message): { readonly given: Binding | undefined } | undefined =>
    answer.type === MESSAGE6.reply ? { given: bindingIn(answer, environment) } : undefined;
  const renew = { type: MESSAGE6.renew, options: { serverIdentifier: server }, address };
  const renewed = await exchange(renew, { ...RENEW, until: rebindAt }, accept, environment);
  if (renewed) return renewed.given;
  return (await exchange({ type: MESSAGE6.rebind, options: {}, address }, { ...RENEW, until: endsAt }, accept, environment))?.given;
}

/** Gets an address and renews it until the signal is aborted. Rejects with the signal's reason, or when the link fails. */
export async function maintainAddress(environment: Dhcpv6Environment): Promise<never> {
  const { clock, apply, log, signal } = environment;
  let former: Binding | undefined;
  for (;;) {
    let binding: Binding | undefined = await obtain(environment);
    log.info('DHCPv6 gave an address', { address: binding.address });
    while (binding !== undefined) {
      await apply(binding, former);
      former = binding;
      while (clock.now() < binding.renewAt) await clock.sleep(Math.min(binding.renewAt - clock.now(), MAX_MS), signal);
      binding = await prolong(binding, environment);
    }
    log.warn('DHCPv6 does not prolong the address', { address: former!.address });
    await apply(undefined, former);
    former = undefined;
  }
}
