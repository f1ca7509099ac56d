/** Which files and which versions of TLS a listener uses, by the options of its section. */
import type { TlsSettings } from '../wire/http/listener-tls';
import { formatOptionName } from './names';
import type { LoadedOptions } from './options';

/** TLS options that exclude each other, or that lack a file. The message is for the operator. */
class TlsOptionsError extends Error {}

/** Tells how to make a certificate, for a trial or for a network that trusts it. Its names include the address, which URLs contain. */
const howToMake = (cert: string, key: string): string =>
  'To make a self-signed certificate: openssl req -x509 -newkey rsa:3072 -nodes -days 825 -subj /CN=HOST ' +
  `-addext subjectAltName=DNS:HOST,IP:ADDRESS -keyout ${key} -out ${cert}`;

const VERSIONS: Readonly<Record<'1.2' | '1.3', TlsSettings['minVersion']>> = { '1.2': 'TLSv1.2', '1.3': 'TLSv1.3' };

/** The listeners with TLS: the section of their files, and the option that switches TLS on. */
const LISTENERS = {
  api: { section: 'api', switch: 'api.enable_ssl_api' },
  boot: { section: 'boot', switch: 'boot.http_use_ssl' },
  /** The second port of HTTP boot. */
  'boot with TLS': { section: 'boot', switch: 'boot.https_port' },
  json_rpc: { section: 'json_rpc', switch: 'json_rpc.use_ssl' },
  metrics: { section: 'metrics', switch: 'metrics.prometheus_use_ssl' },
  vnc: { section: 'vnc', switch: 'vnc.enable_ssl' },
} as const;
type Listener = keyof typeof LISTENERS;
type Section = (typeof LISTENERS)[Listener]['section'];
/** The names of the version and of the ciphers begin with it. */
const PREFIXES = { api: 'server_', boot: 'server_', json_rpc: 'server_', metrics: 'server_', vnc: '' } as const satisfies Record<
  Section,
  string
>;
type Prefixed<S extends Section> = `${S}.${(typeof PREFIXES)[S]}${'tls_minimum_version' | 'tls_ciphers'}`;
type VersionOption = { [S in Section]: `${S}.${(typeof PREFIXES)[S]}tls_minimum_version` }[Section];
type CiphersOption = { [S in Section]: `${S}.${(typeof PREFIXES)[S]}tls_ciphers` }[Section];

type TlsOptions = Pick<
  LoadedOptions,
  | (typeof LISTENERS)[Listener]['switch']
  | `${Section}.${'cert_file' | 'key_file'}`
  | { [S in Section]: Prefixed<S> }[Section]
  | 'ssl.cert_file'
  | 'ssl.key_file'
  | 'ssl.ca_file'
  | 'ssl.version'
  | 'ssl.ciphers'
>;

/** As in Ironic, the files of [ssl] apply if the section itself does not name both. */
function filesOf(options: TlsOptions, listener: Listener): Pick<TlsSettings, 'cert' | 'key' | 'howToMake'> {
  const { section, switch: asks } = LISTENERS[listener];
  for (const from of [section, 'ssl'] as const) {
    const [cert, key] = [options[`${from}.cert_file`], options[`${from}.key_file`]];
    if (cert !== null && key !== null)
      return {
        cert: { option: `[${from}]cert_file`, path: cert },
        key: { option: `[${from}]key_file`, path: key },
        howToMake: howToMake(cert, key),
      };
  }
  throw new TlsOptionsError(
    `${formatOptionName(asks)} needs [${section}]cert_file and [${section}]key_file. ${howToMake('cert.pem', 'key.pem')}`,
  );
}

/** oslo.service's [ssl]version: `SSLv23` leaves the choice to client and server, other names are one version each. */
function versionsOf(options: TlsOptions, section: Section): Pick<TlsSettings, 'minVersion' | 'maxVersion'> {
  const name = `${section}.${PREFIXES[section]}tls_minimum_version` as VersionOption;
  const least = options[name];
  const only = options['ssl.version']?.toLowerCase();
  if (only === undefined || only === 'sslv23') return { minVersion: VERSIONS[least], maxVersion: 'TLSv1.3' };
  if (only !== 'tlsv1_2')
    throw new TlsOptionsError(
      `[ssl]version = ${options['ssl.version']!}: this version is not secure; use TLSv1_2, or leave the option out`,
    );
  if (least === '1.3')
    throw new TlsOptionsError(
      `[ssl]version = TLSv1_2 and ${formatOptionName(name)} = 1.3 exclude each other: ` +
        `remove [ssl]version, or set ${formatOptionName(name)} = 1.2`,
    );
  return { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' };
}

/**
 * @returns undefined if the listener has no TLS
 * @throws TlsOptionsError
 */
export function tlsOf(options: TlsOptions, listener: Listener): TlsSettings | undefined {
  const { section, switch: asks } = LISTENERS[listener];
  // The option may be a port. Port 0, any free port, enables TLS too.
  if (options[asks] === false || options[asks] === null) return undefined;
  const ca = section === 'api' ? options['ssl.ca_file'] : null;
  const ciphers = options[`${section}.${PREFIXES[section]}tls_ciphers` as CiphersOption] ?? options['ssl.ciphers'];
  return {
    ...filesOf(options, listener),
    ca: ca === null ? undefined : { option: '[ssl]ca_file', path: ca },
    ...versionsOf(options, section),
    ciphers: ciphers ?? undefined,
  };
}
