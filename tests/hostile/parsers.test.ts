/**
 * Random inputs for the parsers of what the network and files contain: changed samples, and tokens that are repeated often. Each parser
 * either parses or refuses them; its CPU time, and the size of what it returns, are bounded by the size of the input.
 * fast-check prints the seed and the smallest input that fails. `npm run fuzz -- --parsers` searches for longer.
 */
import fc from 'fast-check';
import type { IncomingMessage } from 'node:http';
import { gzipSync } from 'node:zlib';
import { preferred } from '../../api/http/accept';
import { unpacked } from '../../api/http/body';
import { baseOf } from '../../api/http/forwarded';
import { sourceOf } from '../../api/http/source';
import { queryOf, segmentsOf, targetOf } from '../../api/http/target';
import { parseHtpasswd } from '../../api/auth/http-basic';
import { parseRange } from '../../boot/content';
import { parseSubnet } from '../../boot/dhcp/subnets';
import { lldpFacts, lldpLink, tlvOf } from '../../conductor/inspection/hooks/lldp';
import { parseIni } from '../../config/ini';
import { parsePolicyFile } from '../../policy/files';
import { parseRule } from '../../policy/language';
import { findChecksum } from '../../drivers/common/images';
import { negotiate } from '../../model/versions';
import { writerFor } from '../../ramdisk-agent/formats/writers';
import { judge, neededFor } from '../../wire/images/inspection';
import { qcow2Writer } from '../../ramdisk-agent/formats/qcow2';
import { withHost } from '../../wire/addresses';
import { parseSmallJson } from '../../wire/bounded-json';
import { decode as decodeDhcp } from '../../wire/dhcp/dhcp';
import { decode6, encode6, MESSAGE6, NO_ASSOCIATIONS } from '../../wire/dhcp/dhcpv6';
import { decodeDns, encodeDns, message, RECORD_TYPE } from '../../wire/dns/dns';
import { networkOf } from '../../wire/http/client-limits';
import { isoImage } from '../../wire/images/iso9660';
import * as ipmi from '../../wire/ipmi/codec';
import { decodeFru } from '../../wire/ipmi/records/fru';
import { decodeSdr } from '../../wire/ipmi/records/sdr';
import { decodeSelEntry } from '../../wire/ipmi/records/sel';
import { errorWords } from '../../wire/redfish/errors';
import { evaluate } from '../../wire/redfish/transport';
import { parseIpv6 } from '../../wire/ipv6';
import { decodeTftp, encodeTftp } from '../../wire/tftp';
import { optionsOf } from '../support/options';
import { dynamicVhd, vhdx, vmdkSparse, vmdkStream } from '../ramdisk-agent/image-builders';
import { CLUSTER, qcow2 } from '../ramdisk-agent/qcow2-builder';

import { PACKETS, PACKETS6 } from '../wire/dhcp-packets';
import { cpuMsOf } from '../support/cpu-time';
import { NEWEST } from '../support/newest';

/** Seconds for all parsers; absent: some runs of each. */
const SECONDS = Number(process.env['FUZZ_SECONDS'] ?? 0);
const RUNS = 60;
const options = optionsOf({ 'oslo_middleware.enable_proxy_headers_parsing': true });
const KIB = 1024;
const IMAGE_DISK = Buffer.alloc(256 * KIB, 1);

interface Parser {
  readonly parse: (input: Buffer) => unknown;
  /** Valid inputs, which are changed. */
  readonly samples?: readonly Buffer[];
  /** Parts of inputs, which are repeated. */
  readonly tokens?: readonly string[];
  /** The largest input in bytes. */
  readonly most?: number;
}
const text = (parse: (input: string) => unknown, ...tokens: readonly string[]): Parser => ({
  parse: (input) => parse(input.toString('latin1')),
  tokens,
  most: 64 * KIB,
});
/** A parser of single datagrams: at most 1500 bytes. */
const datagram = (parse: (input: Buffer) => unknown, ...samples: readonly Buffer[]): Parser => ({ parse, samples, most: 1500 });
const JSON_TOKENS = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  '"a"',
  '"a":',
  '1',
  '-',
  '1e9',
  'true',
  'null',
  ' ',
  '\\u0061',
  '\xc3',
  '{"a":',
];
const parseRequest = (headers: Readonly<Record<string, string>>): IncomingMessage =>
  ({ headers, socket: { remoteAddress: '127.0.0.1' } }) as unknown as IncomingMessage;
