/**
 * The firmware's boot options (schema BootOption) in the order of Boot.BootOrder, and those of a network interface. The order of the collection
 * BootOptions is not the boot order.
 */
import { isMac } from '../../model/idents';
import { linkedCollection, member, textOf, textsOf } from '../../wire/redfish';
import type { SystemView } from './target';

interface BootOption {
  /** BootOptionReference, which BootOrder and BootNext name: `Boot0003`. */
  readonly reference: string;
  readonly name: string;
  /** Addresses of network interfaces in its device path and name, in small letters with colons. */
  readonly macs: readonly string[];
  /** `pxe`: of the network, and not by HTTP. Undefined: not of the network. */
  readonly kind: 'http' | 'pxe' | undefined;
  readonly isIpv6: boolean;
}
/** Characters of a text that are read. */
const MAX_TEXT = 1000;
const short = (body: unknown, name: string): string => textOf(member(body, name))?.slice(0, MAX_TEXT) ?? '';
/** MAC(0A0B0C0D0E0F,0x1) of a UEFI device path, and addresses with colons or hyphens in names (`UEFI: PXE IPv4 NIC 0A-0B-0C-0D-0E-0F`). */
const MACS = /\bMAC\(([0-9a-f]{12})|\b([0-9a-f]{2}(?:[:-][0-9a-f]{2}){5})\b|\(MAC:([0-9a-f]{12})\)/gi;
const macsIn = (text: string): readonly string[] =>
  [...text.matchAll(MACS)].flatMap(([, ...groups]) => {
    const digits = groups
      .find((group) => group !== undefined)!
      .replace(/[:-]/g, '')
      .toLowerCase();
    const mac = digits.replace(/(..)(?=.)/g, '$1:');
    return isMac(mac) ? [mac] : [];
  });

/** @internal */
export function bootOptionOf(body: unknown): BootOption | undefined {
  const reference = textOf(member(body, 'BootOptionReference')) ?? textOf(member(body, 'Id'));
  if (reference === undefined || member(body, 'BootOptionEnabled') === false) return undefined;
  const [path, name, alias] = [short(body, 'UefiDevicePath'), short(body, 'DisplayName'), short(body, 'Alias')];
  const all = `${path} ${name} ${alias}`;
  const macs = [...new Set([...macsIn(path), ...macsIn(name)])];
  const isHttp = /\bUri\(|http/i.test(all);
  const isPxe = /\bPXE\b|\bIPv[46]\(/i.test(all) || macs.length > 0;
  return { reference, name, macs, kind: isHttp ? 'http' : isPxe ? 'pxe' : undefined, isIpv6: /IPv6/i.test(all) };
}
/** The reference of an entry of BootOrder: some services (NVIDIA) add the option's name to it, `Boot0019: name`. */
const referenceOf = (entry: string): string => entry.split(':', 1)[0]!.trim();

/** The enabled options: those of BootOrder first, in its order. @throws RedfishError */
export async function bootOptions(system: SystemView): Promise<readonly BootOption[]> {
  const order = (textsOf(member(system.body, 'Boot', 'BootOrder')) ?? []).map(referenceOf);
  const found = (await linkedCollection(system.ask, system, 'Boot', 'BootOptions')) ?? [];
  const rank = ({ reference }: BootOption): number => (order.includes(reference) ? order.indexOf(reference) : order.length);
  return found
    .map(({ body }) => bootOptionOf(body))
    .filter((option) => option !== undefined)
    .sort((left, right) => rank(left) - rank(right));
}
/** The first option of this kind for one of the addresses, IPv4 before IPv6. Undefined: there is none. */
export const networkOption = (options: readonly BootOption[], kind: 'http' | 'pxe', macs: readonly string[]): BootOption | undefined => {
  const fitting = options.filter((option) => option.kind === kind && option.macs.some((mac) => macs.includes(mac)));
  return fitting.find(({ isIpv6 }) => !isIpv6) ?? fitting[0];
};
