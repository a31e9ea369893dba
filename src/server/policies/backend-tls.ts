import { definePolicy, hasConnections, type PolicyRoute } from '../kernel/policy.ts';
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
    if (backends.every((backend) => hasConnections(backend) || haveTls(backend))) return;
    context.report({
      code: 'AGW0104',
      message: `\`backendTLS\` has no effect on MCP servers at \`http:\` URLs and those of a named backend, but route \`${name}\` has some`,
      help: 'write their URLs with `https:`, or set `policies.backendTLS` of each MCP target or of the named backend',
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

/** Servers that have got the settings of the policy as their own. */
const haveTls = ({ connectsTo }: PolicyRoute['backends'][number]): boolean =>
  connectsTo.kind === 'servers' && connectsTo.haveTls;
