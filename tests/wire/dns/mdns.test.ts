/** Announcing and looking up services by multicast DNS, with a clock that the test advances and sockets that record what is sent. */
import type { Socket } from 'node:dgram';
import { EventEmitter } from 'node:events';
import { networkInterfaces } from 'node:os';
import { decodeDns, encodeDns, message, RECORD_TYPE, type DnsMessage, type DnsRecord } from '../../../wire/dns/dns';
import { findService, isOnLink, mdnsInterfaces, mdnsSocket, serviceIn, urlOf } from '../../../wire/dns/mdns';
import { announcedAt } from '../../../wire/dns/mdns-endpoint';
import { announceServices, recordsOf, type Announced } from '../../../wire/dns/mdns-responder';
import { testClock } from '../../support/clock';

const NAME = 'baremetal._openstack._tcp.local';
const TYPE_NAME = '_openstack._tcp.local';
const META = '_services._dns-sd._udp.local';
const LINK = { address: '192.0.2.1', netmask: '255.255.255.0' };
const GROUP = { address: '224.0.0.251', port: 5353 };
const SERVICE: Announced = { service: 'Baremetal', addresses: ['192.0.2.1', '2001:db8::1'], port: 6385, params: { protocol: 'http' } };
const FLUSH = { flush: true } as const;
const PTR: DnsRecord = { type: RECORD_TYPE.PTR, name: TYPE_NAME, ttl: 4500, flush: false, target: NAME };
const META_PTR: DnsRecord = { type: RECORD_TYPE.PTR, name: META, ttl: 4500, flush: false, target: TYPE_NAME };
const SRV: DnsRecord = { type: RECORD_TYPE.SRV, name: NAME, ttl: 120, ...FLUSH, port: 6385, target: NAME };
const TXT: DnsRecord = { type: RECORD_TYPE.TXT, name: NAME, ttl: 4500, ...FLUSH, text: { protocol: 'http' } };
const A: DnsRecord = { type: RECORD_TYPE.A, name: NAME, ttl: 120, ...FLUSH, address: '192.0.2.1' };
const AAAA: DnsRecord = { type: RECORD_TYPE.AAAA, name: NAME, ttl: 120, ...FLUSH, address: '2001:db8::1' };
/** The records of an announcement, and those of a response about the service. */
const ALL = [PTR, META_PTR, SRV, TXT, A, AAAA];
const OWN = [PTR, SRV, TXT, A, AAAA];

interface Sent {
  readonly message: DnsMessage;
  readonly port: number;
  readonly address: string;
}
class TestSocket extends EventEmitter {
  readonly sent: Sent[] = [];
  closed = false;
  send(bytes: Buffer, port: number, address: string, done: () => void): void {
    const decoded = decodeDns(bytes);
    if (decoded) this.sent.push({ message: decoded, port, address });
    done();
  }
  close(done?: () => void): void {
    this.closed = true;
    done?.();
  }
  receive(received: Partial<DnsMessage>, from: { readonly address?: string; readonly port?: number } = {}): void {
    this.emit('message', encodeDns(message(received)), { address: '192.0.2.9', port: 5353, ...from });
  }
  /** What was sent since the last call. */
  take(): readonly Sent[] {
    return this.sent.splice(0);
  }
}
const multicast = (sent: Partial<DnsMessage>): Sent => ({ message: message(sent), ...GROUP });
const response = (answers: readonly DnsRecord[]): Sent => multicast({ response: true, answers });
const probe = (unicast: boolean): Sent =>
  multicast({
    questions: [{ name: NAME, type: RECORD_TYPE.ANY, unicast }],
    authorities: [SRV, TXT, A, AAAA].map((item) => ({ ...item, flush: false })),
  });

async function responder() {
  const clock = testClock(undefined, 0);
  const socket = new TestSocket();
  const warnings: [string, object][] = [];
  const responding = await announceServices({
    services: [SERVICE],
    interfaces: [LINK],
    attempts: 2,
    clock,
    random: () => 0.5,
    warn: (text, fields) => void warnings.push([text, fields]),
    open: async () => socket as unknown as Socket,
  });
  const stop = (): Promise<void> => responding.stop();
  /** The name is claimed, and both announcements are sent. */
  const announced = async (): Promise<void> => {
    await clock.advance(10);
    socket.take();
  };
  return { clock, socket, warnings, stop, announced };
}

