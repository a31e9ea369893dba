import { z } from 'zod';
import { mapping } from '../../../core/schema/mapping.ts';
import {
  type BackendCredential,
  backendAuthFields,
  compileBackendAuth,
  exactlyOneMethod,
} from '../../credentials/backend-auth.ts';
import { awsScopeOf, reportMissingRegion } from '../../credentials/cloud/aws.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import {
  computedHeadersSchema,
  headerText,
  removedHeadersSchema,
} from '../../expressions/computed-headers.ts';
import { requestScope } from '../../expressions/scopes.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { headerChanges, headerChangesSchema } from '../../kernel/request/header-changes.ts';
import { FieldNames } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { backendTlsSchema, compileBackendTls } from '../../transport/tls/backend-tls.ts';
import { oauthCredential, oauthSchema } from '../../user-tokens/credential.ts';
import type { TargetPolicies } from './target.ts';
import { type ChangeHeaders, targetCredentials } from './target-credentials.ts';

const NO_SUCH_CHANGE = 'messages of MCP servers are changed by `mcpGuardrails` of the route';

/** `targets[].policies`: how the gateway connects to a server. */
export const targetPoliciesSchema = z.lazy(() =>
  z
    .strictObject({
      backendTLS: backendTlsSchema.optional(),
      backendAuth: z
        .strictObject({ ...backendAuthFields(), oauth: oauthSchema.optional() })
        .superRefine(exactlyOneMethod('oauth'))
        .optional()
        .describe(
          "Credential for the server, instead of that of the client and of the route's `backendAuth`. The client's `Authorization` header is never sent then.",
        ),
      requestHeaderModifier: headerChangesSchema
        .optional()
        .describe('Changes headers of requests to the server, after `transformations`.'),
      transformations: mapping('Computes headers of requests to the server.', {
        request: z
          .strictObject({
            set: computedHeadersSchema().describe(
              'Headers to set, as CEL expressions over the request of the client. A header whose expression fails is removed.',
            ),
            add: computedHeadersSchema().describe(
              'Headers to add, as CEL expressions; existing headers of the same name are kept, unless the expression fails.',
            ),
            remove: removedHeadersSchema.describe('Headers to remove, after `add` and `set`.'),
          })
          .meta({
            elsewhere: {
              body: NO_SUCH_CHANGE,
              replace: 'write `set` and `remove`',
              metadata: 'set it in `transformations` of the route',
            },
          })
          .optional()
          .describe('Changes the headers.'),
      })
        .meta({ elsewhere: { response: NO_SUCH_CHANGE } })
        .optional(),
    })
    .meta({
      elsewhere: {
        http: 'MCP servers are connected to with HTTP/1.1: remove it',
        tcp: 'connections to MCP servers have the usual settings: remove it',
        backendTunnel: 'tunnels to MCP servers are not supported: they are connected to directly',
      },
    })
    .describe('How the gateway connects to the server. For targets that are reached over HTTP.'),
);

type Config = z.output<typeof targetPoliciesSchema>;

/**
 * Compiles the policies of a target, and reads the files that they name. `host` is that of the target, `signIn` the server at which
 * users sign in: undefined for kinds that have no `oauth`.
 */
