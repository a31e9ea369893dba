import { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import { readsOfBody, rejectCaseVariants } from '../../expressions/read-members.ts';
import { compileRules, reportPlainRules, ruleList } from '../../expressions/rules.ts';
import { requestScope } from '../../expressions/scopes.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';

/** `authorization` of a model: as the policy of that name, for calls of one model. */
export const modelAuthorizationSchema = z
  .strictObject({
    rules: ruleList('CEL expressions, as in the policy `authorization`. A call that they reject gets 403.'),
  })
  .describe('Who may call this model, also as a target of a virtual model.');

/** Throws an `AppError` for a request that the rules of a model reject (403), or whose body may mean something else (400). */
export type ModelAuthorization = (ctx: RequestContext) => void;

/** Compiles the rules of a model. */
export function compileModelAuthorization(
  { rules }: z.output<typeof modelAuthorizationSchema>,
  context: CompileContext,
): ModelAuthorization {
  reportPlainRules(rules, context);
  const decide = compileRules(rules, 'require', requestScope, context);
  const reads = readsOfBody(decide.rules);
  return (ctx) => {
    const decision = decide(resolverFor(ctx));
    ctx.observer?.authorization('authorization', decision);
    if (!decision.allowed) throw new AppError('authorization_failed', { detail: decision.reason });
    rejectCaseVariants(reads, ctx);
  };
}
