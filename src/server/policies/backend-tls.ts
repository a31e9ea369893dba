import { definePolicy, hasConnections } from '../kernel/policy.ts';
import { backendTls } from '../transport/backend-upstream.ts';
import { backendTlsSchema, compileBackendTls } from '../transport/tls/backend-tls.ts';

/** TLS of the connections to HTTP services and providers of models. */
export const backendTLS = definePolicy({
  key: 'backendTLS',
  places: ['route', 'backend'],
  isForBackendCall: true,
  schema: backendTlsSchema,
  trace: { kind: 'backend_tls', stage: 'backend tls', isBackendPolicy: true },
  checkRoute(_config, { name, backends }, context) {
    if (backends.every(hasConnections)) return;
    context.report({
      code: 'AGW0104',
      message: `\`backendTLS\` has no effect on MCP servers, but route \`${name}\` has some`,
      help: 'set `policies.backendTLS` of each MCP target that needs it',
    });
  },
  compile(config, context) {
    const tls = compileBackendTls(config, context);
    return {
      request(ctx) {
        backendTls.set(ctx, tls);
        return undefined;
      },
    };
  },
});
