/**
 * Replaces what tells of a site in the resources of a service: serial numbers, addresses, names, accounts and secrets. The same value has the
 * same replacement, in property values, in property names and in links, so the tree still works. First all resources are learned, then each
 * is rewritten.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { isObject } from '../../model/json';
import { bareHex, createKnownValues, isMacText } from './known-values';
import { GENERIC, kindOf, PLACEHOLDER, PRODUCT_NAME, VERSION_NAME } from './replace-names';
import { createReplacements, type Replaced } from './replacements';

interface Replacer {
  /** Notes the values of a resource. All resources must be learned before the first is rewritten. */
  learn(body: unknown): void;
  /** A path, or another text. */
  text(text: string): string;
  body(body: unknown): unknown;
  /** Kind → distinct values that have replacements so far. */
  summary(): Readonly<Record<string, number>>;
}
interface Options {
  /** Random bytes. */
  readonly key: Buffer;
  /** Passwords and tokens of the login: replaced wherever they stand, also encoded. */
  readonly secrets: readonly string[];
  readonly accounts: readonly string[];
  /** Names and addresses of the service. */
  readonly hosts: readonly string[];
}

interface Pattern {
  readonly kind: Replaced | 'URL';
  readonly pattern: RegExp;
}
const MAC = /(?<![0-9a-f:-])[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5}|(?:-[0-9a-f]{2}){5}|(?:%3a[0-9a-f]{2}){5})(?![0-9a-f:-])/gi;
/** Values that texts have, the first pattern before the second. */
const PATTERNS: readonly Pattern[] = [
  { kind: 'secret', pattern: /-----BEGIN [A-Z0-9 ]{1,40}-----[^-]{0,65536}(?:-----END [A-Z0-9 ]{1,40}-----)?/g },
  { kind: 'secret', pattern: /\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\w{1,20}) [A-Za-z0-9+/=]{16,}/g },
  { kind: 'secret', pattern: /\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]{0,4096})?/g },
  { kind: 'URL', pattern: /\b[a-z][a-z0-9+]{1,12}:\/\/[^\s"'<>]{1,2048}/gi },
  { kind: 'account', pattern: /[\w.+-]{1,64}@(?!odata\.|redfish\.|message\.)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}/gi },
  { kind: 'host name', pattern: /\b(?:iqn|nqn)\.\d{4}-\d{2}\.[^\s"'/]{1,224}/gi },
  { kind: 'serial number', pattern: /(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])/gi },
  // WWNs and DUIDs.
  { kind: 'serial number', pattern: /(?<![0-9a-f:-])[0-9a-f]{2}(?:(?::[0-9a-f]{2}){6,31}|(?:-[0-9a-f]{2}){6,31})(?![0-9a-f:-])/gi },
  { kind: 'MAC address', pattern: MAC },
  { kind: 'MAC address', pattern: /(?<=\bMAC\()[0-9a-f]{12}(?=\b|,)/gi },
  {
    kind: 'IP address',
    pattern: /(?<![0-9a-z:])(?:[0-9a-f]{0,4}:){2,7}(?:[0-9a-f]{1,4}|\d{1,3}(?:\.\d{1,3}){3})?(?:%\w{1,15})?(?![0-9a-z:])/gi,
  },
  { kind: 'IP address', pattern: /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d)/g },
  { kind: 'serial number', pattern: /(?<![0-9a-z])(?:0x)?[0-9a-f]{16}(?:[0-9a-f]{16})?(?![0-9a-z])/gi },
];
/** Long texts with letters and digits and without blanks are tokens and keys. */
const TOKEN: Pattern = {
  kind: 'secret',
  pattern: /(?<![\w+/=-])(?=[A-Za-z+/=_-]{0,200}\d)(?=[\d+/=_-]{0,200}[A-Za-z])[\w+/=-]{40,}(?![\w+/=-])/g,
};
const OF_TEXTS = [...PATTERNS, TOKEN];
/** Names of properties have `@` and colons of their own. */
const OF_NAMES = PATTERNS.filter(({ kind }) => kind !== 'account' && kind !== 'URL');

/** Unspecified and loopback addresses, and masks. */
const tellsNothing = (address: string): boolean => /^(?:0\.0\.0\.0|127\.|255\.)/.test(address) || /^[0:]*1?$/.test(address);
/** Hosts of standards, which links to schemas name. */
const STANDARD_HOST = /(?:^|\.)(?:dmtf\.org|redfish\.org|snia\.org|w3\.org|oasis-open\.org)$/i;
/** Some services name accounts in their links. */
const ACCOUNT_LINK = /\/Accounts\/([^/\s]{1,64})$/i;
/** Shorter secrets stand in other texts by chance. */
const SHORTEST_SECRET = 4;
const encodings = (secret: string): readonly string[] => [
  secret,
  encodeURIComponent(secret),
  Buffer.from(secret)
    .toString('base64')
    .replace(/={1,2}$/, ''),
];
/** The parts of a URL, also of one that is malformed. */
function urlParts(url: string) {
  const start = url.indexOf('://') + 3;
  const after = url.slice(start);
  const length = after.search(/[/?#]/);
  const [authority, path] = length < 0 ? [after, ''] : [after.slice(0, length), after.slice(length)];
  const at = authority.lastIndexOf('@');
  const named = authority.slice(at + 1);
  const port = /:\d{1,5}$/.exec(named)?.[0] ?? '';
  const user = at < 0 ? undefined : authority.slice(0, at);
  return { scheme: url.slice(0, start), user, host: named.slice(0, named.length - port.length), port, path };
}

/** What is learned of a service before it is rewritten. */
function createFacts() {
  const [products, versions, addresses] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const serials = new Set<string>();
  /** A SKU may name a product. A serial number does not, wherever else a service writes it. */
  const isProduct = (text: string): boolean => products.has(text) && !serials.has(text);
  const known = createKnownValues(isProduct);
  const learn = (value: unknown, name = ''): void => {
    if (Array.isArray(value)) for (const item of value) learn(item, name);
    else if (isObject(value)) for (const [below, item] of Object.entries(value)) learn(item, below);
    if (typeof value !== 'string') return;
    if (PRODUCT_NAME.test(name)) products.add(value.toLowerCase());
    if (VERSION_NAME.test(name))
      for (const [version] of value.matchAll(/(?<![\d.])\d{1,10}(?:\.\d{1,10}){3}(?![\d.])/g)) versions.add(version);
    for (const [found] of value.matchAll(MAC)) known.note('MAC address', found);
    const account = ACCOUNT_LINK.exec(value)?.[1];
    if (account !== undefined) known.note('account', account);
    const kind = kindOf(name);
    if (kind === 'serial number' && !/^sku$/i.test(name)) serials.add(value.trim().toLowerCase());
    if (kind === 'IP address') addresses.add(value);
    known.note(kind, value);
  };
  return { isProduct, versions, addresses, known, learn };
}

/** Replaces single values of a kind. */
function createValues(key: Buffer, { versions, addresses, known }: ReturnType<typeof createFacts>) {
  const replacements = createReplacements(key, (text) => known.has(text));
  const mac = (value: string): string => {
    const bare = bareHex(value);
    if (/^(?:0{12}|f{12})$/.test(bare)) return value;
    const text = replacements
      .of('MAC address', bare)
      .match(/../g)!
      .join(/%3a|[:-]/i.exec(value)?.[0] ?? '');
    return /[A-F]/.test(value.replace(/%3A/g, '')) ? text.toUpperCase() : text;
  };
  const address = (value: string): string => {
    const plain = value.replace(/%.*/, '');
    if (tellsNothing(plain) || (isIPv4(plain) && versions.has(plain) && !addresses.has(plain))) return value;
    return isIPv4(plain) || isIPv6(plain) ? replacements.of('IP address', plain) : value;
  };
  const host = (value: string): string => {
    const bare = value.replace(/^\[|\]$/g, '');
    if (isIPv4(bare) || isIPv6(bare)) return value.startsWith('[') ? `[${address(bare)}]` : address(bare);
    return bare === '' || bare.toLowerCase() === 'localhost' ? value : replacements.of('host name', bare);
  };
  const inside = (text: string, isName = false): string =>
    known.replaceIn(text, isName, (kind, value) => (kind === 'MAC address' ? mac(value) : replacements.of(kind, value)));
  const url = (value: string): string => {
    const { scheme, user, host: named, port, path } = urlParts(value);
    if (user !== undefined) replacements.count('secret', user);
    if (STANDARD_HOST.test(named)) return value;
    // Paths of other services may have tokens in them. Those of the service itself are its links.
    const own = path.length < 2 ? path : /^\/redfish(?:\/|$)/i.test(path) ? inside(path) : `/${replacements.of('file', path)}`;
    return `${scheme}${host(named)}${port}${own}`;
  };
  const one = (kind: Replaced | 'URL', value: string): string => {
    if (kind === 'URL') return url(value);
    if (kind === 'MAC address') return mac(value);
    if (kind === 'IP address') return address(value);
    return PLACEHOLDER.test(value) ? value : replacements.of(kind, value);
  };
  return { replacements, mac, address, host, one, inside };
}

export function createReplacer({ key, secrets, accounts, hosts }: Options): Replacer {
  const facts = createFacts();
  const { replacements, mac, address, host, one, inside } = createValues(key, facts);

  const written = secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .flatMap(encodings)
    .sort((left, right) => right.length - left.length);
  const withoutSecrets = (text: string): string =>
    written.reduce((left, secret) => (left.includes(secret) ? left.replaceAll(secret, replacements.of('secret', secret)) : left), text);

  /** Replaces by patterns, and known values in what is left between. */
  const scan = (text: string, [row, ...others]: readonly Pattern[], isName: boolean): string => {
    if (!row) return inside(text, isName);
    let [result, from] = ['', 0];
    for (const { index, 0: found } of text.matchAll(row.pattern)) {
      const put = one(row.kind, found);
      result += scan(text.slice(from, index), others, isName) + (put === found ? scan(found, others, isName) : put);
      from = index + found.length;
    }
    return result + scan(text.slice(from), others, isName);
  };
  const rewritten = (text: string, isName = false): string => {
    const rows = isName ? OF_NAMES : /^\/redfish\b/i.test(text) ? PATTERNS : OF_TEXTS;
    return scan(withoutSecrets(text), rows, isName);
  };
  /** The value of a property whose name tells its kind. */
  const named = (kind: Replaced, value: string): string => {
    const trimmed = value.trim();
    if (PLACEHOLDER.test(trimmed)) return value;
    if (kind === 'secret') return replacements.of('secret', value);
    if (kind !== 'account' && isMacText(trimmed)) return mac(trimmed);
    if (kind !== 'serial number' && (isIPv4(trimmed) || isIPv6(trimmed))) return address(trimmed);
    if (kind === 'MAC address' || /^[a-z]+:\/\//i.test(trimmed) || /^\/redfish\//i.test(trimmed)) return rewritten(value);
    if (kind === 'IP address')
      return /^[a-z0-9-]+(?:\.[a-z0-9-]+)+\.?$/i.test(trimmed) && /[a-z]/i.test(trimmed) ? host(trimmed) : rewritten(value);
    if (kind === 'serial number')
      return facts.isProduct(trimmed.toLowerCase()) ? value : value.replace(trimmed, () => replacements.of(kind, trimmed));
    if (GENERIC.has(trimmed.toLowerCase())) return value;
    return kind === 'host name' ? host(trimmed) : replacements.of(kind, value);
  };
  const body = (value: unknown, name = ''): unknown => {
    if (Array.isArray(value)) return value.map((item) => body(item, name));
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([below, item]) => [rewritten(below, true), body(item, below)]));
    const kind = kindOf(name);
    // Some makers give their address as their name.
    if (typeof value === 'string' && PRODUCT_NAME.test(name)) return scan(withoutSecrets(value), OF_NAMES, false);
    if (typeof value === 'string') return kind === undefined || kind === 'keep' ? rewritten(value) : withoutSecrets(named(kind, value));
    if (typeof value !== 'number') return value;
    return kind === 'serial number' ? replacements.ofNumber(value) : kind === 'secret' ? 0 : value;
  };

  for (const account of accounts) facts.known.note('account', account);
  for (const place of hosts) {
    if (isIPv4(place) || isIPv6(place)) facts.addresses.add(place);
    facts.known.note('host name', place);
  }
  return {
    learn: (value) => facts.learn(value),
    text: (text) => rewritten(text),
    body: (value) => body(value),
    summary: () => replacements.summary(),
  };
}
