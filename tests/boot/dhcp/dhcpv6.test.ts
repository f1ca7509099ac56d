import type { Decision, Machine } from '../../../boot/dhcp/clients';
import { answerDhcpv6, formOf, identify, subnetFor6, type Dhcpv6Policy, type Subnet6 } from '../../../boot/dhcp/dhcpv6';
import { createLeaseChanges, createPool } from '../../../boot/dhcp/pool';
import { advertisementOf, planSubnets6 } from '../../../boot/dhcp/setup6';
import type { DhcpOptions } from '../../../boot/dhcp/setup';
import {
  duidOfMac,
  MESSAGE6,
  NO_ASSOCIATIONS,
  STATUS6,
  type Dhcpv6Message,
  type Dhcpv6Packet,
  type Option6Values,
} from '../../../wire/dhcp/dhcpv6';
import { parseIpv6 } from '../../../wire/ipv6';
import { optionsOf } from '../../support/options';

type Outcome6 = Awaited<ReturnType<typeof answerDhcpv6>>;
const LEASE_SECONDS = 1000;
const START = 1_000_000;
const MAC = '52:54:00:aa:00:01';
const LINK_LOCAL = 'fe80::5054:ff:feaa:1%eth1';
const OURS = duidOfMac('52:54:00:00:00:99');
const THEIRS = duidOfMac(MAC);
const LOADERS = { bios: 'undionly.kpxe', uefi: 'snponly.efi', byArch: { aarch64: 'snp-arm64.efi' } };
const POLICY: Dhcpv6Policy = {
  duid: OURS,
  tftpServer: 'fd00:77::1',
  network: parseIpv6('fd00:77::')!,
  width: 64,
  dns: ['fd00:77::53'],
  domain: 'lab.example',
  leaseSeconds: LEASE_SECONDS,
  httpUrl: 'http://[fd00:77::1]:8080',
  ipxeLoaders: LOADERS,

  pxeLoaders: { bios: 'pxelinux.0', uefi: 'bootx64.efi', byArch: {} },
};
function subnetOf(size = 16, more: Partial<Subnet6> = {}): Subnet6 {
  const form = formOf(parseIpv6('fd00:77::100')!, size);
  const range = { first: 0, last: size - 1, excluded: [], leaseMs: LEASE_SECONDS * 1000 };
  const pool = createPool<Decision>(range, [], START, createLeaseChanges(), form);
  return { policy: POLICY, pool, form, interface: 'eth1', ...more };
}
const BOOTS: Machine = { known: true, boots: 'ipxe' };
const IDLE: Machine = { known: true };
const UNKNOWN: Machine = { known: false };

interface Request {
  readonly type: keyof typeof MESSAGE6;
  readonly options?: Option6Values;
  readonly addresses?: readonly string[];
  readonly relays?: Dhcpv6Packet['relays'];
  readonly more?: Partial<Dhcpv6Message['associations']>;
}
const packetOf = ({ type, options = {}, addresses, relays = [], more = {} }: Request): Dhcpv6Packet => ({
  relays,
  message: {
    type: MESSAGE6[type],
    xid: 7,
    options: { clientIdentifier: THEIRS, ...options },
    associations: {
      ...NO_ASSOCIATIONS,
      addresses: [{ iaid: 1, t1: 0, t2: 0, addresses: (addresses ?? []).map((address) => ({ address, preferred: 0, valid: 0 })) }],
      ...more,
    },
  },
});
function server(machine: Machine = BOOTS, subnet = subnetOf()) {
  let now = START;
  const lookups: string[] = [];
  const lookup = async (mac: string): Promise<Machine> => {
    lookups.push(mac);
    return machine;
  };
  return {
    subnet,
    lookups,
    wait: (seconds: number) => void (now += seconds * 1000),
    ask: (request: Request, from = LINK_LOCAL) => answerDhcpv6(subnet, lookup, packetOf(request), from, { now: () => now }),
  };
}
function given(outcome: Outcome6): Dhcpv6Message {
  if (outcome.kind === 'silence') throw new Error(`silence: ${outcome.reason}`);
  return outcome.message;
}
const addressIn = ({ associations }: Dhcpv6Message): string | undefined => associations.addresses[0]?.addresses[0]?.address;
const toUs = { serverIdentifier: OURS };
const PXE = { vendorClass: { enterprise: 343, data: [Buffer.from('PXEClient:Arch:00007:UNDI:003001')] }, clientArchitectures: [7] };
const HTTP = { vendorClass: { enterprise: 343, data: [Buffer.from('HTTPClient:Arch:00016:UNDI:003001')] }, clientArchitectures: [16] };
const IPXE = { ...PXE, userClass: [Buffer.from('iPXE')] };

