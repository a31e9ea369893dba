import { createRequire } from 'node:module';
import { LIMITS } from '../../../core/limits.ts';
import { loadPackage } from './cloud-package.ts';
import { noCredentials } from './no-credentials.ts';
import { inTime } from './token-source.ts';

type Signature = typeof import('@smithy/signature-v4');
type Checksum = typeof import('@smithy/core/checksum');
type Library = typeof import('@aws-sdk/credential-providers');

/** The default chain of the AWS SDK for JavaScript ("Credential provider chain"). */
const PLACES =
  'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile AWS_PROFILE in ~/.aws, a web identity (AWS_WEB_IDENTITY_TOKEN_FILE), the credentials of the container (AWS_CONTAINER_CREDENTIALS_*), the instance metadata service';

export interface SignableRequest {
  readonly method: string;
  /** Host and port. */
  readonly authority: string;
  /** Path and query. */
  readonly path: string;
  readonly contentType: string | undefined;
  readonly body: string | Buffer | null;
}

/** Signs requests to one service (AWS Signature Version 4). */
export interface AwsSigner {
  /** Headers to add to the request. Rejects with the `AppError` of `noCredentials`. */
  sign(request: SignableRequest): Promise<Readonly<Record<string, string>>>;
}

/** Credentials of an account. */
export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** A role to sign as (AWS STS, "AssumeRole"). */
export interface AwsRole {
  readonly roleArn: string;
  readonly sessionName?: string | undefined;
  readonly tags: readonly { readonly key: string; readonly value: string }[];
}

/** Whose credentials sign; those of the default chain without `keys`. */
export interface AwsIdentity {
  readonly keys?: AwsKeys | undefined;
  readonly role?: AwsRole | undefined;
}

/**
 * Signs with credentials that the library caches until they expire. `service` is the signing name. Needs the package
 * `@aws-sdk/credential-providers` unless there are `keys`.
 */
export function awsSigner(region: string, service: string, { keys, role }: AwsIdentity = {}): AwsSigner {
  let credentials: (() => Promise<AwsKeys>) | undefined = keys && (() => Promise.resolve(keys));
  const openChain = (): (() => Promise<AwsKeys>) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package.
    const library = loadPackage('@aws-sdk/credential-providers') as Library;
    const clientConfig = { region };
    if (role === undefined) return library.fromNodeProviderChain({ clientConfig });
    const { roleArn: RoleArn, sessionName, tags } = role;
    const provider = library.fromTemporaryCredentials({
      clientConfig,
      params: {
        RoleArn,
        RoleSessionName: sessionName ?? 'agctl',
        ...(tags.length > 0 && { Tags: tags.map(({ key, value }) => ({ Key: key, Value: value })) }),
      },
    });
    return lasting(provider);
  };
  return {
    async sign({ method, authority, path, contentType, body }) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package.
      const { SignatureV4 } = createRequire(import.meta.url)('@smithy/signature-v4') as Signature;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package.
      const { Sha256 } = createRequire(import.meta.url)('@smithy/core/checksum') as Checksum;
      credentials ??= openChain();
      const identity = await inTime(credentials()).catch((error: unknown) => {
        throw noCredentials(PLACES, error);
      });
      const signer = new SignatureV4({
        credentials: withoutUndefined(identity),
        region,
        service,
        sha256: Sha256,
        // "Amazon S3 does not normalize or double-encode paths" (AWS Signature Version 4, "Canonical request").
        uriEscapePath: service !== 's3',
      });
      const at = path.indexOf('?');
      const query = at === -1 ? {} : queryOf(path.slice(at + 1));
      const signed = await signer.sign({
        method,
        protocol: 'https:',
        hostname: authority,
        path: at === -1 ? path : path.slice(0, at),
        query,
        headers: { host: authority, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
        body: body ?? '',
      });
      const { host: _host, 'content-type': _contentType, ...added } = signed.headers;
      return added;
    },
  };
}

const withoutUndefined = ({ sessionToken, ...keys }: AwsKeys): AwsKeys & { sessionToken?: string } => ({
  ...keys,
  ...(sessionToken !== undefined && { sessionToken }),
});

/** Credentials are replaced this long before they expire. In ms. */
const EXPIRES_WITHIN = 5 * 60_000;

/** Remembers temporary credentials until shortly before they expire; the library asks STS for each call. */
function lasting(fetch: () => Promise<AwsKeys & { readonly expiration?: Date }>): () => Promise<AwsKeys> {
  let known: { readonly keys: Promise<AwsKeys>; readonly until: number } | undefined;
  return () => {
    if (known !== undefined && Date.now() < known.until) return known.keys;
    const keys = fetch();
    // A call that never ends is not waited for by later requests.
    const entry = { keys, until: Date.now() + LIMITS.credentialTimeout };
    known = entry;
    keys.then(
      ({ expiration }) => {
        const expiresAt = Math.min(expiration?.getTime() ?? 0, Date.now() + LIMITS.tokenLifetimeMax);
        entry.until = expiresAt - EXPIRES_WITHIN;
      },
      () => {
        if (known === entry) known = undefined;
      },
    );
    return keys;
  };
}

function queryOf(text: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const known = query[name];
    query[name] = known === undefined ? value : [known, value].flat();
  }
  return query;
}
