import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import { durationSchema, goDuration } from '../../core/duration.ts';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { ResponseView } from '../expressions/request-variables.ts';
import { type DocumentedScope, NOT_ENDED, REQUEST_ROOTS, requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import { backendCaller } from '../kernel/backend.ts';
import type { Expression } from '../kernel/expression.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { retryAttempt } from '../kernel/request/shared-slots.ts';
import { handshake } from '../kernel/request/upgrade.ts';
import { isCallFailure } from '../transport/upstream/upstream-error.ts';

/** Scope of the condition on a response, whose body has not been read. */
export const retryScope: DocumentedScope = {
  name: 'retry',
  roots: [...REQUEST_ROOTS, 'response'],
  unavailable: {
    ...NOT_ENDED,
    'response.body': 'the body has not been read',
    'response.bodyPrefix': 'the body has not been read',
  },
  doc: "When a backend's response headers have arrived.",
  keys: ['policies.retry.condition', 'policies.extProc.responseAttributes'],
};

const schema = z.lazy(() =>
  mapping(
    'Repeats failed calls of backends. Not those of MCP servers that were sent, nor model calls that succeeded.',
    {
      attempts: z
        .int()
        .min(1)
        .max(255)
        .default(1)
        .describe('How often a failed call is repeated, if possible at another backend.'),
      backoff: durationSchema.optional().describe('Wait before each repetition; none by default.'),
      codes: z
        .array(z.int().min(100).max(599))
        .describe(
          'Statuses of responses after which the call is repeated. Calls that could not connect are always repeated.',
        ),
      precondition: nonEmpty
        .optional()
        .describe('CEL expression on the request: unless it is true, the call is not repeated.'),
      condition: nonEmpty
        .optional()
        .describe(
          'CEL expression on the response (`response`): if it is true, the call is repeated, whatever its status.',
        ),
    },
  ),
);

type Config = z.output<typeof schema>;

/** Repeats failed calls of backends, within a budget. */
export const retry = definePolicy({
  key: 'retry',
  requestExpressions: ['precondition'],
  schema,
  trace: { kind: 'retry', stage: 'retry' },
  dump: ({ backoff, ...rest }) => ({
    retry: { ...rest, ...(backoff === undefined ? {} : { backoff: goDuration(backoff) }) },
  }),
  checkRoute({ codes }, { name, backends }, context) {
    if (codes.length === 0 || !backends.every(({ api }) => api === 'mcp') || backends.length === 0) return;
    context.at('codes').report({
      code: 'AGW0303',
      message: `\`retry.codes\` has no effect: route \`${name}\` leads to MCP servers only`,
      label: 'a tool may have run although its server answered with an error',
      help: 'only calls that could not connect are repeated',
    });
  },
  compile(config, context) {
    const { precondition, condition } = config;
    const before =
      precondition === undefined
        ? undefined
        : context.at('precondition').condition(precondition, requestScope);
    const after =
      condition === undefined ? undefined : context.at('condition').condition(condition, retryScope);
    const budget = new RetryBudget();
    return {
      async request(ctx) {
        if (before !== undefined && tryEvaluate(before, resolverFor(ctx)) !== true) return undefined;
        if (!(await isReplayable(ctx))) return undefined;
        backendCaller.set(ctx, (call) => callWithRetries(ctx, call, { config, condition: after, budget }));
        return undefined;
      },
    };
  },
});

interface Plan {
  readonly config: Config;
  readonly condition: Expression | undefined;
  readonly budget: RetryBudget;
}

/** Whether the request can be sent again: a body must be small enough to be kept (upstream: 64 KiB). */
async function isReplayable(ctx: RequestContext): Promise<boolean> {
  if (handshake.get(ctx) !== undefined) return false;
  const { headers } = ctx.request;
  // A body of unknown length is streamed: waiting for it would hold up the backend's answer to its beginning.
  if (
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) <= LIMITS.smallBody
  )
    await ctx.body.capture(LIMITS.smallBody);
  return ctx.body.captured !== undefined;
}