const asRedfish = (input: Buffer): Promise<unknown> => evaluate('GET', 'http://bmc/redfish/v1/', 200, {}, input);
async function asQcow2(input: Buffer): Promise<unknown> {
  const size = 64 * CLUSTER;
  const writer = qcow2Writer({ size, write: async () => {}, zero: async () => {} });
  for (let pass = 0; pass < 10; pass++) {
    for (let at = 0; at < input.length; at += 4 * KIB) await writer.take(input.subarray(at, at + 4 * KIB));
    if ((await writer.end()) === 'done') return pass;
  }
  throw new Error('the passes do not come to an end');
}
/** Every check of an image, and the writer of its format. */
async function asImage(input: Buffer): Promise<unknown> {
  const needed = neededFor(input);
  const more = needed && input.subarray(needed.offset, needed.offset + needed.length);
  const { format, refusal } = judge(input, { permitted: [], declared: null, deep: false }, more);
  const writer = writerFor({ size: 64 * KIB * KIB, write: async () => {}, zero: async () => {} }, format, null);
  for (let pass = 0; writer && pass < 10; pass++) {
    for (let at = 0; at < input.length; at += 4 * KIB) await writer.take(input.subarray(at, at + 4 * KIB));
    if ((await writer.end()) === 'done') return [refusal, pass];
  }
  return refusal;
}
function asLldp(input: Buffer): unknown {
  const tlvs: unknown[] = [];
  for (let at = 0; at + 1 < input.length; at += 2 + (input[at + 1]! % 64))
    tlvs.push([input[at]! % 128, input.toString('hex', at + 2, at + 2 + (input[at + 1]! % 64))]);
  const decoded = tlvs.flatMap((tlv) => tlvOf(tlv) ?? []);
  return [lldpFacts(decoded), lldpLink(decoded)];
}
const FRU = Buffer.from('0100000100000000fe0106000000000083616263c1000000000000', 'hex');

