/**
 * DHCPv6 messages: encoding and decoding. RFC 8415 (messages and options), RFC 3646 (DNS), RFC 5970 (network boot), RFC 6939 (client
 * link-layer address). A new option is a row of OPTIONS, and needs a new kind only if none fits.
 */
import { ipv6At, ipv6Bytes } from '../ipv6';

/** §7.3. */
export const MESSAGE6 = {
  solicit: 1,
  advertise: 2,
  request: 3,
  confirm: 4,
  renew: 5,
  rebind: 6,
  reply: 7,
  release: 8,
  decline: 9,
  reconfigure: 10,
  informationRequest: 11,
  relayForward: 12,
  relayReply: 13,
} as const;
/** §21.13. */
export const STATUS6 = { success: 0, unspecified: 1, noAddresses: 2, noBinding: 3, notOnLink: 4, useMulticast: 5, noPrefixes: 6 } as const;

interface Status {
  readonly code: number;
  readonly message: string;
}
export interface LeasedAddress {
  readonly address: string;
  /** Seconds. */
  readonly preferred: number;
  readonly valid: number;
}
/** An identity association: the addresses of one interface. */
export interface Association {
  readonly iaid: number;
  /** Seconds. */
  readonly t1: number;
  readonly t2: number;
  readonly addresses: readonly LeasedAddress[];
  readonly status?: Status | undefined;
}
interface VendorClass {
  readonly enterprise: number;
  readonly data: readonly Buffer[];
}

/** Encodes and decodes values of a kind. `decode` returns undefined for invalid bytes. */
interface OptionKind6<Value> {
  decode(bytes: Buffer): Value | undefined;
  encode(value: Value): Buffer;
}
const kind = <Value>(rules: OptionKind6<Value>): OptionKind6<Value> => rules;

const uint16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
};
const uint32 = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, index) => bytes.writeUInt32BE(value, 4 * index));
  return bytes;
};
const option = (code: number, value: Buffer): Buffer => Buffer.concat([uint16(code), uint16(value.length), value]);

/** The options in order, by code; a returned string is the error. */
function readOptions(bytes: Buffer): Map<number, Buffer[]> | string {
  const found = new Map<number, Buffer[]>();
  for (let at = 0; at < bytes.length;) {
    if (at + 4 > bytes.length) return 'an option is cut off';
    const [code, length] = [bytes.readUInt16BE(at), bytes.readUInt16BE(at + 2)];
    at += 4;
    if (at + length > bytes.length) return `option ${code} reaches over the end`;
    const values = found.get(code);
    const value = bytes.subarray(at, at + length);
    if (values) values.push(value);
    else found.set(code, [value]);
    at += length;
  }
  return found;
}

