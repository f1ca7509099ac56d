import type { Decision } from '../../../boot/dhcp/clients';
import { answerDhcp, mayAnswerRelay, subnetFor, type DhcpPolicy } from '../../../boot/dhcp/dhcpv4';
import { createMachineLookup, limitUnknownMachines } from '../../../boot/dhcp/machines';
import type { PxeFilter } from '../../../boot/discovery';
import { createLeaseChanges, createPool, type Pool } from '../../../boot/dhcp/pool';
import { addressToNumber, decode, MESSAGE, type DhcpPacket, type OptionValues } from '../../../wire/dhcp/dhcp';
import { dhcpStore } from '../../support/fakes/dhcp-store';
import { filterWith } from '../../support/pxe-filter';
import { PACKETS } from '../../wire/dhcp-packets';

type Outcome = Awaited<ReturnType<typeof answerDhcp>>;
const START = Date.parse('2026-03-01T00:00:00Z');
const LEASE_SECONDS = 3600;
const MACS = {
  boots: '52:54:00:00:00:01',
  idle: '52:54:00:00:00:02',
  unknown: '52:54:00:00:00:03',
  http: '52:54:00:00:00:09',
  pxe: '52:54:00:00:00:04',
  inspected: '52:54:00:00:00:05',
} as const;
type Who = keyof typeof MACS;

const POLICY: DhcpPolicy = {
  server: '10.0.0.1',
  network: addressToNumber('10.0.0.0'),
  netmask: '255.255.255.0',
  gateway: '10.0.0.254',
  dns: ['10.0.0.2'],
  domain: null,
  mtu: null,
  routes: [],
  leaseSeconds: LEASE_SECONDS,
  tftpServer: '10.0.0.3',
  httpUrl: 'http://10.0.0.1:8080',
  ipxeLoaders: { bios: 'undionly.kpxe', uefi: 'snponly.efi', byArch: { aarch64: 'snp-arm64.efi' } },
  pxeLoaders: {
    bios: 'pxelinux.0',
    uefi: 'bootx64.efi',
    byArch: { aarch64: 'grubaa64.efi', 'aarch64-bios': 'none', 'x86_64-bios': 'lpxelinux.0' },
  },
};
const poolOf = (first: string, last: string): Pool<Decision> =>
  createPool(
    { first: addressToNumber(first), last: addressToNumber(last), excluded: [], leaseMs: LEASE_SECONDS * 1000 },
    [],
    START,
    createLeaseChanges(),
  );

/** A server with its rows, its pool and its clock. */
function server(
  { filter = filterWith(), ...policy }: Partial<DhcpPolicy> & { readonly filter?: PxeFilter } = {},
  pool = poolOf('10.0.0.100', '10.0.0.199'),
) {
  const all = { ...POLICY, ...policy };
  const { store, queries } = dhcpStore({
    ports: [MACS.boots, MACS.idle, MACS.pxe, MACS.http, MACS.inspected],
    inspected: [MACS.inspected],
    boots: [MACS.boots, MACS.pxe, MACS.http],
    methods: { [MACS.pxe]: 'pxe', [MACS.http]: 'http' },
  });
  const lookup = createMachineLookup(store, filter);
  let now = START;
  return {
    pool,
    queries,
    wait: (seconds: number) => void (now += seconds * 1000),
    ask: (packet: DhcpPacket) => answerDhcp(all, pool, lookup, packet, { now: () => now }),
  };
}
const DISCOVERS = filterWith({ 'auto_discovery.enabled': true });
const template = decode(PACKETS.udhcpcDiscover) as DhcpPacket;
const from = (who: Who, options: OptionValues, more: Partial<DhcpPacket> = {}): DhcpPacket => ({
  ...template,
  chaddr: MACS[who],
  options,
  ...more,
});
const sent = (name: keyof typeof PACKETS, who: Who, more: Partial<DhcpPacket> = {}): DhcpPacket => ({
  ...(decode(PACKETS[name]) as DhcpPacket),
  chaddr: MACS[who],
  ...more,
});
/** The answer's packet with its destination; a silence is an error. */
function given(outcome: Outcome): DhcpPacket & { to: string } {
  if (outcome.kind === 'silence') throw new Error(`silence: ${outcome.reason}`);
  return { ...outcome.packet, to: `${outcome.address}:${outcome.port}` };
}
const discover = (who: Who): DhcpPacket => from(who, { messageType: MESSAGE.discover });
const request = (who: Who, address: string, options: OptionValues = {}): DhcpPacket =>
  from(who, { messageType: MESSAGE.request, serverIdentifier: '10.0.0.1', requestedAddress: address, ...options });
