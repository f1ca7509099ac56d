// Replaces the API in a namespace of the lab, for agents that are inspected: inspection-server.mjs ADDRESS PORT FILE TOKEN
// Each request is a line of FILE: {"path", "at", "body"}.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [address, port, file, token] = process.argv.slice(2);
const config = {
  heartbeat_timeout: 300,
  agent_token: token,
  agent_token_required: true,
  tls_min_version: '1.2',
  agent_md5_checksum_enable: true,
};
const answers = {
  '/': [200, { default_version: { id: 'v1', version: '1.95', min_version: '1.1' }, versions: [] }],
  '/v1/continue_inspection': [202, { uuid: 'u' }],
  '/v1/lookup': [200, { node: { uuid: 'u', properties: {}, instance_info: {}, driver_internal_info: {} }, config }],
  '/v1/heartbeat/u': [202, {}],
};
createServer((request, response) => {
  const at = Date.now();
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const path = request.url.split('?')[0];
    const text = Buffer.concat(parts).toString();
    appendFileSync(file, `${JSON.stringify({ path, at, body: text === '' ? null : JSON.parse(text) })}\n`);
    const [status, body] = answers[path] ?? [404, {}];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
}).listen(Number(port), address);
