/** URLs that people give: a name and a password in one are for its server alone, never for logs, answers and errors. */

export interface Credentials {
  readonly username: string;
  readonly password: string;
}
const PARTS = /^([a-z][a-z\d+.-]*:\/\/)([^/?#]*)@/i;

export const withoutCredentials = (url: string): string => url.replace(PARTS, '$1');

/** Undefined: there are none. */
export function credentialsOf(url: string): Credentials | undefined {
  const said = PARTS.exec(url)?.[2];
  if (said === undefined || said === '') return undefined;
  const [username, password] = said.split(/:(.*)/s, 2).map(decoded) as [string, string?];
  return { username, password: password ?? '' };
}
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that begins no escape stands for itself.
    return text;
  }
}

/** The header of HTTP's basic authentication (RFC 7617); none without credentials. */
export const basicAuthorization = (credentials: Credentials | undefined): Readonly<Record<string, string>> =>
  credentials ? { authorization: `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}` } : {};
