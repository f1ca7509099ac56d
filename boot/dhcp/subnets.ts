/** `[boot]dhcp_subnet`: one subnet per line, as `PREFIX KEY=VALUE …`. The keys are rows of KEYS. */
import { isIPv4, isIPv6 } from 'node:net';
import type { Route } from '../../wire/dhcp/dhcp';

/** DHCP cannot start with these options. The message names the option. */
export class DhcpSetupError extends Error {}

type Family = 4 | 6;
/** A subnet as the operator wrote it. Values are checked one by one here, and against the interface in `setup.ts` and `setup6.ts`. */
export interface SubnetLine {
  /** The line itself, for messages. */
  readonly text: string;
  readonly family: Family;
  readonly network: string;
  /** Length of the prefix. */
  readonly width: number;
  readonly range: string;
  /** Another server gives the addresses, this one the boot part. `range` is then empty. */
  readonly proxy: boolean;
  /** The interface whose packets are answered; null: `[boot]interface`. It need not be in the subnet if there are relays. */
  readonly interface: string | null;
  readonly gateway: string | null;
  readonly dns: readonly string[];
  readonly domain: string | null;
  readonly mtu: number | null;
  readonly leaseSeconds: number | null;
  readonly routes: readonly Route[];
  /** Machines may configure addresses of the prefix themselves (RFC 4862). */
  readonly slaac: boolean;
  /** This host is a router of the subnet. */
  readonly router: boolean;
}

const isAddress = (family: Family, text: string): boolean => (family === 4 ? isIPv4(text) : isIPv6(text) && !text.includes('%'));
const integer = (least: number, most: number) => (text: string) =>
  /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined;
const boolean = (text: string): boolean | undefined => ({ true: true, false: false })[text];
const address = (text: string, family: Family): string | undefined => (isAddress(family, text) ? text : undefined);

function parseRoute(text: string): Route | undefined {
  const [, destination, width, router] = /^([\d.]+)\/(\d{1,2}):([\d.]+)$/.exec(text) ?? [];
  if (destination === undefined || !isIPv4(destination) || !isIPv4(router!) || Number(width) > 32) return undefined;
  return { destination, width: Number(width), router: router! };
}

interface Key {
  readonly field: keyof SubnetLine;
  readonly families: readonly Family[];
  /** The key may occur several times. */
  readonly many?: true;
  /** Undefined: the value is invalid. */
  readonly parse: (text: string, family: Family) => unknown;
  /** What the value is, for messages. */
  readonly what: string;
}
const BOTH = [4, 6] as const;
const KEYS: Readonly<Record<string, Key>> = {
  range: { field: 'range', families: BOTH, parse: (text) => text, what: 'FIRST-LAST' },
  proxy: { field: 'proxy', families: [4], parse: boolean, what: 'true or false' },
  interface: { field: 'interface', families: BOTH, parse: (text) => text, what: 'an interface' },
  gateway: { field: 'gateway', families: [4], parse: address, what: 'an IPv4 address' },
  dns: { field: 'dns', families: BOTH, many: true, parse: address, what: 'an address' },
  domain: { field: 'domain', families: BOTH, parse: (text) => (/^[\w.-]{1,253}$/.test(text) ? text : undefined), what: 'a domain name' },
  mtu: { field: 'mtu', families: BOTH, parse: integer(576, 65_535), what: 'a number from 576 to 65535' },
  lease: { field: 'leaseSeconds', families: BOTH, parse: integer(60, 100_000_000), what: 'a number of seconds from 60 on' },
  route: { field: 'routes', families: [4], many: true, parse: parseRoute, what: 'NETWORK/WIDTH:ROUTER' },
  slaac: { field: 'slaac', families: [6], parse: boolean, what: 'true or false' },
  router: { field: 'router', families: [6], parse: boolean, what: 'true or false' },
};

/** What a subnet has whose addresses another server gives. */
const PROXY_KEYS: ReadonlySet<string> = new Set(['proxy', 'interface']);

/** Throws DhcpSetupError. */
export function parseSubnet(text: string): SubnetLine {
  const refuse = (why: string): never => {
    throw new DhcpSetupError(`[boot]dhcp_subnet = ${text}: ${why}`);
  };
  const [prefix = '', ...words] = text.trim().split(/\s+/);
  const [network = '', width = ''] = prefix.split('/');
  const family: Family = network.includes(':') ? 6 : 4;
  if (!isAddress(family, network) || !/^\d{1,3}$/.test(width) || Number(width) < 1 || Number(width) > (family === 4 ? 30 : 126))
    refuse('it must begin with NETWORK/WIDTH');
  const lists: Record<'dns' | 'routes', unknown[]> = { dns: [], routes: [] };
  const single: Record<string, unknown> = {};
  for (const word of words) {
    const [, name = '', value = ''] = /^(\w+)=(.+)$/.exec(word) ?? refuse(`${word} is not KEY=VALUE`);
    const key = Object.hasOwn(KEYS, name) ? KEYS[name]! : undefined;
    if (!key?.families.includes(family)) {
      const known = Object.entries(KEYS).filter(([, { families }]) => families.includes(family));
      return refuse(`${name} is not a key of IPv${family} subnets: ${known.map(([each]) => each).join(', ')}`);
    }
    const parsed = key.parse(value, family);
    if (parsed === undefined) refuse(`${name} must be ${key.what}`);
    if (key.many) lists[key.field as keyof typeof lists].push(parsed);
    else if (key.field in single) refuse(`${name} occurs twice`);
    else single[key.field] = parsed;
  }
  if (single['proxy'] === true) {
    const others = words.map((word) => word.slice(0, word.indexOf('='))).filter((name) => !PROXY_KEYS.has(name));
    if (others.length > 0) refuse(`with proxy=true another server gives the addresses: remove ${[...new Set(others)].join(', ')}`);
  } else if (single['range'] === undefined)
    refuse(`range=FIRST-LAST is missing${family === 4 ? '; proxy=true in its place if another server gives the addresses' : ''}`);
  const unset = {
    range: '',
    proxy: false,
    interface: null,
    gateway: null,
    domain: null,
    mtu: null,
    leaseSeconds: null,
    slaac: false,
    router: false,
  };
  // The compiler cannot check it: each row of KEYS parses its field into the right type.
  return { ...unset, ...single, ...lists, text, family, network, width: Number(width) } as unknown as SubnetLine;
}