const renew = (who: Who, address: string): DhcpPacket => from(who, { messageType: MESSAGE.request }, { ciaddr: address });

describe('unknown machines', () => {
  const macOf = (index: number): string => `52:54:00:ff:00:${index.toString(16).padStart(2, '0')}`;
  it('get no address beyond their limit until a lease time has passed, while known machines still do', async () => {
    const { store } = dhcpStore({ ports: [MACS.boots], boots: [MACS.boots] });
    const refused: string[] = [];
    let now = START;
    const clock = { now: () => now };
    const lookup = limitUnknownMachines(createMachineLookup(store, DISCOVERS), {
      max: 2,
      periodMs: LEASE_SECONDS * 1000,
      clock,
      refused: (mac) => void refused.push(mac),
      hasLease: (mac) => pool.hasLease(mac, now),
      evict: (mac) => pool.evict(mac, now),
    });
    const pool = poolOf('10.0.0.100', '10.0.0.102');
    const isAnswered = async (mac: string): Promise<boolean> => {
      const outcome = await answerDhcp(POLICY, pool, lookup, { ...discover('unknown'), chaddr: mac }, clock);
      if (outcome.kind === 'answer')
        await answerDhcp(POLICY, pool, lookup, { ...request('unknown', outcome.packet.yiaddr), chaddr: mac }, clock);
      return outcome.kind === 'answer';
    };
    const answered: boolean[] = [];
    for (const index of [1, 2, 3, 1, 4]) answered.push(await isAnswered(macOf(index)));
    expect([answered, refused]).toEqual([
      [true, true, false, true, false],
      [macOf(3), macOf(4)],
    ]);
    expect(await isAnswered(MACS.boots)).toBe(true);
    now += LEASE_SECONDS * 1000;
    expect(await isAnswered(macOf(3))).toBe(true);
  });
});

describe('limitUnknownMachines in a flood of invented addresses', () => {
  const open = (max: number, circuit?: (mac: string) => string | undefined) => {
    const pool = poolOf('10.0.0.100', '10.0.0.109');
    let refused = 0;
    const clock = { now: () => START };
    const lookup = limitUnknownMachines(async (mac) => ({ known: mac === MACS.boots, boots: 'ipxe' }), {
      max,
      periodMs: LEASE_SECONDS * 1000,
      clock,
      refused: () => void (refused += 1),
      hasLease: (mac) => pool.hasLease(mac, START),
      evict: (mac) => pool.evict(mac, START),
    });
    const ask = (packet: DhcpPacket, chaddr: string): Promise<Outcome> =>
      answerDhcp(POLICY, pool, (mac) => lookup(mac, circuit?.(mac)), { ...packet, chaddr }, clock);
    const flood = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index += 1)
        await ask(
          discover('unknown'),
          `02:00:00:00:${(index >> 8).toString(16).padStart(2, '0')}:${(index & 255).toString(16).padStart(2, '0')}`,
        );
    };
    return { pool, ask, flood, refused: () => refused };
  };
  it('an unknown machine gets the address of its offer, and known machines have the other addresses', async () => {
    const { pool, ask, flood, refused } = open(5);
    await flood(300);
    const { yiaddr } = given(await ask(discover('unknown'), MACS.unknown));
    await flood(1000);
    expect(given(await ask(request('unknown', yiaddr), MACS.unknown))).toMatchObject({ yiaddr, options: { messageType: MESSAGE.ack } });
    await flood(1000);
    expect(pool.find(MACS.unknown, START)).toMatchObject({ state: 'bound' });
    expect(given(await ask(discover('boots'), MACS.boots)).options.messageType).toBe(MESSAGE.offer);
    expect(pool.counts(START)).toMatchObject({ free: 4, offered: 5, bound: 1 });
    expect(refused()).toBe(0);
  });
  it('a known machine gets an address, even if unknown machines may have all', async () => {
    const { ask, flood, pool } = open(10);
    await flood(300);
    const { yiaddr } = given(await ask(discover('boots'), MACS.boots));
    await flood(300);
    given(await ask(request('boots', yiaddr), MACS.boots));
    expect(pool.find(MACS.boots, START)).toMatchObject({ state: 'bound' });
  });
  it('through one circuit of a relay, half of the unknown machines may come', async () => {
    const { pool, flood } = open(6, (mac) => (mac.startsWith('02:') ? 'a circuit' : undefined));
    await flood(300);
    expect(pool.counts(START)).toMatchObject({ offered: 3 });
  });
});

