/** The boot part beside another DHCP server: which packets get an answer, and what is in it. */
import { answerBootRequest, answerDiscovery, proxyFor, type ProxySubnet } from '../../../boot/dhcp/proxy';
import { createMachineLookup } from '../../../boot/dhcp/machines';
import { planProxies, planSubnets, type DhcpOptions } from '../../../boot/dhcp/setup';
import { DhcpSetupError } from '../../../boot/dhcp/subnets';
import { addressToNumber, decode, encode, MESSAGE, type DhcpPacket, type OptionValues } from '../../../wire/dhcp/dhcp';
import { dhcpStore } from '../../support/fakes/dhcp-store';
import { filterWith } from '../../support/pxe-filter';
import { PACKETS } from '../../wire/dhcp-packets';
import { DHCP_OPTIONS as OPTIONS } from './options';

const MACS = { boots: '52:54:00:00:00:01', idle: '52:54:00:00:00:02', unknown: '52:54:00:00:00:03', grub: '52:54:00:00:00:04' } as const;
type Who = keyof typeof MACS;
const NEAR: ProxySubnet = {
  interface: 'eth1',
  policy: {
    server: '10.0.0.1',
    network: addressToNumber('10.0.0.0'),
    netmask: '255.255.255.0',
    tftpServer: '10.0.0.3',
    httpUrl: 'http://10.0.0.1:8080',
    ipxeLoaders: { bios: 'undionly.kpxe', uefi: 'snponly.efi', byArch: { aarch64: 'snp-arm64.efi' } },
    pxeLoaders: { bios: 'pxelinux.0', uefi: 'bootx64.efi', byArch: { aarch64: 'grubaa64.efi' } },
  },
};
const FAR: ProxySubnet = { interface: undefined, policy: { ...NEAR.policy, network: addressToNumber('10.9.0.0') } };
const lookupWith = (filter = filterWith()) =>
  createMachineLookup(
    dhcpStore({ ports: [MACS.boots, MACS.idle, MACS.grub], boots: [MACS.boots, MACS.grub], methods: { [MACS.grub]: 'pxe' } }).store,
    filter,
  );
const template = decode(PACKETS.udhcpcDiscover) as DhcpPacket;
const packet = (who: Who, options: OptionValues, more: Partial<DhcpPacket> = {}): DhcpPacket => ({
  ...template,
  chaddr: MACS[who],
  options,
  ...more,
});
const discover = (vendorClass: string, architecture: number, more: OptionValues = {}): OptionValues => ({
  messageType: MESSAGE.discover,
  vendorClass,
  clientArchitectures: [architecture],
  clientMachineIdentifier: Buffer.from('00aabbccddeeff00112233445566778899', 'hex'),
  ...more,
});
const PXE = 'PXEClient:Arch:00000:UNDI:002001';
const IPXE = { userClass: Buffer.from('iPXE'), ipxe: new Map([[19, Buffer.from([1])]]) };

/** What the client reads: the answer goes through the codec. */
async function answered(given: Promise<Awaited<ReturnType<typeof answerDiscovery>>>) {
  const outcome = await given;
  if (outcome.kind === 'silence') return outcome.reason;
  return { ...outcome, packet: decode(encode(outcome.packet, 548)) as DhcpPacket };
}