describe('mDNS responder', () => {
  it('probes three times for its name, then announces it twice', async () => {
    const { clock, socket, stop } = await responder();
    await clock.advance(0.124);
    expect(socket.take()).toEqual([]);
    await clock.advance(0.001);
    expect(socket.take()).toEqual([probe(true)]);
    await clock.advance(0.249);
    expect(socket.take()).toEqual([]);
    await clock.advance(0.001);
    expect(socket.take()).toEqual([probe(false)]);
    await clock.advance(0.25);
    expect(socket.take()).toEqual([probe(false)]);
    await clock.advance(0.25);
    expect(socket.take()).toEqual([response(ALL)]);
    await clock.advance(0.999);
    expect(socket.take()).toEqual([]);
    await clock.advance(0.001);
    expect(socket.take()).toEqual([response(ALL)]);
    await clock.advance(100);
    expect(socket.take()).toEqual([]);
    await stop();
  });

  const question = (name: string, type: number) => ({ questions: [{ name, type, unicast: false }] });
  it.each<[string, Partial<DnsMessage>, readonly DnsRecord[] | undefined]>([
    ['its service', question(NAME, RECORD_TYPE.SRV), OWN],
    ['any type of its name', question(NAME, RECORD_TYPE.ANY), OWN],
    ['an address', question(NAME, RECORD_TYPE.A), OWN],
    ['services of OpenStack', question(TYPE_NAME, RECORD_TYPE.PTR), OWN],
    ['all types of services', question(META, RECORD_TYPE.PTR), ALL],
    ['another service (no response)', question(`other.${TYPE_NAME}`, RECORD_TYPE.SRV), undefined],
    ['another type (no response)', question(NAME, RECORD_TYPE.PTR), undefined],
    ['nothing (no response)', {}, undefined],
    ['a record among the known answers (no response)', { ...question(NAME, RECORD_TYPE.SRV), answers: [{ ...SRV, ttl: 60 }] }, undefined],
    ['a known answer with less than half of its TTL', { ...question(NAME, RECORD_TYPE.SRV), answers: [{ ...SRV, ttl: 59 }] }, OWN],
    ['a known answer with other data', { ...question(NAME, RECORD_TYPE.SRV), answers: [{ ...SRV, ttl: 60, port: 1 }] }, OWN],
    ['a known answer with another name', { ...question(NAME, RECORD_TYPE.SRV), answers: [{ ...SRV, ttl: 60, name: TYPE_NAME }] }, OWN],
    ['records of which only some are known answers', { ...question(NAME, RECORD_TYPE.ANY), answers: [SRV] }, OWN],
  ])('responds to a query for %s', async (_, query, answers) => {
    const { clock, socket, announced, stop } = await responder();
    await announced();
    socket.receive(query);
    // A second query before the response gets no response of its own.
    socket.receive(query);
    await clock.advance(0.069);
    expect(socket.take()).toEqual([]);
    await clock.advance(0.001);
    expect(socket.take()).toEqual(answers ? [response(answers)] : []);
    // At most one response a second.
    socket.receive(query);
    await clock.advance(0.999);
    expect(socket.take()).toEqual([]);
    await clock.advance(0.001);
    expect(socket.take()).toEqual(answers ? [response(answers)] : []);
    await stop();
  });

  it('responds to a query from another port by unicast with short TTLs', async () => {
    const { socket, announced, stop } = await responder();
    await announced();
    const questions = [{ name: NAME, type: RECORD_TYPE.SRV, unicast: false }];
    socket.receive({ id: 7, questions }, { port: 40000 });
    const short = (records: readonly DnsRecord[]): readonly DnsRecord[] => records.map((record) => ({ ...record, ttl: 10, flush: false }));
    const expected = { id: 7, response: true, questions, answers: short([SRV]), additionals: short([PTR, TXT, A, AAAA]) };
    expect(socket.take()).toEqual([{ message: message(expected), port: 40000, address: '192.0.2.9' }]);
    await stop();
  });

  it('responds to a hundred one-shot queries in a second, five of each source', async () => {
    const { clock, socket, announced, stop } = await responder();
    await announced();
    const ask = (address: string): void => socket.receive(question(NAME, RECORD_TYPE.SRV), { address, port: 40_000 });
    for (let n = 0; n < 10; n++) ask('192.0.2.200');
    expect(socket.take()).toHaveLength(5);
    for (let n = 2; n < 200; n++) ask(`192.0.2.${n}`);
    expect(socket.take()).toHaveLength(95);
    await clock.advance(1);
    ask('192.0.2.9');
    expect(socket.take()).toHaveLength(1);
    await stop();
  });

  it('responds to a probe for its name at once, at most four times a second', async () => {
    const { clock, socket, announced, stop } = await responder();
    await announced();
    const other = { questions: [{ name: NAME, type: RECORD_TYPE.ANY, unicast: true }], authorities: [{ ...SRV, port: 1 }] };
    socket.receive(other);
    socket.receive(other);
    expect(socket.take()).toEqual([response(ALL)]);
    await clock.advance(0.249);
    socket.receive(other);
    expect(socket.take()).toEqual([]);
    await clock.advance(0.001);
    socket.receive(other);
    expect(socket.take()).toEqual([response(ALL)]);
    await stop();
  });

  it.each<[string, Partial<DnsMessage>, object]>([
    ['an address off the link', { questions: [{ name: NAME, type: RECORD_TYPE.SRV }] }, { address: '198.51.100.1' }],
    ['a client before the name is claimed', { questions: [{ name: NAME, type: RECORD_TYPE.SRV }] }, {}],
  ])('does not respond to a query from %s', async (_, query, from) => {
    const { clock, socket, announced, stop } = await responder();
    if ('address' in from) await announced();
    else await clock.advance(0.125);
    socket.take();
    socket.receive(query, { port: 40000, ...from });
    expect(socket.take()).toEqual([]);
    await stop();
  });
  it('ignores a malformed message', async () => {
    const { clock, socket, announced, stop } = await responder();
    await announced();
    socket.emit('message', Buffer.from('nothing'), { address: '192.0.2.9', port: 5353 });
    await clock.advance(5);
    expect(socket.take()).toEqual([]);
    await stop();
  });

  const lower = { ...SRV, port: 1 };
  const higher = { ...SRV, port: 65535 };
  it.each<[string, Partial<DnsMessage>, boolean]>([
    ['a response of a server with other data', { response: true, answers: [lower] }, true],
    ['other data among the additional records', { response: true, additionals: [lower] }, true],
    ['a response with the same data', { response: true, answers: [SRV] }, false],
    ['a response about another name', { response: true, answers: [{ ...lower, name: TYPE_NAME }] }, false],
    ['the goodbye of another server', { response: true, answers: [{ ...lower, ttl: 0 }] }, false],
    ['another TXT record', { response: true, answers: [{ ...TXT, text: {} }] }, false],
    ['a probe with later data', { authorities: [higher] }, true],
    ['a probe with earlier data', { authorities: [lower] }, false],
    ['a probe with the same data', { authorities: [SRV] }, false],
  ])('while probing, yields its name only to conflicting data: %s', async (_, received, givesWay) => {
    const { clock, socket, stop } = await responder();
    await clock.advance(0.2);
    socket.take();
    socket.receive(received);
    await clock.advance(0.175);
    expect(socket.take()).toEqual(givesWay ? [] : [probe(false)]);
    await clock.advance(1.124);
    expect(socket.take().filter(({ message: { response: isResponse } }) => !isResponse)).toEqual(givesWay ? [] : [probe(false)]);
    // After a second it begins again.
    await clock.advance(0.001);
    expect(socket.take()).toEqual(givesWay ? [probe(true)] : []);
    await stop();
  });

  it('pauses for a minute when the name stays in use', async () => {
    const { clock, socket, warnings, stop } = await responder();
    const taken = { response: true, answers: [lower] };
    const tries = async (): Promise<number> => {
      await clock.advance(0.125);
      socket.receive(taken);
      await clock.advance(0.25);
      return socket.take().length;
    };
    expect(await tries()).toBe(1);
    expect(warnings).toEqual([]);
    await clock.advance(1);
    expect(await tries()).toBe(1);
    expect(warnings).toEqual([
      ['multicast DNS: another server has this name; it is probed again in a minute', { name: NAME, address: '192.0.2.1' }],
    ]);
    await clock.advance(60.999);
    expect(socket.take()).toEqual([]);
    await clock.advance(0.001);
    expect(await tries()).toBe(1);
    expect(warnings).toHaveLength(1);
    await clock.advance(10);
    expect(socket.take().at(-1)).toEqual(response(ALL));
    await stop();
  });
  it('does not count lost tie-breaks as attempts', async () => {
    const { clock, socket, warnings, stop } = await responder();
    for (let round = 0; round < 4; round++) {
      await clock.advance(0.125);
      socket.receive({ authorities: [higher] });
      await clock.advance(1.25);
    }
    expect(warnings).toEqual([]);
    await stop();
  });

  it('probes again when another server announces other data for the name', async () => {
    const { clock, socket, announced, stop } = await responder();
    await announced();
    socket.receive({ response: true, answers: [SRV] });
    await clock.advance(1);
    expect(socket.take()).toEqual([]);
    socket.receive({ response: true, answers: [lower] });
    // Until the name is claimed again, there are no responses.
    socket.receive({ questions: [{ name: NAME, type: RECORD_TYPE.SRV }] }, { port: 40000 });
    expect(socket.take()).toEqual([]);
    await clock.advance(0.125);
    expect(socket.take()).toEqual([probe(true)]);
    await clock.advance(0.75);
    expect(socket.take().at(-1)).toEqual(response(ALL));
    await stop();
  });
  it('keeps its name when another server probes for it', async () => {
    const { clock, socket, announced, stop } = await responder();
    await announced();
    socket.receive({ questions: [{ name: NAME, type: RECORD_TYPE.ANY }], authorities: [higher] });
    await clock.advance(5);
    expect(socket.take()).toEqual([response(ALL)]);
    await stop();
  });

  it('sends goodbye records when it stops', async () => {
    const { socket, announced, stop } = await responder();
    await announced();
    await stop();
    expect(socket.take()).toEqual([response(OWN.map((item) => ({ ...item, ttl: 0 })))]);
    expect(socket.closed).toBe(true);
  });
  it('sends no goodbye records when it stops before it has claimed the name', async () => {
    const { clock, socket, stop } = await responder();
    await clock.advance(0.125);
    socket.take();
    await stop();
    await clock.advance(100);
    expect(socket.take()).toEqual([]);
    expect(clock.sleeping()).toBe(0);
  });
  it('logs the error of a socket', async () => {
    const { socket, warnings, stop } = await responder();
    socket.emit('error', new Error('no network'));
    expect(warnings).toEqual([['multicast DNS: the socket failed', { address: '192.0.2.1', reason: 'no network' }]]);
    await stop();
  });
  it('closes the other sockets when one cannot be opened', async () => {
    const sockets: TestSocket[] = [];
    const clock = testClock(undefined, 0);
    const open = async (_: unknown, group: boolean): Promise<Socket> => {
      expect(group).toBe(true);
      if (sockets.length === 1) throw new Error('the port is in use');
      sockets.push(new TestSocket());
      return sockets[0] as unknown as Socket;
    };
    const setup = { services: [SERVICE], interfaces: [LINK, LINK], attempts: 1, clock, random: () => 0, warn: () => {}, open };
    await expect(announceServices(setup)).rejects.toThrow('the port is in use');
    expect(sockets[0]!.closed).toBe(true);
    expect(clock.sleeping()).toBe(0);
  });
});