it('limitUnknownMachines counts a machine while it renews its lease, and no longer after it becomes known', async () => {
  const known = new Set<string>();
  const leased = new Set(['one']);
  let now = START;
  const lookup = limitUnknownMachines(async (mac) => ({ known: known.has(mac), boots: 'ipxe' }), {
    max: 1,
    periodMs: 1000,
    clock: { now: () => now },
    refused: () => {},
    hasLease: (mac) => leased.has(mac),
    evict: () => {},
  });
  const boots = async (mac: string): Promise<boolean> => (await lookup(mac)).boots !== undefined;
  expect([await boots('one'), await boots('other')]).toEqual([true, false]);
  now += 900;
  expect(await boots('one')).toBe(true);
  now += 900;
  expect(await boots('other')).toBe(false);
  known.add('one');
  expect([await boots('one'), await boots('other')]).toEqual([true, true]);
});

describe('boot file', () => {
  const tftp = (bootFileName: string) => ({
    siaddr: '10.0.0.3',
    file: bootFileName,
    options: { bootFileName, tftpServerName: '10.0.0.3', tftpServerAddresses: ['10.0.0.3'] },
  });
  const http = {
    siaddr: '0.0.0.0',
    file: 'http://10.0.0.1:8080/snponly.efi',
    options: { bootFileName: 'http://10.0.0.1:8080/snponly.efi', vendorClass: 'HTTPClient' },
  };
  const grub = {
    ...http,
    file: 'http://10.0.0.1:8080/bootx64.efi',
    options: { ...http.options, bootFileName: 'http://10.0.0.1:8080/bootx64.efi' },
  };
  const script = 'http://10.0.0.1:8080/ipxe/52-54-00-00-00-01?buildarch=${buildarch}';
  const ipxe = { siaddr: '0.0.0.0', file: script, options: { bootFileName: script, ipxe: new Map([[176, Buffer.from([1])]]) } };
  const nothing = { siaddr: '0.0.0.0', file: '' };
  const pxe = (architecture?: number, vendorClass = 'PXEClient'): OptionValues => ({
    messageType: MESSAGE.discover,
    vendorClass,
    ...(architecture === undefined ? {} : { clientArchitectures: [architecture] }),
  });
  it.each<[string, DhcpPacket, object]>([
    ['iPXE in a ROM: the script', sent('ipxeRomDiscover', 'boots'), ipxe],
    ['iPXE from undionly.kpxe: the script', sent('undionlyDiscover', 'boots'), ipxe],
    ['iPXE from snponly.efi: the script', sent('snponlyDiscover', 'boots'), ipxe],
    ['iPXE without HTTP: the loader', from('boots', { ...pxe(0), ipxe: new Map([[33, Buffer.from([1])]]) }), tftp('undionly.kpxe')],
    ['iPXE that says only its user class: the script', from('boots', { ...pxe(0), userClass: Buffer.from('\x04iPXE') }), ipxe],
    ['OVMF with PXE: the loader by TFTP', sent('ovmfPxeDiscover', 'boots'), tftp('snponly.efi')],
    ['OVMF with HTTP boot: the loader by HTTP', sent('ovmfHttpDiscover', 'boots'), http],
    ['a BIOS: its loader', from('boots', pxe(0)), tftp('undionly.kpxe')],
    [
      'a BIOS, known by its vendor class: its loader',
      from('boots', pxe(undefined, 'PXEClient:Arch:00000:UNDI:002001')),
      tftp('undionly.kpxe'),
    ],
    ['UEFI, known by its vendor class: its loader', from('boots', pxe(undefined, 'PXEClient:Arch:00007:UNDI:003000')), tftp('snponly.efi')],
    ['firmware of unknown architecture: the loader for a BIOS', from('boots', pxe()), tftp('undionly.kpxe')],
    ['UEFI with architecture 9: its loader', from('boots', pxe(9)), tftp('snponly.efi')],
    ['UEFI on arm64: the loader of this CPU', from('boots', pxe(11)), tftp('snp-arm64.efi')],
    [
      'UEFI on arm64 with HTTP boot: the loader of this CPU by HTTP',
      from('boots', pxe(19, 'HTTPClient')),
      { file: 'http://10.0.0.1:8080/snp-arm64.efi' },
    ],
    ['UEFI of a CPU without its own loader: the loader for UEFI', from('boots', pxe(27)), tftp('snponly.efi')],
    ['an architecture without a name: the loader for UEFI', from('boots', pxe(999)), tftp('snponly.efi')],
    ['a BIOS with the method pxe: the loader by CPU and boot mode', from('pxe', pxe(0)), tftp('lpxelinux.0')],
    ['firmware with HTTP boot with the method pxe: GRUB by HTTP', sent('ovmfHttpDiscover', 'pxe'), grub],
    ['firmware with HTTP boot with the method http: GRUB by HTTP', sent('ovmfHttpDiscover', 'http'), grub],
    ['OVMF with PXE with the method http: GRUB by TFTP', sent('ovmfPxeDiscover', 'http'), tftp('bootx64.efi')],
    ['iPXE in a ROM with the method http: PXELINUX by HTTP', sent('ipxeRomDiscover', 'http'), { file: 'http://10.0.0.1:8080/lpxelinux.0' }],
    ['iPXE in a ROM with the method pxe: PXELINUX', sent('ipxeRomDiscover', 'pxe'), tftp('lpxelinux.0')],
    ['UEFI with the method pxe: GRUB', sent('ovmfPxeDiscover', 'pxe'), tftp('bootx64.efi')],
    ['UEFI on arm64 with the method pxe: GRUB of this CPU', from('pxe', pxe(11)), tftp('grubaa64.efi')],
    ['UEFI of a CPU without its own loader with the method pxe: GRUB', from('pxe', pxe(27)), tftp('bootx64.efi')],
    ['the operating system of a machine with the method pxe: only an address', discover('pxe'), nothing],
    ['the ramdisk of a machine with a boot record: only an address', discover('boots'), nothing],
    ['the operating system of a machine without a boot record: only an address', discover('idle'), nothing],
  ])('for %s', async (_, packet, expected) => {
    expect(given(await server().ask(packet))).toMatchObject(expected);
  });
  it('an operating system gets no boot options', async () => {
    const { options } = given(await server().ask(discover('idle')));
    for (const name of ['bootFileName', 'tftpServerName', 'tftpServerAddresses', 'vendorClass', 'ipxe'])
      expect(options).not.toHaveProperty(name);
  });
  it('a URL longer than the field "file" is only in the option', async () => {
    const httpUrl = `http://${'a'.repeat(120)}`;
    const { file, options } = given(await server({ httpUrl }).ask(sent('ipxeRomDiscover', 'boots')));
    expect(file).toBe('');
    expect(options.bootFileName).toBe(`${httpUrl}/ipxe/52-54-00-00-00-01?buildarch=\${buildarch}`);
  });
});