/** Items with their length in two bytes in front (§21.15, §21.16). */
function readItems(bytes: Buffer): Buffer[] | undefined {
  const items: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    if (at + 2 > bytes.length) return undefined;
    const length = bytes.readUInt16BE(at);
    if (at + 2 + length > bytes.length) return undefined;
    items.push(bytes.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return items;
}
const writeItems = (items: readonly Buffer[]): Buffer => Buffer.concat(items.flatMap((item) => [uint16(item.length), item]));

const ADDRESS = 5;
const STATUS = 13;
const ADDRESS_SIZE = 16;

const status = kind<Status>({
  decode: (bytes) => (bytes.length < 2 ? undefined : { code: bytes.readUInt16BE(0), message: bytes.toString('utf8', 2) }),
  encode: ({ code, message }) => Buffer.concat([uint16(code), Buffer.from(message)]),
});
/** §21.6. Options inside it are ignored: a server does not need them. */
const leased = kind<LeasedAddress>({
  decode: (bytes) =>
    bytes.length < ADDRESS_SIZE + 8
      ? undefined
      : { address: ipv6At(bytes), preferred: bytes.readUInt32BE(ADDRESS_SIZE), valid: bytes.readUInt32BE(ADDRESS_SIZE + 4) },
  encode: ({ address, preferred, valid }) => Buffer.concat([ipv6Bytes(address), uint32(preferred, valid)]),
});
/** IA_NA (§21.4) and IA_PD (§21.21) have the same form. The prefixes of an IA_PD are not read. */
const association = kind<Association>({
  decode: (bytes) => {
    const inner = bytes.length < 12 ? 'too short' : readOptions(bytes.subarray(12));
    if (typeof inner === 'string') return undefined;
    const addresses = (inner.get(ADDRESS) ?? []).map((item) => leased.decode(item));
    if (addresses.includes(undefined)) return undefined;
    const [code] = inner.get(STATUS) ?? [];
    return {
      iaid: bytes.readUInt32BE(0),
      t1: bytes.readUInt32BE(4),
      t2: bytes.readUInt32BE(8),
      addresses: addresses as readonly LeasedAddress[],
      status: code === undefined ? undefined : status.decode(code),
    };
  },
  encode: ({ iaid, t1, t2, addresses, status: code }) =>
    Buffer.concat([
      uint32(iaid, t1, t2),
      ...addresses.map((address) => option(ADDRESS, leased.encode(address))),
      ...(code === undefined ? [] : [option(STATUS, status.encode(code))]),
    ]),
});

/** RFC 1035 §3.1, without compression. */
const encodeName = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split('.')
      .filter((label) => label !== '')
      .map((label) => Buffer.concat([Buffer.from([Math.min(label.length, 63)]), Buffer.from(label.slice(0, 63), 'latin1')])),
    Buffer.alloc(1),
  ]);
function decodeNames(bytes: Buffer): readonly string[] | undefined {
  const names: string[] = [];
  let labels: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes[at]!;
    if (length > 63 || at + 1 + length > bytes.length) return undefined;
    if (length > 0) labels.push(bytes.toString('latin1', at + 1, at + 1 + length));
    else {
      names.push(labels.join('.'));
      labels = [];
    }
    at += 1 + length;
  }
  return labels.length > 0 ? undefined : names;
}

const KINDS = {
  bytes: kind<Buffer>({ decode: (bytes) => bytes, encode: (value) => value }),
  text: kind<string>({ decode: (bytes) => bytes.toString('utf8'), encode: (value) => Buffer.from(value) }),
  flag: kind<true>({ decode: (bytes) => (bytes.length === 0 ? true : undefined), encode: () => Buffer.alloc(0) }),
  uint8: kind<number>({ decode: (bytes) => (bytes.length === 1 ? bytes[0] : undefined), encode: (value) => Buffer.from([value]) }),
  uint16: kind<number>({ decode: (bytes) => (bytes.length === 2 ? bytes.readUInt16BE(0) : undefined), encode: uint16 }),
  uint16s: kind<readonly number[]>({
    decode: (bytes) =>
      bytes.length % 2 === 0 ? Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readUInt16BE(2 * index)) : undefined,
    encode: (values) => Buffer.concat(values.map(uint16)),
  }),
  addresses: kind<readonly string[]>({
    decode: (bytes) =>
      bytes.length > 0 && bytes.length % ADDRESS_SIZE === 0
        ? Array.from({ length: bytes.length / ADDRESS_SIZE }, (_, index) => ipv6At(bytes, ADDRESS_SIZE * index))
        : undefined,
    encode: (values) => Buffer.concat(values.map(ipv6Bytes)),
  }),
  items: kind<readonly Buffer[]>({ decode: readItems, encode: writeItems }),
  vendorClass: kind<VendorClass>({
    decode: (bytes) => {
      const data = bytes.length < 4 ? undefined : readItems(bytes.subarray(4));
      return data && { enterprise: bytes.readUInt32BE(0), data };
    },
    encode: ({ enterprise, data }) => Buffer.concat([uint32(enterprise), writeItems(data)]),
  }),
  names: kind<readonly string[]>({ decode: decodeNames, encode: (names) => Buffer.concat(names.map(encodeName)) }),
  association,
  status,
} as const;
type ValueOf<K> = K extends OptionKind6<infer Value> ? Value : never;