describe('port 67', () => {
  // One row per line, so that the columns are easy to read.
  // prettier-ignore
  it.each<[string, Who, OptionValues, string, string, string]>([
    ['BIOS', 'boots', discover(PXE, 0), 'PXEClient', 'undionly.kpxe', '10.0.0.3'],
    ['UEFI x86-64', 'boots', discover('PXEClient:Arch:00007:UNDI:003016', 7), 'PXEClient', 'snponly.efi', '10.0.0.3'],
    ['UEFI x86-64, older number', 'boots', discover('PXEClient:Arch:00009:UNDI:003016', 9), 'PXEClient', 'snponly.efi', '10.0.0.3'],
    ['UEFI aarch64', 'boots', discover('PXEClient:Arch:00011:UNDI:003016', 11), 'PXEClient', 'snp-arm64.efi', '10.0.0.3'],
    ['UEFI HTTP x86-64', 'boots', discover('HTTPClient:Arch:00016:UNDI:003016', 16), 'HTTPClient', 'http://10.0.0.1:8080/snponly.efi', '0.0.0.0'],
    ['UEFI HTTP aarch64', 'boots', discover('HTTPClient:Arch:00019:UNDI:003016', 19), 'HTTPClient', 'http://10.0.0.1:8080/snp-arm64.efi', '0.0.0.0'],
    ['iPXE', 'boots', discover(PXE, 0, IPXE), 'PXEClient', 'http://10.0.0.1:8080/ipxe/52-54-00-00-00-01?buildarch=${buildarch}', '10.0.0.1'],
    ['iPXE without HTTP', 'boots', discover(PXE, 0, { ...IPXE, ipxe: new Map([[24, Buffer.from([1])]]) }), 'PXEClient', 'undionly.kpxe', '10.0.0.3'],
    ['BIOS with PXELINUX', 'grub', discover(PXE, 0), 'PXEClient', 'pxelinux.0', '10.0.0.3'],
    ['UEFI aarch64 with GRUB', 'grub', discover('PXEClient:Arch:00011:UNDI:003016', 11), 'PXEClient', 'grubaa64.efi', '10.0.0.3'],
  ])('offers %s its boot file, and no address', async (_, who, options, vendorClass, file, siaddr) => {
    const got = await answered(answerDiscovery(NEAR, lookupWith(), packet(who, options)));
    expect(got).toMatchObject({
      address: '255.255.255.255',
      port: 68,
      packet: {
        yiaddr: '0.0.0.0',
        siaddr,
        file,
        options: {
          messageType: MESSAGE.offer,
          serverIdentifier: '10.0.0.1',
          vendorClass,
          bootFileName: file,
          clientMachineIdentifier: options.clientMachineIdentifier,
        },
      },
    });
    const { options: given } = (got as { packet: DhcpPacket }).packet;
    // PXE 2.1: discovery control, load the named file.
    expect(given.vendorSpecific).toEqual(vendorClass === 'PXEClient' ? Buffer.from([6, 1, 8, 255]) : undefined);
    // Nothing that belongs to the other server.
    const others = ['subnetMask', 'routers', 'domainNameServers', 'domainName', 'interfaceMtu', 'leaseTime', 'classlessRoutes'] as const;
    expect(others.filter((name) => given[name] !== undefined)).toEqual([]);
  });

  it.each<[string, Who, OptionValues, string]>([
    ['an operating system', 'boots', { messageType: MESSAGE.discover }, 'another server gives the addresses of this network'],
    ['another vendor class', 'boots', discover('MSFT 5.0', 0), 'another server gives the addresses of this network'],
    ['an unknown machine', 'unknown', discover(PXE, 0), 'no node has this MAC address'],
    ['a machine that is not to boot', 'idle', discover(PXE, 0), 'the machine is not meant to boot from the network now'],
    ...(['request', 'decline', 'release', 'inform', 'offer', 'ack', 'nak'] as const).map((type): [string, Who, OptionValues, string] => [
      `the message ${type}`,
      'boots',
      { ...discover(PXE, 0), messageType: MESSAGE[type] },
      'another server gives the addresses of this network',
    ]),
  ])('does not answer %s', async (_, who, options, reason) => {
    expect(await answered(answerDiscovery(NEAR, lookupWith(), packet(who, options)))).toBe(reason);
  });
  it('does not answer what servers send, nor other networks than Ethernet', async () => {
    expect(await answered(answerDiscovery(NEAR, lookupWith(), packet('boots', discover(PXE, 0), { op: 2 })))).toBe('not a request');
    const infiniband = packet('boots', discover(PXE, 0), { htype: 32, chaddr: '' });
    expect(await answered(answerDiscovery(NEAR, lookupWith(), infiniband))).toBe('not an Ethernet address');
  });
  it('boots unknown machines that are discovered', async () => {
    const lookup = lookupWith(filterWith({ 'auto_discovery.enabled': true }));
    expect(await answered(answerDiscovery(NEAR, lookup, packet('unknown', discover(PXE, 0))))).toMatchObject({
      packet: { file: 'undionly.kpxe' },
    });
  });
  it('answers through the relay, which must broadcast, and names itself whatever the relay names', async () => {
    // Option 82 with RFC 5107's server identifier.
    const relayAgentInformation = Buffer.from([11, 4, 10, 9, 0, 254]);
    const through = packet('boots', discover(PXE, 0, { relayAgentInformation }), { giaddr: '10.9.0.254', flags: 0 });
    expect(await answered(answerDiscovery(FAR, lookupWith(), through))).toMatchObject({
      address: '10.9.0.254',
      port: 67,
      packet: { flags: 0x8000, giaddr: '10.9.0.254', options: { relayAgentInformation, serverIdentifier: '10.0.0.1' } },
    });
  });
});