describe('message exchange', () => {
  it('Solicit and Request give an address for the lease time and the requested options', async () => {
    const { ask, lookups } = server();
    const advertised = given(await ask({ type: 'solicit', options: { optionRequest: [23, 24] } }));
    expect(advertised).toMatchObject({
      type: MESSAGE6.advertise,
      xid: 7,
      options: {
        clientIdentifier: THEIRS,
        serverIdentifier: OURS,
        preference: 255,
        dnsServers: ['fd00:77::53'],
        domainList: ['lab.example'],
      },
    });
    const address = addressIn(advertised)!;
    expect(address).toMatch(/^fd00:77::10[0-9a-f]$/);
    const reply = given(await ask({ type: 'request', addresses: [address], options: toUs }));
    expect(reply).toMatchObject({ type: MESSAGE6.reply, options: { clientIdentifier: THEIRS, serverIdentifier: OURS } });
    expect(reply.options).not.toHaveProperty('dnsServers');
    expect(reply.associations.addresses).toEqual([
      { iaid: 1, t1: 500, t2: 800, addresses: [{ address, preferred: LEASE_SECONDS, valid: LEASE_SECONDS }] },
    ]);
    // The offer carries the decision of the PXE filter: the request needs no second lookup.
    expect(lookups).toEqual([MAC]);
  });
  it('Solicit with rapid commit gives a lease at once', async () => {
    const { ask, subnet } = server();
    const reply = given(await ask({ type: 'solicit', options: { rapidCommit: true } }));
    expect(reply).toMatchObject({ type: MESSAGE6.reply, options: { rapidCommit: true } });
    expect(subnet.pool.find(MAC, START)).toMatchObject({ state: 'bound', address: subnet.form.toNumber(addressIn(reply)!) });
  });
  it('firmware, iPXE and operating system of a machine get the same address', async () => {
    const { ask } = server();
    const first = addressIn(
      given(await ask({ type: 'solicit', options: { ...PXE, clientIdentifier: Buffer.from('00040102', 'hex'), rapidCommit: true } })),
    );
    const second = addressIn(given(await ask({ type: 'solicit', options: { ...IPXE, rapidCommit: true } })));
    expect(second).toBe(first);
  });
});

describe('boot file', () => {
  it.each<[string, Machine, Option6Values, string | undefined]>([
    ['firmware with TFTP', BOOTS, PXE, 'tftp://[fd00:77::1]/snponly.efi'],
    ['firmware of another CPU', BOOTS, { ...PXE, clientArchitectures: [11] }, 'tftp://[fd00:77::1]/snp-arm64.efi'],
    ['firmware with HTTP boot', BOOTS, HTTP, 'http://[fd00:77::1]:8080/snponly.efi'],
    ['iPXE', BOOTS, IPXE, 'http://[fd00:77::1]:8080/ipxe/52-54-00-aa-00-01?buildarch=${buildarch}'],
    ['firmware with the method pxe', { known: true, boots: 'pxe' }, PXE, 'tftp://[fd00:77::1]/bootx64.efi'],
    ['firmware with TFTP with the method http', { known: true, boots: 'http' }, PXE, 'tftp://[fd00:77::1]/bootx64.efi'],
    ['firmware with HTTP boot with the method http', { known: true, boots: 'http' }, HTTP, 'http://[fd00:77::1]:8080/bootx64.efi'],
    ['an operating system', BOOTS, {}, undefined],
    ['an operating system without a boot record', IDLE, {}, undefined],
  ])('of %s is the expected URL', async (_, machine, options, url) => {
    const reply = given(await server(machine).ask({ type: 'solicit', options }));
    expect(reply.options.bootFileUrl).toBe(url);
    expect(reply.options.vendorClass).toEqual(options === HTTP ? { enterprise: 343, data: [Buffer.from('HTTPClient')] } : undefined);
  });
  it('is also sent in reply to an Information-request', async () => {
    const reply = given(await server().ask({ type: 'informationRequest', options: PXE, more: { addresses: [] } }));
    expect(reply).toMatchObject({ type: MESSAGE6.reply, options: { bootFileUrl: 'tftp://[fd00:77::1]/snponly.efi' } });
  });
});

