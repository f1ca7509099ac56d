/**
 * DHCPv4 packets: encoding and decoding. RFC 2131 (packet), RFC 2132 (options), RFC 3396 (long options), RFC 3046 (relay agent
 * information), RFC 3442 (classless static routes), RFC 4578 (PXE). A new option is a row of OPTIONS. It needs a new kind only if none
 * fits.
 */

/** Encodes and decodes values of a kind. `decode` returns undefined for invalid bytes. */
interface OptionKind<Value> {
  decode(bytes: Buffer): Value | undefined;
  encode(value: Value): Buffer;
}
const kind = <Value>(rules: OptionKind<Value>): OptionKind<Value> => rules;

export const addressToNumber = (address: string): number => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
export const numberToAddress = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
const addressAt = (bytes: Buffer, offset: number): string => numberToAddress(bytes.readUInt32BE(offset));

/** A kind of `size` bytes, and the kind of one or more of them in a row. */
const fixed = <Value>(size: number, read: (bytes: Buffer, offset: number) => Value, write: (bytes: Buffer, value: Value) => void) => {
  const encode = (value: Value): Buffer => {
    const bytes = Buffer.alloc(size);
    write(bytes, value);
    return bytes;
  };
  return {
    one: kind<Value>({ decode: (bytes) => (bytes.length === size ? read(bytes, 0) : undefined), encode }),
    list: kind<readonly Value[]>({
      decode: (bytes) =>
        bytes.length === 0 || bytes.length % size !== 0
          ? undefined
          : Array.from({ length: bytes.length / size }, (_, index) => read(bytes, index * size)),
      encode: (values) => Buffer.concat(values.map(encode)),
    }),
  };
};
const address = fixed<string>(4, addressAt, (bytes, value) => void bytes.writeUInt32BE(addressToNumber(value)));
const uint8 = fixed<number>(
  1,
  (bytes, offset) => bytes.readUInt8(offset),
  (bytes, value) => void bytes.writeUInt8(value),
);
const uint16 = fixed<number>(
  2,
  (bytes, offset) => bytes.readUInt16BE(offset),
  (bytes, value) => void bytes.writeUInt16BE(value),
);
const uint32 = fixed<number>(
  4,
  (bytes, offset) => bytes.readUInt32BE(offset),
  (bytes, value) => void bytes.writeUInt32BE(value),
);
/** RFC 2132 §2: trailing NULs may occur and are ignored. */
const trimmed = (bytes: Buffer): string => bytes.toString('latin1').replace(/(?<!\0)\0+$/, '');
const KINDS = {
  address: address.one,
  addresses: address.list,
  uint8: uint8.one,
  uint8s: uint8.list,
  uint16: uint16.one,
  uint16s: uint16.list,
  uint32: uint32.one,
  text: kind<string>({ decode: trimmed, encode: (value) => Buffer.from(value, 'latin1') }),
  bytes: kind<Buffer>({ decode: (bytes) => bytes, encode: (value) => value }),
  /** Encapsulated options: code → bytes, with neither repetition nor long values (RFC 2132 §8.4). */
  encapsulated: kind<ReadonlyMap<number, Buffer>>({
    decode: (bytes) => {
      const read = readOptions([bytes]);
      return typeof read === 'string' ? undefined : read;
    },
    encode: (values) => Buffer.concat([...values].map(([code, value]) => Buffer.concat([Buffer.from([code, value.length]), value]))),
  }),
  routes: kind<readonly Route[]>({ decode: decodeRoutes, encode: (routes) => Buffer.concat(routes.map(encodeRoute)) }),
} as const;
/** RFC 3442: each route is the width of its destination, the octets of the destination that count, and the router. */
export interface Route {
  readonly destination: string;
  readonly width: number;
  readonly router: string;
}
function decodeRoutes(bytes: Buffer): readonly Route[] | undefined {
  const routes: Route[] = [];
  for (let at = 0; at < bytes.length;) {
    const width = bytes[at]!;
    const octets = Math.ceil(width / 8);
    if (width > 32 || at + 1 + octets + 4 > bytes.length) return undefined;
    const destination = Buffer.alloc(4);
    bytes.copy(destination, 0, at + 1, at + 1 + octets);
    routes.push({ destination: addressAt(destination, 0), width, router: addressAt(bytes, at + 1 + octets) });
    at += 1 + octets + 4;
  }
  return routes.length === 0 ? undefined : routes;
}
const encodeRoute = ({ destination, width, router }: Route): Buffer =>
  Buffer.concat([Buffer.from([width]), address.one.encode(destination).subarray(0, Math.ceil(width / 8)), address.one.encode(router)]);

