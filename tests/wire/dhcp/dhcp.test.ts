import { isDeepStrictEqual } from 'node:util';
import {
  ANY_ADDRESS,
  BOOT_REPLY,
  BROADCAST_FLAG,
  addressToNumber,
  decode,
  encode,
  MESSAGE,
  numberToAddress,
  type DhcpPacket,
  type OptionValues,
} from '../../../wire/dhcp/dhcp';
import { PACKETS } from '../dhcp-packets';

const read = (bytes: Buffer): DhcpPacket => {
  const packet = decode(bytes);
  if ('malformed' in packet) throw new Error(packet.malformed);
  return packet;
};
const packetWith = (options: OptionValues, more: Partial<DhcpPacket> = {}): DhcpPacket => ({
  op: BOOT_REPLY,
  htype: 1,
  hops: 0,
  xid: 0xfedcba98,
  secs: 3,
  flags: BROADCAST_FLAG,
  ciaddr: ANY_ADDRESS,
  yiaddr: '10.0.0.7',
  siaddr: '10.0.0.1',
  giaddr: '255.255.255.254',
  chaddr: '52:54:00:00:00:0a',
  sname: '',
  file: '',
  options,
  unknown: new Map(),
  ...more,
});

describe('packets of real clients', () => {
  const facts: Record<keyof typeof PACKETS, Partial<OptionValues>> = {
    ipxeRomDiscover: {
      messageType: 1,
      vendorClass: 'PXEClient:Arch:00000:UNDI:002001',
      clientArchitectures: [0],
      maximumMessageSize: 1472,
    },
    ipxeRomRequest: { messageType: 3, serverIdentifier: '10.77.0.1', requestedAddress: '10.77.0.142' },
    undionlyDiscover: { messageType: 1, vendorClass: 'PXEClient:Arch:00000:UNDI:002001', clientArchitectures: [0] },
    undionlyRequest: { messageType: 3, serverIdentifier: '10.77.0.1' },
    ovmfPxeDiscover: { messageType: 1, vendorClass: 'PXEClient:Arch:00007:UNDI:003000', clientArchitectures: [7] },
    ovmfPxeRequest: { messageType: 3, requestedAddress: '10.77.0.175' },
    snponlyDiscover: { messageType: 1, clientArchitectures: [7] },
    snponlyRequest: { messageType: 3 },
    ovmfHttpDiscover: { messageType: 1, vendorClass: 'HTTPClient:Arch:00016:UNDI:003000', clientArchitectures: [16] },
    ovmfHttpRequest: { messageType: 3 },
    udhcpcDiscover: { messageType: 1, vendorClass: 'udhcp 1.35.0' },
    udhcpcRequest: { messageType: 3, requestedAddress: '10.9.0.116' },
    dhclientDiscover: { messageType: 1 },
    dhclientRequest: { messageType: 3, requestedAddress: '10.9.0.116' },
  };
  it.each(Object.entries(facts))('decode reads the options of %s', (name, expected) => {
    expect(read(PACKETS[name as keyof typeof PACKETS]).options).toMatchObject(expected);
  });
  it("decode reads iPXE's user class and its HTTP feature (options 77 and 175)", () => {
    for (const name of ['ipxeRomDiscover', 'undionlyDiscover', 'snponlyDiscover'] as const) {
      const { options } = read(PACKETS[name]);
      expect(options.userClass?.toString()).toBe('iPXE');
      expect(options.ipxe?.get(19)).toEqual(Buffer.from([1]));
    }
  });
  it('decode writes the hardware address in hexadecimal with colons', () => {
    expect(read(PACKETS.ipxeRomDiscover)).toMatchObject({ op: 1, htype: 1, chaddr: '52:54:00:79:62:b7', ciaddr: ANY_ADDRESS });
  });
  it.each(Object.entries(PACKETS))('%s is unchanged after encode and decode', (_, bytes) => {
    const packet = read(bytes);
    expect(read(encode(packet))).toEqual(packet);
  });
});