describe('the subnet of a packet', () => {
  it.each<[string, string, Partial<DhcpPacket>, ProxySubnet | undefined]>([
    ['at the interface', 'eth1', {}, NEAR],
    ['at another interface', 'eth2', {}, undefined],
    ['through a relay', 'eth1', { giaddr: '10.9.0.254' }, FAR],
    ['through a relay of another subnet', 'eth1', { giaddr: '10.8.0.254' }, undefined],
    ['of a machine behind a relay that renews its address', 'eth2', { ciaddr: '10.9.0.7' }, FAR],
  ])('%s', (_, name, more, expected) => {
    expect(proxyFor([NEAR, FAR], name, packet('boots', discover(PXE, 0), more))).toBe(expected);
  });
});

describe('port 4011', () => {
  const request = (more: OptionValues = {}): OptionValues => ({ ...discover(PXE, 0), messageType: MESSAGE.request, ...more });
  const ask = (options: OptionValues, more: Partial<DhcpPacket> = {}, address = '10.0.0.77', who: Who = 'boots') =>
    answered(answerBootRequest([NEAR, FAR], lookupWith(), packet(who, options, more), { address, port: 4011 }));

  it('acknowledges to the sender with the boot file', async () => {
    expect(await ask(request({ serverIdentifier: '10.0.0.1' }), { ciaddr: '10.0.0.77' })).toMatchObject({
      address: '10.0.0.77',
      port: 4011,
      packet: {
        ciaddr: '10.0.0.77',
        yiaddr: '0.0.0.0',
        siaddr: '10.0.0.3',
        file: 'undionly.kpxe',
        options: { messageType: MESSAGE.ack, vendorClass: 'PXEClient', serverIdentifier: '10.0.0.1' },
      },
    });
  });
  it('returns the item that the client asks for', async () => {
    const vendorSpecific = Buffer.from([10, 1, 0, 71, 4, 0x80, 0, 0, 0, 255]);
    expect(await ask(request({ vendorSpecific }))).toMatchObject({
      packet: { options: { vendorSpecific: Buffer.from([6, 1, 8, 71, 4, 0x80, 0, 0, 0, 255]) } },
    });
  });
  it.each([[''], ['47'], ['4704'], ['47048000'], ['00'], ['0aff'], ['4702800000']])('reads the vendor options %s', async (hex) => {
    const vendorSpecific = Buffer.from(hex, 'hex');
    expect(await ask(request({ vendorSpecific }))).toMatchObject({ packet: { options: { vendorSpecific: Buffer.from([6, 1, 8, 255]) } } });
  });
  it.each<[string, OptionValues, Partial<DhcpPacket>, string, string]>([
    ['a sender of no subnet of ours', request(), {}, '192.0.2.1', 'asks from elsewhere'],
    ['a sender with another address than it says', request(), { ciaddr: '10.0.0.5' }, '10.0.0.77', 'asks from elsewhere'],
    ['a request for another server', request({ serverIdentifier: '10.0.0.9' }), {}, '10.0.0.77', 'meant for another server'],
    ['an operating system', { messageType: MESSAGE.request }, {}, '10.0.0.77', 'not a PXE client'],
    ['UEFI HTTP', request({ vendorClass: 'HTTPClient:Arch:00016' }), {}, '10.0.0.77', 'not a PXE client'],
    ['a discovery', discover(PXE, 0), {}, '10.0.0.77', 'a message type that boot servers do not answer'],
  ])('does not answer %s', async (_, options, more, from, reason) => {
    expect(await ask(options, more, from)).toBe(reason);
  });
  it('does not answer machines that are not to boot', async () => {
    expect(await ask(request(), {}, '10.0.0.77', 'idle')).toBe('the machine is not meant to boot from the network now');
  });
});

