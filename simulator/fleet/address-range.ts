/** The addresses and ports of a fleet's BMCs. The first machine's address and port determine those of the others. */
import { isIPv4, isIPv6 } from 'node:net';

export interface AddressRange {
  readonly host: string;
  /** 0: any free port for each machine. */
  readonly port: number;
  /** Whether the port or the address increases from machine to machine. Real BMCs have an address each. */
  readonly count: 'ports' | 'addresses';
}

/** An address as URLs write it: IPv6 addresses in brackets. */
export const hostInUrl = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

const MAX_PORT = 65_535;

/** The address and port of the machine with this number. */
export function addressOfMachine({ host, port, count }: AddressRange, index: number): { readonly host: string; readonly port: number } {
  if (count === 'ports' || index === 0) return { host, port: port === 0 ? 0 : port + index };
  const value = host.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) + index;
  return { host: [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.'), port };
}

/**
 * Parses ADDRESS, ADDRESS:PORT, PORT or ADDRESS+:PORT, where + means that the address increases.
 * @throws an Error that names the mistake
 */
export function parseAddressRange(text: string, machines: number, defaultHost: string): AddressRange {
  const [, bracketed, plain, plus, port] = /^(?:\[([^\]]+)\]|([^:+[]+))(\+?)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const onlyPort = /^\d{1,5}$/.test(text);
  const host = onlyPort ? defaultHost : (bracketed ?? plain ?? '');
  const place: AddressRange = { host, port: Number(onlyPort ? text : (port ?? 0)), count: plus === '+' ? 'addresses' : 'ports' };
  if (!isIPv4(host) && !isIPv6(host)) throw new Error(`"${text}" must be PORT, ADDRESS:PORT or ADDRESS+:PORT`);
  if (place.count === 'addresses' && (!isIPv4(host) || place.port === 0))
    throw new Error(`"${text}": only IPv4 addresses count up, and they need a port`);
  const last = place.count === 'ports' && place.port > 0 ? place.port + machines - 1 : place.port;
  if (last > MAX_PORT) throw new Error(`"${text}": the last machine's port would be ${last}`);
  return place;
}
