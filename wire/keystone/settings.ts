/** keystoneauth's options of a section (`[keystone_authtoken]` and the like) as settings of a session. */
import { withoutEndSlashes } from '../urls';

/** By ID, or by name. */
type Named = { readonly id: string } | { readonly name: string };
/** A name of a user or a project is unique in its domain only. */
export type NamedInDomain = { readonly id: string } | { readonly name: string; readonly domain: Named };

export type Credentials =
  | { readonly method: 'password'; readonly user: NamedInDomain; readonly password: string }
  | { readonly method: 'token'; readonly token: string }
  | { readonly method: 'application_credential'; readonly id: string; readonly secret: string }
  | { readonly method: 'application_credential'; readonly name: string; readonly user: NamedInDomain; readonly secret: string };
export type Scope =
  | { readonly project: NamedInDomain }
  | { readonly domain: Named }
  | { readonly system: true }
  | { readonly trust: string };

export interface TlsSettings {
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly keyFile: string | null;
  readonly insecure: boolean;
}
export interface KeystoneSettings {
  /** The section of the configuration, for messages. */
  readonly section: string;
  /** Without a slash at the end and without a version. */
  readonly authUrl: string;
  readonly credentials: Credentials;
  /** Absent: the token has no scope, or that of the application credential. */
  readonly scope?: Scope | undefined;
  readonly tls: TlsSettings;
}

/** The options cannot be used. The message names the option, and is for the operator. */
export class SettingsError extends Error {}

/** `password` and `token` also read `default_domain_id` and `default_domain_name`. */
const AUTH_TYPES: Readonly<Record<string, { readonly method: Credentials['method']; readonly hasDefaultDomain: boolean }>> = {
  password: { method: 'password', hasDefaultDomain: true },
  v3password: { method: 'password', hasDefaultDomain: false },
  token: { method: 'token', hasDefaultDomain: true },
  v3token: { method: 'token', hasDefaultDomain: false },
  v3applicationcredential: { method: 'application_credential', hasDefaultDomain: false },
};

/** URL of the API's root: endpoints in catalogs and options may end with a version. */
export function withoutVersion(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + withoutEndSlashes(pathname).replace(/\/v[23](?:\.\d{1,3})?$/, '');
}

/** What is wrong with a URL; undefined: nothing. */
function urlProblem(url: string): string | undefined {
  if (!URL.canParse(url)) return 'it is not a URL';
  const { protocol, username, password } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') return 'it is neither http:// nor https://';
  return username === '' && password === '' ? undefined : 'it contains a user name or a password';
}

