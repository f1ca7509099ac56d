/** TLS of the web servers of images and other files, by the options of [DEFAULT]. */
import { buildConnector } from 'undici';
import { connectorWithFiles } from './http-agent';
import { LEAST_TLS, readAuthorities, verifies, type TlsVersion } from './authorities';

export interface WebServerOptions {
  /** True or nothing (the system's authorities), false (no verification), or a file or folder of authorities. */
  readonly 'DEFAULT.webserver_verify_ca': string;
  readonly 'DEFAULT.webserver_tls_minimum_version': TlsVersion;
}
interface WebServerTls {
  readonly rejectUnauthorized?: boolean;
  /** PEM texts of authorities that replace those of the system. */
  readonly ca?: string[];
  readonly minVersion: (typeof LEAST_TLS)[TlsVersion];
}
/**
 * @param option names the path in the error
 * @throws Error when the path cannot be read
 */
export async function webServerTls(options: WebServerOptions, option = '[DEFAULT]webserver_verify_ca'): Promise<WebServerTls> {
  const { 'DEFAULT.webserver_verify_ca': verifyCa, 'DEFAULT.webserver_tls_minimum_version': least } = options;
  const minVersion = LEAST_TLS[least];
  const verified = withoutFiles(verifyCa);
  if (verified !== undefined) return { rejectUnauthorized: verified, minVersion };
  const ca = await readAuthorities(verifyCa, /(?:)/).catch((error: unknown) => {
    // Without a cause: reports of failed connections show the innermost message, which does not name the option.
    throw new Error(`${option}: cannot read ${verifyCa}: ${(error as Error).message}`);
  });
  return { ca: [...ca], minVersion };
}
const withoutFiles = (verifyCa: string): boolean | undefined => (verifyCa.trim() === '' ? true : verifies(verifyCa));

/** The connector for undici. @param option names a path of authorities that cannot be read */
export function webServerConnector(options: WebServerOptions, timeoutMs: number, option?: string): buildConnector.connector {
  const verified = withoutFiles(options['DEFAULT.webserver_verify_ca']);
  const minVersion = LEAST_TLS[options['DEFAULT.webserver_tls_minimum_version']];
  const common = { timeout: timeoutMs, rejectUnauthorized: verified ?? true, minVersion };
  return verified === undefined ? connectorWithFiles(common, () => webServerTls(options, option)) : buildConnector(common);
}
