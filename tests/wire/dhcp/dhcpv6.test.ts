import {
  codeOf,
  decode6,
  duidOfMac,
  encode6,
  macOfDuid,
  macOfLinkLayer,
  MESSAGE6,
  NO_ASSOCIATIONS,
  type Dhcpv6Packet,
} from '../../../wire/dhcp/dhcpv6';
import { routerAdvertisement } from '../../../wire/dhcp/router-advertisement';
import { PACKETS6 } from '../dhcp-packets';

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(/\s/g, ''), 'hex');
const read = (bytes: Buffer): Dhcpv6Packet => {
  const packet = decode6(bytes);
  if ('malformed' in packet) throw new Error(packet.malformed);
  return packet;
};

it('decode6 reads a Solicit of dhclient', () => {
  const { relays, message } = read(PACKETS6.dhclientSolicit);
  expect(relays).toEqual([]);
  expect(message).toMatchObject({ type: MESSAGE6.solicit, xid: 0x721515, associations: { temporary: [], prefixes: [] } });
  expect(message.associations.addresses).toEqual([{ iaid: 0x00aa0001, t1: 3600, t2: 5400, addresses: [] }]);
  expect(macOfDuid(message.options.clientIdentifier!)).toBe('52:54:00:aa:00:01');
  expect(message.options.optionRequest).toEqual([23, 24]);
});
it('encode6 writes a Request identical to that of dhclient', () => {
  const packet = read(PACKETS6.dhclientRequest);
  expect(packet.message.associations.addresses[0]!.addresses).toEqual([{ address: 'fd00:77::1:becc', preferred: 7200, valid: 7500 }]);
  expect(encode6(packet)).toEqual(PACKETS6.dhclientRequest);
});

it('decode6 reads every option that encode6 writes', () => {
  const message = {
    type: MESSAGE6.reply,
    xid: 0xabcdef,
    options: {
      clientIdentifier: duidOfMac('52:54:00:aa:00:01'),
      serverIdentifier: duidOfMac('52:54:00:aa:00:02'),
      optionRequest: [23, 59],
      preference: 255,
      elapsedTime: 7,
      status: { code: 2, message: 'no' },
      rapidCommit: true as const,
      userClass: [Buffer.from('iPXE')],
      vendorClass: { enterprise: 343, data: [Buffer.from('HTTPClient')] },
      dnsServers: ['fd00::1', '2001:db8::53'],
      domainList: ['lab.example', 'example'],
      bootFileUrl: 'tftp://[fd00::1]/snponly.efi',
      bootFileParameters: [Buffer.from('a'), Buffer.from('bc')],
      clientArchitectures: [7, 16],
      clientInterface: Buffer.from([1, 3, 16]),
    },
    associations: {
      addresses: [
        { iaid: 1, t1: 5, t2: 8, addresses: [{ address: 'fd00::5', preferred: 10, valid: 10 }] },
        { iaid: 2, t1: 0, t2: 0, addresses: [], status: { code: 2, message: 'none' } },
      ],
      temporary: [{ iaid: 3, t1: 0, t2: 0, addresses: [], status: { code: 2, message: 'none' } }],
      prefixes: [{ iaid: 4, t1: 0, t2: 0, addresses: [], status: { code: 6, message: 'none' } }],
    },
  };
  expect(read(encode6({ relays: [], message }))).toEqual({ relays: [], message });
});

it('encode6 writes the boot file URL and its parameters as in RFC 5970', () => {
  const message = {
    type: MESSAGE6.reply,
    xid: 1,
    options: { bootFileUrl: 'http://a', bootFileParameters: [Buffer.from('x')] },
    associations: NO_ASSOCIATIONS,
  };
  expect(encode6({ relays: [], message }).toString('hex')).toBe(`07000001003b0008${Buffer.from('http://a').toString('hex')}003c0003000178`);
  expect(codeOf('bootFileUrl')).toBe(59);
});

