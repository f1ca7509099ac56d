import { dataBytes, decodeDns, encodeDns, message, RECORD_TYPE, type DnsRecord } from '../../../wire/dns/dns';
import { serviceIn, urlOf } from '../../../wire/dns/mdns';
import { recordsOf } from '../../../wire/dns/mdns-responder';
import { cpuMsOf } from '../../support/cpu-time';

const NAME = 'baremetal._openstack._tcp.local';
const RECORDS: readonly DnsRecord[] = [
  { type: RECORD_TYPE.PTR, name: '_openstack._tcp.local', ttl: 4500, flush: false, target: NAME },
  { type: RECORD_TYPE.SRV, name: NAME, ttl: 120, flush: true, port: 6385, target: 'host.local' },
  { type: RECORD_TYPE.TXT, name: NAME, ttl: 4500, flush: true, text: { protocol: 'http', path: '/a=b', ipa_debug: 'True' } },
  { type: RECORD_TYPE.TXT, name: NAME, ttl: 0, flush: true, text: {} },
  { type: RECORD_TYPE.A, name: 'host.local', ttl: 120, flush: true, address: '192.0.2.1' },
  { type: RECORD_TYPE.AAAA, name: 'host.local', ttl: 120, flush: true, address: '2001:db8::1' },
  { type: RECORD_TYPE.AAAA, name: 'host.local', ttl: 120, flush: true, address: '::' },
];

it('decodeDns reads the message that encodeDns writes', () => {
  const sent = message({
    id: 7,
    response: true,
    questions: [
      { name: NAME, type: RECORD_TYPE.ANY, unicast: true },
      { name: 'a\\.b.local', type: RECORD_TYPE.SRV, unicast: false },
    ],
    answers: RECORDS.slice(0, 3),
    authorities: RECORDS.slice(3, 5),
    additionals: RECORDS.slice(5),
  });
  expect(decodeDns(encodeDns(sent))).toEqual(sent);
});

/** An answer of python-zeroconf, with compressed names. */
const COMPRESSED = Buffer.concat([
  Buffer.from('000084000000000200000000', 'hex'),
  Buffer.from([9]),
  Buffer.from('Baremetal'),
  Buffer.from([10]),
  Buffer.from('_openstack'),
  Buffer.from([4]),
  Buffer.from('_tcp'),
  Buffer.from([5]),
  Buffer.from('local'),
  Buffer.from('0000218001000000780008', 'hex'),
  Buffer.from('0000000018f1c00c', 'hex'),
  Buffer.from('c00c00018001000000780004c0000201', 'hex'),
]);
it('decodeDns reads compressed names in lower case', () => {
  expect(decodeDns(COMPRESSED)?.answers).toEqual([
    { type: RECORD_TYPE.SRV, name: NAME, ttl: 120, flush: true, port: 6385, target: NAME },
    { type: RECORD_TYPE.A, name: NAME, ttl: 120, flush: true, address: '192.0.2.1' },
  ]);
});

it.each<[string, Buffer]>([
  ['an empty message', Buffer.alloc(0)],
  ['a name that points to itself', Buffer.from('000000000001000000000000c00c00010001', 'hex')],
  ['a name that points ahead', Buffer.from('000000000001000000000000c01000010001', 'hex')],
  ['more records than a message should have', Buffer.from('00008400000003e800000000', 'hex')],
  ['a record that ends early', COMPRESSED.subarray(0, -1)],
  ['a message with an error code', Buffer.from('000084030000000000000000', 'hex')],
  ['a label of the kind 01', Buffer.from('0000000000010000000000004100010001', 'hex')],
])('decodeDns rejects %s', (_, bytes) => {
  expect(decodeDns(bytes)).toBeUndefined();
});

/** A record full of compression pointers, each to the one before, and records whose names begin at the last. */
function chained(hops: number, names: number): Buffer {
  const at = 12 + 1 + 10;
  const chain = Buffer.alloc(2 * hops);
  for (let hop = 1; hop < hops; hop++) chain.writeUInt16BE(0xc000 | (at + 2 * (hop - 1)), 2 * hop);
  const head = Buffer.from([0, 0, 0x84, 0, 0, 0, (names + 1) >> 8, (names + 1) & 255, 0, 0, 0, 0]);
  const unknown = Buffer.from([0, 0, 99, 0, 1, 0, 0, 0, 0, chain.length >> 8, chain.length & 255]);
  const named = Buffer.alloc(12);
  named.writeUInt16BE(0xc000 | (at + 2 * (hops - 1)), 0);
  named.writeUInt16BE(99, 2);
  named.writeUInt16BE(1, 4);
  return Buffer.concat([head, unknown, chain, ...Array.from({ length: names }, () => named)]);
}
it('decodeDns follows a few compression pointers, and rejects thousands of them in little CPU time', async () => {
  expect(decodeDns(chained(3, 1))).toMatchObject({ response: true });
  // About 0.1 ms; without a bound for pointers, it took most of a second.
  expect(await cpuMsOf(() => expect(decodeDns(chained(8000, 250))).toBeUndefined(), 200)).toBeLessThan(200);
});

/** What an announcing server, or an agent that looks a service up, does with a message. */
function lookAt(bytes: Buffer): void {
  const heard = decodeDns(bytes);
  if (!heard) return;
  const records = [...heard.answers, ...heard.authorities, ...heard.additionals];
  for (const record of records) dataBytes(record);
  const found = serviceIn('baremetal', records);
  if (found) urlOf(found);
  encodeDns(message({ id: heard.id, response: true, questions: heard.questions, answers: records }));
}
it('mutated messages cause no exception', () => {
  let seed = 1;
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const whole = encodeDns(message({ response: true, questions: [{ name: NAME, type: RECORD_TYPE.ANY }], answers: RECORDS }));
  for (let round = 0; round < 20_000; round++) {
    const bytes = Buffer.from([COMPRESSED, whole, Buffer.alloc(Math.floor(random() * 80))][round % 3]!);
    for (let changes = 0; changes < 4 && bytes.length > 0; changes++)
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    lookAt(random() < 0.1 ? bytes.subarray(0, Math.floor(random() * bytes.length)) : bytes);
  }
});

it.each<[string, Parameters<typeof recordsOf>[0], string | undefined]>([
  ['an address', { service: 'baremetal', addresses: ['192.0.2.1'], port: 6385, params: { protocol: 'http' } }, 'http://192.0.2.1:6385'],
  [
    'a path',
    { service: 'baremetal', addresses: ['192.0.2.1'], port: 80, params: { path: '/baremetal/' } },
    'http://192.0.2.1:80/baremetal',
  ],
  ['an address of IPv6', { service: 'baremetal', addresses: ['2001:db8::1'], port: 443, params: {} }, 'https://[2001:db8::1]:443'],
  [
    'a name',
    { service: 'baremetal', hostname: 'ironic.example.org', addresses: [], port: 443, params: {} },
    'https://ironic.example.org:443',
  ],
  ['the loopback only', { service: 'baremetal', addresses: ['127.0.0.1'], port: 80, params: {} }, undefined],
  ['another protocol', { service: 'baremetal', addresses: ['192.0.2.1'], port: 80, params: { protocol: 'ftp' } }, undefined],
])('urlOf returns the URL or undefined for a service announced with %s', (_, announced, url) => {
  const found = serviceIn('baremetal', recordsOf(announced));
  expect(found && urlOf(found)).toBe(url);
});
