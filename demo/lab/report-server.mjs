// report-server.mjs ADDRESS PORT FILE: keeps the last text that was POSTed in FILE. The deployed system of image.sh reports to it.
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [address, port, file] = process.argv.slice(2);
createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    writeFileSync(`${file}.new`, Buffer.concat(chunks));
    renameSync(`${file}.new`, file);
    response.end();
  });
}).listen(Number(port), address);
