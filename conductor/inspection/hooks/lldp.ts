/** LLDP (IEEE 802.1AB-2016 §8): decodes the TLVs that ramdisks report into the facts of a switch and its port. */
import { isIPv6 } from 'node:net';

/** A TLV without its header of two bytes. */
export interface Tlv {
  readonly type: number;
  readonly value: Buffer;
}
type Facts = Record<string, unknown>;

/** §8: the length field has 9 bits. */
const MAX = 511;
/** Parses a pair of type and hexadecimal text; undefined if it is malformed. Malformed TLVs are ignored. */
export function tlvOf(pair: unknown): Tlv | undefined {
  if (!Array.isArray(pair)) return undefined;
  const [type, text] = pair as readonly unknown[];
  if (!Number.isInteger(type) || typeof text !== 'string' || text.length > 2 * MAX || !/^(?:[0-9a-f]{2})*$/i.test(text)) return undefined;
  return { type: type as number, value: Buffer.from(text, 'hex') };
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });
const text = (value: Buffer): string | undefined => {
  try {
    return UTF8.decode(value);
  } catch {
    return undefined;
  }
};
const mac = (value: Buffer): string | undefined =>
  value.length < 6 ? undefined : [...value.subarray(0, 6)].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
const ipv4 = (value: Buffer): string | undefined => (value.length < 4 ? undefined : value.subarray(0, 4).join('.'));
function ipv6(value: Buffer): string | undefined {
  if (value.length < 16) return undefined;
  const groups = Array.from({ length: 8 }, (_, at) => value.readUInt16BE(at * 2).toString(16)).join(':');
  const { hostname } = new URL(`http://[${groups}]`);
  const short = hostname.slice(1, -1);
  return isIPv6(short) ? short : groups;
}
type Read = (value: Buffer) => string | undefined;
/** IANA address family number → reader of the address after it. */
const ADDRESSES: Readonly<Record<number, Read>> = { 1: ipv4, 2: ipv6, 6: mac };
const address: Read = (value) => ADDRESSES[value[0] ?? 0]?.(value.subarray(1));

/** §8.5.2.2, §8.5.3.2: subtype → reader of the ID after it. */
const CHASSIS_ID: Readonly<Record<number, Read>> = { 1: text, 2: text, 3: text, 4: mac, 5: address, 6: text, 7: text };
const PORT_ID: Readonly<Record<number, Read>> = { 1: text, 2: text, 3: mac, 4: address, 5: text, 7: text };
const identifier =
  (subtypes: Readonly<Record<number, Read>>): Read =>
  (value) =>
    subtypes[value[0] ?? 0]?.(value.subarray(1));
/** §8.5.8.1, from bit 1. */
const CAPABILITIES = [
  'Repeater',
  'Bridge',
  'WLAN',
  'Router',
  'Telephone',
  'DOCSIS cable device',
  'Station only',
  'C-Vlan',
  'S-Vlan',
  'TPMR',
];
const capabilities = (bits: number): readonly string[] => CAPABILITIES.filter((_, at) => bits & (2 << at));

/** Sets the facts that are not set yet and not undefined. */
function setMissing(facts: Facts, found: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(found)) if (value !== undefined && !(name in facts)) facts[name] = value;
}
function add(facts: Facts, name: string, value: unknown): void {
  if (value === undefined) return;
  const list = facts[name] as unknown[] | undefined;
  if (list) list.push(value);
  else facts[name] = [value];
}
type Parse = (value: Buffer, facts: Facts) => void;
const single =
  (name: string, read: (value: Buffer) => unknown): Parse =>
  (value, facts) =>
    setMissing(facts, { [name]: read(value) });
const number16 = (value: Buffer): number | undefined => (value.length < 2 ? undefined : value.readUInt16BE(0));

/** 802.1AX §6.3.2: the same for both organizations. */
const linkAggregation: Parse = (value, facts) => {
  if (value.length !== 5) return;
  setMissing(facts, {
    switch_port_link_aggregation_enabled: (value[0]! & 2) !== 0,
    switch_port_link_aggregation_support: (value[0]! & 1) !== 0,
    switch_port_link_aggregation_id: value.readUInt32BE(1),
  });
};
/** 802.1Q-2014 Annex D. */
const DOT1: Readonly<Record<number, Parse>> = {
  1: single('switch_port_untagged_vlan_id', number16),
  2: (value, facts) => {
    if (value.length !== 3) return;
    setMissing(facts, {
      switch_port_protocol_vlan_enabled: (value[0]! & 4) !== 0,
      switch_port_protocol_vlan_support: (value[0]! & 2) !== 0,
    });
    add(facts, 'switch_port_protocol_vlan_ids', value.readUInt16BE(1));
  },
  3: (value, facts) => {
    if (value.length < 3 || value.length < 3 + value[2]!) return;
    const name = text(value.subarray(3, 3 + value[2]!))?.replace(/(?<!\0)\0+$/, '');
    add(facts, 'switch_port_vlans', name === undefined ? undefined : { name, id: value.readUInt16BE(0) });
  },
  4: (value, facts) => {
    if (value.length < 1 || value.length < 1 + value[0]!) return;
    add(facts, 'switch_protocol_identities', value.subarray(1, 1 + value[0]!).toString('hex'));
  },
  6: single('switch_port_management_vlan_id', number16),
  7: linkAggregation,
};