async function callWithRetries(ctx: RequestContext, call: () => Promise<Reply>, plan: Plan): Promise<Reply> {
  const { config, budget } = plan;
  const restore = savedRequest(ctx);
  let isRetrying = false;
  const stopRetrying = (): void => {
    if (isRetrying) budget.give();
    isRetrying = false;
  };
  budget.began();
  try {
    for (let repetition = 0; ; repetition += 1) {
      const outcome = await call().catch((error: unknown) => ({ error }));
      stopRetrying();
      const why = repetition < config.attempts ? whyRepeat(ctx, outcome, plan) : undefined;
      if (why === undefined || !budget.take()) return settled(ctx, outcome, why);
      isRetrying = true;
      discard(outcome);
      ctx.observer?.policy({ kind: 'retry', action: 'apply', reason: `call ${repetition + 2}: ${why}` });
      await backoff(ctx, config.backoff);
      restore();
      retryAttempt.set(ctx, repetition + 1);
      ctx.headers.set('x-retry-attempt', String(repetition + 1));
    }
  } finally {
    stopRetrying();
    budget.ended();
  }
}

type Outcome = Reply | { readonly error: unknown };

function settled(ctx: RequestContext, outcome: Outcome, why: string | undefined): Reply {
  if (why !== undefined)
    ctx.observer?.policy({ kind: 'retry', action: 'skip', reason: `the retry budget is used up; ${why}` });
  if ('error' in outcome) throw outcome.error;
  return outcome;
}

/** Methods whose repetition has the effect of one call (RFC 9110 §9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/** Why the call may be repeated; undefined if it may not. */
function whyRepeat(ctx: RequestContext, outcome: Outcome, { config, condition }: Plan): string | undefined {
  if (ctx.isAbandoned) return undefined;
  const { protocol } = ctx;
  if ('error' in outcome) {
    const { error } = outcome;
    if (!(error instanceof AppError) || !isCallFailure(error)) return undefined;
    // Nothing was sent. After any other failure, the backend may have processed the request.
    if (error.code === 'upstream_unreachable') return error.message;
    return protocol === 'http' && IDEMPOTENT.has(ctx.method) ? error.message : undefined;
  }
  const { status } = outcome;
  // A tool may have run. A model that has answered costs money.
  if (protocol === 'mcp' || (protocol === 'llm' && status < 400)) return undefined;
  if (typeof outcome.body === 'object' && 'takeOver' in outcome.body) return undefined;
  if (config.codes.includes(status)) return `status ${status}`;
  if (condition === undefined) return undefined;
  const response = new ResponseView(status, outcome.headers.raw, () => undefined);
  return tryEvaluate(condition, resolverFor(ctx, { response })) === true
    ? 'its condition is true'
    : undefined;
}

function discard(outcome: Outcome): void {
  if ('error' in outcome) return;
  const { body } = outcome;
  if (typeof body === 'object' && 'discard' in body) body.discard();
}

/** Waits, but not for a client that has left or a request that has timed out. */
async function backoff(ctx: RequestContext, wait: number | undefined): Promise<void> {
  if (wait !== undefined && wait > 0)
    await setTimeout(wait, undefined, { signal: ctx.signal }).catch(() => undefined);
  if (ctx.isAbandoned) throw new AppError('request_timeout');
}

/** Returns a function that undoes what a call has changed of the request. */
function savedRequest(ctx: RequestContext): () => void {
  const { method, path, query, host } = ctx;
  const raw = ctx.headers.raw.slice();
  const entered = ctx.entered.length;
  return () => {
    // Policies of the backend that failed.
    for (const policy of ctx.entered.splice(entered)) policy.repeated?.(ctx);
    Object.assign(ctx, { method, path, query, host });
    ctx.headers.raw.splice(0, ctx.headers.raw.length, ...raw);
    ctx.forgetFailure();
  };
}

/** Bounds the retries of one policy to a share of its open requests. */
class RetryBudget {
  #open = 0;
  #retrying = 0;

  began(): void {
    this.#open += 1;
  }

  ended(): void {
    this.#open -= 1;
  }

  /** Takes one retry of the budget, and returns whether there was one left. */
  take(): boolean {
    if (this.#retrying >= Math.max(LIMITS.retryConcurrency, this.#open * LIMITS.retryShare)) return false;
    this.#retrying += 1;
    return true;
  }

  give(): void {
    this.#retrying -= 1;
  }
}