it('recordsOf does not set the cache-flush bit on the address records of a host name', () => {
  const records = recordsOf({ ...SERVICE, hostname: 'Ironic.example.org', addresses: ['192.0.2.1'] });
  expect(records.slice(2)).toEqual([
    { ...SRV, target: 'ironic.example.org' },
    TXT,
    { type: RECORD_TYPE.A, name: 'ironic.example.org', ttl: 120, address: '192.0.2.1' },
  ]);
});

it.each<[string, Announced]>([
  ['http://192.0.2.1:6385/', { service: 's', addresses: ['192.0.2.1'], port: 6385, params: { a: 'b', protocol: 'http' } }],
  ['http://192.0.2.1', { service: 's', addresses: ['192.0.2.1'], port: 80, params: { a: 'b' } }],
  ['https://192.0.2.1/v1', { service: 's', addresses: ['192.0.2.1'], port: 443, params: { a: 'b', path: '/v1' } }],
  ['http://192.0.2.1:443', { service: 's', addresses: ['192.0.2.1'], port: 443, params: { a: 'b', protocol: 'http' } }],
  ['https://[2001:db8::1]:80', { service: 's', addresses: ['2001:db8::1'], port: 80, params: { a: 'b', protocol: 'https' } }],
])('announcedAt parses %s', async (url, announced) => {
  expect(await announcedAt('s', url, { a: 'b' })).toEqual(announced);
});
it('announcedAt resolves a host name to its addresses', async () => {
  const { hostname, addresses } = await announcedAt('s', 'http://localhost', {});
  expect(hostname).toBe('localhost');
  expect(addresses.length).toBeGreaterThan(0);
  expect(addresses.every((address) => address === '127.0.0.1' || address === '::1')).toBe(true);
  expect(new Set(addresses).size).toBe(addresses.length);
});