describe('encode and decode', () => {
  const everything: OptionValues = {
    subnetMask: '255.255.255.0',
    routers: ['10.0.0.254'],
    domainNameServers: ['10.0.0.2', '10.0.0.3'],
    hostName: 'one',
    domainName: 'example.org',
    interfaceMtu: 1500,
    broadcastAddress: '10.0.0.255',
    ntpServers: ['10.0.0.4'],
    vendorSpecific: Buffer.from([6, 1, 8]),
    requestedAddress: '10.0.0.9',
    leaseTime: 0xffffffff,
    messageType: MESSAGE.offer,
    serverIdentifier: '10.0.0.1',
    parameterRequestList: [1, 3, 6],
    message: 'no',
    maximumMessageSize: 1472,
    renewalTime: 1800,
    rebindingTime: 3150,
    vendorClass: 'HTTPClient',
    clientIdentifier: Buffer.from([1, 2, 3]),
    tftpServerName: '10.0.0.1',
    bootFileName: 'undionly.kpxe',
    userClass: Buffer.from('iPXE'),
    relayAgentInformation: Buffer.from([1, 2, 0, 7]),
    clientArchitectures: [7, 16],
    clientInterface: Buffer.from([1, 2, 1]),
    clientMachineIdentifier: Buffer.alloc(17, 5),
    tftpServerAddresses: ['10.0.0.1'],
    ipxe: new Map([[176, Buffer.from([1])]]),
  };
  it('keep every known option and an unknown one', () => {
    const packet = packetWith(everything, { file: 'f'.repeat(128), sname: 'server', unknown: new Map([[224, Buffer.from('x')]]) });
    expect(read(encode(packet))).toEqual(packet);
  });
  it('put the message type first and the relay agent information last', () => {
    const bytes = encode(packetWith(everything, { unknown: new Map([[224, Buffer.from('x')]]) }));
    expect(bytes[240]).toBe(53);
    expect(bytes.subarray(-7)).toEqual(Buffer.from([82, 4, 1, 2, 0, 7, 255]));
  });
  it('fill a packet up to the minimum length of BOOTP', () => {
    expect(encode(packetWith({ messageType: 2 }))).toHaveLength(300);
  });
  it.each([255, 256, 600])('split an option of %i bytes into pieces and join them', (length) => {
    const packet = packetWith({ messageType: 2, bootFileName: 'x'.repeat(length) });
    expect(read(encode(packet))).toEqual(packet);
  });
  it.each([548, 520, 470, 440])('use the fields file and sname for options that do not fit into %i bytes', (limit) => {
    const packet = packetWith({ ...everything, bootFileName: 'x'.repeat(60) });
    const bytes = encode(packet, limit);
    expect(bytes.length).toBeLessThanOrEqual(limit);
    expect(read(bytes)).toEqual(packet);
  });
  it('do not put options into a field file that is in use', () => {
    const packet = packetWith({ ...everything, bootFileName: 'x'.repeat(60) }, { file: 'kept' });
    const bytes = encode(packet, 520);
    expect(read(bytes)).toEqual(packet);
    expect(bytes.toString('latin1', 108, 112)).toBe('kept');
  });
  it.each<[string, DhcpPacket, number | undefined]>([
    ['options that do not fit even with file and sname', packetWith({ bootFileName: 'x'.repeat(900) }), 548],
    ['a file of 129 bytes', packetWith({}, { file: 'f'.repeat(129) }), undefined],
    ['a hardware address of 17 bytes', packetWith({}, { chaddr: Array(17).fill('00').join(':') }), undefined],
  ])('reject %s', (_, packet, limit) => {
    expect(() => encode(packet, limit)).toThrow(RangeError);
  });
});

