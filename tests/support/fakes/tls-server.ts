/** A web server with TLS and a certificate of its own, which is its own authority. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { ownCertificate } from '../../../wire/http/certificate';

export interface TlsWebServer {
  readonly url: string;
  /** The file with its certificate. */
  readonly ca: string;
  close(): Promise<void>;
}
/**
 * @param ca where to write the certificate
 * @param maxVersion the highest version of TLS that the server speaks
 */
export async function startTlsServer(ca: string, listener: RequestListener, maxVersion?: 'TLSv1.2'): Promise<TlsWebServer> {
  const { certificate, privateKey } = ownCertificate('127.0.0.1', 'web server', Date.now(), randomBytes);
  writeFileSync(ca, certificate);
  const server = createServer({ cert: certificate, key: privateKey, ...(maxVersion ? { maxVersion } : {}) }, listener);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
