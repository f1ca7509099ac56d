/** Terminates TLS in front of an HTTP service of the lab: `node tls-front.js '<JSON>'` with {host, port, to, keyFile, certificateFile}. */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';

export interface TlsFront {
  readonly host: string;
  readonly port: number;
  /** The port of the service, on the same host. */
  readonly to: number;
  readonly keyFile: string;
  readonly certificateFile: string;
}

const { host, port, to, keyFile, certificateFile } = JSON.parse(process.argv[2]!) as TlsFront;
createServer({ key: readFileSync(keyFile), cert: readFileSync(certificateFile) }, ({ method, url, headers }, answer) => {
  const onward = request({ host, port: to, method, path: url, headers }, (said) => {
    answer.writeHead(said.statusCode!, said.headers);
    said.pipe(answer);
  });
  onward.on('error', () => answer.destroy());
  answer.on('close', () => onward.destroy());
  onward.end();
}).listen(port, host, () => process.stdout.write('ready\n'));
