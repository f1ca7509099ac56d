/** A DHCPv6 client (RFC 8415): one address for an interface, renewed as long as the ramdisk runs. */
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { codeOf, decode6, duidOfMac, encode6, MESSAGE6, NO_ASSOCIATIONS, STATUS6, type Dhcpv6Message } from '../../wire/dhcp/dhcpv6';
import { reasonOf } from '../system/errors';

export interface Dhcpv6Link {
  /** To all servers of the link. */
  send(message: Buffer): Promise<void>;
  /** The next message that comes. Undefined: none within this time. */
  receive(withinMs: number): Promise<Buffer | undefined>;
}
export interface Lease {
  readonly address: string;
  /** Seconds from now on; undefined: for ever. Preferred is at most valid. */
  readonly valid: number | undefined;
  readonly preferred: number | undefined;
  readonly nameServers: readonly string[];
}
interface Surroundings {
  readonly link: Dhcpv6Link;
  readonly mac: string;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Sets what the interface has, in place of what it had. Undefined: nothing. */
  readonly apply: (lease: Lease | undefined, former: Lease | undefined) => Promise<void>;
}
interface Binding extends Lease {
  readonly server: Buffer;
  /** When to ask this server to renew, when to ask any, and when the address ends: milliseconds of the clock. */
  readonly renewAt: number;
  readonly rebindAt: number;
  readonly endsAt: number;
}

/** §7.6; milliseconds. A switch that forwards after half a minute of spanning tree is tried again soon. */
const SOLICIT = { first: 1000, most: 120_000, attempts: Infinity };
const REQUEST = { first: 1000, most: 30_000, attempts: 10 };
const RENEW = { first: 10_000, most: 600_000, attempts: Infinity };
/** §7.7. */
const FOREVER = 0xffffffff;
/** Timers have 31 bits. */
const LONGEST_MS = 2_000_000_000;
const MOST_NAME_SERVERS = 3;
/** A server with times of (nearly) nothing is not asked without a pause. */
const LEAST_RENEW_MS = 10_000;

const milliseconds = (seconds: number): number => (seconds === FOREVER ? Infinity : seconds * 1000);
const lifetime = (seconds: number): number | undefined => (seconds === FOREVER ? undefined : seconds);
const iaidOf = (mac: string): number => Buffer.from(mac.replaceAll(':', ''), 'hex').readUInt32BE(2);

/** What a server gives in a message. */
function bindingIn({ options, associations }: Dhcpv6Message, { mac, clock }: Surroundings): Binding | undefined {
  const own = associations.addresses.find(({ iaid }) => iaid === iaidOf(mac));
  const isRefused = [options.status, own?.status].some((status) => status !== undefined && status.code !== STATUS6.success);
  // §21.6: a preferred time beyond the valid one makes the address invalid.
  const given = own?.addresses.find(({ preferred, valid }) => valid > 0 && preferred <= valid);
  if (own === undefined || given === undefined || isRefused || options.serverIdentifier === undefined) return undefined;
  // §21.4.
  if (own.t1 > own.t2 && own.t2 > 0) return undefined;
  const now = clock.now();
  // A deprecated address has no preferred time left, but is renewed too.
  const basis = milliseconds(given.preferred === 0 ? given.valid : given.preferred);
  const [t1, t2] = [own.t1 === 0 ? basis * 0.5 : milliseconds(own.t1), own.t2 === 0 ? basis * 0.8 : milliseconds(own.t2)];
  const endsAt = now + milliseconds(given.valid);
  const atLeast = now + LEAST_RENEW_MS;
  const rebindAt = Math.min(Math.max(now + t2, atLeast), endsAt);
  return {
    address: given.address,
    ...{ valid: lifetime(given.valid), preferred: lifetime(given.preferred) },
    nameServers: (options.dnsServers ?? []).slice(0, MOST_NAME_SERVERS),
    server: Buffer.from(options.serverIdentifier),
    ...{ renewAt: Math.min(Math.max(now + t1, atLeast), rebindAt), rebindAt, endsAt },
  };
}

