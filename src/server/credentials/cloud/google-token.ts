import { membersOf, parseJson } from '../../../core/foreign.ts';
import { loadPackage } from './cloud-package.ts';
import { TokenSource } from './token-source.ts';

type Library = typeof import('google-auth-library');

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** Google's Application Default Credentials ("How Application Default Credentials works"). */
const PLACES =
  'GOOGLE_APPLICATION_CREDENTIALS, the file of `gcloud auth application-default login`, the metadata server of Google Cloud';

/** Whose tokens they are. Without `project`, the library would look for one, which takes seconds. */
export interface GoogleIdentity {
  readonly project?: string | undefined;
  /** Text of a credentials file (JSON) of Google Cloud, instead of Application Default Credentials. */
  readonly credential?: string | undefined;
}

/** Access tokens for Google's APIs. Needs the package `google-auth-library`. */
export function googleTokens({ project, credential }: GoogleIdentity): TokenSource {
  const open = opener({ project, credential });
  return new TokenSource(async () => {
    const client = await open().getClient();
    const { token } = await client.getAccessToken();
    if (!token) throw new Error('the credentials gave no access token');
    return { value: token, expiresAt: client.credentials.expiry_date ?? Date.now() + UNKNOWN_LIFE };
  }, PLACES);
}

/** Tokens that say who calls, for services such as Cloud Run. `audience` is the URL of the service. */
export function googleIdTokens(audience: string, identity: GoogleIdentity): TokenSource {
  const open = opener(identity);
  return new TokenSource(async () => {
    const client = await open().getIdTokenClient(audience);
    const value = await client.idTokenProvider.fetchIdToken(audience);
    return { value, expiresAt: expiryOf(value) };
  }, PLACES);
}

function opener({ project, credential }: GoogleIdentity): () => InstanceType<Library['GoogleAuth']> {
  let auth: InstanceType<Library['GoogleAuth']> | undefined;
  return () => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package.
    auth ??= new (loadPackage('google-auth-library') as Library).GoogleAuth({
      scopes: [SCOPE],
      ...(project !== undefined && { projectId: project }),
      ...(credential !== undefined && { credentials: membersOf(parseJson(credential)) }),
    });
    return auth;
  };
}

/** `exp` of a token (RFC 7519 §4.1.4) in ms. The token is not checked: it is only sent. */
function expiryOf(token: string): number {
  const { exp } = membersOf(parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()));
  return typeof exp === 'number' ? exp * 1000 : Date.now() + UNKNOWN_LIFE;
}

/** The library did not learn when the token expires; it answers from its own cache. */
const UNKNOWN_LIFE = 60_000;