describe('which packets are answered', () => {
  it.each<['ignore' | 'discover', keyof typeof PACKETS, Who, string | undefined]>([
    ['ignore', 'udhcpcDiscover', 'unknown', 'no node has this MAC address'],
    ['ignore', 'ipxeRomDiscover', 'unknown', 'no node has this MAC address'],
    ['discover', 'udhcpcDiscover', 'unknown', undefined],
    ['discover', 'ipxeRomDiscover', 'unknown', undefined],
    ['discover', 'ovmfPxeDiscover', 'unknown', undefined],
    ['ignore', 'udhcpcDiscover', 'idle', undefined],
    ['ignore', 'dhclientDiscover', 'idle', undefined],
    ['ignore', 'ipxeRomDiscover', 'idle', 'the machine is not meant to boot from the network now'],
    ['ignore', 'ovmfPxeDiscover', 'idle', 'the machine is not meant to boot from the network now'],
    ['discover', 'ovmfHttpDiscover', 'idle', 'the machine is not meant to boot from the network now'],
    ['ignore', 'ovmfHttpDiscover', 'boots', undefined],
    ['ignore', 'ovmfHttpDiscover', 'inspected', undefined],
    ['ignore', 'udhcpcDiscover', 'boots', undefined],
  ])('dhcp_unknown_macs "%s": %s of a machine that is %s', async (unknownMacs, name, who, reason) => {
    const outcome = await server({ filter: filterWith({ 'boot.dhcp_unknown_macs': unknownMacs }) }).ask(sent(name, who));
    expect(outcome).toMatchObject(reason === undefined ? { kind: 'answer' } : { kind: 'silence', reason });
  });
  it.each<[string, DhcpPacket, string]>([
    ['a reply', { ...discover('boots'), op: 2 }, 'not a request'],
    ['Infiniband', { ...discover('boots'), htype: 32, chaddr: '' }, 'not an Ethernet address'],
    ['an Ethernet address of five bytes', { ...discover('boots'), chaddr: '52:54:00:00:00' }, 'not an Ethernet address'],
    ['BOOTP', from('boots', {}), 'a message type that servers do not answer'],
    ['an offer', from('boots', { messageType: MESSAGE.offer }), 'a message type that servers do not answer'],
    ['a message type of the future', from('boots', { messageType: 77 }), 'a message type that servers do not answer'],
    ['a relay of another subnet', { ...discover('boots'), giaddr: '10.0.1.1' }, 'no addresses for the subnet of this relay'],
    ['a request without an address', from('boots', { messageType: MESSAGE.request }), 'a request for no address'],
    ['an INFORM from another subnet', from('boots', { messageType: MESSAGE.inform }, { ciaddr: '8.8.8.8' }), 'informs from elsewhere'],
  ])('no answer to %s', async (_, packet, reason) => {
    expect(await server().ask(packet)).toEqual({ kind: 'silence', reason });
  });
});

