/**
 * Announces services by multicast DNS until it is stopped: probes for conflicts (RFC 6762 §8), announces, responds, says goodbye (§10.1).
 * Another responder with the same data is not a conflict: several servers may share one address (§9).
 */
import type { Socket } from 'node:dgram';
import { createRate, type ShareLimits } from '../shares';
import { dataBytes, decodeDns, encodeDns, message, RECORD_TYPE, type Data, type DnsMessage, type DnsRecord } from './dns';
import { instanceName, isOnLink, MDNS_ADDRESS, MDNS_PORT, mdnsSocket, SERVICE_TYPE, type MdnsInterface } from './mdns';

/** §10: seconds, for records with a host name and for others. */
const HOST_TTL = 120;
const OTHER_TTL = 4500;
/** §6.7: for one-shot queries. */
const LEGACY_TTL = 10;
/** Responses to one-shot queries in a second: they are larger than the queries, whose sources may be forged. */
const LEGACY_RESPONSES: ShareLimits = { inAll: 100, ofSource: 5 };
const PROBE_MS = 250;
const PROBES = 3;
/** §8.1: after a lost tie, and between announcements. Also the least time between two multicast responses (§6). */
const SECOND_MS = 1000;
/** The pause after all attempts; the other server may be gone by then. */
const RETRY_MS = 60_000;
const META = '_services._dns-sd._udp.local';

export interface Announced {
  /** `baremetal` */
  readonly service: string;
  /** Undefined: the service is known by its addresses. */
  readonly hostname?: string | undefined;
  readonly addresses: readonly string[];
  readonly port: number;
  readonly params: Readonly<Record<string, string>>;
}
interface ResponderSetup {
  readonly services: readonly Announced[];
  readonly interfaces: readonly MdnsInterface[];
  /** Attempts to claim a name that another server has, before a pause of a minute. */
  readonly attempts: number;
  readonly clock: { now(): number; sleep(milliseconds: number, signal?: AbortSignal): Promise<void> };
  /** From 0 to 1. */
  readonly random: () => number;
  readonly warn: (message: string, fields: object) => void;
  /** How the socket of an interface is opened; for tests. */
  readonly open?: typeof mdnsSocket;
}

/** The records of a service. @internal */
export function recordsOf({ service, hostname, addresses, port, params }: Announced): readonly DnsRecord[] {
  const name = instanceName(service);
  const target = (hostname ?? name).toLowerCase();
  return [
    { type: RECORD_TYPE.PTR, name: SERVICE_TYPE, ttl: OTHER_TTL, target: name },
    { type: RECORD_TYPE.PTR, name: META, ttl: OTHER_TTL, target: SERVICE_TYPE },
    { type: RECORD_TYPE.SRV, name, ttl: HOST_TTL, flush: true, port, target },
    { type: RECORD_TYPE.TXT, name, ttl: OTHER_TTL, flush: true, text: params },
    ...addresses.map((address) => ({
      type: address.includes(':') ? RECORD_TYPE.AAAA : RECORD_TYPE.A,
      name: target,
      ttl: HOST_TTL,
      address,
      // A host name in the site's own DNS is not exclusively ours.
      flush: hostname === undefined ? true : undefined,
    })),
  ];
}

const isSame = (left: Data, right: Data): boolean => left.type === right.type && dataBytes(left).equals(dataBytes(right));
/** SRV records with the name of one of ours, but different data. */
const conflicting = (ours: readonly DnsRecord[], theirs: readonly DnsRecord[]): readonly DnsRecord[] =>
  theirs.filter(
    (their) =>
      their.ttl > 0 &&
      their.type === RECORD_TYPE.SRV &&
      ours.some((our) => our.type === RECORD_TYPE.SRV && our.name === their.name && !isSame(our, their)),
  );
const matches = ({ questions }: DnsMessage, record: DnsRecord): boolean =>
  questions.some(({ name, type }) => name === record.name && (type === record.type || type === RECORD_TYPE.ANY));

type Multicast = (sent: Partial<DnsMessage>) => void;
interface NameClaimSetup {
  readonly records: readonly DnsRecord[];
  readonly name: string;
  /** The interface's address, for messages. */
  readonly address: string;
  readonly multicast: Multicast;
  readonly setup: ResponderSetup;
  readonly signal: AbortSignal;
}
interface NameClaim {
  /** Probes for the name, and announces the records when it is free. */
  readonly start: () => void;
  readonly isAnnounced: () => boolean;
  /** Compares the data of another server's probe with ours. */
  readonly contest: (theirs: readonly DnsRecord[]) => void;
  /** Checks another server's response for conflicts. */
  readonly response: (received: DnsMessage) => void;
}
/** The claim to the name of one service on one interface (§8, §9). */
function createNameClaim({ records, name, address, multicast, setup, signal }: NameClaimSetup): NameClaim {
  const { clock, random, warn } = setup;
  const own = records.filter((record) => record.name === name);
  let state: 'probing' | 'announced' = 'probing';
  let contested: 'no' | 'lost' | 'taken' = 'no';

  async function probe(): Promise<'free' | 'lost' | 'taken'> {
    contested = 'no';
    await clock.sleep(random() * PROBE_MS, signal);
    for (let tries = 0; tries < PROBES; tries++) {
      multicast({
        questions: [{ name, type: RECORD_TYPE.ANY, unicast: tries === 0 }],
        authorities: own.map((record) => ({ ...record, flush: false })),
      });
      await clock.sleep(PROBE_MS, signal);
      if (contested !== 'no') return contested;
    }
    return 'free';
  }
  const announce = (): void => multicast({ response: true, answers: records });
  async function live(): Promise<void> {
    for (let attempt = 1; ;) {
      const outcome = await probe();
      if (outcome === 'free') break;
      if (outcome === 'taken' && attempt++ >= setup.attempts) {
        warn('multicast DNS: another server has this name; it is probed again in a minute', { name, address });
        attempt = 1;
        await clock.sleep(RETRY_MS, signal);
      }
      await clock.sleep(SECOND_MS, signal);
    }
    state = 'announced';
    announce();
    await clock.sleep(SECOND_MS, signal);
    announce();
  }
  const start = (): void => void live().catch(() => {});

  /** §8.2: of two simultaneous probes, the one with the lexicographically later data wins. */
  function contest(theirs: readonly DnsRecord[]): void {
    const other = conflicting(own, theirs)[0];
    const ours = own.find(({ type }) => type === RECORD_TYPE.SRV);
    if (state === 'probing' && other && ours && Buffer.compare(dataBytes(ours), dataBytes(other)) < 0) contested = 'lost';
  }
  function response(received: DnsMessage): void {
    if (conflicting(own, [...received.answers, ...received.additionals]).length === 0) return;
    if (state === 'probing') contested = 'taken';
    else {
      // §9: both probe again, and the one that gets a response gives way.
      state = 'probing';
      start();
    }
  }
  return { start, isAnnounced: () => state === 'announced', contest, response };
}