describe('no answer to', () => {
  it.each<[string, Machine, Request, string]>([
    ['an unknown machine', UNKNOWN, { type: 'solicit' }, 'no node has this MAC address'],
    ['firmware without a boot record', IDLE, { type: 'solicit', options: PXE }, 'the machine is not meant to boot from the network now'],
    ['a Request for another server', BOOTS, { type: 'request', options: { serverIdentifier: THEIRS } }, 'meant for another server'],
    ['a Request without a server identifier', BOOTS, { type: 'request' }, 'no server identifier'],
    [
      'a Solicit with a server identifier',
      BOOTS,
      { type: 'solicit', options: toUs },
      'a server identifier in a message that must not have one',
    ],
    ['a Solicit without a client identifier', BOOTS, { type: 'solicit', options: { clientIdentifier: undefined } }, 'no client identifier'],
    ['a Reply', BOOTS, { type: 'reply' }, 'a message type that servers do not answer'],
    ['a Confirm without addresses', BOOTS, { type: 'confirm' }, 'nothing to confirm'],
  ])('%s', async (_, machine, request, reason) => {
    expect(await server(machine).ask(request)).toEqual({ kind: 'silence', reason });
  });
  it('a client whose MAC address cannot be determined', async () => {
    const request: Request = { type: 'solicit', options: { clientIdentifier: Buffer.from('0004f81d4fae7dec11d0a76500a0c91e6bf6', 'hex') } };
    expect(await server().ask(request, 'fe80::1')).toEqual({ kind: 'silence', reason: 'the client shows no MAC address' });
  });
  it('a link without a subnet', async () => {
    const asked = answerDhcpv6(undefined, async () => BOOTS, packetOf({ type: 'solicit' }), LINK_LOCAL, { now: () => START });
    expect(await asked).toMatchObject({ reason: 'no addresses for the link of this relay' });
  });
});