/** Sends a message, again and again, until `accept` takes an answer (§15). Undefined: none of all attempts. */
async function exchange<Answer>(
  message: Pick<Dhcpv6Message, 'type' | 'options'> & { readonly address?: string },
  { first, most, attempts, until = Infinity }: { first: number; most: number; attempts: number; until?: number },
  accept: (answer: Dhcpv6Message) => Answer | undefined,
  { link, mac, clock, random, log, signal }: Surroundings,
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
      // A network that is away for a moment loses the message. Without an address, the link is opened anew.
      if (message.type === MESSAGE6.solicit) throw error;
      log.debug(`DHCPv6 cannot send: ${reasonOf(error)}`);
    });
    // Up to a tenth more or less: machines that start together do not ask together.
    const end = Math.min(clock.now() + pause * (0.9 + random(1)[0]! / 1275), until);
    for (let left = end - clock.now(); left > 0; left = end - clock.now()) {
      const bytes = await link.receive(Math.min(left, LONGEST_MS));
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

/** §18.2.1, §18.2.2: the first server that has an address. */
async function obtain(around: Surroundings): Promise<Binding> {
  for (;;) {
    const offer = await exchange(
      { type: MESSAGE6.solicit, options: { rapidCommit: true } },
      SOLICIT,
      ({ type, ...rest }) => {
        const isFinal = type === MESSAGE6.reply && rest.options.rapidCommit === true;
        const binding = isFinal || type === MESSAGE6.advertise ? bindingIn({ type, ...rest }, around) : undefined;
        return binding && { isFinal, binding };
      },
      around,
    );
    if (offer === undefined) continue;
    const { isFinal, binding } = offer;
    if (isFinal) return binding;
    const answered = await exchange(
      { type: MESSAGE6.request, options: { serverIdentifier: binding.server }, address: binding.address },
      REQUEST,
      (answer) => (answer.type === MESSAGE6.reply ? { given: bindingIn(answer, around) } : undefined),
      around,
    );
    if (answered?.given) return answered.given;
    // A refusal comes at once: a server that repeats it is not asked without a pause.
    await around.clock.sleep(SOLICIT.first, around.signal);
  }
}

/** §18.2.4, §18.2.5. Undefined: no server prolongs it, or one refuses to. */
async function prolong({ server, address, rebindAt, endsAt }: Binding, around: Surroundings): Promise<Binding | undefined> {
  const accept = (answer: Dhcpv6Message): { readonly given: Binding | undefined } | undefined =>
    answer.type === MESSAGE6.reply ? { given: bindingIn(answer, around) } : undefined;
  const renew = { type: MESSAGE6.renew, options: { serverIdentifier: server }, address };
  const renewed = await exchange(renew, { ...RENEW, until: rebindAt }, accept, around);
  if (renewed) return renewed.given;
  return (await exchange({ type: MESSAGE6.rebind, options: {}, address }, { ...RENEW, until: endsAt }, accept, around))?.given;
}

/** Gets an address, and keeps one until the signal aborts. Rejects with its reason, or when the link fails. */
export async function keepAddress(around: Surroundings): Promise<never> {
  const { clock, apply, log, signal } = around;
  let former: Binding | undefined;
  for (;;) {
    let binding: Binding | undefined = await obtain(around);
    log.info('DHCPv6 gave an address', { address: binding.address });
    while (binding !== undefined) {
      await apply(binding, former);
      former = binding;
      while (clock.now() < binding.renewAt) await clock.sleep(Math.min(binding.renewAt - clock.now(), LONGEST_MS), signal);
      binding = await prolong(binding, around);
    }
    log.warn('DHCPv6 does not prolong the address', { address: former!.address });
    await apply(undefined, former);
    former = undefined;
  }
}
