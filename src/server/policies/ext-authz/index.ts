import { definePolicy } from '../../kernel/policy.ts';
import { ask } from './ask.ts';
import { compilePlan } from './plan.ts';
import { schema } from './schema.ts';

/** External authorization over HTTP. */
export const extAuthz = definePolicy({
  key: 'extAuthz',
  schema,
  compile(config, context) {
    const plan = compilePlan(config, context);
    if (plan === undefined) return {};
    return { request: (x) => ask(x, plan), close: () => plan.upstream.close() };
  },
});
