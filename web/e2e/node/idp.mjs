// An authorization server nobody here wrote, with discovery, registration, rotation and revocation switched on. The front it stands behind
// gives it its address.
import { Provider } from 'oidc-provider';

const { ISSUER, RESOURCE, PORT } = process.env;
const provider = new Provider(ISSUER, {
  clients: [{ client_id: 'resource', client_secret: 'resource-secret', redirect_uris: [], response_types: [], grant_types: [] }],
  scopes: ['openid', 'offline_access', 'mcp'],
  cookies: { keys: ['a key of this test'] },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => {
        if (resource !== RESOURCE) throw new Error('unknown resource');
        return { scope: 'mcp', audience: RESOURCE, accessTokenFormat: 'opaque', accessTokenTTL: 8 };
      },
    },
  },
  findAccount: async (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
});
provider.proxy = true;
provider.listen(Number(PORT), '127.0.0.1');