describe('message exchange', () => {
  it('an offer has the options of RFC 2131 §4.3.1 and echoes the fields that it must', async () => {
    const offer = given(await server().ask(sent('ipxeRomDiscover', 'boots', { xid: 7, flags: 0x8000, secs: 9 })));
    expect(offer).toMatchObject({
      op: 2,
      htype: 1,
      hops: 0,
      xid: 7,
      secs: 0,
      flags: 0x8000,
      chaddr: MACS.boots,
      ciaddr: '0.0.0.0',
      to: '255.255.255.255:68',
    });
    expect(offer.yiaddr).toMatch(/^10\.0\.0\.1\d\d$/);
    expect(offer.options).toMatchObject({
      messageType: MESSAGE.offer,
      serverIdentifier: '10.0.0.1',
      leaseTime: 3600,
      renewalTime: 1800,
      rebindingTime: 3150,
      subnetMask: '255.255.255.0',
      broadcastAddress: '10.0.0.255',
      routers: ['10.0.0.254'],
      domainNameServers: ['10.0.0.2'],
      clientIdentifier: Buffer.from('015254007962b7', 'hex'),
      clientMachineIdentifier: Buffer.from('0002b76279b959c74aaf09d8194b1448db', 'hex'),
    });
  });
  it('an offer without gateway and name servers omits these options', async () => {
    const { options } = given(await server({ gateway: null, dns: [] }).ask(discover('boots')));
    expect(options.routers).toBeUndefined();
    expect(options.domainNameServers).toBeUndefined();
  });
  it('a request is acknowledged with the offered address without another query', async () => {
    const { ask, queries } = server();
    const { yiaddr } = given(await ask(discover('boots')));
    const before = { ...queries };
    expect(given(await ask(request('boots', yiaddr)))).toMatchObject({
      yiaddr,
      options: { messageType: MESSAGE.ack, leaseTime: 3600 },
      to: '255.255.255.255:68',
    });
    expect(queries).toEqual(before);
  });
  it('a request long after its offer queries the store again', async () => {
    const { ask, queries, wait } = server();
    const { yiaddr } = given(await ask(discover('boots')));
    wait(11);
    given(await ask(request('boots', yiaddr)));
    expect(queries).toEqual({ ports: 2, boots: 2 });
  });
  it('firmware, loader, ramdisk and operating system of a machine get the same address', async () => {
    const { ask, wait } = server();
    const addresses = [];
    for (const name of ['ovmfPxeDiscover', 'snponlyDiscover', 'udhcpcDiscover', 'dhclientDiscover'] as const) {
      const { yiaddr } = given(await ask(sent(name, 'boots')));
      addresses.push(given(await ask(request('boots', yiaddr))).yiaddr);
      wait(20);
    }
    expect(new Set(addresses).size).toBe(1);
  });
  it('machines get different addresses', async () => {
    const { ask } = server({ filter: DISCOVERS });
    const offers = await Promise.all((['boots', 'idle', 'unknown'] as const).map(async (who) => given(await ask(discover(who))).yiaddr));
    expect(new Set(offers).size).toBe(3);
  });
  it('the requested address is offered if it is free', async () => {
    const { ask } = server();
    expect(given(await ask(from('boots', { messageType: MESSAGE.discover, requestedAddress: '10.0.0.150' }))).yiaddr).toBe('10.0.0.150');
    expect(given(await ask(from('idle', { messageType: MESSAGE.discover, requestedAddress: '10.0.0.150' }))).yiaddr).not.toBe('10.0.0.150');
    expect(given(await server().ask(from('boots', { messageType: MESSAGE.discover, requestedAddress: '10.0.0.5' }))).yiaddr).not.toBe(
      '10.0.0.5',
    );
  });
  it('a request for another server withdraws our offer', async () => {
    const pool = poolOf('10.0.0.100', '10.0.0.100');
    const { ask } = server({}, pool);
    given(await ask(discover('boots')));
    expect(await ask(discover('idle'))).toEqual({
      kind: 'silence',
      reason: 'no address is left in the range of the subnet',
      notable: true,
    });
    expect(await ask(request('boots', '10.0.0.9', { serverIdentifier: '10.0.0.99' }))).toMatchObject({
      kind: 'silence',
      reason: 'meant for another server',
    });
    given(await ask(discover('idle')));
  });
  it("a renewal is acknowledged by unicast to the client's address", async () => {
    const { ask } = server();
    const { yiaddr } = given(await ask(discover('boots')));
    given(await ask(request('boots', yiaddr)));
    expect(given(await ask(renew('boots', yiaddr)))).toMatchObject({
      yiaddr,
      ciaddr: yiaddr,
      options: { messageType: MESSAGE.ack },
      to: `${yiaddr}:68`,
    });
  });
  it("an INFORM is answered with parameters but no lease, at the client's address", async () => {
    const outcome = given(await server().ask(from('idle', { messageType: MESSAGE.inform }, { ciaddr: '10.0.0.77' })));
    expect(outcome).toMatchObject({
      yiaddr: '0.0.0.0',
      ciaddr: '10.0.0.77',
      options: { messageType: MESSAGE.ack, subnetMask: '255.255.255.0' },
      to: '10.0.0.77:68',
    });
    for (const name of ['leaseTime', 'renewalTime', 'rebindingTime']) expect(outcome.options).not.toHaveProperty(name);
  });
});

