/** HTTP servers with or without TLS. The certificate is replaced when its files change, without ending a connection. */
import { readFileSync, statSync } from 'node:fs';
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { watchFiles, type FileWatch } from '../watch-files';
import { limitClients, type ClientLimits } from './client-limits';
import { answerUpgrades, type UpgradeListener } from './upgrades';
import { expectProxyHeaders } from './proxy-protocol';
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContextOptions, type TlsOptions } from 'node:tls';

type TlsVersion = 'TLSv1.2' | 'TLSv1.3';
/** A file, and the option that names it, for error messages. */
interface TlsFile {
  readonly option: string;
  readonly path: string;
}
export interface TlsSettings {
  readonly cert: TlsFile;
  readonly key: TlsFile;
  /** Present: clients need a certificate of this authority. */
  readonly ca?: TlsFile | undefined;
  readonly minVersion: TlsVersion;
  readonly maxVersion: TlsVersion;
  /** OpenSSL's cipher list. Absent: Node's default. */
  readonly ciphers?: string | undefined;
  /** For the message about a file of the certificate that does not exist. */
  readonly howToMake?: string;
}
interface TlsLog {
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** Bytes. A larger file is not a certificate. */
const MAX_FILE = 4 * 2 ** 20;
const HANDSHAKE_TIMEOUT_MS = 10_000;

function read({ option, path }: TlsFile, howToMake?: string): Buffer {
  try {
    if (statSync(path).size > MAX_FILE) throw new Error('the file is too large');
    return readFileSync(path);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const hint = isMissing && howToMake !== undefined ? `. ${howToMake}` : '';
    throw new Error(`${option}: cannot read ${path}: ${(error as Error).message}${hint}`, { cause: error });
  }
}

/** OpenSSL's cipher lists have names of TLS 1.2 only. Node would disable TLS 1.3 if the list has none of its ciphers. */
const withTls13 = (ciphers: string): string =>
  /(?:^|:)TLS_/.test(ciphers) ? ciphers : `TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:${ciphers}`;

/** @throws Error for the operator, for files that cannot be used */
export function tlsContextOf({ cert, key, ca, minVersion, maxVersion, ciphers, howToMake }: TlsSettings): SecureContextOptions {
  const context: SecureContextOptions = {
    cert: read(cert, howToMake),
    key: read(key, howToMake),
    ...(ca ? { ca: read(ca) } : {}),
    minVersion,
    maxVersion,
    ...(ciphers === undefined ? {} : { ciphers: withTls13(ciphers) }),
  };
  try {
    createSecureContext(context);
  } catch (error) {
    const ending = ciphers === undefined ? '' : ', or OpenSSL does not know the ciphers';
    throw new Error(
      `${cert.option} ${cert.path} and ${key.option} ${key.path} are not a certificate in PEM and its private key${ending}: ${(error as Error).message}`,
      { cause: error },
    );
  }
  return context;
}

const serverOptions = (settings: TlsSettings): TlsOptions => ({
  ...tlsContextOf(settings),
  ...(settings.ca ? { requestCert: true, rejectUnauthorized: true } : {}),
  handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
});

/** Connections that are open keep the certificate that they began with. */
function watchTls(server: TlsServer, settings: TlsSettings, log: TlsLog): FileWatch {
  const files = [settings.cert, settings.key, ...(settings.ca ? [settings.ca] : [])];
  return watchFiles(
    files.map(({ path }) => path),
    () => {
      const fields = { file: settings.cert.path };
      try {
        server.setSecureContext(tlsContextOf(settings));
        log.info('the certificate was read again', fields);
      } catch (error) {
        log.error('the new certificate cannot be used; the previous one stays in use', { ...fields, error: (error as Error).message });
      }
    },
  );
}

export interface HttpOptions extends ServerOptions {
  /** Each connection begins with a header of the PROXY protocol. Only without TLS. */
  readonly expectsProxyHeaders?: boolean;
}
export interface HttpServer {
  readonly server: Server;
  readonly scheme: 'http' | 'https';
  /** Reads the files of TLS now. Files that cannot be used change nothing, and are logged. */
  reload(): void;
  /** Call it at most once. */
  upgrade(listener: UpgradeListener): void;
  /** Accepts no more connections. Running responses have `graceMs` to end. */
  close(graceMs: number): Promise<void>;
}
/**
 * @param tls absent: without TLS
 * @throws Error for the operator, for files that cannot be used
 */
export function createHttpServer(
  { expectsProxyHeaders = false, ...options }: HttpOptions,
  tls: TlsSettings | undefined,
  limits: ClientLimits,
  log: TlsLog,
  listener: RequestListener,
): HttpServer {
  const secure = tls && createTlsServer({ ...options, ...serverOptions(tls) });
  const watch = secure && watchTls(secure, tls, log);
  const server = secure ?? createServer(options);
  limitClients(server, limits, listener, log);
  if (expectsProxyHeaders) expectProxyHeaders(server);
  // All connections; the server itself knows them only after their TLS handshake.
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    // upgrades.ts emits the event again for a connection that it returns to the server.
    if (sockets.has(socket)) return;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return {
    server,
    scheme: secure ? 'https' : 'http',
    reload: () => watch?.reload(),
    upgrade: (upgradeListener) => answerUpgrades(server, secure ? 'secureConnection' : 'connection', upgradeListener),
    close: async (graceMs) => {
      watch?.stop();
      const closed = new Promise<void>((done) => server.close(() => done()));
      server.closeIdleConnections();
      const late = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed;
      clearTimeout(late);
    },
  };
}
