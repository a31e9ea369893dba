import { environment } from './environment.ts';
import { type HttpUpstream, httpUpstream } from './upstream.ts';

/** The identity endpoint of an Azure machine, as App Service has it. Its tokens are `of-the-system` or `of-{client_id}`. */
export interface AzureIdentity extends Disposable {
  /** What the endpoint was asked for while this is in use. */
  readonly received: HttpUpstream['received'];
}

/**
 * `@azure/msal-node` remembers the endpoint for the life of the process (the static `identitySource` of its
 * ManagedIdentityClient), and a worker runs several test files: so all of them get this one.
 */
let endpoint: Promise<HttpUpstream> | undefined;

/** Makes this process a machine with a managed identity until it is disposed. */
export async function azureIdentity(
  variables: Readonly<Record<string, string | undefined>> = {},
): Promise<AzureIdentity> {
  endpoint ??= httpUpstream((_, response, { target }) => {
    const client = new URLSearchParams(target.slice(target.indexOf('?'))).get('client_id');
    const token = {
      access_token: `of-${client ?? 'the-system'}`,
      expires_on: String(Math.floor(Date.now() / 1000) + 7200),
      token_type: 'Bearer',
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
  });
  const { address, received } = await endpoint;
  const before = received.length;
  const machine = environment({
    AZURE_CLIENT_ID: undefined,
    AZURE_TENANT_ID: undefined,
    IDENTITY_ENDPOINT: `http://${address}/token`,
    IDENTITY_HEADER: 'machine',
    ...variables,
  });
  return {
    get received() {
      return received.slice(before);
    },
    [Symbol.dispose]: () => machine[Symbol.dispose](),
  };
}
