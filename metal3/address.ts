/** The address on the provisioning network: given, or waited for on an interface. */
import type { NetworkInterfaceInfo } from 'node:os';
import { systemClock, type Clock } from '../model/clock';
import { Metal3Error, type Environment } from './container-context';

type Interfaces = Readonly<NodeJS.Dict<NetworkInterfaceInfo[]>>;
interface ProvisioningAddress {
  readonly ip: string;
  readonly interface?: string;
}

/** Addresses that machines can reach: neither loopback nor link-local. */
const isGlobal = ({ address, internal }: NetworkInterfaceInfo): boolean => !internal && !/^(?:fe[89ab]|169\.254\.)/i.test(address);
const firstGlobal = (infos: readonly NetworkInterfaceInfo[] = []): string | undefined => infos.find(isGlobal)?.address;
/** One spelling for each IPv6 address, for comparisons. */
const canonical = (address: string): string => (address.includes(':') ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address);

function byMac(interfaces: Interfaces, macs: readonly string[]): string | undefined {
  for (const mac of macs) {
    const names = Object.keys(interfaces).filter((name) => interfaces[name]?.some((info) => info.mac.toLowerCase() === mac));
    const best = names.find((name) => firstGlobal(interfaces[name]) !== undefined) ?? names[0];
    if (best !== undefined) return best;
  }
  return undefined;
}

/**
 * The address that the variables select: IRONIC_IP (even if no interface has it), PROVISIONING_IP, PROVISIONING_INTERFACE,
 * PROVISIONING_MACS. Undefined: no interface has such an address now.
 */
function findAddress(environment: Environment, interfaces: Interfaces): ProvisioningAddress | undefined {
  const given = environment['IRONIC_IP'];
  const of = (ip: string): string | undefined =>
    Object.keys(interfaces).find((name) => interfaces[name]?.some(({ address }) => canonical(address) === canonical(ip)));
  if (given) return { ip: given, ...interfaceOf(of(given)) };
  const ip = environment['PROVISIONING_IP'];
  if (ip) {
    const name = of(ip);
    return name === undefined ? undefined : { ip, interface: name };
  }
  const macs = (environment['PROVISIONING_MACS'] ?? '')
    .toLowerCase()
    .split(',')
    .map((mac) => mac.trim())
    .filter(Boolean);
  const name = environment['PROVISIONING_INTERFACE'] || byMac(interfaces, macs) || 'provisioning';
  const found = firstGlobal(interfaces[name]);
  return found === undefined ? undefined : { ip: found, interface: name };
}
const interfaceOf = (name: string | undefined): Pick<ProvisioningAddress, 'interface'> => (name === undefined ? {} : { interface: name });

const seconds = (environment: Environment, name: string, preset: number): number => {
  const value = Number(environment[name] || preset);
  if (!Number.isFinite(value)) throw new Metal3Error(`${name} is not a number of seconds`);
  return value;
};
/**
 * Waits until the address is there.
 * @throws Metal3Error after IRONIC_IP_WAIT_TIMEOUT seconds (0: never)
 */
export async function waitForAddress(
  environment: Environment,
  interfaces: () => Interfaces,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<ProvisioningAddress> {
  const timeout = seconds(environment, 'IRONIC_IP_WAIT_TIMEOUT', 1200) * 1000;
  const interval = Math.max(seconds(environment, 'IRONIC_IP_WAIT_INTERVAL', 1), 0.1) * 1000;
  const end = timeout <= 0 ? Infinity : clock.now() + timeout;
  for (;;) {
    const found = findAddress(environment, interfaces());
    if (found) return found;
    if (clock.now() >= end)
      throw new Metal3Error(
        'no interface has the address of PROVISIONING_IP, PROVISIONING_INTERFACE or PROVISIONING_MACS (IRONIC_IP_WAIT_TIMEOUT)',
      );
    await clock.sleep(Math.min(interval, end - clock.now()), signal);
  }
}
