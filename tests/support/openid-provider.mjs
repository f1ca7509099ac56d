// An OpenID provider on a port of this host, with a client `ci` that gets JWTs by the grant client_credentials. Prints a line when it listens.
// Arguments: port, key ID, and a folder for its key, so that a later start with the same key ID has the same key.
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Provider from 'oidc-provider';

const [, , port, kid, folder] = process.argv;
const file = join(folder, `${kid}.json`);
if (!existsSync(file)) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(file, JSON.stringify({ ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }));
}
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [JSON.parse(readFileSync(file, 'utf8'))] },
  clients: [{ client_id: 'ci', client_secret: 'secret', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, resource) => ({
        scope: 'bm-viewers bm-admins',
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 300,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));
