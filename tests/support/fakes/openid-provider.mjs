// An OpenID provider on a port of this host. Prints a line when it listens.
// Its client `ci` gets JWTs by the grant client_credentials. Its client `page` logs in users by authorization code with PKCE; each user is
// ann, or is refused if the test adds ?deny to the URL of the interaction.
// Arguments: port, key ID, a folder for its key, so that a later start with the same key ID has the same key, and the redirect URI.
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Provider from 'oidc-provider';

const [, , port, kid, folder, redirectUri] = process.argv;
const file = join(folder, `${kid}.json`);
if (!existsSync(file)) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(file, JSON.stringify({ ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }));
}
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [JSON.parse(readFileSync(file, 'utf8'))] },
  clients: [
    { client_id: 'ci', client_secret: 'secret', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
    {
      client_id: 'page',
      client_secret: 'a secret+of the page',
      redirect_uris: [redirectUri],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  pkce: { required: () => true },
  /** Users are not asked for consent. */
  loadExistingGrant: async ({ oidc }) => {
    const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope('openid');
    grant.addResourceScope('urn:bloomery', 'bm-viewers bm-admins');
    await grant.save();
    return grant;
  },
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
provider.use(async (context, next) => {
  if (!context.path.startsWith('/interaction/')) return next();
  const result =
    context.query.deny === undefined ? { login: { accountId: 'ann' } } : { error: 'access_denied', error_description: 'no such user' };
  context.redirect(await provider.interactionResult(context.req, context.res, result));
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));