/** RFC 4836, ifMauAutoNegCapBits, from bit 14 down. */
const PHYSICAL: readonly string[] = [
  '10BASE-T hdx',
  '10BASE-T fdx',
  '10BASE-T4',
  '100BASE-TX hdx',
  '100BASE-TX fdx',
  '100BASE-T2 hdx',
  '100BASE-T2 fdx',
  'PAUSE fdx',
  'Asym PAUSE fdx',
  'Sym PAUSE fdx',
  'Asym and Sym PAUSE fdx',
  '1000BASE-X hdx',
  '1000BASE-X fdx',
  '1000BASE-T hdx',
  '1000BASE-T fdx',
];
/** RFC 4836, dot3MauType. */
const MAU_TYPES: readonly string[] = [
  'Unknown',
  'AUI',
  '10BASE-5',
  'FOIRL',
  '10BASE-2',
  '10BASE-T duplex mode unknown',
  '10BASE-FP',
  '10BASE-FB',
  '10BASE-FL duplex mode unknown',
  '10BROAD36',
  '10BASE-T half duplex',
  '10BASE-T full duplex',
  '10BASE-FL half duplex',
  '10BASE-FL full duplex',
  '100 BASE-T4',
  '100BASE-TX half duplex',
  '100BASE-TX full duplex',
  '100BASE-FX half duplex',
  '100BASE-FX full duplex',
  '100BASE-T2 half duplex',
  '100BASE-T2 full duplex',
  '1000BASE-X half duplex',
  '1000BASE-X full duplex',
  '1000BASE-LX half duplex',
  '1000BASE-LX full duplex',
  '1000BASE-SX half duplex',
  '1000BASE-SX full duplex',
  '1000BASE-CX half duplex',
  '1000BASE-CX full duplex',
  '1000BASE-T half duplex',
  '1000BASE-T full duplex',
  '10GBASE-X',
  '10GBASE-LX4',
  '10GBASE-R',
  '10GBASE-ER',
  '10GBASE-LR',
  '10GBASE-SR',
  '10GBASE-W',
  '10GBASE-EW',
  '10GBASE-LW',
  '10GBASE-SW',
  '10GBASE-CX4',
  '2BASE-TL',
  '10PASS-TS',
  '100BASE-BX10D',
  '100BASE-BX10U',
  '100BASE-LX10',
  '1000BASE-BX10D',
  '1000BASE-BX10U',
  '1000BASE-LX10',
  '1000BASE-PX10D',
  '1000BASE-PX10U',
  '1000BASE-PX20D',
  '1000BASE-PX20U',
];
/** 802.3 §79. */
const DOT3: Readonly<Record<number, Parse>> = {
  1: (value, facts) => {
    if (value.length !== 5) return;
    const type = MAU_TYPES[value.readUInt16BE(3)];
    if (type === undefined) return;
    const bits = value.readUInt16BE(1);
    setMissing(facts, {
      switch_port_autonegotiation_enabled: (value[0]! & 2) !== 0,
      switch_port_autonegotiation_support: (value[0]! & 1) !== 0,
      switch_port_physical_capabilities: PHYSICAL.filter((_, at) => bits & (0x4000 >> at)).sort(),
      switch_port_mau_type: type,
    });
  },
  3: linkAggregation,
  4: single('switch_port_mtu', number16),
};
/** Organizationally unique identifier → its subtypes. */
const ORGANIZATIONS: Readonly<Record<string, Readonly<Record<number, Parse>>>> = { '0080c2': DOT1, '00120f': DOT3 };

/** §8.4: type → parser. */
const TYPES: Readonly<Record<number, Parse>> = {
  1: single('switch_chassis_id', identifier(CHASSIS_ID)),
  2: single('switch_port_id', identifier(PORT_ID)),
  4: single('switch_port_description', text),
  5: single('switch_system_name', text),
  6: single('switch_system_description', text),
  7: (value, facts) => {
    if (value.length !== 4) return;
    setMissing(facts, {
      switch_capabilities_support: capabilities(value.readUInt16BE(0)),
      switch_capabilities_enabled: capabilities(value.readUInt16BE(2)),
    });
  },
  // Its first byte is the length of what follows (§8.5.9.3).
  8: (value, facts) => add(facts, 'switch_mgmt_addresses', address(value.subarray(1))),
  127: (value, facts) => ORGANIZATIONS[value.subarray(0, 3).toString('hex')]?.[value[3] ?? 0]?.(value.subarray(4), facts),
};

/** The first TLV of a fact wins. Names and values are Ironic's. */
export function lldpFacts(tlvs: readonly Tlv[]): Readonly<Record<string, unknown>> {
  const facts: Facts = {};
  for (const { type, value } of tlvs) TYPES[type]?.(value, facts);
  return facts;
}

/** The link of a port. A chassis is identified by its MAC address only. */
export function lldpLink(tlvs: readonly Tlv[]): Readonly<Record<'port_id' | 'switch_id' | 'switch_info', string | undefined>> {
  const valueOf = (type: number): Buffer | undefined => tlvs.find((tlv) => tlv.type === type)?.value;
  const chassis = valueOf(1);
  const [port, name] = [valueOf(2), valueOf(5)];
  return {
    port_id: port && identifier(PORT_ID)(port),
    switch_id: chassis?.[0] === 4 ? mac(chassis.subarray(1)) : undefined,
    switch_info: name && text(name),
  };
}
