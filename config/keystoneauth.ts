/**
 * keystoneauth's options, which each section of a service has: how this program authenticates, and how it connects.
 * The rows have no section: `inSection` adds it.
 */
interface SectionlessRow {
  readonly name: string;
  /** Former names in the same section. */
  readonly formerly?: readonly string[];
}

/** Rows of one section of `OPTIONS`. */
export const inSection = <const S extends string, const R extends readonly SectionlessRow[]>(section: S, rows: R) =>
  rows.map((row) => ({
    ...row,
    section,
    formerly: row.formerly?.map((former) => `${section}.${former}`),
  })) as unknown as {
    readonly [K in keyof R]: R[K] & { readonly section: S };
  };

// prettier-ignore
export const AUTH_ROWS = [
  { name: 'auth_type', kind: 'string', default: null, formerly: ['auth_plugin'], help: 'How this program authenticates to Keystone: password, v3password, token, v3token or v3applicationcredential. For other services also none and http_basic (endpoint_override, username, password).' },
  { name: 'auth_section', kind: 'string', default: null, help: 'Another section whose options for authentication are used instead: keystone_authtoken or that of a service.' },
  { name: 'auth_url', kind: 'string', default: null, help: 'URL of the Identity API, with or without its version.' },
  { name: 'username', kind: 'string', default: null, formerly: ['user_name', 'user-name'], help: 'Name of the user.' },
  { name: 'user_id', kind: 'string', default: null, help: 'ID of the user, instead of username.' },
  { name: 'user_domain_name', kind: 'string', default: null, help: 'Name of the domain of the user.' },
  { name: 'user_domain_id', kind: 'string', default: null, help: 'ID of the domain of the user.' },
  { name: 'password', kind: 'string', default: null, secret: true, help: 'Password of the user.' },
  { name: 'token', kind: 'string', default: null, secret: true, help: 'Token for auth_type token and v3token. It is exchanged for another one with the scope of these options.' },
  { name: 'application_credential_id', kind: 'string', default: null, help: 'ID of an application credential.' },
  { name: 'application_credential_name', kind: 'string', default: null, help: 'Name of an application credential, with the user that it belongs to.' },
  { name: 'application_credential_secret', kind: 'string', default: null, secret: true, help: 'Secret of the application credential.' },
  { name: 'project_name', kind: 'string', default: null, formerly: ['tenant_name', 'tenant-name'], help: 'Name of the project of the scope.' },
  { name: 'project_id', kind: 'string', default: null, formerly: ['tenant_id', 'tenant-id'], help: 'ID of the project of the scope, instead of project_name.' },
  { name: 'project_domain_name', kind: 'string', default: null, help: 'Name of the domain of the project.' },
  { name: 'project_domain_id', kind: 'string', default: null, help: 'ID of the domain of the project.' },
  { name: 'domain_name', kind: 'string', default: null, help: 'Name of the domain of the scope.' },
  { name: 'domain_id', kind: 'string', default: null, help: 'ID of the domain of the scope.' },
  { name: 'system_scope', kind: 'string', default: null, choices: ['all'], help: 'The scope is the whole system.' },
  { name: 'trust_id', kind: 'string', default: null, help: 'ID of the trust of the scope.' },
  { name: 'default_domain_name', kind: 'string', default: null, help: 'Name of the domain of user and project, if they have no option of their own (auth_type password and token).' },
  { name: 'default_domain_id', kind: 'string', default: null, help: 'ID of the domain of user and project, if they have no option of their own (auth_type password and token).' },
] as const;

// prettier-ignore
export const TLS_ROWS = [
  { name: 'cafile', kind: 'string', default: null, help: 'CA certificates for verifying the service, PEM. Read for each connection. Default: those of the system.' },
  { name: 'certfile', kind: 'string', default: null, help: 'Client certificate, PEM.' },
  { name: 'keyfile', kind: 'string', default: null, help: 'Private key of that certificate, PEM. Default: certfile contains it.' },
  { name: 'insecure', kind: 'boolean', default: false, help: 'Do not verify the certificate of the service.' },
] as const;

/** How this program finds a service's endpoint and sends requests. `service_type` and `endpoint_override` are rows of the sections. */
// prettier-ignore
export const ADAPTER_ROWS = [
  { name: 'service_name', kind: 'string', default: null, help: 'Name of the service in the catalog. Default: any.' },
  { name: 'region_name', kind: 'string', default: null, help: 'Region of the service in the catalog. Default: any.' },
  { name: 'valid_interfaces', kind: 'list', default: ['internal', 'public'], formerly: ['interface'], help: 'Interfaces of the service in the catalog, in order of preference: public, internal, admin.' },
  { name: 'version', kind: 'string', default: null, help: 'Accepted for compatibility; no effect: this program uses one version of each API.' },
  { name: 'min_version', kind: 'string', default: null, help: 'Accepted for compatibility; no effect.' },
  { name: 'max_version', kind: 'string', default: null, help: 'Accepted for compatibility; no effect.' },
  { name: 'timeout', kind: 'number', default: null, min: 0.1, max: 3600, help: 'Seconds for one attempt of a request. Default: 60, or request_timeout of the section. (Ironic: no limit.)' },
  { name: 'connect_retries', kind: 'integer', default: null, min: 0, max: 20, help: 'Number of retries of a request whose connection failed. Default: 0.' },
  { name: 'connect_retry_delay', kind: 'number', default: null, min: 0, max: 60, help: 'Seconds before each of these retries. Default: 0.5, 1, 2 and so on.' },
  { name: 'status_code_retries', kind: 'integer', default: null, min: 0, max: 20, help: 'Number of retries after a response with one of retriable_status_codes. Default: 0.' },
  { name: 'status_code_retry_delay', kind: 'number', default: null, min: 0, max: 60, help: 'Seconds before each of these retries. Default: 0.5, 1, 2 and so on.' },
  { name: 'retriable_status_codes', kind: 'list', default: ['503'], help: 'HTTP status codes of responses after which a request is sent again (status_code_retries).' },
  { name: 'collect_timing', kind: 'boolean', default: false, help: 'Accepted for compatibility; no effect: metrics have the duration of requests.' },
  { name: 'split_loggers', kind: 'boolean', default: false, help: 'Accepted for compatibility; no effect.' },
] as const;
// prettier-ignore
export const ENDPOINT_ROWS = [
  { name: 'endpoint_override', kind: 'string', default: null, formerly: ['endpoint'], help: 'URL of the service. The catalog is not read then.' },
] as const;