it.each([
  ['192.0.2.200', '255.255.255.0', true],
  ['192.0.3.1', '255.255.255.0', false],
  ['192.0.3.1', '255.255.254.0', true],
  ['192.1.2.1', '255.255.0.0', false],
  ['193.0.2.1', '255.0.0.0', false],
])('isOnLink(%s) for 192.0.2.1/%s is %s', (from, netmask, expected) => {
  expect(isOnLink({ address: '192.0.2.1', netmask }, from)).toBe(expected);
});

it('mdnsInterfaces includes the loopback only when it is named', () => {
  expect(mdnsInterfaces(['127.0.0.1'])).toMatchObject([{ address: '127.0.0.1', netmask: '255.0.0.0' }]);
  expect(mdnsInterfaces().map(({ address }) => address)).not.toContain('127.0.0.1');
  expect(mdnsInterfaces(['no-such-interface'])).toEqual([]);
  const [name] = Object.entries(networkInterfaces()).find(([, all]) => all?.some(({ address }) => address === '127.0.0.1'))!;
  expect(mdnsInterfaces([name])).toContainEqual(expect.objectContaining({ address: '127.0.0.1' }));
});
it('mdnsSocket for a lookup binds a random port on the interface', async () => {
  const socket = await mdnsSocket({ address: '127.0.0.1', netmask: '255.0.0.0' }, false);
  expect(socket.address().address).toBe('127.0.0.1');
  expect([0, 5353]).not.toContain(socket.address().port);
  expect(socket.listenerCount('error')).toBe(0);
  await new Promise<void>((closed) => void socket.close(closed));
  // Of RFC 5737: this host does not have it.
  await expect(mdnsSocket({ address: '192.0.2.1', netmask: '255.255.255.0' }, false)).rejects.toThrow();
});

