// tls-files.mjs ADDRESS PORT FOLDER CERTIFICATE KEY: a web server for images with TLS. Prints "ready", then the name of each file that it
// sent.
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:https';
import { basename, join } from 'node:path';

const [address, port, folder, certificate, key] = process.argv.slice(2);
createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
  const name = basename(request.url);
  const file = join(folder, name);
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile()) return void response.writeHead(404).end();
  response.writeHead(200, { 'content-length': found.size });
  if (request.method === 'HEAD') return void response.end();
  const content = createReadStream(file);
  content.pipe(response);
  response.once('close', () => content.destroy());
  response.once('finish', () => process.stdout.write(`${name}\n`));
}).listen(Number(port), address, () => process.stdout.write('ready\n'));
