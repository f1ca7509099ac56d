/** Trust in the web servers of images and other files, as [DEFAULT]webserver_verify_ca says. */
import { buildConnector } from 'undici';
import { readAuthorities, verifies } from './authorities';

interface WebServerTls {
  readonly rejectUnauthorized?: boolean;
  /** PEM texts of authorities that replace those of the system. */
  readonly ca?: string[];
}
/**
 * @param verifyCa true or nothing (the system's authorities), false (no verification), or a file or folder of authorities
 * @throws Error when the path cannot be read
 */
export async function webServerTls(verifyCa: string): Promise<WebServerTls> {
  const verified = withoutFiles(verifyCa);
  if (verified !== undefined) return { rejectUnauthorized: verified };
  const ca = await readAuthorities(verifyCa, /(?:)/).catch((error: unknown) => {
    // Without a cause: reports of failed connections show the innermost message, which does not name the option.
    throw new Error(`[DEFAULT]webserver_verify_ca: cannot read ${verifyCa}: ${(error as Error).message}`);
  });
  return { ca: [...ca] };
}
const withoutFiles = (verifyCa: string): boolean | undefined => (verifyCa.trim() === '' ? true : verifies(verifyCa));

/** The connector for undici. Files are read for each connection, so that changes count at once. */
export function webServerConnector(verifyCa: string, timeoutMs: number): buildConnector.connector {
  const verified = withoutFiles(verifyCa);
  const common = buildConnector({ timeout: timeoutMs, rejectUnauthorized: verified ?? true });
  if (verified !== undefined) return common;
  return (target, callback) => {
    if (target.protocol !== 'https:') common(target, callback);
    else
      webServerTls(verifyCa).then(
        (tls) => buildConnector({ timeout: timeoutMs, ...tls })(target, callback),
        (error: unknown) => callback(error as Error, null),
      );
  };
}
