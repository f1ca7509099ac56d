/**
 * Announces services by multicast DNS until it is stopped: probes that nobody else has the name (RFC 6762 §8), announces, answers, says
 * goodbye (§10.1). Another that says the same of the name is no conflict: several servers may stand behind one address (§9).
 */
import type { Socket } from 'node:dgram';
import { dataBytes, decodeDns, encodeDns, message, TYPE, type Data, type DnsMessage, type DnsRecord } from './dns';
import { instanceName, isOnLink, MDNS_ADDRESS, MDNS_PORT, mdnsSocket, SERVICE_TYPE, type MdnsInterface } from './mdns';

/** §10: seconds for what names a host, and for the rest. */
const HOST_TTL = 120;
const OTHER_TTL = 4500;
/** §6.7: of answers to those that do not keep track. */
const LEGACY_TTL = 10;
const PROBE_MS = 250;
const PROBES = 3;
/** §8.1: after a lost tie, and between announcements; also the least time between two answers to all (§6). */
const SECOND_MS = 1000;
/** After all attempts: the other server may be gone by then. */
const AGAIN_MS = 60_000;
const META = '_services._dns-sd._udp.local';

export interface Announced {
  /** `baremetal` */
  readonly service: string;
  /** Undefined: the addresses are what there is. */
  readonly hostname?: string | undefined;
  readonly addresses: readonly string[];
  readonly port: number;
  readonly params: Readonly<Record<string, string>>;
}
export interface ResponderSetup {
  readonly services: readonly Announced[];
  readonly interfaces: readonly MdnsInterface[];
  /** How often a name that another has is asked for again before it is given up for a minute. */
  readonly attempts: number;
  readonly clock: { now(): number; sleep(milliseconds: number, signal?: AbortSignal): Promise<void> };
  /** From 0 to 1. */
  readonly random: () => number;
  readonly warn: (message: string, fields: object) => void;
}

/** The records of a service. */
export function recordsOf({ service, hostname, addresses, port, params }: Announced): readonly DnsRecord[] {
  const name = instanceName(service);
  const target = (hostname ?? name).toLowerCase();
  return [
    { type: TYPE.PTR, name: SERVICE_TYPE, ttl: OTHER_TTL, target: name },
    { type: TYPE.PTR, name: META, ttl: OTHER_TTL, target: SERVICE_TYPE },
    { type: TYPE.SRV, name, ttl: HOST_TTL, flush: true, port, target },
    { type: TYPE.TXT, name, ttl: OTHER_TTL, flush: true, text: params },
    ...addresses.map((address) => ({
      ...{ type: address.includes(':') ? TYPE.AAAA : TYPE.A, name: target, ttl: HOST_TTL, address },
      // A host name of the site's own DNS is not ours alone.
      ...(hostname === undefined ? { flush: true } : {}),
    })),
  ];
}

const isSame = (one: Data, other: Data): boolean => one.type === other.type && dataBytes(one).equals(dataBytes(other));
/** Those that say other things of the same name than ours do. */
const contradicting = (ours: readonly DnsRecord[], theirs: readonly DnsRecord[]): readonly DnsRecord[] =>
  theirs.filter(
    (their) =>
      their.ttl > 0 &&
      their.type === TYPE.SRV &&
      ours.some((our) => our.type === TYPE.SRV && our.name === their.name && !isSame(our, their)),
  );
const asked = ({ questions }: DnsMessage, record: DnsRecord): boolean =>
  questions.some(({ name, type }) => name === record.name && (type === record.type || type === TYPE.ANY));