describe('NAK', () => {
  it.each<[string, DhcpPacket]>([
    ['an init-reboot with an address of another subnet', from('boots', { messageType: MESSAGE.request, requestedAddress: '192.168.1.5' })],
    ['an init-reboot with an address outside the pool', from('boots', { messageType: MESSAGE.request, requestedAddress: '10.0.0.5' })],
    ['a renewal of an address outside the pool', renew('boots', '192.168.1.5')],
    ['a request for another address than the offered one', request('boots', '10.0.0.5')],
  ])('answers %s', async (_, packet) => {
    const refused = given(await server().ask(packet));
    expect(refused).toMatchObject({ yiaddr: '0.0.0.0', ciaddr: '0.0.0.0', siaddr: '0.0.0.0', file: '', to: '255.255.255.255:68' });
    expect(refused.options).toMatchObject({ messageType: MESSAGE.nak, serverIdentifier: '10.0.0.1' });
    expect(refused.options).not.toHaveProperty('leaseTime');
  });
  it('answers a request for an address that another machine has', async () => {
    const { ask } = server();
    const { yiaddr } = given(await ask(discover('boots')));
    given(await ask(request('boots', yiaddr)));
    expect(given(await ask(renew('idle', yiaddr))).options.messageType).toBe(MESSAGE.nak);
    expect(given(await ask(from('idle', { messageType: MESSAGE.request, requestedAddress: yiaddr }))).options.messageType).toBe(
      MESSAGE.nak,
    );
  });
  it('is not sent to a machine that we do not serve', async () => {
    expect(await server().ask(renew('unknown', '192.168.1.5'))).toMatchObject({ kind: 'silence' });
  });
  it('is not sent for a free address that the machine claims, which becomes its lease', async () => {
    expect(given(await server().ask(renew('boots', '10.0.0.120')))).toMatchObject({
      yiaddr: '10.0.0.120',
      options: { messageType: MESSAGE.ack },
    });
  });
});

describe('relays', () => {
  const relayed = { giaddr: '10.0.0.253', hops: 1 };
  const relayAgentInformation = Buffer.from('0104deadbeef', 'hex');
  it('get the reply at their address and port 67, with their information', async () => {
    const offer = given(await server().ask(from('boots', { messageType: MESSAGE.discover, relayAgentInformation }, relayed)));
    expect(offer).toMatchObject({ to: '10.0.0.253:67', giaddr: '10.0.0.253', hops: 0 });
    expect(offer.options.relayAgentInformation).toEqual(relayAgentInformation);
  });
  it('get a NAK with the broadcast flag', async () => {
    const refused = given(
      await server().ask(from('boots', { messageType: MESSAGE.request, requestedAddress: '1.2.3.4', relayAgentInformation }, relayed)),
    );
    expect(refused).toMatchObject({ to: '10.0.0.253:67', flags: 0x8000, options: { messageType: MESSAGE.nak, relayAgentInformation } });
  });
  it('are required for an interface outside the subnet, but renewals may come directly', async () => {
    const { ask } = server({ server: '172.16.0.1' });
    expect(await ask(discover('boots'))).toMatchObject({ kind: 'silence', reason: 'no addresses for the subnet of this relay' });
    const { yiaddr } = given(await ask({ ...discover('boots'), ...relayed }));
    expect(given(await ask({ ...request('boots', yiaddr, { serverIdentifier: '172.16.0.1' }), ...relayed }))).toMatchObject({
      yiaddr,
      to: '10.0.0.253:67',
    });
    expect(given(await ask(renew('boots', yiaddr)))).toMatchObject({ yiaddr, to: `${yiaddr}:68` });
  });
});