type ValueOf<K> = K extends OptionKind<infer Value> ? Value : never;

/** Code, name, kind. The codec itself handles 0 (pad), 52 (overload) and 255 (end). */
const OPTIONS = [
  [1, 'subnetMask', 'address'],
  [3, 'routers', 'addresses'],
  [6, 'domainNameServers', 'addresses'],
  [12, 'hostName', 'text'],
  [15, 'domainName', 'text'],
  [26, 'interfaceMtu', 'uint16'],
  [28, 'broadcastAddress', 'address'],
  [42, 'ntpServers', 'addresses'],
  [43, 'vendorSpecific', 'bytes'],
  [50, 'requestedAddress', 'address'],
  [51, 'leaseTime', 'uint32'],
  [53, 'messageType', 'uint8'],
  [54, 'serverIdentifier', 'address'],
  [55, 'parameterRequestList', 'uint8s'],
  [56, 'message', 'text'],
  [57, 'maximumMessageSize', 'uint16'],
  [58, 'renewalTime', 'uint32'],
  [59, 'rebindingTime', 'uint32'],
  [60, 'vendorClass', 'text'],
  [61, 'clientIdentifier', 'bytes'],
  [66, 'tftpServerName', 'text'],
  [67, 'bootFileName', 'text'],
  [77, 'userClass', 'bytes'],
  // RFC 3046 §2.2: echoed unchanged.
  [82, 'relayAgentInformation', 'bytes'],
  [93, 'clientArchitectures', 'uint16s'],
  [94, 'clientInterface', 'bytes'],
  [97, 'clientMachineIdentifier', 'bytes'],
  [121, 'classlessRoutes', 'routes'],
  [150, 'tftpServerAddresses', 'addresses'],
  [175, 'ipxe', 'encapsulated'],
] as const satisfies readonly (readonly [number, string, keyof typeof KINDS])[];
type OptionRow = (typeof OPTIONS)[number];

/** Times in seconds, addresses dotted. */
export type OptionValues = { readonly [Row in OptionRow as Row[1]]?: ValueOf<(typeof KINDS)[Row[2]]> | undefined };

/** The common type of all rows, whose own types differ. */
interface AnyRow {
  readonly code: number;
  readonly name: keyof OptionValues;
  readonly kind: OptionKind<unknown>;
}
const ROWS: readonly AnyRow[] = OPTIONS.map(([code, name, kindName]) => ({ code, name, kind: KINDS[kindName] }));
const ROW_OF: ReadonlyMap<number, AnyRow> = new Map(ROWS.map((row) => [row.code, row]));

/** Sub-options of the relay agent information: RFC 3527 (link selection), RFC 5107 (server identifier override). */
const RELAY_OPTIONS = { linkSelection: 5, serverIdentifier: 11 } as const;
/** An address that a relay gives; undefined: none, or not four bytes. */
export function relayAddress(options: OptionValues, name: keyof typeof RELAY_OPTIONS): string | undefined {
  const read = options.relayAgentInformation && readOptions([options.relayAgentInformation]);
  const value = typeof read === 'string' ? undefined : read?.get(RELAY_OPTIONS[name]);
  return value && address.one.decode(value);
}

/** RFC 2132 §9.6. */
export const MESSAGE = { discover: 1, offer: 2, request: 3, decline: 4, ack: 5, nak: 6, release: 7, inform: 8 } as const;
export const BOOT_REQUEST = 1;
export const BOOT_REPLY = 2;
/** The client requests broadcast responses. RFC 2131 §2: the only defined bit of `flags`. */
export const BROADCAST_FLAG = 0x8000;
export const ANY_ADDRESS = '0.0.0.0';

