// report-server.mjs ADDRESS PORT FILE: keeps the last text that was POSTed in FILE, and the last one of a machine in FILE-MAC. The deployed
// system of image.sh reports to it.
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [address, port, file] = process.argv.slice(2);
createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const text = Buffer.concat(chunks);
    const [, mac] = /^macs=([0-9a-f:]{17})/m.exec(text.toString('latin1')) ?? [];
    for (const place of mac === undefined ? [file] : [`${file}-${mac}`, file]) {
      writeFileSync(`${place}.new`, text);
      renameSync(`${place}.new`, place);
    }
    response.end();
  });
}).listen(Number(port), address);