const LOCAL_SRV: DnsRecord = { ...SRV, target: 'host.local' };
const HOST_A: DnsRecord = { ...A, name: 'host.local' };
const HOST_AAAA: DnsRecord = { ...AAAA, name: 'host.local' };
it.each<[string, readonly DnsRecord[], object | undefined]>([
  [
    'all records',
    [LOCAL_SRV, TXT, HOST_A, HOST_AAAA],
    { addresses: ['192.0.2.1', '2001:db8::1'], port: 6385, params: { protocol: 'http' } },
  ],
  ['a name of the DNS', [{ ...SRV, target: 'a.org' }, TXT], { addresses: [], port: 6385, params: { protocol: 'http' }, hostname: 'a.org' }],
  ['no TXT record', [LOCAL_SRV, HOST_A], undefined],
  ['no SRV record', [TXT, HOST_A], undefined],
  ['no address record', [LOCAL_SRV, TXT], undefined],
  ['an address of another host', [LOCAL_SRV, TXT, { ...HOST_A, name: 'other.local' }], undefined],
  ['an address with TTL 0', [LOCAL_SRV, TXT, { ...HOST_A, ttl: 0 }], undefined],
])('serviceIn finds a service with %s, if it is complete', (_, records, found) => {
  expect(serviceIn('Baremetal', records)).toEqual(found);
});

