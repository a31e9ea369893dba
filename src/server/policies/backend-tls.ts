import { definePolicy, isService } from '../kernel/policy.ts';
import { backendTls } from '../transport/host-backend.ts';
import { backendTlsSchema, compileBackendTls } from '../transport/tls/backend-tls.ts';

/** TLS of the connections to plain HTTP services. */
export const backendTLS = definePolicy({
  key: 'backendTLS',
  places: ['route', 'backend'],
  isForBackendCall: true,
  schema: backendTlsSchema,
  trace: { kind: 'backend_tls', stage: 'backend tls', isBackendPolicy: true },
  checkRoute(_config, { name, backends }, context) {
    if (backends.every(isService)) return;
    context.report({
      code: 'AGW0104',
      message: `\`backendTLS\` applies to \`host\` backends only, but route \`${name}\` has others`,
      help: 'set `policies.backendTLS` of each MCP target that needs it; providers of models are described by their `https:` URL',
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