describe('malformed packets', () => {
  const good = PACKETS.ipxeRomDiscover;
  const changed = (at: number, ...values: number[]): Buffer => {
    const bytes = Buffer.from(good);
    bytes.set(values, at);
    return bytes;
  };
  const options = (...values: number[]): Buffer => Buffer.concat([good.subarray(0, 240), Buffer.from(values)]);
  it.each<[string, Buffer, string]>([
    ['an empty packet', Buffer.alloc(0), '0 bytes are too few'],
    ['a packet of 239 bytes', good.subarray(0, 239), '239 bytes are too few'],
    ['another magic cookie', changed(236, 0), 'no DHCP magic cookie'],
    ['a hardware address of 17 bytes', changed(2, 17), 'a hardware address of 17 bytes'],
    ['an option without length', options(53), 'option 53 reaches over the end'],
    ['an option longer than the packet', options(53, 1, 1, 61, 20, 1), 'option 61 reaches over the end'],
    [
      'an option longer than file, which holds options',
      Buffer.concat([changed(108, 61, 200).subarray(0, 240), Buffer.from([52, 1, 1, 255])]),
      'option 61 reaches over the end',
    ],
  ])('decode rejects %s', (_, bytes, malformed) => {
    expect(decode(bytes)).toEqual({ malformed });
  });
  it.each<[string, Buffer, Partial<OptionValues>]>([
    ['no options at all', good.subarray(0, 240), {}],
    ['no end option', options(53, 1, 1), { messageType: 1 }],
    ['padding between options', options(0, 0, 53, 1, 1, 0, 54, 4, 1, 2, 3, 4, 255), { messageType: 1, serverIdentifier: '1.2.3.4' }],
    ['bytes after the end', options(53, 1, 1, 255, 61, 200), { messageType: 1 }],
    ['trailing NULs in a text', options(67, 3, 97, 0, 0, 255), { bootFileName: 'a' }],
    ['an option in two pieces', options(54, 2, 1, 2, 54, 2, 3, 4, 255), { serverIdentifier: '1.2.3.4' }],
    ['sname with options', Buffer.concat([changed(44, 53, 1, 1, 255).subarray(0, 240), Buffer.from([52, 1, 2, 255])]), { messageType: 1 }],
  ])('decode accepts %s', (_, bytes, expected) => {
    expect(read(bytes).options).toEqual(expected);
  });
  it.each<[string, readonly number[], number]>([
    ['a message type of two bytes', [53, 2, 1, 1], 53],
    ['a server identifier of three bytes', [54, 3, 1, 1, 1], 54],
    ['architectures of three bytes', [93, 3, 0, 0, 0], 93],
    ['routers of no bytes', [3, 0], 3],
    ['iPXE options that reach over their end', [175, 2, 176, 9], 175],
  ])('decode treats %s as an unknown option', (_, bytes, code) => {
    const packet = read(options(...bytes, 255));
    expect(packet.options).toEqual({});
    expect([...packet.unknown.keys()]).toEqual([code]);
  });
  it('decode of 5000 mutated packets returns a packet or a reason, and each packet can be encoded', () => {
    let seed = 1;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      return (seed >>> 8) % below;
    };
    const all = Object.values(PACKETS);
    const reasons = new Set<string>();
    const different: string[] = [];
    for (let round = 0; round < 5000; round += 1) {
      const bytes = Buffer.from(all[random(all.length)]!);
      for (let change = random(8); change >= 0; change -= 1)
        bytes[random(3) === 0 ? random(240) : 240 + random(bytes.length - 240)] = random(256);
      const packet = decode(bytes.subarray(0, random(20) === 0 ? random(bytes.length) : bytes.length));
      if ('malformed' in packet) reasons.add(packet.malformed);
      else if (!isDeepStrictEqual(read(encode(packet)), packet)) different.push(bytes.toString('hex'));
    }
    expect(different).toEqual([]);
    expect(reasons.size).toBeGreaterThan(5);
  });
});

it.each([
  ['0.0.0.0', 0],
  ['10.0.0.1', 0x0a000001],
  ['255.255.255.255', 0xffffffff],
])('address %s is the number %i', (text, value) => {
  expect(addressToNumber(text)).toBe(value);
  expect(numberToAddress(value)).toBe(text);
});

describe('classless static routes (RFC 3442)', () => {
  // The destination descriptors of the RFC's table, each with router 10.0.0.1.
  it.each([
    ['0.0.0.0', 0, '00'],
    ['10.0.0.0', 8, '080a'],
    ['10.0.0.0', 24, '180a0000'],
    ['10.17.0.0', 16, '100a11'],
    ['10.27.129.0', 24, '180a1b81'],
    ['10.229.0.128', 25, '190a e50080'],
    ['10.198.122.47', 32, '200ac67a2f'],
  ])('encode and decode keep the route %s/%d', (destination, width, hex) => {
    const routes = [{ destination, width, router: '10.0.0.1' }];
    const bytes = encode(packetWith({ classlessRoutes: routes }));
    expect(bytes.toString('hex')).toContain(`${hex.replace(' ', '')}0a000001`);
    expect(read(bytes).options.classlessRoutes).toEqual(routes);
  });
  it.each(['210a000000010a000001', '100a110a0000', '', '08'])('decode treats the malformed value %s as an unknown option', (hex) => {
    const value = Buffer.from(hex, 'hex');
    const packet = read(encode(packetWith({}, { unknown: new Map([[121, value]]) })));
    expect([packet.options.classlessRoutes, packet.unknown.get(121)]).toEqual([undefined, value]);
  });
});
