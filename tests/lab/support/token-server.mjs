// token-server.mjs ADDRESS PORT CERTIFICATE KEY SERVICE USER:PASSWORD: a server of tokens for a container registry (Docker's specification of
// token authentication), with TLS. The certificate signs the tokens too. Prints "ready", then a line for each request: its status, who
// asked, and the scope. Without a login, a token for a repository below `public/` is given.
import { createPrivateKey, sign, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const [address, port, certificate, key, service, login] = process.argv.slice(2);
const [cert, pem] = [readFileSync(certificate, 'utf8'), readFileSync(key, 'utf8')];
const privateKey = createPrivateKey(pem);
const header = { typ: 'JWT', alg: 'ES256', x5c: [new X509Certificate(cert).raw.toString('base64')] };
const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

function token(subject, access) {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: 'lab', sub: subject, aud: service, iat: now, nbf: now - 60, exp: now + 300, jti: String(Math.random()), access };
  const text = `${part(header)}.${part(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

createServer({ cert, key: pem }, (request, response) => {
  const { searchParams } = new URL(request.url, 'https://token');
  const given = Buffer.from((request.headers.authorization ?? '').replace(/^Basic /, ''), 'base64').toString();
  const access = searchParams
    .getAll('scope')
    .flatMap((scope) => scope.split(' '))
    .map((scope) => {
      const [type, name, actions] = scope.split(':');
      return { type, name, actions: (actions ?? '').split(',') };
    });
  const isKnown = given === login;
  const isPublic =
    given === '' && access.every(({ name, actions }) => name.startsWith('public/') && actions.every((action) => action === 'pull'));
  const status = isKnown || isPublic ? 200 : 401;
  process.stdout.write(`${status} ${given.split(':', 1)[0] || '-'} ${searchParams.getAll('scope').join(' ')}\n`);
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(status === 200 ? { token: token(given.split(':', 1)[0], access), expires_in: 300 } : { errors: [] }));
}).listen(Number(port), address, () => process.stdout.write('ready\n'));