describe('relay messages', () => {
  const inner = { type: MESSAGE6.solicit, xid: 5, options: {}, associations: NO_ASSOCIATIONS };
  const relay = { hops: 0, link: 'fd00:5::1', peer: 'fe80::5054:ff:feaa:1', options: { interfaceIdentifier: Buffer.from('ge-0/1') } };
  const packet = { relays: [{ ...relay, hops: 1, link: '::', peer: 'fd00:5::1', options: {} }, relay], message: inner };
  it('are decoded from the relay nearest to the server, and the reply has the same nesting', () => {
    const bytes = encode6(packet, MESSAGE6.relayForward);
    expect(bytes.subarray(0, 2)).toEqual(Buffer.from([MESSAGE6.relayForward, 1]));
    expect(read(bytes)).toEqual(packet);
    expect(encode6(packet)[0]).toBe(MESSAGE6.relayReply);
  });
  it.each([
    [8, undefined],
    [9, 'more than 8 relays'],
  ])('%i levels: malformed is %p', (count, malformed) => {
    const many = { relays: Array.from({ length: count }, () => relay), message: inner };
    const decoded = decode6(encode6(many, MESSAGE6.relayForward));
    expect('malformed' in decoded ? decoded.malformed : undefined).toBe(malformed);
  });
});

it.each([
  ['', '0 bytes are too few'],
  ['010000', '3 bytes are too few'],
  ['01000001 0001', 'an option is cut off'],
  ['01000001 0001 0009 00', 'option 1 reaches over the end'],
  ['01000001 0008 0001 00', 'option 8 is invalid'],
  ['01000001 0008 0002 0000 0008 0002 0000', 'option 8 is invalid'],
  ['01000001 0003 0004 00000001', 'option 3 is invalid'],
  ['01000001 0003 0010 00000001 00000000 00000000 00050001', 'option 3 is invalid'],
  ['01000001 0018 0002 4161', 'option 24 is invalid'],
  ['0c00', '2 bytes are too few'],
  ['0c000000', 'a relay message is cut off'],
  [`0c00${'00'.repeat(32)}`, 'a relay message without a message'],
])('decode6 rejects %s', (hex, malformed) => {
  expect(decode6(bytesOf(hex))).toEqual({ malformed });
});

it.each([
  ['00030001525400aa0001', '52:54:00:aa:00:01'],
  ['0001000132969 61e525400aa0001', '52:54:00:aa:00:01'],
  ['0004f81d4fae7dec11d0a76500a0c91e6bf6', undefined],
  ['00030001525400aa', undefined],
  ['00030020525400aa0001', undefined],
  ['00', undefined],
])('macOfDuid(%s) is %s', (hex, mac) => {
  expect(macOfDuid(bytesOf(hex))).toBe(mac);
});
it('macOfLinkLayer reads the address in the relay option of RFC 6939', () => {
  expect(macOfLinkLayer(bytesOf('0001525400aa0001'))).toBe('52:54:00:aa:00:01');
  expect(macOfLinkLayer(bytesOf('0020525400aa0001'))).toBeUndefined();
});

it('routerAdvertisement writes flags, lifetime, MTU, prefix and DNS servers', () => {
  const prefixes = [{ network: 'fd00:77::', width: 64, autonomous: true }];
  const bytes = routerAdvertisement({ dhcp: true, routerSeconds: 1800, prefixes, mtu: 9000, dns: ['fd00:77::1'] });
  expect(bytes.toString('hex')).toBe(
    [
      '8600000000c007080000000000000000',
      '0501000000002328',
      `030440c000278d0000093a8000000000${'fd000077'.padEnd(32, '0')}`,
      `1903000000093a80${'fd000077'.padEnd(31, '0')}1`,
    ].join(''),
  );
  expect(routerAdvertisement({ dhcp: true, routerSeconds: 0, prefixes: [], mtu: null, dns: [] })[5]).toBe(0xc0);
});

it.each([
  ['associations', { count: 17, addresses: 1 }],
  ['addresses', { count: 1, addresses: 65 }],
])('decode6 rejects a message with too many %s', (_, { count, addresses }) => {
  const packetOf = (many: number, ofEach: number): Buffer => {
    const one = {
      iaid: 1,
      t1: 0,
      t2: 0,
      addresses: Array.from({ length: ofEach }, () => ({ address: 'fd00::1', preferred: 1, valid: 1 })),
    };
    const associations = { ...NO_ASSOCIATIONS, addresses: Array.from({ length: many }, () => one) };
    return encode6({ relays: [], message: { type: MESSAGE6.solicit, xid: 1, options: {}, associations } });
  };
  expect(decode6(packetOf(count, addresses))).toEqual({ malformed: 'option 3 is there too often, or has too many addresses' });
  expect(decode6(packetOf(Math.min(count, 16), Math.min(addresses, 64)))).toMatchObject({ relays: [] });
});