/** One service on one interface. */
function announcement(service: Announced, link: MdnsInterface, socket: Socket, setup: ResponderSetup, signal: AbortSignal) {
  const { clock, random, warn } = setup;
  const records = recordsOf(service);
  const name = instanceName(service.service);
  const own = records.filter((record) => record.name === name);
  const toAll = (sent: Partial<DnsMessage>): void => socket.send(encodeDns(message(sent)), MDNS_PORT, MDNS_ADDRESS, () => {});
  let state: 'probing' | 'announced' = 'probing';
  let contested: 'no' | 'lost' | 'taken' = 'no';
  let pending = false;
  let lastAnswer = 0;

  async function probe(): Promise<'free' | 'lost' | 'taken'> {
    contested = 'no';
    await clock.sleep(random() * PROBE_MS, signal);
    for (let tries = 0; tries < PROBES; tries++) {
      toAll({
        questions: [{ name, type: TYPE.ANY, unicast: tries === 0 }],
        authorities: own.map((record) => ({ ...record, flush: false })),
      });
      await clock.sleep(PROBE_MS, signal);
      if (contested !== 'no') return contested;
    }
    return 'free';
  }
  const announce = (): void => toAll({ response: true, answers: records });
  async function live(): Promise<void> {
    for (let attempt = 1; ;) {
      const outcome = await probe();
      if (outcome === 'free') break;
      if (outcome === 'taken' && attempt++ >= setup.attempts) {
        warn('multicast DNS: another server has this name, which is asked for again in a minute', { name, address: link.address });
        attempt = 1;
        await clock.sleep(AGAIN_MS, signal);
      }
      await clock.sleep(SECOND_MS, signal);
    }
    state = 'announced';
    announce();
    await clock.sleep(SECOND_MS, signal);
    announce();
  }
  const living = (): void => void live().catch(() => {});

  /** §8.2: of two that probe at once, the one whose data come later wins. */
  function contest(theirs: readonly DnsRecord[]): void {
    const other = contradicting(own, theirs)[0];
    const ours = own.find(({ type }) => type === TYPE.SRV);
    if (state === 'probing' && other && ours && Buffer.compare(dataBytes(ours), dataBytes(other)) < 0) contested = 'lost';
  }
  function answerAll(answers: readonly DnsRecord[]): void {
    if (pending) return;
    pending = true;
    const wait = Math.max(20 + random() * 100, lastAnswer + SECOND_MS - clock.now());
    clock
      .sleep(wait, signal)
      .then(() => {
        lastAnswer = clock.now();
        pending = false;
        toAll({ response: true, answers });
      })
      .catch(() => {});
  }
  function query(heard: DnsMessage, from: { readonly address: string; readonly port: number }): void {
    contest(heard.authorities);
    if (state !== 'announced') return;
    const wanted = records.filter((record) => asked(heard, record));
    // §7.1: what the asker knows already is not told again.
    const news = wanted.filter(
      (record) => !heard.answers.some((one) => one.name === record.name && isSame(one, record) && one.ttl >= record.ttl / 2),
    );
    if (news.length === 0) return;
    const additionals = records.filter((record) => record.name !== META && !news.includes(record));
    if (from.port !== MDNS_PORT) {
      const plain = (all: readonly DnsRecord[]): readonly DnsRecord[] =>
        all.map((record) => ({ ...record, flush: false, ttl: LEGACY_TTL }));
      const answer = message({
        id: heard.id,
        response: true,
        questions: heard.questions,
        answers: plain(news),
        additionals: plain(additionals),
      });
      socket.send(encodeDns(answer), from.port, from.address, () => {});
    } else if (heard.authorities.length > 0) {
      // Somebody probes for what is ours: it hears of it at once (§8.1 waits 250 ms only), but does not make us send without end.
      if (clock.now() - lastAnswer < PROBE_MS) return;
      lastAnswer = clock.now();
      toAll({ response: true, answers: records });
    } else answerAll(records.filter((record) => record.name !== META || wanted.includes(record)));
  }
  function response(heard: DnsMessage): void {
    if (contradicting(own, [...heard.answers, ...heard.additionals]).length === 0) return;
    if (state === 'probing') contested = 'taken';
    else {
      // §9: both ask anew, and the one that the other answers gives way.
      state = 'probing';
      living();
    }
  }
  return {
    start: living,
    hear: (heard: DnsMessage, from: { readonly address: string; readonly port: number }): void =>
      heard.response ? response(heard) : query(heard, from),
    goodbye: (): void => {
      if (state === 'announced')
        toAll({ response: true, answers: records.filter(({ name: owner }) => owner !== META).map((one) => ({ ...one, ttl: 0 })) });
    },
  };
}

/** Rejects when a socket cannot be had. */
export async function announceServices(setup: ResponderSetup): Promise<{ stop(): Promise<void> }> {
  const ended = new AbortController();
  const opened: { readonly socket: Socket; readonly goodbye: () => void }[] = [];
  const close = async (): Promise<void> => {
    ended.abort();
    for (const { goodbye } of opened) goodbye();
    // What was sent last leaves the socket before it is closed: sends of one socket are in order.
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
      const socket = await mdnsSocket(link, true);
      const all = setup.services.map((service) => announcement(service, link, socket, setup, ended.signal));
      socket.on('error', (error) => setup.warn('multicast DNS: the socket failed', { address: link.address, reason: error.message }));
      socket.on('message', (bytes, from) => {
        const heard = isOnLink(link, from.address) ? decodeDns(bytes) : undefined;
        if (heard) for (const one of all) one.hear(heard, from);
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