const PARSERS: Readonly<Record<string, Parser>> = {
  'request targets': text((url) => segmentsOf(targetOf(url).path), '/', 'v1', '%', '%2F', '%zz', '?', 'a', '..'),
  'query strings': text(queryOf, 'a=', '&', '%', '%41', '=', '+', '__proto__=', 'b'),
  'Accept headers': text(
    (header) => preferred(header, ['application/json', 'text/plain']),
    '*/*',
    ';',
    'q=',
    '0.1',
    ',',
    ' ',
    'text/',
    'application/json',
    '"',
  ),
  'Range headers': text((header) => parseRange(header, 1000), 'bytes=', '-', '1', ',', ' ', '9999999'),
  'API version': text(
    (header) => negotiate(header, header, { min: 1, max: NEWEST }),
    '1',
    '.',
    ',',
    ' ',
    'baremetal',
    '_',
    '+',
    'latest',
    '\t',
  ),
  'headers of proxies': text(
    (header) => [
      baseOf(parseRequest({ host: header, forwarded: header, 'x-forwarded-host': header }), options),
      sourceOf(parseRequest({ 'x-forwarded-for': header }), options),
    ],
    'for=',
    'host=',
    'proto=',
    ';',
    ',',
    '"',
    '\\',
    '=',
    '10.0.0.1',
    '::',
    ' ',
    'https',
  ),
  'source networks': text(networkOf, '::', ':', 'f', '1', '.', '%eth0', '::ffff:', '127.0.0.1'),
  'htpasswd files': text(parseHtpasswd, 'a', ':', '\n', '$2y$05$', ' ', 'x'.repeat(53)),
  'ironic.conf': text(parseIni, '[', ']', 'a', '=', '\n', ' ', '#', ':', '[DEFAULT]', '\\'),
  checksums: text(
    (given) => findChecksum(given, 'http://x/a', 'http://x/b'),
    'a',
    ' ',
    '*',
    '(',
    ')',
    '=',
    '\n',
    'SHA256 (a) = ',
    'f'.repeat(64),
  ),
  JSON: text((given) => parseSmallJson(Buffer.from(given, 'latin1'), { values: 1000, depth: 20 }), ...JSON_TOKENS),
  Redfish: text((given) => asRedfish(Buffer.from(given, 'latin1')), ...JSON_TOKENS, '{"error":{"@Message.ExtendedInfo":[', '"Message":"a"'),
  'errors of Redfish': text(
    (given) => errorWords({ error: { message: given, '@Message.ExtendedInfo': [{ MessageId: given, Message: given }] } }),
    '.',
    ' ',
    '<',
    '>',
    '\n',
    'Base.1.0',
  ),
  'policy rule': text(
    parseRule,
    '(',
    ')',
    ' ',
    'and ',
    'or ',
    'not ',
    '@',
    '!',
    'role:a',
    "'x':",
    '%(a)s',
    '%',
    'rule:',
    'a.b:',
    '"',
    "'",
    ':',
    ',',
  ),
  'policy file': {
    ...text(
      (input) => parsePolicyFile('policy.yaml', input),
      'a',
      ': ',
      '"',
      "'",
      '[',
      ']',
      '{',
      '}',
      ', ',
      '\n',
      '  ',
      '- ',
      '? ',
      '&a ',
      '*a',
      '!',
      '!!str ',
      '|',
      '>',
      '#',
      '---\n',
      '%YAML 1.1\n',
      'role:a',
      '"a": "@"\n',
      'a: [[]],',
      '<<: ',
      '\t',
    ),
    samples: [Buffer.from('"baremetal:node:get": "role:a or rule:b" # c\nb: [["role:a", "@"], "!"]\n')],
  },
  DHCP: datagram(decodeDhcp, ...Object.values(PACKETS)),
  DHCPv6: datagram(
    decode6,
    ...Object.values(PACKETS6),
    encode6(
      {
        relays: Array.from({ length: 8 }, () => ({ hops: 0, link: 'fd00::1', peer: 'fe80::1', options: {} })),
        message: { type: 1, xid: 1, options: { domainList: ['a.b'] }, associations: NO_ASSOCIATIONS },
      },
      MESSAGE6.relayForward,
    ),
  ),
  'subnets of DHCP': text(parseSubnet, 'fd00::/64', '10.0.0.0/8', ' ', 'range=', 'dns=::', 'route=10.0.0.0/8:10.0.0.1', '=', '/', '-'),
  'IPv6 addresses': text((given) => String(parseIpv6(given)), '::', ':', 'f', '1.2.3.4', '%'),
  'hosts of URLs': text((given) => withHost(given, 'a', 'b'), '://', '[', ']', ':', 'a', '/', ' ', '[::1]'),
  TFTP: datagram(
    decodeTftp,
    encodeTftp({
      kind: 'rrq',
      file: 'a',
      mode: 'octet',
      options: new Map([
        ['blksize', '1468'],
        ['windowsize', '4'],
      ]),
    }),
  ),
  DNS: datagram(decodeDns, encodeDns(message({ id: 1, questions: [{ name: '_a._tcp.local', type: RECORD_TYPE.PTR, unicast: false }] }))),
  'IPMI packets': datagram(
    (input) => [
      ipmi.decodePacket(input),
      ipmi.decodeLanMessage(input),
      ipmi.decodeResponseHead(input),
      ipmi.decodeOpenSessionResponse(input),
      ipmi.decodeRakp2(input),
      ipmi.decodeRakp4(input),
    ],
    Buffer.from('0600ff06000011be80010000', 'hex'),
    ipmi.encodePlain(Buffer.alloc(20, 1)),
  ),
  'IPMI sensors': datagram(decodeSdr, Buffer.alloc(64, 1), Buffer.from('0100510101'.padEnd(128, '0'), 'hex')),
  'IPMI events': datagram(decodeSelEntry, Buffer.alloc(16, 2)),
  FRU: { parse: decodeFru, samples: [FRU, Buffer.alloc(4 * KIB, 0xc1)], most: 64 * KIB },
  LLDP: { parse: asLldp, samples: [Buffer.from('0204aabbccdd0605657468300004000000', 'hex')], most: 64 * KIB },
  qcow2: { parse: asQcow2, samples: [qcow2({ clusters: { 0: 1, 1: 2 }, compressed: [1], size: 4 * CLUSTER })], most: 512 * KIB },
  'image formats': {
    parse: asImage,
    samples: [
      isoImage('a', { b: Buffer.alloc(10) }, 0),
      vmdkStream(IMAGE_DISK),
      vmdkSparse(IMAGE_DISK),
      dynamicVhd(IMAGE_DISK),
      vhdx(IMAGE_DISK),
    ],
    most: 8 * KIB * KIB,
  },
  gzip: {
    parse: async (input) => (await unpacked({ headers: { 'content-encoding': 'gzip' } }, input, 4 * KIB * KIB)).length,
    samples: [gzipSync(Buffer.alloc(16 * KIB * KIB)), gzipSync('{"a":1}')],
    most: 64 * KIB,
  },
};