/** Code, name, kind. */
const OPTIONS = [
  [1, 'clientIdentifier', 'bytes'],
  [2, 'serverIdentifier', 'bytes'],
  [6, 'optionRequest', 'uint16s'],
  [7, 'preference', 'uint8'],
  [8, 'elapsedTime', 'uint16'],
  [9, 'relayMessage', 'bytes'],
  [13, 'status', 'status'],
  [14, 'rapidCommit', 'flag'],
  [15, 'userClass', 'items'],
  [16, 'vendorClass', 'vendorClass'],
  [18, 'interfaceIdentifier', 'bytes'],
  [23, 'dnsServers', 'addresses'],
  [24, 'domainList', 'names'],
  [59, 'bootFileUrl', 'text'],
  [60, 'bootFileParameters', 'items'],
  [61, 'clientArchitectures', 'uint16s'],
  [62, 'clientInterface', 'bytes'],
  [79, 'clientLinkLayer', 'bytes'],
] as const satisfies readonly (readonly [number, string, keyof typeof KINDS])[];
/** Options that occur once for each association: code, name. */
const ASSOCIATIONS = [
  [3, 'addresses'],
  [4, 'temporary'],
  [25, 'prefixes'],
] as const;
type OptionRow = (typeof OPTIONS)[number];
export type Option6Values = { readonly [Row in OptionRow as Row[1]]?: ValueOf<(typeof KINDS)[Row[2]]> | undefined };
type Associations = { readonly [Row in (typeof ASSOCIATIONS)[number] as Row[1]]: readonly Association[] };

/** The common type of all rows, whose own types differ. */
interface AnyRow {
  readonly code: number;
  readonly name: keyof Option6Values;
  readonly kind: OptionKind6<unknown>;
}
const ROWS: readonly AnyRow[] = OPTIONS.map(([code, name, kindName]) => ({ code, name, kind: KINDS[kindName] }));
export const codeOf = (name: keyof Option6Values): number => ROWS.find((row) => row.name === name)!.code;

export interface Dhcpv6Message {
  readonly type: number;
  readonly xid: number;
  readonly options: Option6Values;
  readonly associations: Associations;
}
/** The fields that a relay adds to a message. */
interface Relay {
  readonly hops: number;
  /** An address of the link that the message came from; `::` if the relay leaves that to the interface identifier. */
  readonly link: string;
  /** The address of the client or relay that sent the message to this relay. */
  readonly peer: string;
  readonly options: Option6Values;
}
/** A client's message with the relays that it passed, the one nearest to the server first. */
export interface Dhcpv6Packet {
  readonly relays: readonly Relay[];
  readonly message: Dhcpv6Message;
}
interface Malformed6 {
  readonly malformed: string;
}
export const NO_ASSOCIATIONS: Associations = { addresses: [], temporary: [], prefixes: [] };

/** §7.6. */
const MAX_RELAYS = 8;
/** Most associations of each kind, and addresses of each association: an interface has one. The answer repeats all of them. */
const MAX_ASSOCIATIONS = 16;
const MAX_ADDRESSES = 64;
const MESSAGE_HEAD = 4;
const RELAY_HEAD = 2 + 2 * ADDRESS_SIZE;

/** An invalid or repeated option of OPTIONS makes the message malformed: §16 lets a server discard it. Associations may be repeated. */
function decodeOptions(bytes: Buffer): { readonly options: Option6Values; readonly associations: Associations } | Malformed6 {
  const found = readOptions(bytes);
  if (typeof found === 'string') return { malformed: found };
  const options: Record<string, unknown> = {};
  for (const { code, name, kind: rules } of ROWS) {
    const values = found.get(code);
    if (!values) continue;
    const value = rules.decode(values[0]!);
    if (values.length > 1 || value === undefined) return { malformed: `option ${code} is invalid` };
    options[name] = value;
  }
  const associations: Record<string, readonly Association[]> = {};
  for (const [code, name] of ASSOCIATIONS) {
    const values = (found.get(code) ?? []).map((item) =>
      // §21.5: IA_TA has no times.
      association.decode(name === 'temporary' ? Buffer.concat([item.subarray(0, 4), Buffer.alloc(8), item.subarray(4)]) : item),
    );
    if (values.includes(undefined)) return { malformed: `option ${code} is invalid` };
    if (values.length > MAX_ASSOCIATIONS || values.some((value) => value!.addresses.length > MAX_ADDRESSES))
      return { malformed: `option ${code} is there too often, or has too many addresses` };
    associations[name] = values as readonly Association[];
  }
  return { options, associations: associations as Associations };
}

