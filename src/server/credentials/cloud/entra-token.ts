import { loadPackage } from './cloud-package.ts';
import { TokenSource } from './token-source.ts';

type Library = typeof import('@azure/identity');

/** The chain of `DefaultAzureCredential` (Azure Identity, "Credential chains"). */
const PLACES =
  'AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET or AZURE_CLIENT_CERTIFICATE_PATH; a workload identity (AZURE_FEDERATED_TOKEN_FILE); the managed identity of the machine; the accounts of az, azd and Azure PowerShell';

/** Who the gateway is at Microsoft Entra ID. Default: `DefaultAzureCredential`. */
export type EntraIdentity =
  | { readonly kind: 'secret'; readonly tenantId: string; readonly clientId: string; readonly secret: string }
  | {
      readonly kind: 'managed';
      readonly id?:
        | { readonly clientId: string }
        | { readonly objectId: string }
        | { readonly resourceId: string }
        | undefined;
    }
  | { readonly kind: 'workload' }
  | { readonly kind: 'developer' };

/** Tokens of Microsoft Entra ID for a scope. Needs the package `@azure/identity`. */
export function entraTokens(scope: string, identity?: EntraIdentity): TokenSource {
  let credential: ReturnType<typeof open> | undefined;
  return new TokenSource(
    async () => {
      credential ??= open(identity);
      const token = await credential.getToken(scope);
      if (token === null) throw new Error('the credentials gave no token');
      return { value: token.token, expiresAt: token.expiresOnTimestamp };
    },
    identity === undefined ? PLACES : `the configured identity (${identity.kind})`,
  );
}

function open(identity: EntraIdentity | undefined): InstanceType<Library['ChainedTokenCredential']> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package.
  const library = loadPackage('@azure/identity') as Library;
  switch (identity?.kind) {
    case undefined:
      return new library.DefaultAzureCredential();
    case 'secret':
      return new library.ChainedTokenCredential(
        new library.ClientSecretCredential(identity.tenantId, identity.clientId, identity.secret),
      );
    case 'managed':
      return new library.ChainedTokenCredential(
        identity.id === undefined
          ? new library.ManagedIdentityCredential()
          : // The three kinds of ids have one overload each.
            // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above.
            new library.ManagedIdentityCredential(identity.id as { clientId: string }),
      );
    case 'workload':
      return new library.ChainedTokenCredential(new library.WorkloadIdentityCredential());
    case 'developer':
      return new library.ChainedTokenCredential(
        new library.AzureCliCredential(),
        new library.AzureDeveloperCliCredential(),
        new library.AzurePowerShellCredential(),
      );
  }
}
