/** Which files and which versions of TLS a listener uses, by the options of its section. */
import type { TlsSettings } from '../wire/http/listener-tls';
import { writtenName } from './names';
import type { LoadedOptions } from './options';

type Section = 'api' | 'boot' | 'json_rpc' | 'metrics';
/** TLS options that exclude each other, or that lack a file. The message is for the operator. */
class TlsOptionsError extends Error {}

/** What makes a certificate for a try, or for a network that trusts it explicitly. */
const HOW_TO_MAKE =
  'To make a self-signed certificate: openssl req -x509 -newkey rsa:3072 -nodes -days 825 -subj /CN=HOST -addext subjectAltName=DNS:HOST ' +
  '-keyout key.pem -out cert.pem';

const VERSIONS: Readonly<Record<'1.2' | '1.3', TlsSettings['minVersion']>> = { '1.2': 'TLSv1.2', '1.3': 'TLSv1.3' };

const SWITCHES = {
  api: 'api.enable_ssl_api',
  boot: 'boot.http_use_ssl',
  json_rpc: 'json_rpc.use_ssl',
  metrics: 'metrics.prometheus_use_ssl',
} as const;

type OfSection = 'cert_file' | 'key_file' | 'server_tls_minimum_version' | 'server_tls_ciphers';
type TlsOptions = Pick<
  LoadedOptions,
  (typeof SWITCHES)[Section] | `${Section}.${OfSection}` | 'ssl.cert_file' | 'ssl.key_file' | 'ssl.ca_file' | 'ssl.version' | 'ssl.ciphers'
>;

/** As in Ironic, the files of [ssl] count where the section itself does not name both. */
function filesOf(options: TlsOptions, section: Section): Pick<TlsSettings, 'cert' | 'key'> {
  for (const from of [section, 'ssl'] as const) {
    const [cert, key] = [options[`${from}.cert_file`], options[`${from}.key_file`]];
    if (cert !== null && key !== null)
      return { cert: { option: `[${from}]cert_file`, path: cert }, key: { option: `[${from}]key_file`, path: key } };
  }
  throw new TlsOptionsError(`${writtenName(SWITCHES[section])} needs [${section}]cert_file and [${section}]key_file. ${HOW_TO_MAKE}`);
}

/** oslo.service's [ssl]version: `SSLv23` leaves the choice to client and server, other names are one version each. */
function versionsOf(options: TlsOptions, section: Section): Pick<TlsSettings, 'minVersion' | 'maxVersion'> {
  const least = options[`${section}.server_tls_minimum_version`];
  const only = options['ssl.version']?.toLowerCase();
  if (only === undefined || only === 'sslv23') return { minVersion: VERSIONS[least], maxVersion: 'TLSv1.3' };
  if (only !== 'tlsv1_2')
    throw new TlsOptionsError(
      `[ssl]version = ${options['ssl.version']!}: this version is not secure; use TLSv1_2, or leave the option out`,
    );
  if (least === '1.3')
    throw new TlsOptionsError(
      `[ssl]version = TLSv1_2 and [${section}]server_tls_minimum_version = 1.3 exclude each other: ` +
        `remove [ssl]version, or set [${section}]server_tls_minimum_version = 1.2`,
    );
  return { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' };
}

/**
 * @returns undefined where the section has no TLS
 * @throws TlsOptionsError
 */
export function tlsOf(options: TlsOptions, section: Section): TlsSettings | undefined {
  if (!options[SWITCHES[section]]) return undefined;
  const ca = section === 'api' ? options['ssl.ca_file'] : null;
  const ciphers = options[`${section}.server_tls_ciphers`] ?? options['ssl.ciphers'];
  return {
    ...filesOf(options, section),
    ...(ca === null ? {} : { ca: { option: '[ssl]ca_file', path: ca } }),
    ...versionsOf(options, section),
    ...(ciphers === null ? {} : { ciphers }),
  };
}