export interface DhcpPacket {
  readonly op: number;
  /** Hardware type; 1 is Ethernet. */
  readonly htype: number;
  readonly hops: number;
  readonly xid: number;
  readonly secs: number;
  readonly flags: number;
  readonly ciaddr: string;
  readonly yiaddr: string;
  readonly siaddr: string;
  readonly giaddr: string;
  /** Hardware address: `hlen` bytes, hexadecimal, lower case, with colons. Empty when hlen is 0. */
  readonly chaddr: string;
  readonly sname: string;
  readonly file: string;
  readonly options: OptionValues;
  /** Options without a row, and options with invalid bytes. */
  readonly unknown: ReadonlyMap<number, Buffer>;
}
interface Malformed {
  readonly malformed: string;
}

/** RFC 2131 §2, figure 1: the part before the options, including the magic cookie. */
const FIXED_SIZE = 240;
const MAGIC_COOKIE = 0x63825363;
const SNAME = { offset: 44, size: 64 } as const;
const FILE = { offset: 108, size: 128 } as const;
const PAD = 0;
const OVERLOAD = 52;
const END = 255;
/** RFC 1542 §2.1: some relays drop packets that are shorter than a BOOTP packet. */
const MIN_PACKET_SIZE = 300;

/**
 * Reads the options of one or more areas in order, and joins values of the same code (RFC 3396 §7). The end option may be missing.
 * A returned string is the error.
 */
function readOptions(areas: readonly Buffer[]): Map<number, Buffer> | string {
  const found = new Map<number, Buffer[]>();
  for (const area of areas) {
    for (let at = 0; at < area.length && area[at] !== END;) {
      const code = area[at]!;
      at += 1;
      if (code === PAD) continue;
      const length = area[at];
      if (length === undefined || at + 1 + length > area.length) return `option ${code} reaches over the end`;
      const value = area.subarray(at + 1, at + 1 + length);
      const parts = found.get(code);
      if (parts) parts.push(value);
      else found.set(code, [value]);
      at += 1 + length;
    }
  }
  return new Map([...found].map(([code, parts]) => [code, parts.length === 1 ? parts[0]! : Buffer.concat(parts)]));
}

const textOf = (field: Buffer): string => {
  const end = field.indexOf(0);
  return field.toString('latin1', 0, end < 0 ? field.length : end);
};

/** Never throws. Buffers in the result are views of `bytes`. */
export function decode(bytes: Buffer): DhcpPacket | Malformed {
  if (bytes.length < FIXED_SIZE) return { malformed: `${bytes.length} bytes are too few` };
  if (bytes.readUInt32BE(236) !== MAGIC_COOKIE) return { malformed: 'no DHCP magic cookie' };
  const hlen = bytes.readUInt8(2);
  if (hlen > 16) return { malformed: `a hardware address of ${hlen} bytes` };
  const sname = bytes.subarray(SNAME.offset, SNAME.offset + SNAME.size);
  const file = bytes.subarray(FILE.offset, FILE.offset + FILE.size);
  const main = bytes.subarray(FIXED_SIZE);
  const first = readOptions([main]);
  if (typeof first === 'string') return { malformed: first };
  // RFC 2132 §9.3: 1: file holds options, 2: sname does, 3: both; read in this order (RFC 3396 §5).
  const overload = first.get(OVERLOAD)?.[0] ?? 0;
  const areas = [main, ...(overload & 1 ? [file] : []), ...(overload & 2 ? [sname] : [])];
  const all = areas.length === 1 ? first : readOptions(areas);
  if (typeof all === 'string') return { malformed: all };
  all.delete(OVERLOAD);
  const options: Record<string, unknown> = {};
  const unknown = new Map<number, Buffer>();
  for (const [code, value] of all) {
    const row = ROW_OF.get(code);
    const decoded = row?.kind.decode(value);
    if (row === undefined || decoded === undefined) unknown.set(code, value);
    else options[row.name] = decoded;
  }
  return {
    op: bytes.readUInt8(0),
    htype: bytes.readUInt8(1),
    hops: bytes.readUInt8(3),
    xid: bytes.readUInt32BE(4),
    secs: bytes.readUInt16BE(8),
    flags: bytes.readUInt16BE(10),
    ciaddr: addressAt(bytes, 12),
    yiaddr: addressAt(bytes, 16),
    siaddr: addressAt(bytes, 20),
    giaddr: addressAt(bytes, 24),
    chaddr: bytes.toString('hex', 28, 28 + hlen).replace(/..(?=.)/g, '$&:'),
    sname: overload & 2 ? '' : textOf(sname),
    file: overload & 1 ? '' : textOf(file),
    options,
    unknown,
  };
}