it.each<[object, string | undefined]>([
  [{ addresses: ['127.0.0.1', '::1', '192.0.2.1', '192.0.2.2'] }, 'https://192.0.2.1:6385'],
  [{ addresses: ['192.0.2.1', '192.0.2.2'], hostname: 'a.org' }, 'https://a.org:6385'],
  [{ addresses: ['192.0.2.1'], port: 80 }, 'http://192.0.2.1:80'],
  [{ addresses: ['192.0.2.1'], params: { path: '/a//' } }, 'https://192.0.2.1:6385/a'],
  [{ addresses: ['192.0.2.1'], params: { path: '/a/b' } }, 'https://192.0.2.1:6385/a/b'],
  [{ addresses: ['192.0.2.1'], params: { protocol: 'http' } }, 'http://192.0.2.1:6385'],
])('urlOf builds a URL of %j', (service, url) => {
  expect(urlOf({ addresses: [], port: 6385, params: {}, ...service })).toBe(url);
});
it('urlOf prefers an address that the given function accepts', () => {
  const service = { addresses: ['192.0.2.1', '192.0.2.2'], port: 80, params: {} };
  expect(urlOf(service, (address) => address.endsWith('2'))).toBe('http://192.0.2.2:80');
  expect(urlOf(service, () => false)).toBe('http://192.0.2.1:80');
});

describe('findService', () => {
  const lookup = (attempts = 3) => {
    const clock = testClock(undefined, 0);
    const sockets: TestSocket[] = [];
    const ended = new AbortController();
    const found = findService('baremetal', {
      interfaces: [LINK, { ...LINK, address: '198.51.100.1' }],
      attempts,
      waitMs: 1000,
      clock,
      signal: ended.signal,
      open: async (_, group) => {
        expect(group).toBe(false);
        sockets.push(new TestSocket());
        return sockets.at(-1) as unknown as Socket;
      },
    });
    return { clock, sockets, found, ended };
  };
  const questions = (...more: readonly { readonly name: string; readonly type: number }[]): Sent =>
    multicast({
      questions: [{ name: NAME, type: RECORD_TYPE.SRV }, { name: NAME, type: RECORD_TYPE.TXT }, ...more].map((item) => ({
        ...item,
        unicast: false,
      })),
    });

  it('queries all interfaces, and also the addresses of a host that it has found', async () => {
    const { clock, sockets, found } = lookup();
    await clock.advance(0);
    expect(sockets.map((socket) => socket.take())).toEqual([[questions()], [questions()]]);
    sockets[0]!.receive({ response: true, answers: [LOCAL_SRV, TXT] });
    await clock.advance(0.999);
    expect(sockets[0]!.take()).toEqual([]);
    await clock.advance(0.001);
    expect(sockets[0]!.take()).toEqual([
      questions({ name: 'host.local', type: RECORD_TYPE.A }, { name: 'host.local', type: RECORD_TYPE.AAAA }),
    ]);
    sockets[0]!.receive({ response: true, additionals: [HOST_A] });
    expect(await found).toEqual({ addresses: ['192.0.2.1'], port: 6385, params: { protocol: 'http' } });
    expect(sockets.map(({ closed }) => closed)).toEqual([true, true]);
  });
  it('returns undefined without a valid response', async () => {
    const { clock, sockets, found } = lookup(2);
    await clock.advance(0);
    const whole = [SRV, TXT, A];
    sockets[0]!.receive({ response: false, answers: whole });
    sockets[0]!.receive({ response: true, answers: whole }, { port: 40000 });
    sockets[0]!.receive({ response: true, answers: whole }, { address: '203.0.113.1' });
    sockets[1]!.receive({ response: true, answers: whole });
    sockets[0]!.emit('message', Buffer.from('nothing'), { address: '192.0.2.9', port: 5353 });
    sockets[0]!.emit('error', new Error('no network'));
    await clock.advance(2);
    expect(await found).toBeUndefined();
    expect(sockets[0]!.take()).toHaveLength(2);
  });
  it('rejects when it is aborted', async () => {
    const { clock, sockets, found, ended } = lookup();
    await clock.advance(0);
    ended.abort(new Error('stopped'));
    await expect(found).rejects.toThrow('stopped');
    expect(sockets.map(({ closed }) => closed)).toEqual([true, true]);
  });
});
