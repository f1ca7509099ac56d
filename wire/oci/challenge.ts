/** Challenges of registries (RFC 9110 §11.6.1), and the request for a token that one asks for. */

export interface Challenge {
  /** In lower case. */
  readonly scheme: string;
  readonly realm: string;
  readonly service: string;
}
const MAX_HEADER = 4096;
const PARAMETER = /\b([a-z]{1,32})="([^"]{0,2048})"/gi;

/** The challenges of `WWW-Authenticate`. Each header has one. */
export const challengesOf = (header: string | readonly string[] | undefined): readonly Challenge[] =>
  [header ?? []].flat().flatMap((text: string) => {
    const scheme = text.length > MAX_HEADER ? undefined : /^\s{0,8}([a-z]+)\s/i.exec(text)?.[1];
    if (scheme === undefined) return [];
    const found = new Map([...text.matchAll(PARAMETER)].map(([, name, value]) => [name!.toLowerCase(), value!] as const));
    return [{ scheme: scheme.toLowerCase(), realm: found.get('realm') ?? '', service: found.get('service') ?? '' }];
  });

/**
 * The URL of the token server with service and scope. Undefined: the realm is no URL to which a login may be sent.
 * @param permitsPlain the registry itself is reached without TLS
 */
export function tokenUrl({ realm, service }: Challenge, scope: string, permitsPlain: boolean): string | undefined {
  if (!URL.canParse(realm)) return undefined;
  const url = new URL(realm);
  if (url.protocol !== 'https:' && !(permitsPlain && url.protocol === 'http:')) return undefined;
  if (url.username !== '' || url.password !== '') return undefined;
  if (service !== '') url.searchParams.set('service', service);
  url.searchParams.set('scope', scope);
  return url.href;
}