/** One service on one interface. */
function announcement(service: Announced, link: MdnsInterface, socket: Socket, setup: ResponderSetup, signal: AbortSignal) {
  const { clock, random } = setup;
  const records = recordsOf(service);
  const name = instanceName(service.service);
  const multicast: Multicast = (sent) => socket.send(encodeDns(message(sent)), MDNS_PORT, MDNS_ADDRESS, () => {});
  const claim = createNameClaim({ records, name, address: link.address, multicast, setup, signal });
  const mayAnswer = createRate(LEGACY_RESPONSES, SECOND_MS, () => clock.now());
  let pending = false;
  let lastAnswer = 0;

  function answerAll(answers: readonly DnsRecord[]): void {
    if (pending) return;
    pending = true;
    const wait = Math.max(20 + random() * 100, lastAnswer + SECOND_MS - clock.now());
    clock
      .sleep(wait, signal)
      .then(() => {
        lastAnswer = clock.now();
        pending = false;
        multicast({ response: true, answers });
      })
      .catch(() => {});
  }
  function query(received: DnsMessage, from: { readonly address: string; readonly port: number }): void {
    claim.contest(received.authorities);
    if (!claim.isAnnounced()) return;
    const requested = records.filter((record) => matches(received, record));
    // §7.1: records that the querier knows already are left out.
    const unknown = requested.filter(
      (record) => !received.answers.some((answer) => answer.name === record.name && isSame(answer, record) && answer.ttl >= record.ttl / 2),
    );
    if (unknown.length === 0) return;
    const additionals = records.filter((record) => record.name !== META && !unknown.includes(record));
    if (from.port !== MDNS_PORT) {
      if (!mayAnswer(from.address)) return;
      const plain = (all: readonly DnsRecord[]): readonly DnsRecord[] =>
        all.map((record) => ({ ...record, flush: false, ttl: LEGACY_TTL }));
      const answer = message({
        id: received.id,
        response: true,
        questions: received.questions,
        answers: plain(unknown),
        additionals: plain(additionals),
      });
      socket.send(encodeDns(answer), from.port, from.address, () => {});
    } else if (received.authorities.length > 0) {
      // A probe for our name gets a response at once (§8.1 waits 250 ms only), but at a limited rate.
      if (clock.now() - lastAnswer < PROBE_MS) return;
      lastAnswer = clock.now();
      multicast({ response: true, answers: records });
    } else answerAll(records.filter((record) => record.name !== META || requested.includes(record)));
  }
  return {
    start: claim.start,
    receive: (received: DnsMessage, from: { readonly address: string; readonly port: number }): void =>
      received.response ? claim.response(received) : query(received, from),
    goodbye: (): void => {
      if (claim.isAnnounced())
        multicast({
          response: true,
          answers: records.filter(({ name: owner }) => owner !== META).map((record) => ({ ...record, ttl: 0 })),
        });
    },
  };
}

/** Rejects when a socket cannot be opened. */
export async function announceServices(setup: ResponderSetup): Promise<{ stop(): Promise<void> }> {
  const ended = new AbortController();
  const opened: { readonly socket: Socket; readonly goodbye: () => void }[] = [];
  const close = async (): Promise<void> => {
    ended.abort();
    for (const { goodbye } of opened) goodbye();
    // Sends of one socket are in order, so the last message leaves before the close.
    await Promise.all(
      opened.map(
        ({ socket }) =>
          new Promise<void>((done) => {
            socket.removeAllListeners('message');
            socket.send(Buffer.alloc(0), MDNS_PORT, '127.0.0.1', () => void socket.close(() => done()));
          }),
      ),
    );
  };
  try {
    for (const link of setup.interfaces) {
      const socket = await (setup.open ?? mdnsSocket)(link, true);
      const all = setup.services.map((service) => announcement(service, link, socket, setup, ended.signal));
      socket.on('error', (error) => setup.warn('multicast DNS: the socket failed', { address: link.address, reason: error.message }));
      socket.on('message', (bytes, from) => {
        const received = isOnLink(link, from.address) ? decodeDns(bytes) : undefined;
        if (received) for (const item of all) item.receive(received, from);
      });
      opened.push({ socket, goodbye: () => all.forEach(({ goodbye }) => goodbye()) });
      for (const { start } of all) start();
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { stop: close };
}