/** A sample with bytes changed, removed and repeated, and a sequence of tokens, each repeated. */
function inputs({ samples = [], tokens = [], most = 64 * KIB }: Parser): fc.Arbitrary<Buffer> {
  const repetitions = fc.oneof(fc.constant(1), fc.nat(8), fc.nat(20_000));
  const repeated = (part: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> =>
    fc
      .tuple(part, repetitions)
      .map(([bytes, times]) => Buffer.concat(Array.from({ length: Math.min(times, most / (bytes.length || 1)) }, () => bytes)));
  const noise = fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes));
  const tokenArbitraries = tokens.map((token) => fc.constant(Buffer.from(token, 'latin1')));
  const sequence = fc
    .array(repeated(fc.oneof(...tokenArbitraries, ...tokenArbitraries, noise)), { maxLength: 12 })
    .map((parts) => Buffer.concat(parts));
  const groups = repeated(fc.array(fc.oneof(...tokenArbitraries, noise), { maxLength: 4 }).map((parts) => Buffer.concat(parts)));
  const changed = samples.map((sample) =>
    fc
      .array(fc.tuple(fc.nat(sample.length), fc.nat(8), repeated(noise)), { maxLength: 6 })
      .map((changes) =>
        changes.reduce(
          (bytes, [at, removed, added]) => Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)]),
          sample,
        ),
      ),
  );
  const flipped = samples.map((sample) =>
    fc.array(fc.tuple(fc.nat(sample.length - 1), fc.nat(255)), { maxLength: 20 }).map((changes) => {
      const bytes = Buffer.from(sample);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    }),
  );
  return fc.oneof(sequence, groups, ...changed, ...flipped).map((bytes) => bytes.subarray(0, most));
}

/** Milliseconds. Generous: a quiet machine needs a hundredth. Work that grows with the square of 64 KiB takes seconds. */
const MAX_CPU_MS = (bytes: number): number => 400 + (bytes / KIB) * 5;
/** Characters of the result as JSON. */
const MAX_RESULT = (bytes: number): number => 16 * KIB + 64 * bytes;

it.each(Object.keys(PARSERS))(
  'parses random input in bounded time and space: %s',
  async (name) => {
    const parser = PARSERS[name]!;
    const property = fc.asyncProperty(inputs(parser), async (input) => {
      let result: unknown;
      const parse = async (): Promise<void> => {
        try {
          result = await parser.parse(input);
        } catch (error) {
          // A refusal is an error with a message; these errors are defects.
          const isDefect = error instanceof TypeError && !('code' in error);
          if (isDefect || error instanceof RangeError || error instanceof ReferenceError) throw error;
          result = (error as Error).message;
        }
      };
      const most = MAX_CPU_MS(input.length);
      expect(await cpuMsOf(parse, most)).toBeLessThan(most);
      expect((JSON.stringify(result) ?? '').length).toBeLessThan(MAX_RESULT(input.length));
    });
    const share = (SECONDS * 1000) / Object.keys(PARSERS).length;
    await fc.assert(property, SECONDS > 0 ? { numRuns: 2 ** 31 - 1, plugins: [fc.interruptAfterTimeLimit(share)] } : { numRuns: RUNS });
  },
  SECONDS > 0 ? (SECONDS + 300) * 1000 : undefined,
);
