/** Lists of MAC addresses that operators write: whole addresses, the first bytes of them (a vendor's), `*` for any byte. */

/** Matches addresses in lower case with colons; undefined: no such pattern. */
function pattern(text: string): RegExp | undefined {
  const bytes = text.trim().toLowerCase().split(/[:-]/);
  if (bytes.length > 6 || !bytes.every((byte) => byte === '*' || /^[0-9a-f]{2}$/.test(byte))) return undefined;
  return new RegExp(`^${bytes.map((byte) => (byte === '*' ? '[0-9a-f]{2}' : byte)).join(':')}${bytes.length < 6 ? ':' : '$'}`);
}

function patterns(option: string, texts: readonly string[]): readonly RegExp[] {
  return texts.map((text) => {
    const made = pattern(text);
    if (!made) throw new Error(`${option}: ${text} is no MAC address, nor the beginning of one`);
    return made;
  });
}

export interface MacListOptions {
  readonly 'pxe_filter.allow_macs': readonly string[];
  readonly 'pxe_filter.deny_macs': readonly string[];
}
export interface MacLists {
  isAllowed(mac: string): boolean;
  isDenied(mac: string): boolean;
}

/** Which machines may be discovered: an empty list of allowed ones allows all; who is denied is so whatever allows it. Throws an Error for the operator. */
export function macLists(options: MacListOptions): MacLists {
  const allowed = patterns('[pxe_filter]allow_macs', options['pxe_filter.allow_macs']);
  const denied = patterns('[pxe_filter]deny_macs', options['pxe_filter.deny_macs']);
  return {
    isAllowed: (mac) => allowed.length === 0 || allowed.some((one) => one.test(mac)),
    isDenied: (mac) => denied.some((one) => one.test(mac)),
  };
}