/** Reads the options of one section. */
function readerOf(values: object, section: string) {
  const options = values as Readonly<Record<string, unknown>>;
  const text = (name: string): string | undefined => {
    const value = options[`${section}.${name}`];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const fail = (name: string, problem: string): never => {
    throw new SettingsError(`[${section}]${name}: ${problem}`);
  };
  return {
    text,
    isTrue: (name: string): boolean => options[`${section}.${name}`] === true,
    section,
    fail,
    demand: (name: string, purpose: string): string => text(name) ?? fail(name, `it is not set; ${purpose}`),
    /** The first ID or name that is set. */
    named: (...prefixes: readonly string[]): Named | undefined => {
      for (const prefix of prefixes) {
        const [id, name] = [text(`${prefix}_id`), text(`${prefix}_name`)];
        if (id !== undefined) return { id };
        if (name !== undefined) return { name };
      }
      return undefined;
    },
  };
}
type Reader = ReturnType<typeof readerOf>;

function inDomain(reader: Reader, option: string, name: string, prefixes: readonly string[]): NamedInDomain {
  const domain = reader.named(...prefixes) ?? reader.fail(option, `a name needs ${prefixes[0]}_name or ${prefixes[0]}_id`);
  return { name, domain };
}
function userOf(reader: Reader, domains: readonly string[]): NamedInDomain {
  const id = reader.text('user_id');
  return id === undefined ? inDomain(reader, 'username', reader.demand('username', 'or user_id'), ['user_domain', ...domains]) : { id };
}
function credentialsOf(reader: Reader, method: Credentials['method'], domains: readonly string[]): Credentials {
  switch (method) {
    case 'password':
      return { method, user: userOf(reader, domains), password: reader.demand('password', 'auth_type needs it') };
    case 'token':
      return { method, token: reader.demand('token', 'auth_type needs it') };
    case 'application_credential': {
      const secret = reader.demand('application_credential_secret', 'auth_type needs it');
      const id = reader.text('application_credential_id');
      if (id !== undefined) return { method, id, secret };
      const name =
        reader.text('application_credential_name') ??
        reader.fail('application_credential_id', 'it is not set; or application_credential_name');
      return { method, name, user: userOf(reader, domains), secret };
    }
  }
}
function scopeOf(reader: Reader, domains: readonly string[]): Scope | undefined {
  const [projectId, projectName, trust] = [reader.text('project_id'), reader.text('project_name'), reader.text('trust_id')];
  const domain = reader.named('domain');
  const hasProject = projectId !== undefined || projectName !== undefined;
  const system = reader.text('system_scope');
  if (system !== undefined && system !== 'all') reader.fail('system_scope', 'it must be all, or absent');
  const isSystem = system !== undefined;
  if ([hasProject, domain !== undefined, isSystem, trust !== undefined].filter(Boolean).length > 1)
    reader.fail('project_name', 'only one of project, domain, system_scope and trust_id can be the scope');
  if (projectId !== undefined) return { project: { id: projectId } };
  if (projectName !== undefined) return { project: inDomain(reader, 'project_name', projectName, ['project_domain', ...domains]) };
  if (domain) return { domain };
  if (isSystem) return { system: true };
  return trust === undefined ? undefined : { trust };
}

/** Reads the section itself, or the one that its `auth_section` names. Throws SettingsError. */
function authReader(options: object, section: string): Reader {
  const reader = readerOf(options, section);
  const other = reader.text('auth_section') ?? section;
  if (!Object.hasOwn(options, `${other}.auth_type`))
    reader.fail('auth_section', `this program knows no section [${other}] with such options`);
  return readerOf(options, other);
}

export function tlsSettings(options: object, section: string): TlsSettings {
  const { text, isTrue } = readerOf(options, section);
  return {
    caFile: text('cafile') ?? null,
    certFile: text('certfile') ?? null,
    keyFile: text('keyfile') ?? null,
    insecure: isTrue('insecure'),
  };
}

type ServiceAuthType =
  | { readonly type: 'none' }
  | { readonly type: 'http_basic'; readonly username: string; readonly password: string }
  | { readonly type: 'keystone' };
/**
 * How this program authenticates to a service. Without `auth_type` it does not.
 * @throws SettingsError
 */
export function serviceAuthType(options: object, section: string): ServiceAuthType {
  const reader = authReader(options, section);
  const type = reader.text('auth_type') ?? 'none';
  if (type === 'none') return { type };
  if (type !== 'http_basic') return { type: 'keystone' };
  return { type, username: reader.demand('username', 'auth_type needs it'), password: reader.demand('password', 'auth_type needs it') };
}

/**
 * @param options `section.name` → value
 * @throws SettingsError
 */
export function keystoneSettings(options: object, section: string): KeystoneSettings {
  const reader = authReader(options, section);
  const { fail, demand } = reader;
  const authUrl = demand('auth_url', 'this program authenticates there');
  const problem = urlProblem(authUrl);
  if (problem !== undefined) fail('auth_url', problem);
  const type = demand('auth_type', `it must be one of ${Object.keys(AUTH_TYPES).join(', ')}`);
  const known = Object.hasOwn(AUTH_TYPES, type) ? AUTH_TYPES[type] : undefined;
  if (!known) return fail('auth_type', `"${type}" is not supported; it must be one of ${Object.keys(AUTH_TYPES).join(', ')}`);
  const domains = known.hasDefaultDomain ? ['default_domain'] : [];
  const scope = scopeOf(reader, domains);
  if (known.method === 'application_credential' && scope) fail('project_name', 'an application credential has a scope of its own');
  return {
    section: reader.section,
    authUrl: withoutVersion(authUrl),
    credentials: credentialsOf(reader, known.method, domains),
    scope,
    tls: tlsSettings(options, section),
  };
}