describe('lease', () => {
  async function bound() {
    const one = server();
    const address = addressIn(given(await one.ask({ type: 'solicit', options: { rapidCommit: true } })))!;
    return { ...one, address };
  }
  it.each([
    ['renew', toUs],
    ['rebind', {}],
  ] as const)('is extended by %s', async (type, options) => {
    const { ask, address, wait, subnet } = await bound();
    wait(600);
    expect(addressIn(given(await ask({ type, addresses: [address], options })))).toBe(address);
    expect(subnet.pool.find(MAC, START + 1_500_000)).toMatchObject({ state: 'bound' });
  });
  it('of an address that the client does not have gets lifetime 0', async () => {
    const { ask, subnet } = await bound();
    subnet.pool.bind('52:54:00:aa:00:02', 3, START);
    const other = subnet.form.toText(3);
    expect(given(await ask({ type: 'renew', addresses: [other, 'fd00:99::1'], options: toUs })).associations.addresses).toMatchObject([
      {
        status: { code: STATUS6.noBinding },
        addresses: [
          { address: other, preferred: 0, valid: 0 },
          { address: 'fd00:99::1', preferred: 0, valid: 0 },
        ],
      },
    ]);
  });
  it('is confirmed only for addresses on the link', async () => {
    const { ask, address } = await bound();
    const codeOf = async (addresses: readonly string[]) => given(await ask({ type: 'confirm', addresses })).options.status?.code;
    expect([await codeOf([address]), await codeOf([address, 'fd00:99::1'])]).toEqual([STATUS6.success, STATUS6.notOnLink]);
  });
  it.each([
    ['release', 'ended'],
    ['decline', 'declined'],
  ] as const)('ends with %s', async (type, state) => {
    const { ask, address, subnet } = await bound();
    const reply = given(await ask({ type, addresses: [address], options: toUs }));
    expect(reply.options.status).toMatchObject({ code: STATUS6.success });
    expect(subnet.pool.counts(START)).toMatchObject({ bound: 0, [state]: 1 });
  });
  it('is refused with NoAddrsAvail when the pool is exhausted', async () => {
    const { ask, subnet } = server(BOOTS, subnetOf(1));
    subnet.pool.bind('52:54:00:aa:00:02', 0, START);
    expect(given(await ask({ type: 'solicit' }))).toMatchObject({
      options: { status: { code: STATUS6.noAddresses } },
      associations: { addresses: [{ iaid: 1, addresses: [], status: { code: STATUS6.noAddresses } }] },
    });
    expect(given(await ask({ type: 'request', options: toUs })).associations.addresses[0]!.status!.code).toBe(STATUS6.noAddresses);
  });
  it('is one per network interface, and never for prefixes or temporary addresses', async () => {
    const more = {
      addresses: [1, 2].map((iaid) => ({ iaid, t1: 0, t2: 0, addresses: [] })),
      temporary: [{ iaid: 3, t1: 0, t2: 0, addresses: [] }],
      prefixes: [{ iaid: 4, t1: 0, t2: 0, addresses: [] }],
    };
    const { associations } = given(await server().ask({ type: 'solicit', more }));
    expect(associations.addresses.map(({ addresses, status }) => [addresses.length, status?.code])).toEqual([
      [1, undefined],
      [0, STATUS6.noAddresses],
    ]);
    expect([associations.temporary[0]!.status!.code, associations.prefixes[0]!.status!.code]).toEqual([
      STATUS6.noAddresses,
      STATUS6.noPrefixes,
    ]);
  });
  it('is only one for many DUIDs of one network interface', async () => {
    const { ask, subnet } = server();
    for (let index = 0; index < 200; index += 1)
      await ask({
        type: 'solicit',
        options: { rapidCommit: true, clientIdentifier: Buffer.from(`0002${index.toString(16).padStart(8, '0')}`, 'hex') },
      });
    expect(subnet.pool.counts(START)).toMatchObject({ bound: 1, free: 15 });
  });
});

describe('identification and subnets', () => {
  const relay = { hops: 0, link: '::', peer: 'fe80::5054:ff:feaa:2', options: {} };
  const packet = (...relays: Dhcpv6Packet['relays']): Dhcpv6Packet => packetOf({ type: 'solicit', relays });
  it.each<[string, Dhcpv6Packet, string, object | undefined]>([
    ['the link-local address', packet(), LINK_LOCAL, { mac: MAC, key: MAC }],
    ['the peer address of the relay', packet(relay), 'fd00::1', { mac: '52:54:00:aa:00:02', key: '52:54:00:aa:00:02' }],
    [
      'the link-layer option of the relay',
      packet({ ...relay, options: { clientLinkLayer: Buffer.from('0001525400aa0003', 'hex') } }),
      'fd00::1',
      { mac: '52:54:00:aa:00:03', key: '52:54:00:aa:00:03' },
    ],
    ['the DUID with the IAID', packet(), 'fe80::1', { mac: MAC, key: `${MAC}/00000001` }],
  ])('identify uses %s', (_, asked, from, expected) => {
    expect(identify(asked, from)).toEqual(expected);
  });
  it('subnetFor6 uses the nearest relay with a link address, else the interface', () => {
    const near = subnetOf();
    const far = subnetOf(16, { policy: { ...POLICY, network: parseIpv6('fd00:5::')! }, interface: undefined });
    const find = (...relays: Dhcpv6Packet['relays']) => subnetFor6([near, far], 'eth1', packet(...relays));
    expect(find()).toBe(near);
    expect(find({ ...relay, link: 'fd00:77::9' }, { ...relay, link: 'fd00:5::9' })).toBe(far);
    expect(find({ ...relay, link: 'fd00:5::9' }, relay)).toBe(far);
    expect(find({ ...relay, link: 'fd00:6::9' })).toBeUndefined();
    expect(subnetFor6([near, far], 'eth2', packet())).toBeUndefined();
  });
});

