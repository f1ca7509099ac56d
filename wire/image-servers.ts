/** The login of this program and its agents at the web servers of images, as [deploy]image_server_… says. */

interface Login {
  readonly username: string;
  readonly password: string;
}
export interface ImageServerOptions {
  readonly 'deploy.image_server_auth_strategy': string;
  readonly 'deploy.image_server_user': string | null;
  readonly 'deploy.image_server_password': string | null;
  readonly 'deploy.image_server_auth_hosts': readonly string[];
  readonly 'deploy.image_server_auth_permit_unknown_hosts': boolean;
}

/** Whether the list has this host. A name that begins with a dot stands for every host of that domain. The port does not matter. */
const isNamed = (host: string, names: readonly string[]): boolean =>
  names.some((name) => {
    const known = name.toLowerCase();
    return known.startsWith('.') ? host.endsWith(known) : host === known;
  });

/** Programs disagree about where the host of a URL with these characters begins or ends, so such a URL gets no login. */
const AMBIGUOUS = /[\\\s\p{Cc}]/u;

/** The missing options of the login. */
const missingOf = (options: ImageServerOptions): readonly string[] =>
  (['image_server_user', 'image_server_password'] as const).filter((name) => !options[`deploy.${name}`]);
/**
 * Checks the options at the start.
 * @returns warnings for the operator
 * @throws Error when user name or password is missing
 */
export function checkImageServerLogin(options: ImageServerOptions): readonly string[] {
  const missing = missingOf(options).map((name) => `[deploy]${name}`);
  // Registries of containers get the login whatever the strategy is.
  if (options['deploy.image_server_auth_strategy'] !== 'http_basic' && missing.length > 0) return [];
  if (missing.length > 0) throw new Error(`[deploy]image_server_auth_strategy = http_basic needs ${missing.join(' and ')}`);
  return options['deploy.image_server_auth_hosts'].length === 0 && options['deploy.image_server_auth_permit_unknown_hosts']
    ? ['every host that a user names for an image gets the login of [deploy]image_server_user: name the hosts in image_server_auth_hosts']
    : [];
}

/** Whether the host of this URL may have the login, by the options about hosts alone. */
export function isAuthHostPermitted(href: string, options: ImageServerOptions): boolean {
  if (AMBIGUOUS.test(href) || !URL.canParse(href)) return false;
  const hosts = options['deploy.image_server_auth_hosts'];
  const host = new URL(href).hostname.replace(/^\[(.*)\]$/, '$1');
  return hosts.length === 0 ? options['deploy.image_server_auth_permit_unknown_hosts'] : isNamed(host, hosts);
}

/**
 * Undefined: the host gets none.
 * @throws Error when user name or password is missing
 */
export function imageServerLogin(href: string, options: ImageServerOptions): Login | undefined {
  if (options['deploy.image_server_auth_strategy'] !== 'http_basic' || !/^https?:/i.test(href)) return undefined;
  if (!isAuthHostPermitted(href, options)) return undefined;
  const { 'deploy.image_server_user': username, 'deploy.image_server_password': password } = options;
  if (username && password) return { username, password };
  const missing = missingOf(options).map((name) => `'${name}'`);
  throw new Error(`Missing [${missing.join(', ')}] fields from HTTP(S) basic auth config`);
}
