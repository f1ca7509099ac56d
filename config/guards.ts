import { formatOptionName } from './names';

/**
 * Ironic's security options that have no effect here. An operator who sets one relies on it, so the server does not start:
 * with a mere warning, it would be more open than its configuration says. An option that gets an effect moves to `options.ts`.
 */
interface GuardRow {
  readonly section: string;
  /** Absent: every option of the section. */
  readonly name?: string;
  /** Values, as `normal` returns them, that ask for what this program does anyway. */
  readonly harmless?: readonly string[];
  /** What to do instead, for the operator. */
  readonly instead: string;
}

const NO_REMOTE = 'write the rule itself: rules that ask another server (http:, https:) are refused';
const NODE_TLS = 'set the limit for the whole process: NODE_OPTIONS with --tls-min-v1.3 or --tls-cipher-list';
const SIGNED = 'calls between processes are signed and never listen on a socket file';

// One row per line, so that the columns are easy to read.
// prettier-ignore
export const GUARDED_OPTIONS: readonly GuardRow[] = [
  // Authentication.
  { section: 'keystone_authtoken', name: 'delay_auth_decision', harmless: ['false'], instead: 'requests without a valid token are refused' },
  { section: 'keystone_authtoken', name: 'enforce_token_bind', harmless: ['permissive', 'disabled', 'strict'], instead: 'Keystone issues no bound tokens any more' },
  { section: 'json_rpc', name: 'unix_socket', instead: SIGNED },
  { section: 'json_rpc', name: 'unix_socket_mode', instead: SIGNED },
  // Policy.
  { section: 'oslo_policy', name: 'remote_ssl_verify_server_crt', harmless: ['false'], instead: NO_REMOTE },
  { section: 'oslo_policy', name: 'remote_ssl_ca_crt_file', instead: NO_REMOTE },
  { section: 'oslo_policy', name: 'remote_ssl_client_crt_file', instead: NO_REMOTE },
  { section: 'oslo_policy', name: 'remote_ssl_client_key_file', instead: NO_REMOTE },
  // Verification of servers that this one calls.
  { section: 'DEFAULT', name: 'webserver_tls_ciphers', instead: NODE_TLS },
  { section: 'agent', name: 'tls_ciphers', instead: NODE_TLS },
  { section: 'json_rpc', name: 'tls_min_version', harmless: ['1.2', 'tls1.2'], instead: 'set [json_rpc]server_tls_minimum_version on the conductors' },
  { section: 'json_rpc', name: 'tls_ciphers', instead: 'set [json_rpc]server_tls_ciphers on the conductors' },
  { section: 'json_rpc', name: 'certfile', instead: 'callers prove themselves by the signature of each call, not by a certificate' },
  { section: 'json_rpc', name: 'keyfile', instead: 'callers prove themselves by the signature of each call, not by a certificate' },
  ...['neutron', 'glance', 'swift', 'cinder', 'nova', 'service_catalog'].flatMap((section) => [
    { section, name: 'tls_min_version', harmless: ['1.2'], instead: NODE_TLS },
    { section, name: 'tls_ciphers', instead: NODE_TLS },
  ]),
  // What may be enrolled, deployed and run.
  { section: 'api', name: 'disallowed_enrollment_boot_modes', instead: 'use [conductor]disallowed_deployment_boot_modes' },
  { section: 'api', name: 'network_data_schema', harmless: ['$pybasedir/api/controllers/v1/network-data-schema.json'], instead: "network data is checked by Ironic's own schema" },
];

const WORDS: Readonly<Record<string, string>> = { '1': 'true', on: 'true', yes: 'true', '0': 'false', off: 'false', no: 'false' };
/** The normal form of a value: lists in any order, and all words for true or false, become equal. */
const normal = (value: string): string => {
  const items = value.split(/[,\n]/).map((item) => item.trim().toLowerCase());
  return items.length === 1 ? (WORDS[items[0]!] ?? items[0]!) : [...new Set(items.filter((item) => item !== ''))].sort().join(',');
};

/** An option as a file or a variable gives it. */
export interface GivenOption {
  /** `section.name`. */
  readonly key: string;
  readonly value: string;
  /** File and line, or variable. */
  readonly from: string;
}
/** What to do instead of an option that stops the start. Null: the value is harmless. Undefined: the table does not have the option. */
export function adviceFor({ key, value }: GivenOption): string | null | undefined {
  const [section, name] = [key.slice(0, key.indexOf('.')), key.slice(key.indexOf('.') + 1)];
  const row = GUARDED_OPTIONS.find((guard) => guard.section === section && (guard.name === undefined || guard.name === name));
  if (!row) return undefined;
  return value.trim() === '' || row.harmless?.includes(normal(value)) ? null : row.instead;
}
/** One line for each guarded option whose value is not harmless. */
export function refusalsOf(given: readonly GivenOption[]): readonly string[] {
  return given.flatMap((option) => {
    const instead = adviceFor(option);
    if (typeof instead !== 'string') return [];
    return [
      `${option.from}: option ${formatOptionName(option.key)} is a security option that has no effect here: remove it. Instead: ${instead}`,
    ];
  });
}
