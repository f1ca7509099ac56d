/** With what this program logs in at a registry: the node's pull secret, else the login of the options, else `[oci]authentication_config`. */
import { isObject, objectOf, type JsonObject } from '../../model/json';
import type { Credentials } from '../../model/urls';
import { readRegularFile } from '../authorities';
import { JSON_LIMITS, parseJson } from '../bounded-json';
import { connectionText } from '../http/connection-text';
import { isAuthHostPermitted, type ImageServerOptions } from '../image-servers';

export interface LoginOptions extends ImageServerOptions {
  /** A file as container tools have it. It is read for each login, since the operator may change it. */
  readonly 'oci.authentication_config': string | null;
}
/** The parts of a node that may have a secret. */
interface Secrets {
  readonly instance_info: JsonObject;
  readonly driver_info: JsonObject;
}

/**
 * Logins of one registry, in the order in which they are tried. Empty: the registry gets none. Undefined: nothing is configured, so that no
 * server is even asked for a token.
 */
type Logins = readonly Credentials[] | undefined;

/**
 * A secret `user:password` is one login. Any other is Ironic's: the password of an empty user. Container tools write base64 of
 * `user:password`, so a secret that is that is tried first.
 */
function loginsOf(secret: string): readonly Credentials[] {
  const pair = (text: string): Credentials => {
    const [username, password] = text.split(/:(.*)/s, 2) as [string, string];
    return { username, password };
  };
  if (secret.includes(':')) return [pair(secret)];
  const own = { username: '', password: secret };
  const decoded = /^[\w+/]+={0,2}$/.test(secret) ? Buffer.from(secret, 'base64').toString('utf8') : '';
  return /^[\x20-\x39\x3b-\x7e]+:[\x20-\x7e]+$/.test(decoded) ? [pair(decoded), own] : [own];
}

/**
 * The node's own logins, or the login of `[deploy]image_server_user` if the host may have it.
 * @param permitsUser false: for ramdisks, which are not the user's, only `driver_info` counts
 * @param registry with its port
 */
function ownLogins(registry: string, secrets: Secrets | undefined, permitsUser: boolean, options: LoginOptions): Logins {
  const secret = [permitsUser ? secrets?.instance_info : undefined, secrets?.driver_info]
    .map((info) => info?.['image_pull_secret'])
    .find((value): value is string => typeof value === 'string' && value !== '');
  if (secret !== undefined) return loginsOf(secret);
  const { 'deploy.image_server_user': username, 'deploy.image_server_password': password } = options;
  return username && password && isAuthHostPermitted(`https://${registry}/`, options) ? [{ username, password }] : undefined;
}

/**
 * Whether the login of a token server may be used for this registry. The registry gets the token: one that somebody else runs must not name the
 * token server of another, and get the images that the operator's login may read there.
 */
const isPartner = (registry: string, realmHost: string, auths: JsonObject): boolean =>
  Object.hasOwn(auths, registry) || hostOf(registry) === hostOf(realmHost);
const hostOf = (authority: string): string => authority.replace(/:\d+$/, '').toLowerCase();

/** Characters of the file. */
const MAX_FILE = 1024 * 1024;
/**
 * @param hosts the registry, then its token server
 * @throws Error that names the option
 */
async function fileLogins(path: string, hosts: readonly string[]): Promise<readonly Credentials[]> {
  try {
    const { auths } = objectOf(await parseJson(Buffer.from(await readRegularFile(path, MAX_FILE)), JSON_LIMITS.registry));
    if (!isObject(auths)) throw new Error('it has no object "auths"');
    const known = hosts.filter((host, index) => index === 0 || isPartner(hosts[0]!, host, auths));
    const secrets = known.flatMap((host) => (Object.hasOwn(auths, host) ? [objectOf(auths[host])['auth']] : []));
    const secret = secrets.find((value): value is string => typeof value === 'string' && value !== '');
    return secret === undefined ? [] : loginsOf(secret);
  } catch (error) {
    throw new Error(`[oci]authentication_config: ${connectionText(error)}`, { cause: error });
  }
}

/** Where the logins of a node come from. */
export interface LoginSource {
  readonly secrets: Secrets | undefined;
  readonly permitsUser: boolean;
  readonly options: LoginOptions;
}
/** Whether the registry is asked for a challenge at all. */
export const mayLogIn = (registry: string, { secrets, permitsUser, options }: LoginSource): boolean =>
  options['oci.authentication_config'] !== null || ownLogins(registry, secrets, permitsUser, options) !== undefined;
/**
 * @param realmHost host of the token server that the registry names; the file may have its login, too, if it also has the registry
 * @throws Error when the file cannot be read
 */
export async function loginsFor(registry: string, realmHost: string | undefined, source: LoginSource): Promise<readonly Credentials[]> {
  const own = ownLogins(registry, source.secrets, source.permitsUser, source.options);
  if (own) return own;
  const path = source.options['oci.authentication_config'];
  return path === null ? [] : fileLogins(path, realmHost === undefined ? [registry] : [registry, realmHost]);
}
