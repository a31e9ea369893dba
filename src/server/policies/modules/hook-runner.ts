import { durationText } from '../../../core/duration.ts';
import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { jwtClaims } from '../../kernel/request/shared-slots.ts';
import { Slot } from '../../kernel/slot.ts';
import { keyMetadata } from '../api-key.ts';
import { userName } from '../basic-auth/index.ts';
import type { PolicyCaller, PolicyContext, PolicyDefinition } from './api.ts';
import { problemIn } from './module-files.ts';

/** A policy as an entry of the configuration uses it. */
export interface PolicyUse {
  readonly definition: PolicyDefinition;
  readonly options: unknown;
  /** How long a function may take, in ms. */
  readonly timeout: number;
  readonly log: Log;
  /** Counts a call of a function. */
  count(name: string, outcome: 'pass' | 'answer' | 'deny' | 'fail'): void;
}

type HookName = Exclude<keyof PolicyDefinition, 'name' | 'options'>;

const SCOPE = 'agctl::policy';

const states = new Slot<Map<PolicyUse, Map<string, unknown>>>();

/**
 * Calls a function of a policy, within its time limit. Returns what it returns, without a promise if it has none.
 *
 * @throws AppError `policy_denied`, `policy_failed`, or what reading the request has thrown
 */
export function runHook(
  use: PolicyUse,
  ctx: RequestContext,
  name: HookName,
  call: (context: PolicyContext) => unknown,
): unknown {
  const { definition, timeout } = use;
  const since = ctx.observer?.now ?? 0;
  const span = ctx.span?.call(`policy ${definition.name}`, { 'agctl.policy.function': name });
  const ended = new AbortController();
  const settle = (outcome: 'pass' | 'answer' | 'deny' | 'fail', reason: string): void => {
    use.count(name, outcome);
    if (outcome === 'fail') span?.fail(reason);
    else span?.end();
    ctx.observer?.policy({
      kind: 'modules',
      action: ACTIONS[outcome],
      reason: `${definition.name}: ${reason}`,
      since,
    });
  };
  const passed = (value: unknown): unknown => {
    const isAnswer = value instanceof Response;
    settle(
      isAnswer ? 'answer' : 'pass',
      isAnswer ? `${name} answers with ${value.status}` : `${name} passes`,
    );
    return value;
  };
  const failed = (error: unknown): never => {
    ended.abort(error);
    // Also what it found in the request, such as a body that is too large.
    if (error instanceof AppError && error.code !== 'policy_failed') {
      settle('deny', `${name} denies: ${error.message}`);
      throw error;
    }
    const problem = error instanceof AppError ? (error.detail ?? error.message) : problemIn(error);
    settle('fail', `${name} fails: ${problem}`);
    if (!ctx.isAbandoned)
      use.log.error(SCOPE, 'a policy has failed', { policy: definition.name, function: name, problem });
    throw new AppError('policy_failed', { detail: `${definition.name}: ${problem}`, cause: error });
  };
  let result: unknown;
  try {
    result = call(contextOf(use, ctx, ended.signal));
  } catch (error) {
    return failed(error);
  }
  if (!isThenable(result)) return passed(result);
  return inTime(Promise.resolve(result), timeout, ctx.signal).then(passed, failed);
}

const ACTIONS = { pass: 'apply', answer: 'respond', deny: 'deny', fail: 'deny' } as const;

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';

/** The code itself cannot be stopped: it is asked to by its signal, and what it returns later is dropped. */
async function inTime(result: Promise<unknown>, timeout: number, gone: AbortSignal): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  let left: (() => void) | undefined;
  try {
    return await Promise.race([
      result,
      new Promise((_resolve, reject) => {
        timer = setTimeout(
          () =>
            reject(new AppError('policy_failed', { detail: `it took longer than ${durationText(timeout)}` })),
          timeout,
        );
        left = () => reject(new AppError('policy_failed', { detail: 'the client disconnected' }));
        gone.addEventListener('abort', left);
      }),
    ]);
  } finally {
    clearTimeout(timer);
    if (left !== undefined) gone.removeEventListener('abort', left);
  }
}

function contextOf(use: PolicyUse, ctx: RequestContext, ended: AbortSignal): PolicyContext {
  return {
    options: use.options,
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
    get signal() {
      return AbortSignal.any([ctx.signal, ended]);
    },
    deny(message, status = 403) {
      if (!Number.isInteger(status) || status < 400 || status > 599)
        throw new RangeError(`\`deny\`: expected a status from 400 to 599, found ${String(status)}`);
      throw new AppError('policy_denied', {
        message: String(message).slice(0, LIMITS.denialLength),
        status,
        detail: `denied by the policy ${use.definition.name}`,
      });
    },
    log(level, message, fields = {}) {
      if (!['error', 'warn', 'info', 'debug'].includes(level))
        throw new TypeError(`\`log\`: unknown level ${String(level)}`);
      use.log[level](SCOPE, String(message), { policy: use.definition.name, ...fields });
    },
  };
}

function callerOf(ctx: RequestContext): PolicyCaller {
  const claims = jwtClaims.get(ctx);
  const key = keyMetadata.get(ctx);
  const user = userName.get(ctx);
  return { ...(claims && { claims }), ...(key && { key }), ...(user !== undefined && { user }) };
}
