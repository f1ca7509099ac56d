/** Credentials in URLs. Only the server of the URL may see them, never logs, responses or errors. */

export interface Credentials {
  readonly username: string;
  readonly password: string;
}
/** Scheme, then credentials. For http, a backslash ends the authority as a slash does (WHATWG URL, "relative slash state"). */
const PARTS = /^([a-z][a-z\d+.-]*:\/\/)([^/?#\\]*)@/i;

/** Credentials of URLs within a text, which may be JSON. */
const IN_TEXT = /(:\/\/)[^\s/?#"'<>\\]+@/g;
export const withoutUrlCredentials = (text: string): string => (text.includes('@') ? text.replace(IN_TEXT, '$1') : text);

export const withoutCredentials = (url: string): string => url.replace(PARTS, '$1');

/** Undefined: the URL has no credentials. */
export function credentialsOf(url: string): Credentials | undefined {
  const userInfo = PARTS.exec(url)?.[2];
  if (userInfo === undefined || userInfo === '') return undefined;
  const [username, password] = userInfo.split(/:(.*)/s, 2).map(decoded) as [string, string?];
  return { username, password: password ?? '' };
}
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that does not start an escape is literal.
    return text;
  }
}

/** The header of HTTP basic authentication (RFC 7617); no header without credentials. */
export const basicAuthorization = (credentials: Credentials | undefined): Readonly<Record<string, string>> =>
  credentials ? { authorization: `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}` } : {};