/** Never throws. Buffers in the result are views of `bytes`. */
export function decode6(bytes: Buffer): Dhcpv6Packet | Malformed6 {
  const relays: Relay[] = [];
  let rest = bytes;
  for (;;) {
    if (rest.length < MESSAGE_HEAD) return { malformed: `${rest.length} bytes are too few` };
    const type = rest[0]!;
    const isRelay = type === MESSAGE6.relayForward || type === MESSAGE6.relayReply;
    const head = isRelay ? RELAY_HEAD : MESSAGE_HEAD;
    if (rest.length < head) return { malformed: 'a relay message is cut off' };
    const read = decodeOptions(rest.subarray(head));
    if ('malformed' in read) return read;
    if (!isRelay) return { relays, message: { type, xid: rest.readUIntBE(1, 3), ...read } };
    if (relays.length === MAX_RELAYS) return { malformed: `more than ${MAX_RELAYS} relays` };
    const { relayMessage, ...options } = read.options;
    if (relayMessage === undefined) return { malformed: 'a relay message without a message' };
    relays.push({ hops: rest[1]!, link: ipv6At(rest, 2), peer: ipv6At(rest, 2 + ADDRESS_SIZE), options });
    rest = relayMessage;
  }
}

const encodeOptions = (options: Option6Values, associations: Associations): Buffer =>
  Buffer.concat([
    ...ROWS.filter(({ name }) => options[name] !== undefined).map((row) => option(row.code, row.kind.encode(options[row.name]))),
    ...ASSOCIATIONS.flatMap(([code, name]) =>
      associations[name].map((item) => {
        const encoded = association.encode(item);
        return option(code, name === 'temporary' ? Buffer.concat([encoded.subarray(0, 4), encoded.subarray(12)]) : encoded);
      }),
    ),
  ]);

/** Encodes the message inside the Relay-reply messages of its relays (§19.3), or inside Relay-forward messages. */
export function encode6({ relays, message }: Dhcpv6Packet, relayType: number = MESSAGE6.relayReply): Buffer {
  const head = uint32(message.xid);
  head[0] = message.type;
  let bytes = Buffer.concat([head, encodeOptions(message.options, message.associations)]);
  for (const { hops, link, peer, options } of [...relays].reverse())
    bytes = Buffer.concat([
      Buffer.from([relayType, hops]),
      ipv6Bytes(link),
      ipv6Bytes(peer),
      encodeOptions({ ...options, relayMessage: bytes }, NO_ASSOCIATIONS),
    ]);
  return bytes;
}

const ETHERNET = 1;
const macText = (bytes: Buffer): string => bytes.toString('hex').replace(/..(?=.)/g, '$&:');
const DUID_LLT = 1;
const DUID_LL = 3;
/** The MAC address in a DUID (§11.2, §11.4); undefined: it has none. */
export function macOfDuid(duid: Buffer): string | undefined {
  if (duid.length < 4 || duid.readUInt16BE(2) !== ETHERNET) return undefined;
  const start = { [DUID_LLT]: 8, [DUID_LL]: 4 }[duid.readUInt16BE(0)];
  return start !== undefined && duid.length === start + 6 ? macText(duid.subarray(start)) : undefined;
}
/** RFC 6939 §4: the hardware type, then the address. */
export const macOfLinkLayer = (bytes: Buffer): string | undefined =>
  bytes.length === 8 && bytes.readUInt16BE(0) === ETHERNET ? macText(bytes.subarray(2)) : undefined;
/** §11.4. */
export const duidOfMac = (mac: string): Buffer =>
  Buffer.concat([uint16(DUID_LL), uint16(ETHERNET), Buffer.from(mac.replaceAll(':', ''), 'hex')]);
