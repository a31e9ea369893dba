import { definePolicy } from '../kernel/policy.ts';
import { backendKey } from '../kernel/shared-slots.ts';
import { backendAuthSchema, readCredential } from '../transport/backend-credential.ts';

/** Sends a credential to the backend instead of that of the client. */
export const backendAuth = definePolicy({
  key: 'backendAuth',
  places: ['route', 'backend'],
  isForBackendCall: true,
  schema: backendAuthSchema.describe(
    "Credential for the backend, instead of the client's: `Authorization: Bearer` for a `host`, the header of the provider for models.",
  ),
  trace: { kind: 'backend_auth', stage: 'backend auth', isBackendPolicy: true },
  checkRoute(_config, { backends }, context) {
    if (!backends.some((backend) => 'mcp' in backend)) return;
    context.report({
      code: 'AGW0104',
      message: '`backendAuth` of a route has no effect on MCP servers',
      help: 'set `policies.backendAuth` of each of the `targets` that needs it',
    });
  },
  compile(config, context) {
    const key = readCredential(config.key, context.at('key'));
    return {
      request(ctx) {
        ctx.observer?.hide(key, true);
        if (key !== undefined) backendKey.set(ctx, key);
        return undefined;
      },
    };
  },
});