describe('planProxies', () => {
  const LINKS: Readonly<Record<string, readonly { address: string; netmask: string }[]>> = {
    eth1: [{ address: '10.0.0.1', netmask: '255.255.255.0' }],
    eth2: [{ address: '10.2.0.1', netmask: '255.255.255.0' }],
  };
  const plan = (given: Partial<DhcpOptions>, ...lines: readonly string[]) => {
    const options = { ...OPTIONS, 'boot.dhcp_range': null, ...given, 'boot.dhcp_subnet': lines };
    const addressesOf = (name: string) => LINKS[name];
    return planProxies(options, planSubnets(options, addressesOf), addressesOf);
  };

  it('plans subnets on their interface or through relays, and needs no range', () => {
    expect(plan({}, '10.2.0.0/24 proxy=true interface=eth2', '10.9.0.0/16 proxy=true')).toMatchObject([
      { interface: 'eth2', direct: true, policy: { server: '10.2.0.1', tftpServer: '10.2.0.1', httpUrl: 'http://10.2.0.1:8080' } },
      { interface: 'eth1', direct: false, policy: { server: '10.0.0.1', netmask: '255.255.0.0', network: addressToNumber('10.9.0.0') } },
    ]);
    expect(plan({}, '10.2.0.0/24 proxy=false range=10.2.0.100-10.2.0.109 interface=eth2')).toEqual([]);
  });
  const RANGE = { 'boot.dhcp_range': '10.0.0.100-10.0.0.200' };
  it.each<[string, Partial<DhcpOptions>, string]>([
    [
      '10.2.0.0/24 proxy=true range=10.2.0.1-10.2.0.9 gateway=10.2.0.254',
      {},
      'with proxy=true another server gives the addresses: remove range, gateway',
    ],
    [
      '10.2.0.0/24 proxy=true dns=10.2.0.2 dns=10.2.0.3 lease=600',
      {},
      'with proxy=true another server gives the addresses: remove dns, lease',
    ],
    ['10.2.0.0/24 proxy=yes', {}, 'proxy must be true or false'],
    ['10.2.0.0/24 proxy=false', {}, 'range=FIRST-LAST is missing; proxy=true in its place if another server gives the addresses'],
    ['fd00::/64 proxy=true', {}, 'proxy is not a key of IPv6 subnets: range, interface, dns, domain, mtu, lease, slaac, router'],
    ['10.2.0.0/24 proxy=true interface=eth9', {}, '[boot]interface = eth9: there is no such interface'],
    [
      '10.0.0.0/25 proxy=true',
      RANGE,
      'this server gives addresses of the subnet, from the range 10.0.0.100-10.0.0.200: remove the range or proxy=true',
    ],
  ])('rejects %s', (line, given, why) => {
    expect(() => plan(given, line)).toThrow(expect.objectContaining({ message: `[boot]dhcp_subnet = ${line}: ${why}` }) as Error);
  });
  it('rejects two servers on one interface, and two subnets that overlap', () => {
    const shared = { address: '10.5.0.1', netmask: '255.255.255.0' };
    const options = { ...OPTIONS, ...RANGE, 'boot.dhcp_subnet': ['10.5.0.0/24 proxy=true'] };
    const addressesOf = () => [...LINKS['eth1']!, shared];
    expect(() => planProxies(options, planSubnets(options, addressesOf), addressesOf)).toThrow(
      new DhcpSetupError(
        '[boot]dhcp_subnet = 10.5.0.0/24 proxy=true: machines at eth1 get addresses from the range 10.0.0.100-10.0.0.200: two servers would answer them',
      ),
    );
    expect(() => plan({}, '10.9.0.0/16 proxy=true', '10.9.1.0/24 proxy=true')).toThrow(
      new DhcpSetupError('[boot]dhcp_subnet = 10.9.1.0/24 proxy=true: it overlaps with 10.9.0.0/16'),
    );
  });
});