describe('release and decline', () => {
  it('a released address is given to another machine only when no other is free', async () => {
    const { ask, pool } = server({ filter: DISCOVERS }, poolOf('10.0.0.100', '10.0.0.101'));
    const { yiaddr } = given(await ask(discover('boots')));
    given(await ask(request('boots', yiaddr)));
    expect(await ask(from('boots', { messageType: MESSAGE.release, serverIdentifier: '10.0.0.1' }, { ciaddr: yiaddr }))).toEqual({
      kind: 'silence',
      reason: 'released',
    });
    expect(pool.find(MACS.boots, START)).toMatchObject({ state: 'ended' });
    const second = given(await ask(discover('idle')));
    expect(second.yiaddr).not.toBe(yiaddr);
    expect(given(await ask(discover('unknown'))).yiaddr).toBe(yiaddr);
  });
  it('a machine can release only its own address', async () => {
    const { ask, pool } = server();
    const { yiaddr } = given(await ask(discover('boots')));
    given(await ask(request('boots', yiaddr)));
    await ask(from('idle', { messageType: MESSAGE.release, serverIdentifier: '10.0.0.1' }, { ciaddr: yiaddr }));
    expect(pool.find(MACS.boots, START)).toMatchObject({ state: 'bound' });
  });
  it('a declined address is not offered again, and is reported to the operator', async () => {
    const { ask } = server();
    const { yiaddr } = given(await ask(discover('boots')));
    given(await ask(request('boots', yiaddr)));
    const decline = from('boots', { messageType: MESSAGE.decline, serverIdentifier: '10.0.0.1', requestedAddress: yiaddr });
    expect(await ask(decline)).toMatchObject({ kind: 'silence', notable: true });
    expect(await ask(decline)).toEqual({ kind: 'silence', reason: 'not its address' });
    expect(given(await ask(discover('boots'))).yiaddr).not.toBe(yiaddr);
  });
});

