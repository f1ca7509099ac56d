// web-server.mjs ADDRESS PORT FOLDER: serves a folder as mirrors do, and logs `METHOD PATH STATUS` lines to the standard output. A folder is a
// page of HTML. While FOLDER/hold exists, requests for whole archives (.tar.gz) are not answered.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, normalize } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const [address, port, folder] = process.argv.slice(2);

async function answer(request, response) {
  const path = normalize(new URL(request.url, 'http://host').pathname);
  const file = join(folder, path);
  const found = existsSync(file) ? statSync(file) : undefined;
  // A part is what the server reads to know the format.
  const isArchive = path.endsWith('.tar.gz') && request.method === 'GET' && request.headers.range === undefined;
  while (isArchive && existsSync(join(folder, 'hold'))) await delay(100);
  const status = found === undefined ? 404 : 200;
  const isPage = found === undefined || found.isDirectory();
  const page = status === 404 ? 'not found' : '<a href="images/">images/</a>';
  response.writeHead(status, {
    'content-type': isPage ? 'text/html' : 'application/octet-stream',
    'content-length': isPage ? page.length : found.size,
  });
  process.stdout.write(`${request.method} ${path} ${status}\n`);
  if (request.method === 'HEAD') response.end();
  else if (isPage) response.end(page);
  else createReadStream(file).pipe(response);
}
createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
}).listen(Number(port), address);
