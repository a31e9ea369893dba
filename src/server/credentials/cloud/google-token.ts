import { loadPackage } from './cloud-package.ts';
import { TokenSource } from './token-source.ts';

type Library = typeof import('google-auth-library');

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** Google's Application Default Credentials ("How Application Default Credentials works"). */
const PLACES =
  'GOOGLE_APPLICATION_CREDENTIALS, the file of `gcloud auth application-default login`, the metadata server of Google Cloud';

/**
 * Access tokens from Application Default Credentials. Without `project`, the library would look for one, which takes
 * seconds. Needs the package `google-auth-library`.
 */
export function googleTokens(project: string): TokenSource {
  let auth: InstanceType<Library['GoogleAuth']> | undefined;
  return new TokenSource(async () => {
    auth ??= new (loadPackage('google-auth-library') as Library).GoogleAuth({
      scopes: [SCOPE],
      projectId: project,
    });
    const client = await auth.getClient();
    const { token } = await client.getAccessToken();
    if (!token) throw new Error('the credentials gave no access token');
    return { value: token, expiresAt: client.credentials.expiry_date ?? Date.now() + UNKNOWN_LIFE };
  }, PLACES);
}

/** The library did not learn when the token expires; it answers from its own cache. */
const UNKNOWN_LIFE = 60_000;
