import { createHash, createHmac } from 'node:crypto';
import type { Received } from './upstream.ts';

/** Environment without any credentials of AWS. */
export const NO_AWS = {
  AWS_ACCESS_KEY_ID: undefined,
  AWS_SECRET_ACCESS_KEY: undefined,
  AWS_SESSION_TOKEN: undefined,
  AWS_PROFILE: undefined,
  AWS_CONTAINER_CREDENTIALS_FULL_URI: undefined,
  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: undefined,
  AWS_WEB_IDENTITY_TOKEN_FILE: undefined,
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null/none',
  AWS_CONFIG_FILE: '/dev/null/none',
  AWS_EC2_METADATA_DISABLED: 'true',
};

/** The signature of a request (AWS Signature Version 4), computed from the rules and not by the library. */
export function signature({ method, target, headers, body }: Received, secret: string): string {
  const authorization = String(headers['authorization']);
  const [, scope = '', names = ''] =
    /Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+)/.exec(authorization) ?? [];
  const sha = (text: string): string => createHash('sha256').update(text, 'latin1').digest('hex');
  const [pathname = '', query = ''] = target.split('?');
  const path = pathname.split('/').map(encodeURIComponent).join('/');
  const signed = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = [method, path, query, signed.join(''), names, sha(body)].join('\n');
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha(canonical)].join('\n');
  const key = scope
    .split('/')
    .reduce<Buffer | string>(
      (before, part) => createHmac('sha256', before).update(part).digest(),
      `AWS4${secret}`,
    );
  return createHmac('sha256', key).update(text).digest('hex');
}

export const signatureIn = ({ headers }: Received): string | undefined =>
  /Signature=(\w+)/.exec(String(headers['authorization']))?.[1];
