import { durationText } from '../../../core/duration.ts';
import { AppError } from '../../../core/errors.ts';
import { runForeign } from '../../kernel/foreign-code.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { answerIn } from './answer.ts';
import type { PolicyContext, PolicyDefinition } from './api.ts';
import { contextOf } from './hook-context.ts';
import { problemIn } from './module-files.ts';
import { type Outcome, POLICY_SCOPE, type PolicyUse } from './policy-use.ts';

export type HookName = Exclude<keyof PolicyDefinition, 'name' | 'options'>;

/** One call of a function of a policy. */
interface HookCall {
  readonly name: HookName;
  run(context: PolicyContext): unknown;
  /** Checks what the function has left, as a part of the call: what it throws is a failure of the policy. */
  check?(): void | Promise<void>;
}

/**
 * Calls a function of a policy, within its time limit. Resolves to the response that it returns, if any.
 *
 * @throws AppError `policy_denied`, `policy_failed`, or what reading the request has thrown
 */
export async function runHook(
  use: PolicyUse,
  ctx: RequestContext,
  call: HookCall,
): Promise<Response | undefined> {
  const { definition, redactor } = use;
  const { name } = call;
  const since = ctx.observer?.now ?? 0;
  const span = ctx.span?.call(`policy ${definition.name}`, { 'agctl.policy.function': name });
  const settle = (outcome: Outcome, what: string): void => {
    use.count(name, outcome);
    if (outcome === 'fail') span?.fail(what);
    else span?.end();
    const reason = `${definition.name}: ${name} ${what}`;
    ctx.observer?.policy({ kind: 'modules', action: ACTIONS[outcome], reason, since });
  };
  try {
    const answer = answerIn(name, await inTime(use, ctx, call));
    settle(
      answer === undefined ? 'pass' : 'answer',
      answer === undefined ? 'passes' : `answers with ${answer.status}`,
    );
    return answer;
  } catch (error) {
    ctx.reason = 'Policy';
    // Also what it found in the request, such as a body that is too large.
    if (error instanceof AppError && error.code !== 'policy_failed') {
      settle('deny', `denies: ${error.message}`);
      throw error;
    }
    const problem = redactor().line(problemIn(error));
    settle('fail', `fails: ${problem}`);
    if (!ctx.isAbandoned) tellFailure(use, name, problem);
    throw new AppError('policy_failed', { detail: `${definition.name}: ${problem}` });
  }
}

const ACTIONS = { pass: 'apply', answer: 'respond', deny: 'deny', fail: 'deny' } as const;

/** The code itself cannot be stopped: it is asked to by its signal, and what it returns or throws later is dropped. */
async function inTime(use: PolicyUse, ctx: RequestContext, call: HookCall): Promise<unknown> {
  const { timeout } = use;
  const ended = new AbortController();
  const code = {
    failed: (error: unknown) => tellFailure(use, call.name, use.redactor().line(problemIn(error))),
  };
  // Its listeners are called as its own code.
  const end = (why: string): Error => {
    const error = new Error(why);
    runForeign(code, () => ended.abort(error));
    return error;
  };
  let timer: NodeJS.Timeout | undefined;
  let left: (() => void) | undefined;
  try {
    const result = await Promise.race([
      runForeign(code, async () => call.run(contextOf(use, ctx, ended.signal))),
      new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(end(`it took longer than ${durationText(timeout)}`)), timeout);
        left = () => reject(end('the client disconnected'));
        ctx.signal.addEventListener('abort', left, { once: true });
      }),
    ]);
    await call.check?.();
    return result;
  } finally {
    clearTimeout(timer);
    if (left !== undefined) ctx.signal.removeEventListener('abort', left);
  }
}

function tellFailure({ definition, log }: PolicyUse, name: HookName, problem: string): void {
  log.error(POLICY_SCOPE, 'a policy has failed', { policy: definition.name, function: name, problem });
}
