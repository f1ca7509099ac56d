/** The MAC address lists of the options: whole addresses, prefixes (of a vendor), and `*` for any byte. */

/** Matches addresses in lower case with colons; undefined for an invalid pattern. */
function pattern(text: string): RegExp | undefined {
  const bytes = text.trim().toLowerCase().split(/[:-]/);
  if (bytes.length > 6 || !bytes.every((byte) => byte === '*' || /^[0-9a-f]{2}$/.test(byte))) return undefined;
  return new RegExp(`^${bytes.map((byte) => (byte === '*' ? '[0-9a-f]{2}' : byte)).join(':')}${bytes.length < 6 ? ':' : '$'}`);
}

function patterns(option: string, texts: readonly string[]): readonly RegExp[] {
  return texts.map((text) => {
    const made = pattern(text);
    if (!made) throw new Error(`${option}: ${text} is not a MAC address or its beginning`);
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

/** Which machines may be discovered. An empty allow list allows all; the deny list takes precedence. Throws an Error for the operator. */
export function macLists(options: MacListOptions): MacLists {
  const allowed = patterns('[pxe_filter]allow_macs', options['pxe_filter.allow_macs']);
  const denied = patterns('[pxe_filter]deny_macs', options['pxe_filter.deny_macs']);
  return {
    isAllowed: (mac) => allowed.length === 0 || allowed.some((candidate) => candidate.test(mac)),
    isDenied: (mac) => denied.some((candidate) => candidate.test(mac)),
  };
}