describe('createMachineLookup', () => {
  it('queries many machines in one batch, and passes a failure to each caller', async () => {
    const { store, queries } = dhcpStore({ ports: [MACS.boots], boots: [MACS.boots] });
    const lookup = createMachineLookup(store, DISCOVERS);
    const first = lookup(MACS.unknown);
    const others = await Promise.all([
      first,
      ...Array.from({ length: 60 }, (_, index) => lookup(`52:54:00:00:01:${String(index).padStart(2, '0')}`)),
      lookup(MACS.boots),
    ]);
    expect(others.at(-1)).toEqual({ known: true, boots: 'ipxe' });
    expect(queries).toEqual({ ports: 2, boots: 62 });
    const broken = createMachineLookup(
      { ...store, discoveries: { addressStatuses: async () => Promise.reject(new Error('gone')) } },
      DISCOVERS,
    );
    const results = await Promise.allSettled([broken('a'), broken('b'), broken('c')]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await expect(broken('a')).rejects.toThrow('gone');
  });
  it.each(['ipxe', 'pxe', 'http-ipxe', 'http'] as const)(
    'boots unknown machines by [boot]discovery_boot_interface = %s',
    async (method) => {
      const { store } = dhcpStore({ ports: [], boots: [] });
      const filter = filterWith({ 'auto_discovery.enabled': true, 'boot.discovery_boot_interface': method });
      expect(await createMachineLookup(store, filter)(MACS.unknown)).toEqual({ known: false, boots: method });
    },
  );
  it('finds a boot record for a MAC address that no port has', async () => {
    const { store } = dhcpStore({ ports: [], boots: [MACS.boots] });
    expect(await createMachineLookup(store, filterWith())(MACS.boots)).toEqual({ known: false, boots: 'ipxe' });
  });
});

describe('several subnets', () => {
  const near = { policy: POLICY, pool: poolOf('10.0.0.100', '10.0.0.199'), interface: 'eth1' };
  const far = {
    policy: { ...POLICY, network: addressToNumber('10.5.0.0'), gateway: '10.5.0.254' },
    pool: poolOf('10.5.0.100', '10.5.0.199'),
    interface: undefined,
  };
  const other = {
    policy: { ...POLICY, server: '10.6.0.1', network: addressToNumber('10.6.0.0') },
    pool: poolOf('10.6.0.100', '10.6.0.199'),
    interface: 'eth2',
  };
  const all = [near, far, other];
  const linkSelection = Buffer.from('05040a050000', 'hex');
  it.each<[string, Partial<DhcpPacket>, string, object]>([
    ['the subnet of the interface', {}, 'eth1', near],
    ['the subnet of another interface', {}, 'eth2', other],
    ["the subnet of the relay's address", { giaddr: '10.5.0.254' }, 'eth1', far],
    ['the subnet of the link selection (RFC 3527)', { giaddr: '10.0.0.9', options: { relayAgentInformation: linkSelection } }, 'eth1', far],
    ["the subnet of a renewing client's address", { ciaddr: '10.5.0.101' }, 'eth2', far],
    ['a subnet without an interface, for an interface without a subnet', {}, 'eth3', far],
    ['the subnet of the interface for an address in no subnet', { ciaddr: '192.0.2.1' }, 'eth2', other],
  ])('subnetFor chooses %s', (_, packet, name, expected) => {
    expect(subnetFor(all, name, { ...template, options: {}, ...packet })).toBe(expected);
  });
  it.each<[string, Partial<DhcpPacket>, string, boolean]>([
    ['without a relay', {}, '0.0.0.0', true],
    ['through a relay in the subnet', { giaddr: '10.0.0.9' }, '10.0.0.9', true],
    // answerDhcp finds no subnet for it.
    ['through a relay in no subnet, without link selection', { giaddr: '192.0.2.9' }, '10.0.0.9', true],
    ['with link selection, from the relay', { giaddr: '192.0.2.9', options: { relayAgentInformation: linkSelection } }, '192.0.2.9', true],
    [
      'with link selection, by a relay in a subnet',
      { giaddr: '10.6.0.9', options: { relayAgentInformation: linkSelection } },
      '1.2.3.4',
      true,
    ],
    [
      'with link selection, to somebody else',
      { giaddr: '192.0.2.9', options: { relayAgentInformation: linkSelection } },
      '10.0.0.9',
      false,
    ],
  ])('a packet %s may be answered', (_, packet, sender, expected) => {
    const policies = all.map(({ policy }) => policy);
    expect(mayAnswerRelay(policies, { ...template, options: {}, ...packet }, sender)).toBe(expected);
  });
  it('a direct packet gets no answer where all subnets are behind relays', async () => {
    const { ask } = server({ network: far.policy.network, gateway: '10.5.0.254' }, far.pool);
    expect(await ask(from('boots', { messageType: MESSAGE.discover }))).toMatchObject({
      reason: 'no addresses for the subnet of this relay',
    });
  });
  it('link selection is echoed, and the offer goes to the relay', async () => {
    const { ask } = server({ network: far.policy.network, gateway: '10.5.0.254' }, far.pool);
    const relayAgentInformation = Buffer.concat([linkSelection, Buffer.from('0104deadbeef', 'hex')]);
    const offer = given(await ask(from('boots', { messageType: MESSAGE.discover, relayAgentInformation }, { giaddr: '10.0.0.9' })));
    expect(offer).toMatchObject({ to: '10.0.0.9:67', options: { relayAgentInformation, routers: ['10.5.0.254'] } });
    expect(offer.yiaddr).toMatch(/^10\.5\.0\.1\d\d$/);
  });
  it('the server identifier override of a relay is used and accepted only through the relay (RFC 5107)', async () => {
    const { ask } = server();
    const relayed = { giaddr: '10.0.0.253', hops: 1 };
    const relayAgentInformation = Buffer.from('0b040a0000fd', 'hex');
    const offer = given(await ask(from('boots', { messageType: MESSAGE.discover, relayAgentInformation }, relayed)));
    expect(offer.options.serverIdentifier).toBe('10.0.0.253');
    const options = { relayAgentInformation, serverIdentifier: '10.0.0.253' };
    expect(given(await ask({ ...request('boots', offer.yiaddr, options), ...relayed })).options.messageType).toBe(MESSAGE.ack);
    expect(await ask(request('boots', offer.yiaddr, { serverIdentifier: '10.0.0.253' }))).toMatchObject({
      reason: 'meant for another server',
    });
  });
  it('an offer contains routes, domain and MTU, with the gateway as the first route (RFC 3442)', async () => {
    const routes = [{ destination: '10.9.0.0', width: 16, router: '10.0.0.253' }];
    const { options } = given(await server({ routes, domain: 'lab.example', mtu: 9000 }).ask(discover('boots')));
    expect(options).toMatchObject({
      domainName: 'lab.example',
      interfaceMtu: 9000,
      routers: ['10.0.0.254'],
      classlessRoutes: [{ destination: '0.0.0.0', width: 0, router: '10.0.0.254' }, ...routes],
    });
    expect(given(await server({ routes, gateway: null }).ask(discover('boots'))).options.classlessRoutes).toEqual(routes);
  });
});
