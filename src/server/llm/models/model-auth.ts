import type { z } from 'zod';
import {
  type BackendAuthConfig,
  type BackendCredential,
  backendAuthSchema,
  compileBackendAuth,
} from '../../credentials/backend-auth.ts';
import { reportMissingRegion } from '../../credentials/cloud/aws.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { keyHeader, type OutgoingRequest, type ProviderKind } from '../providers/provider.ts';

/** `auth` of a model. */
export const modelAuthSchema: z.ZodType<
  BackendAuthConfig,
  z.input<typeof backendAuthSchema>
> = backendAuthSchema.describe(
  'Credential for the provider, if it is more than an `apiKey`. Default place of a key or token: the header of the provider.',
);

/** Adds the credential of a model to requests to its provider. */
export interface ModelAuth {
  /** Whether the client's credentials are removed in any case. False if its token is passed on. */
  readonly replacesCredentials: boolean;
  /** Keys that are the same in all requests, to remove from responses. */
  readonly keys: readonly string[];
  /** Completes a request, after all other changes to it. Rejects with an `AppError`. */
  apply(ctx: RequestContext, request: OutgoingRequest): Promise<void>;
  close(): Promise<void>;
}

/** Whether clients call models at the operator's expense, and not with a token of their own. */
export const isOwnCredential = (auth: BackendAuthConfig | undefined): boolean =>
  auth !== undefined && auth.passthrough === undefined;

/** Compiles `auth` of a model. */
export function compileModelAuth(
  config: BackendAuthConfig,
  provider: ProviderKind,
  context: CompileContext,
): ModelAuth {
  if (config.aws !== undefined) reportMissingRegion(config.aws, context.at('aws'));
  const credentials = compileBackendAuth(config, context);
  const steps = credentials.map((credential) => stepOf(credential, provider, context));
  return {
    replacesCredentials: isOwnCredential(config),
    keys: credentials.flatMap((each) => ('key' in each && each.key !== undefined ? [each.key] : [])),
    async apply(ctx, request) {
      for (const step of steps) await step(ctx, request);
    },
    async close() {
      for (const each of credentials) if ('close' in each) await each.close?.();
    },
  };
}

type Step = (ctx: RequestContext, request: OutgoingRequest) => Promise<void>;

function stepOf(credential: BackendCredential, provider: ProviderKind, context: CompileContext): Step {
  if ('sign' in credential) return (_ctx, request) => credential.sign(request);
  const { placement } = credential;
  if (placement !== undefined && placement.header === undefined)
    context.report({
      code: 'AGW0104',
      message: 'the credential of a model is always in a header',
      help: 'set `location: { header: { name: … } }`, or remove `location`',
    });
  const { name, prefix } = placement?.header ?? {};
  if (name !== undefined) context.settings.secretNames.headers.add(name.toLowerCase());
  return async (ctx, { headers, format }) => {
    const token = await credential.token(ctx);
    if (token === undefined) return;
    ctx.observer?.hide(token, true);
    const [field, value] =
      name === undefined ? keyHeader(provider, token, format) : [name, `${prefix ?? ''}${token}`];
    headers.set(field, value);
  };
}