export function compileTargetPolicies(
  config: Config,
  host: string,
  signIn: SignInTarget | undefined,
  context: CompileContext,
): TargetPolicies {
  const { backendTLS, backendAuth } = config;
  const at = context.at('backendAuth');
  const [name = ''] = host.replace(/^https?:\/\//i, '').split('/');
  if (backendAuth?.aws !== undefined && awsScopeOf(name) === undefined)
    reportMissingRegion(backendAuth.aws, at.at('aws'));
  const credentials = targetCredentials(
    backendAuth && [...compileOauth(backendAuth.oauth, signIn, at), ...compileBackendAuth(backendAuth, at)],
    compileChanges(config, context),
    at,
  );
  return {
    ...(backendTLS !== undefined && { tls: compileBackendTls(backendTLS, context.at('backendTLS')) }),
    ...(credentials !== undefined && { credentials }),
  };
}

/** A target at which users can sign in. */
interface SignInTarget {
  readonly target: string;
  readonly url: string;
}

function compileOauth(
  oauth: z.output<typeof oauthSchema> | undefined,
  signIn: SignInTarget | undefined,
  context: CompileContext,
): BackendCredential[] {
  if (oauth === undefined) return [];
  const at = context.at('oauth');
  const url = signIn && URL.parse(signIn.url);
  if (signIn !== undefined && url != null && /^https?:$/.test(url.protocol))
    return [oauthCredential(oauth, { target: signIn.target, url }, at) ?? []].flat();
  at.report({
    code: 'AGW0105',
    atKey: true,
    message: '`oauth` is for targets `mcp` with an http or https URL',
    help: 'remove it, or set `mcp.host` to the URL of the server',
  });
  return [];
}

/** Compiles header changes. Expressions are evaluated when a request arrives: what is sent for it later has the same values. */
function compileChanges(
  { transformations, requestHeaderModifier }: Config,
  context: CompileContext,
): ((request: RequestContext | undefined) => ChangeHeaders) | undefined {
  if (transformations === undefined && requestHeaderModifier === undefined) return undefined;
  const { set = {}, add = {}, remove = [] } = transformations?.request ?? {};
  checkNames({ set, add, remove }, context.at('transformations', 'request'));
  checkNames(requestHeaderModifier ?? {}, context.at('requestHeaderModifier'));
  const compile = (key: 'set' | 'add', sources: Readonly<Record<string, string>>) =>
    Object.entries(sources).map(
      ([name, source]) =>
        [name, context.at('transformations', 'request', key, name).cel(source, requestScope)] as const,
    );
  const computed = [
    ...compile('add', add).map(([name, value]) => ({ name, value, action: 'append' as const })),
    ...compile('set', set).map(([name, value]) => ({ name, value, action: 'set' as const })),
  ];
  const fixed = requestHeaderModifier && headerChanges(requestHeaderModifier);
  return (request) => {
    const lookup = request && resolverFor(request);
    const values = computed.map(({ name, value, action }) => ({
      name,
      action,
      // Not `lookup` itself: it would record the result in a trace, which may be a credential.
      text: lookup && headerText(tryEvaluate(value, (root) => lookup(root))),
    }));
    return changing(values, remove, fixed);
  };
}

interface ComputedValue {
  readonly name: string;
  readonly action: 'append' | 'set';
  readonly text: string | undefined;
}

/** Apart from where the values are computed: a closure there would keep the request. */
const changing =
  (values: readonly ComputedValue[], removed: readonly string[], fixed?: ChangeHeaders): ChangeHeaders =>
  (headers) => {
    for (const { name, action, text } of values)
      if (text === undefined) headers.delete(name);
      else headers[action](name, text);
    for (const name of removed) headers.delete(name);
    fixed?.(headers);
  };

/** Headers of the protocol, which the gateway sets itself. */
const OF_PROTOCOL = new FieldNames(['accept', 'content-type', 'content-encoding', 'last-event-id']);

function checkNames(
  changes: { readonly set?: object; readonly add?: object; readonly remove?: readonly string[] },
  context: CompileContext,
): void {
  const report = (at: CompileContext, name: string, atKey: boolean): void => {
    if (!OF_PROTOCOL.has(name) && !/^mcp-(?:session-id|protocol-version|method|name)$/i.test(name)) return;
    at.report({
      code: 'AGW0104',
      message: `\`${name}\` is a header of the protocol, which the gateway sets itself`,
      help: 'remove it',
      atKey,
    });
  };
  for (const key of ['set', 'add'] as const)
    for (const name of Object.keys(changes[key] ?? {})) report(context.at(key, name), name, true);
  for (const [index, name] of (changes.remove ?? []).entries())
    report(context.at('remove', index), name, false);
}
