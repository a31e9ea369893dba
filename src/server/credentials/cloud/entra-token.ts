import { loadPackage } from './cloud-package.ts';
import { TokenSource } from './token-source.ts';

type Library = typeof import('@azure/identity');

/** The chain of `DefaultAzureCredential` (Azure Identity, "Credential chains"). */
const PLACES =
  'AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET or AZURE_CLIENT_CERTIFICATE_PATH; a workload identity (AZURE_FEDERATED_TOKEN_FILE); the managed identity of the machine; the accounts of az, azd and Azure PowerShell';

/** Tokens of Microsoft Entra ID for a scope. Needs the package `@azure/identity`. */
export function entraTokens(scope: string): TokenSource {
  let credential: InstanceType<Library['DefaultAzureCredential']> | undefined;
  return new TokenSource(async () => {
    credential ??= new (loadPackage('@azure/identity') as Library).DefaultAzureCredential();
    const { token, expiresOnTimestamp } = await credential.getToken(scope);
    return { value: token, expiresAt: expiresOnTimestamp };
  }, PLACES);
}