describe('planSubnets6', () => {
  const LINKS: Readonly<Record<string, readonly string[]>> = { eth1: ['fe80::1', 'fd00:77::1'], eth2: ['fe80::2'] };
  const plan = (lines: readonly string[], more: Partial<DhcpOptions> = {}) =>
    planSubnets6(
      optionsOf({
        'boot.interface': 'eth1',
        'boot.dhcp_subnet': lines,
        'deploy.http_url': 'http://192.0.2.1:8080',
        'pxe.tftp_server': '192.0.2.1',
        ...more,
      }),
      (name) => LINKS[name],
    );
  it('plans a pool, URLs with an address of the subnet, and a router advertisement', () => {
    const plans = plan([
      'fd00:77::5/64 range=fd00:77::-fd00:77::ff dns=fd00:77::53 mtu=9000 lease=600 slaac=true',
      'fd00:5::/48 range=fd00:5::1-fd00:5::9',
    ]);
    expect(plans[0]).toMatchObject({
      interface: 'eth1',
      direct: true,
      maxUnknown: 128,
      range: { first: 0, last: 255, excluded: [0, 1], leaseMs: 600_000 },
      policy: { tftpServer: 'fd00:77::1', httpUrl: 'http://[fd00:77::1]:8080', network: parseIpv6('fd00:77::') },
    });
    expect(plans[1]).toMatchObject({ direct: false, policy: { tftpServer: 'fd00:77::1' } });
    expect(advertisementOf(plans.filter((candidate) => candidate.direct))).toEqual({
      dhcp: true,
      routerSeconds: 0,
      mtu: 9000,
      dns: ['fd00:77::53'],
      prefixes: [{ network: 'fd00:77::', width: 64, autonomous: true }],
    });
  });
  it.each([
    ['fd00:77::/64 range=fd00:77::1', 'range must be FIRST-LAST, two IPv6 addresses'],
    ['fd00:77::/64 range=fd00:77::9-fd00:77::1', 'the range ends before it begins'],
    ['fd00:77::/64 range=fd00:77::-fd00:77::1:0:0', 'the range has more than 65536 addresses'],
    ['fd00:77::/64 range=fd00:78::1-fd00:78::2', 'the range is not in fd00:77::/64'],
    ['fd00:77::/64 range=fd00:77::1-fd00:77::2 interface=eth9', 'interface eth9: there is no such interface'],
    ['fd00:77::/64 range=fd00:77::1-fd00:77::2 interface=eth2', 'interface eth2: it has only a link-local IPv6 address'],
  ])('rejects %s', (line, why) => {
    expect(() => plan([line])).toThrow(expect.objectContaining({ message: `[boot]dhcp_subnet = ${line}: ${why}` }) as Error);
  });
  it('rejects overlapping ranges', () => {
    const lines = ['fd00:77::/64 range=fd00:77::10-fd00:77::20', 'fd00:77::/64 range=fd00:77::1-fd00:77::99'];
    expect(() => plan(lines)).toThrow('[boot]dhcp_subnet: the ranges fd00:77::10-fd00:77::20 and fd00:77::1-fd00:77::99 overlap');
  });
});
