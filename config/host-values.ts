/** Values of options that are not set, from this host: for references (`$my_ip`), and for the start. */
import { readFileSync } from 'node:fs';
import { hostname, networkInterfaces, type NetworkInterfaceInfo } from 'node:os';
import { join } from 'node:path';
import type { Options } from './options';

type Interfaces = Readonly<Record<string, readonly Pick<NetworkInterfaceInfo, 'address' | 'family' | 'netmask'>[] | undefined>>;

/** The first address of an interface that machines can reach. Link-local addresses cannot be used in URLs. */
export const addressOf = (
  name: string | null,
  version: 'IPv4' | 'IPv6' = 'IPv4',
  interfaces: Interfaces = networkInterfaces(),
): string | undefined =>
  name === null ? undefined : interfaces[name]?.find(({ family, address }) => family === version && !/^fe[89ab]/i.test(address))?.address;

const numberOf = (address: string): number => address.split('.').reduce((number, part) => number * 256 + Number(part), 0);
/** /proc/net/route has addresses in hexadecimal, the last byte first. */
const addressIn = (hex: string): number =>
  numberOf(
    (hex.match(/../g) ?? [])
      .reverse()
      .map((byte) => parseInt(byte, 16))
      .join('.'),
  );
const UP = 1;

/**
 * The address from which this host reaches others: of the interface of the best default route, in the gateway's network if it has one there.
 * @param routes the text of /proc/net/route
 * @internal
 */
export function routeAddress(routes: string, interfaces: Interfaces): string | undefined {
  const defaults = routes
    .split('\n')
    .map((line) => line.split('\t'))
    .filter(
      ([, destination, , flags, , , , mask]) => destination === '00000000' && mask === '00000000' && (parseInt(flags!, 16) & UP) !== 0,
    )
    .sort((left, right) => Number(left[6]) - Number(right[6]));
  for (const [name, , gateway] of defaults) {
    const addresses = interfaces[name!]?.filter(({ family }) => family === 'IPv4') ?? [];
    const via = addressIn(gateway!);
    const near = addresses.find(({ address, netmask }) => ((numberOf(address) ^ via) & numberOf(netmask)) === 0);
    const found = near ?? addresses[0];
    if (found) return found.address;
  }
  return undefined;
}
/** Undefined: there is no default route, or the operating system does not tell. */
function defaultRouteAddress(): string | undefined {
  try {
    return routeAddress(readFileSync('/proc/net/route', 'utf8'), networkInterfaces());
  } catch {
    return undefined;
  }
}

const LOOPBACK = '127.0.0.1';
/**
 * The address of this host for machines, if [DEFAULT]my_ip is not set.
 * @param bootInterface the interface of the provisioning network
 * @param myIpv6 [DEFAULT]my_ipv6
 */
export const ownAddress = (bootInterface: string | null, myIpv6: string | null): string =>
  addressOf(bootInterface) ?? myIpv6 ?? addressOf(bootInterface, 'IPv6') ?? defaultRouteAddress() ?? LOOPBACK;
export const bootFolders = (stateDir: string): Pick<Options, 'deploy.http_root' | 'pxe.tftp_root'> => ({
  'deploy.http_root': join(stateDir, 'httpboot'),
  'pxe.tftp_root': join(stateDir, 'tftpboot'),
});

type HostValue = (textFor: (name: string) => string, stateDir: string | undefined) => string | undefined;
const below =
  (key: keyof ReturnType<typeof bootFolders>): HostValue =>
  (_, stateDir) =>
    stateDir === undefined ? undefined : bootFolders(stateDir)[key];

/** `section.name` → what a reference to the option stands for if it is not set. */
export const HOST_VALUES: Readonly<Record<string, HostValue>> = {
  'DEFAULT.my_ip': (textFor) => ownAddress(textFor('boot.interface') || null, textFor('my_ipv6') || null),
  'DEFAULT.host': () => hostname(),
  'DEFAULT.state_path': (_, stateDir) => stateDir,
  'deploy.http_root': below('deploy.http_root'),
  'pxe.tftp_root': below('pxe.tftp_root'),
  'pxe.tftp_server': (textFor) => textFor('my_ip'),
};
/** Options that have no value before the start, unless they are set. */
export const NEEDS_START: ReadonlySet<string> = new Set([
  ...Object.keys(HOST_VALUES),
  'api.host_ip',
  'json_rpc.host_ip',
  'DEFAULT.listen_address',
  'service_catalog.endpoint_override',
  'deploy.http_url',
  'deploy.external_http_url',
  'inspector_service.callback_url',
]);
