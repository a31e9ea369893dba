import {
  BACKEND_AUTH_EXPRESSIONS,
  type BackendAuthConfig,
  type BackendCredential,
  backendAuthSchema,
  compileBackendAuth,
  placesOf,
} from '../credentials/backend-auth.ts';
import { reportMissingRegion } from '../credentials/cloud/aws.ts';
import { placeOf } from '../credentials/placement.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { definePolicy, type PolicyRoute } from '../kernel/policy.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { credentialOrigin } from '../kernel/request/shared-slots.ts';
import { requestSigner } from '../transport/host-backend.ts';

/** Sends a credential to the backend instead of that of the client. */
export const backendAuth = definePolicy({
  key: 'backendAuth',
  places: ['route', 'backend'],
  isForBackendCall: true,
  schema: backendAuthSchema,
  requestExpressions: BACKEND_AUTH_EXPRESSIONS,
  trace: { kind: 'backend_auth', stage: 'backend auth', isBackendPolicy: true },
  checkRoute(config, { backends }, context) {
    checkServers(config, backends, context);
    if (config.aws !== undefined && !backends.every(isOfAws))
      reportMissingRegion(config.aws, context.at('aws'));
    if (!backends.some(({ api }) => api === 'llm')) return;
    for (const { path } of placesOf(config))
      context.at(...path).report({
        code: 'AGW0104',
        message: 'the credential of a model is always in the header that its provider expects',
        help: 'remove it, or set `auth` of the model',
      });
  },
  compile(config, context) {
    const credentials = compileBackendAuth(config, context);
    const steps = credentials.map((each) => stepOf(each, context));
    return {
      request(ctx) {
        const waits = steps.map((step) => step(ctx)).filter((result) => result instanceof Promise);
        return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
      },
      async close() {
        for (const each of credentials) if ('close' in each) await each.close?.();
      },
    };
  },
});

/** Whether a backend says which region requests are signed for. */
const isOfAws = ({ connectsTo }: PolicyRoute['backends'][number]): boolean =>
  (connectsTo.kind === 'providers' && connectsTo.areOfAws) ||
  (connectsTo.kind === 'service' && connectsTo.aws !== undefined);

/** MCP servers get the headers of a request, but no other part of it. What they get in other parts is in their own `policies`. */
function checkServers(
  config: BackendAuthConfig,
  backends: PolicyRoute['backends'],
  context: CompileContext,
): void {
  const servers = backends.flatMap(({ connectsTo }) => (connectsTo.kind === 'servers' ? [connectsTo] : []));
  if (servers.length === 0) return;
  if (!servers.some(({ getHeaders }) => getHeaders))
    context.report({
      code: 'AGW0104',
      severity: 'warning',
      message: '`backendAuth` has no effect on `stdio` servers, which get no headers',
      help: 'remove it, or give the server its credential in `env`',
      atKey: true,
    });
  for (const name of ['aws', 'gcp', 'azure'] as const)
    if (config[name] !== undefined)
      context.at(name).report({
        code: 'AGW0104',
        message: `\`${name}\` of a route has no effect on MCP servers`,
        help: 'move it to `policies.backendAuth` of each target that needs it',
        atKey: true,
      });
  for (const { path, placement } of placesOf(config))
    if (placement.header === undefined)
      context.at(...path).report({
        code: 'AGW0104',
        message: 'the credential of a route for MCP servers is always in a header',
        help: 'set `header`, or move the credential to `policies.backendAuth` of the target',
      });
}

/** Adds one credential to a request. */
function stepOf(
  credential: BackendCredential,
  context: CompileContext,
): (ctx: RequestContext) => Promise<void> | void {
  if ('sign' in credential) return (ctx) => requestSigner.set(ctx, credential.sign);
  const place = placeOf(credential.placement, context);
  const put = (ctx: RequestContext, token: string): void => {
    ctx.observer?.hide(token, true);
    place(ctx, token);
  };
  return (ctx) => {
    if (credentialOrigin.get(ctx) !== 'caller')
      credentialOrigin.set(ctx, credential.readFrom === undefined ? 'gateway' : 'caller');
    const token = credential.token(ctx);
    if (token instanceof Promise) return token.then((value) => put(ctx, value));
    if (token !== undefined) put(ctx, token);
    return undefined;
  };
}
