/** IP networks that options name: `192.0.2.0/24`, `2001:db8::/64`, or one address. */
import { BlockList, isIP } from 'node:net';
import { canonicalAddress } from '../../model/idents';

export interface Networks {
  /** False for a text that is not an IP address. */
  contains(address: string): boolean;
}
const family = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** Whether a text is an address or a network. */
export function isNetwork(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const isLength = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= (isIP(address) === 6 ? 128 : 32));
  return isIP(address) > 0 && isLength && more.length === 0;
}

/** @param texts each of them is a network */
export function networksOf(texts: readonly string[]): Networks {
  const list = new BlockList();
  for (const text of texts) {
    const [address = '', length] = text.split('/');
    list.addSubnet(address, Number(length ?? (isIP(address) === 6 ? 128 : 32)), family(address));
  }
  return {
    contains: (text) => {
      const address = canonicalAddress(text);
      return address !== undefined && list.check(address, family(address));
    },
  };
}
