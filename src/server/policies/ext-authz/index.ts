import { definePolicy, readsMemberOf } from '../../kernel/policy.ts';
import { ask } from './ask.ts';
import { compilePlan } from './plan.ts';
import { schema } from './schema.ts';

/** External authorization over HTTP. */
export const extAuthz = definePolicy({
  key: 'extAuthz',
  schema,
  trace: { kind: 'ext_auth', stage: 'ext authz' },
  dump: ({ host, protocol, ...rest }) => ({
    extAuthz: { host, ...rest, protocol: protocol ?? { http: {} } },
  }),
  sets: {
    isReadBy: (expression) => readsMemberOf('extauthz', expression),
    unset: (route) => ({
      code: 'AGW0309',
      severity: 'warning',
      message: `route \`${route}\` reads \`extauthz\`, but nothing on it sets that`,
      help: 'add the policy `extAuthz`; until then `extauthz` is null',
    }),
  },
  compile(config, context) {
    const plan = compilePlan(config, context);
    if (plan === undefined) return {};
    return { request: (ctx) => ask(ctx, plan), close: () => plan.upstream.close() };
  },
});