/** Encodes an option in pieces of at most 255 bytes (RFC 3396 §6). */
function pieces(code: number, value: Buffer): Buffer[] {
  const count = Math.max(1, Math.ceil(value.length / 255));
  return Array.from({ length: count }, (_, index) => {
    const part = value.subarray(index * 255, index * 255 + 255);
    return Buffer.concat([Buffer.from([code, part.length]), part]);
  });
}

/** The message type comes first, as some clients require, and relay agent information last (RFC 3046 §2.1). */
function optionPieces(packet: DhcpPacket): Buffer[] {
  const values: [number, Buffer][] = ROWS.filter(({ name }) => packet.options[name] !== undefined).map((row) => [
    row.code,
    row.kind.encode(packet.options[row.name]),
  ]);
  const rank = ([code]: [number, Buffer]): number => (code === 53 ? 0 : code === 54 ? 1 : code === 82 ? 1000 : code + 2);
  return [...values, ...packet.unknown].sort((left, right) => rank(left) - rank(right)).flatMap(([code, value]) => pieces(code, value));
}

/**
 * @param limit of the packet in bytes; further options go into `file` and `sname` if these are empty
 * @throws RangeError when the options do not fit, or when a value does not fit its field
 */
export function encode(packet: DhcpPacket, limit = Infinity): Buffer {
  const options = optionPieces(packet);
  const total = options.reduce((sum, { length }) => sum + length, 0);
  if (FIXED_SIZE + total + 1 <= limit) return assemble(packet, packet.sname, packet.file, Buffer.concat(options), MIN_PACKET_SIZE);

  // Areas are filled in order, so that the pieces of a long option keep their order.
  const areas = [
    { flag: 0, room: limit - FIXED_SIZE - 4, taken: [] as Buffer[] },
    ...(packet.file === '' ? [{ flag: 1, room: FILE.size - 1, taken: [] as Buffer[] }] : []),
    ...(packet.sname === '' ? [{ flag: 2, room: SNAME.size - 1, taken: [] as Buffer[] }] : []),
  ];
  let area = 0;
  for (const option of options) {
    while (area < areas.length && areas[area]!.room < option.length) area += 1;
    const into = areas[area];
    if (!into) throw new RangeError(`${total} bytes of options do not fit into a packet of ${limit} bytes`);
    into.taken.push(option);
    into.room -= option.length;
  }
  const overload = areas.filter(({ taken }) => taken.length > 0).reduce((sum, { flag }) => sum | flag, 0);
  const filled = (flag: number, otherwise: string): string | Buffer =>
    overload & flag ? Buffer.concat([...areas.find((each) => each.flag === flag)!.taken, Buffer.from([END])]) : otherwise;
  const main = Buffer.concat([Buffer.from([OVERLOAD, 1, overload]), ...areas[0]!.taken]);
  return assemble(packet, filled(2, packet.sname), filled(1, packet.file), main, Math.min(MIN_PACKET_SIZE, limit));
}

function assemble(packet: DhcpPacket, sname: string | Buffer, file: string | Buffer, options: Buffer, smallest: number): Buffer {
  const bytes = Buffer.alloc(Math.max(smallest, FIXED_SIZE + options.length + 1));
  const hardware = Buffer.from(packet.chaddr.replaceAll(':', ''), 'hex');
  bytes.set([packet.op, packet.htype, hardware.length, packet.hops]);
  bytes.writeUInt32BE(packet.xid, 4);
  bytes.writeUInt16BE(packet.secs, 8);
  bytes.writeUInt16BE(packet.flags, 10);
  [packet.ciaddr, packet.yiaddr, packet.siaddr, packet.giaddr].forEach((value, index) =>
    bytes.writeUInt32BE(addressToNumber(value), 12 + index * 4),
  );
  for (const [value, { offset, size }] of [
    [hardware, { offset: 28, size: 16 }],
    [sname, SNAME],
    [file, FILE],
  ] as const) {
    const field = typeof value === 'string' ? Buffer.from(value, 'latin1') : value;
    if (field.length > size) throw new RangeError(`${field.length} bytes do not fit into a field of ${size}`);
    field.copy(bytes, offset);
  }
  bytes.writeUInt32BE(MAGIC_COOKIE, 236);
  options.copy(bytes, FIXED_SIZE);
  bytes[FIXED_SIZE + options.length] = END;
  return bytes;
}
