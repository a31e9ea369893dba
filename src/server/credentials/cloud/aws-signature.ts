import { createRequire } from 'node:module';
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

/**
 * Signs with the credentials of the default chain, which the library caches until they expire. `service` is the signing
 * name. Needs the package `@aws-sdk/credential-providers`.
 */
export function awsSigner(region: string, service: string): AwsSigner {
  let credentials: ReturnType<Library['fromNodeProviderChain']> | undefined;
  return {
    async sign({ method, authority, path, contentType, body }) {
      const { SignatureV4 } = createRequire(import.meta.url)('@smithy/signature-v4') as Signature;
      const { Sha256 } = createRequire(import.meta.url)('@smithy/core/checksum') as Checksum;
      credentials ??= (loadPackage('@aws-sdk/credential-providers') as Library).fromNodeProviderChain({
        clientConfig: { region },
      });
      const identity = await inTime(credentials()).catch((error: unknown) => {
        throw noCredentials(PLACES, error);
      });
      const signer = new SignatureV4({ credentials: identity, region, service, sha256: Sha256 });
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

function queryOf(text: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const known = query[name];
    query[name] = known === undefined ? value : [known, value].flat();
  }
  return query;
}
