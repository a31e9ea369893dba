import { z } from 'zod';
import { jsonIn, membersOf } from '../../../core/foreign.ts';
import { nonEmpty } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { SignRequest } from '../../transport/host-backend.ts';
import { readText, textOrFile } from '../../transport/text-or-file.ts';
import { requireInstalled } from './cloud-package.ts';
import { googleIdTokens, googleTokens } from './google-token.ts';
import type { TokenSource } from './token-source.ts';

/** Audiences of a service: the hosts of its routes. More are a sign that clients choose the host. */
const MOST_AUDIENCES = 100;

export const gcpSchema = z.lazy(() =>
  z
    .strictObject({
      type: z
        .preprocess(
          // The documentation of agentgateway has both spellings.
          (value) => (value === 'AccessToken' ? 'accessToken' : value === 'IdToken' ? 'idToken' : value),
          z.enum(['accessToken', 'idToken']),
        )
        .default('accessToken')
        .describe("`accessToken`: for Google's APIs. `idToken`: for services such as Cloud Run."),
      audience: nonEmpty
        .optional()
        .describe('URL of the service, for an `idToken`. Default: `https://` and the host of the request.'),
      credential: textOrFile
        .optional()
        .meta({ secret: true })
        .describe(
          'Text of a credentials file of Google Cloud (JSON), or `{ file: … }`. Default: Application Default Credentials.',
        ),
    })
    .superRefine(({ type, audience }, context) => {
      if (type === 'idToken' || audience === undefined) return;
      context.addIssue({
        code: 'custom',
        path: ['audience'],
        message: 'only an `idToken` has an audience',
        params: { code: 'AGW0105', at: 'key', help: 'remove it, or set `type: idToken`' },
      });
    })
    .describe('Sends a token of Google Cloud.'),
);

/** Compiles the tokens; undefined if they cannot be had, which is reported. */
export function gcpAuth(
  config: z.output<typeof gcpSchema>,
  context: CompileContext,
): SignRequest | undefined {
  const { type, audience } = config;
  if (!requireInstalled('google-auth-library', context, '`gcp`')) return undefined;
  const credential = config.credential && readText(config.credential, context.at('credential'));
  if (config.credential !== undefined && !isCredential(credential, context)) return undefined;
  const byAudience = new Map<string, TokenSource>();
  const access = type === 'accessToken' ? googleTokens({ credential }) : undefined;
  return async ({ headers, authority }) => {
    const wanted = audience ?? `https://${authority}`;
    const tokens = access ?? byAudience.get(wanted) ?? googleIdTokens(wanted, { credential });
    if (access === undefined && byAudience.size < MOST_AUDIENCES) byAudience.set(wanted, tokens);
    headers.set('authorization', `Bearer ${await tokens.value()}`);
  };
}

function isCredential(text: string | undefined, context: CompileContext): boolean {
  // A file that cannot be read is reported already.
  if (text === undefined) return false;
  if (typeof membersOf(jsonIn(text))['type'] === 'string') return true;
  context.at('credential').report({
    code: 'AGW0104',
    message: 'the credential is not the text of a credentials file of Google Cloud',
    help: 'set it to JSON with `type`, such as `{"type": "service_account", …}`, or to `{ file: … }`',
  });
  return false;
}
