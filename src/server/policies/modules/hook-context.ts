import { AppError } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { jwtClaims } from '../../kernel/request/shared-slots.ts';
import { Slot } from '../../kernel/slot.ts';
import { keyMetadata } from '../api-key.ts';
import { userName } from '../basic-auth/index.ts';
import type { PolicyCaller, PolicyContext } from './api.ts';
import { POLICY_SCOPE, type PolicyUse } from './policy-use.ts';

const states = new Slot<Map<PolicyUse, Map<string, unknown>>>();

const LEVELS: readonly string[] = ['error', 'warn', 'info', 'debug'];

/** What a function of a policy gets beside its message. `ended` is aborted when it should end. */
export function contextOf(use: PolicyUse, ctx: RequestContext, ended: AbortSignal): PolicyContext {
  const { definition, options, log, redactor } = use;
  return {
    options,
    route: ctx.route,
    address: ctx.client.address,
    get caller() {
      return callerOf(ctx);
    },
    get state() {
      const all = states.ensure(ctx, () => new Map());
      const known = all.get(use) ?? new Map<string, unknown>();
      all.set(use, known);
      return known;
    },
    signal: ended,
    deny(message: unknown, status: unknown = 403) {
      if (typeof status !== 'number' || !Number.isInteger(status) || status < 400 || status > 599)
        throw new RangeError(`\`deny\`: expected a status from 400 to 599, found ${String(status)}`);
      const text = typeof message === 'string' ? redactor().text(message).slice(0, LIMITS.denialLength) : '';
      throw new AppError('policy_denied', {
        ...(text !== '' && { message: text }),
        status,
        detail: `denied by the policy ${definition.name}`,
      });
    },
    log(level, message, fields) {
      if (!LEVELS.includes(level)) throw new TypeError(`\`log\`: expected one of ${LEVELS.join(', ')}`);
      const clean = membersOf(redactor().value(membersOf(fields)));
      log[level](POLICY_SCOPE, redactor().line(String(message)), { ...clean, policy: definition.name });
    },
  };
}

function callerOf(ctx: RequestContext): PolicyCaller {
  const claims = jwtClaims.get(ctx);
  const key = keyMetadata.get(ctx);
  const user = userName.get(ctx);
  return { ...(claims && { claims }), ...(key && { key }), ...(user !== undefined && { user }) };
}
