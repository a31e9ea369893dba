import { z } from 'zod';
import { AppError, ERRORS, messageOf } from '../../core/errors.ts';
import { membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { type DocumentedScope, REQUEST_ROOTS, requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Expression, VariableResolver } from '../kernel/expression.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { tokenListeners } from '../kernel/request/shared-slots.ts';
import { Slot } from '../kernel/slot.ts';
import { createGrpcService, type GrpcService } from '../transport/services/grpc.ts';
import { servicePoliciesSchema } from '../transport/services/service-policies.ts';
import {
  compileService,
  isOneReference,
  serviceFields,
  serviceMeta,
} from '../transport/services/service-reference.ts';
import { headerOf } from './envoy/messages.ts';
import {
  type RateLimitAnswer,
  type RateLimitDescriptor,
  rateLimitAnswerIn,
  rateLimitService,
  UNITS,
} from './envoy/rate-limit-service.ts';

/** Scope of the cost of model calls, which is known when they have ended. */
export const tokenCostScope: DocumentedScope = {
  name: 'tokenCost',
  roots: [...REQUEST_ROOTS, 'response', 'llm'],
  unavailable: {},
  doc: 'When a model call has ended.',
  keys: [],
  also: '`cost` of descriptors of `tokens` in `remoteRateLimit`',
};

const expression = z.string().min(1);

const descriptorSchema = z.lazy(() =>
  z.strictObject({
    entries: z
      .array(
        z.strictObject({
          key: z.string().min(1).describe('Key of the entry.'),
          value: expression.describe(
            'CEL expression for its value: text, a number or a boolean. If it fails, the descriptor is not sent.',
          ),
        }),
      )
      .min(1)
      .describe('Entries of the descriptor.'),
    type: z
      .enum(['requests', 'tokens'])
      .default('requests')
      .describe('What is counted: requests, or LLM tokens, which are reported when a call has ended.'),
    cost: expression
      .optional()
      .describe(
        'CEL expression for the number to count: 1 by default, for `tokens` all tokens of the call. If it fails, the descriptor is not sent.',
      ),
    limitOverride: expression
      .optional()
      .describe(
        'CEL expression for the limit to apply, such as `{"unit": "minute", "requestsPerUnit": 100}`. If it fails, the descriptor is not sent.',
      ),
  }),
);

const schema = z.lazy(() =>
  z
    .strictObject({
      ...serviceFields,
      domain: z.string().min(1).describe('Domain of the limits at the service.'),
      descriptors: z.array(descriptorSchema).min(1).describe('What the service counts and limits.'),
      failureMode: z
        .enum(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'])
        .default('failClosed')
        .describe(
          'What happens if the service fails: `failClosed` answers 500, `failOpen` allows the request.',
        ),
      policies: servicePoliciesSchema.optional(),
    })
    .check(isOneReference)
    .meta(serviceMeta)
    .describe("Rate limits that a service counts which implements Envoy's `RateLimitService` (gRPC)."),
);

type DescriptorConfig = z.output<typeof descriptorSchema>;

/** Rate limits of a service, for several gateways. */
export const remoteRateLimit = definePolicy({
  key: 'remoteRateLimit',
  conditional: true,
  requestExpressions: ['descriptors[].entries[].value', 'descriptors[].cost', 'descriptors[].limitOverride'],
  schema,
  trace: { kind: 'remote_rate_limit', stage: 'remote rate limit' },
  compile({ domain, descriptors, failureMode, ...reference }, context) {
    const found = compileService(reference, context);
    const service =
      found &&
      createGrpcService(found, rateLimitService, {
        maxBytes: LIMITS.rateLimitResponse,
        meter: context.settings.callMeter('Policy', 'RateLimit'),
      });
    const compiled = descriptors.map((one, index) =>
      compileDescriptor(one, context.at('descriptors', index)),
    );
    if (found === undefined || service === undefined) return {};
    const limit: Limit = {
      service,
      domain,
      requests: compiled.filter(({ type }) => type === 'requests'),
      tokens: compiled.filter(({ type }) => type === 'tokens'),
      isOpen: failureMode.toLowerCase() === 'failopen',
      timeout: found.connection.requestTimeout ?? context.settings.limits.rateLimitTimeout,
      log: context.log,
    };
    return {
      async request(ctx) {
        await check(ctx, limit, 'requests', descriptorsOf(limit.requests, ctx));
        if (limit.tokens.length === 0 || ctx.api?.usesTokens(ctx) !== true) return undefined;
        // Nothing is known of the tokens yet: zero asks without counting.
        const sent = limit.tokens.flatMap((one) => {
          const descriptor = descriptorOf(one, resolverFor(ctx));
          return descriptor === undefined ? [] : [{ ...one, descriptor }];
        });
        await check(
          ctx,
          limit,
          'tokens',
          sent.map(({ descriptor }) => ({ ...descriptor, hits_addend: { value: 0 } })),
        );
        tokenListeners
          .ensure(ctx, () => [])
          .push((tokens) => {
            // The protocol has no way to return tokens (`hits_addend` is unsigned).
            if (tokens >= 0) reportTokens(ctx, limit, sent, tokens);
          });
        return undefined;
      },
      response(ctx, reply) {
        for (const [name, value] of answerHeaders.get(ctx) ?? [])
          if (!reply.headers.has(name)) reply.headers.set(name, value);
      },
      close: () => service.close(),
    };
  },
});

/** Headers of the service, and `x-ratelimit-*`, for the response to the client. */
const answerHeaders = new Slot<readonly (readonly [string, string])[]>();

interface Descriptor {
  readonly type: DescriptorConfig['type'];
  readonly entries: readonly { readonly key: string; readonly value: Expression }[];
  readonly cost: Expression | undefined;
  readonly limitOverride: Expression | undefined;
}

interface Limit {
  readonly service: GrpcService;
  readonly domain: string;
  readonly requests: readonly Descriptor[];
  readonly tokens: readonly Descriptor[];
  readonly isOpen: boolean;
  /** Maximum time of a call, in ms. */
  readonly timeout: number;
  readonly log: CompileContext['log'];
}

function compileDescriptor(
  { type, entries, cost, limitOverride }: DescriptorConfig,
  context: CompileContext,
): Descriptor {
  return {
    type,
    entries: entries.map(({ key, value }, index) => ({
      key,
      value: context.at('entries', index, 'value').cel(value, requestScope),
    })),
    cost:
      cost === undefined
        ? undefined
        : context.at('cost').cel(cost, type === 'tokens' ? tokenCostScope : requestScope),
    limitOverride:
      limitOverride === undefined ? undefined : context.at('limitOverride').cel(limitOverride, requestScope),
  };
}

/** The descriptors of requests, each with its cost. */
function descriptorsOf(descriptors: readonly Descriptor[], ctx: RequestContext): RateLimitDescriptor[] {
  const lookup = resolverFor(ctx);
  return descriptors.flatMap((one) => {
    const descriptor = descriptorOf(one, lookup);
    if (descriptor === undefined || one.cost === undefined) return descriptor ?? [];
    const value = costOf(one.cost, lookup);
    return value === undefined ? [] : [{ ...descriptor, hits_addend: { value } }];
  });
}

/** A descriptor without cost; undefined if one of its expressions fails (Envoy: all entries or none). */
function descriptorOf(
  { entries, limitOverride }: Descriptor,
  lookup: VariableResolver,
): RateLimitDescriptor | undefined {
  const values: { key: string; value: string }[] = [];
  for (const { key, value } of entries) {
    const result = tryEvaluate(value, lookup);
    if (typeof result !== 'string' && typeof result !== 'number' && typeof result !== 'boolean')
      return undefined;
    values.push({ key, value: String(result) });
  }
  if (limitOverride === undefined) return { entries: values };
  const limit = overrideOf(tryEvaluate(limitOverride, lookup));
  return limit && { entries: values, limit };
}

function overrideOf(value: unknown): RateLimitDescriptor['limit'] {
  const { unit, requestsPerUnit } = membersOf(value);
  const number = typeof unit === 'string' ? UNITS[unit.toLowerCase()] : undefined;
  return number !== undefined && isCount(requestsPerUnit) && requestsPerUnit < 2 ** 32
    ? { requests_per_unit: requestsPerUnit, unit: number }
    : undefined;
}

function costOf(cost: Expression, lookup: VariableResolver): number | undefined {
  const value = tryEvaluate(cost, lookup);
  return isCount(value) ? value : undefined;
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

/** Asks the service. Throws `rate_limited` if a limit is reached, and `rate_limit_failed` if the service fails. */
async function check(
  ctx: RequestContext,
  { service, domain, timeout, isOpen }: Limit,
  unit: DescriptorConfig['type'],
  descriptors: readonly RateLimitDescriptor[],
): Promise<void> {
  if (descriptors.length === 0) return;
  const since = ctx.observer?.now ?? 0;
  let answer: RateLimitAnswer;
  try {
    const options = { timeout, signal: ctx.signal, span: ctx.span };
    answer = rateLimitAnswerIn(await service.call('ShouldRateLimit', { domain, descriptors }, options));
  } catch (error) {
    if (ctx.isAbandoned)
      throw new AppError('rate_limit_failed', { detail: ctx.abandonReason ?? 'the client disconnected' });
    const detail = `${service.address}: ${messageOf(error)}`;
    ctx.observer?.policy({
      kind: 'remoteRateLimit',
      action: isOpen ? 'skip' : 'deny',
      reason: `the service failed: ${detail}`,
      since,
    });
    if (isOpen) return;
    throw new AppError('rate_limit_failed', { detail });
  }
  const headers = statusHeaders(answer);
  for (const one of answer.responseHeaders) {
    const header = headerOf(one);
    if (header !== undefined) headers.push(header);
  }
  if (answer.isOverLimit) {
    ctx.observer?.policy({ kind: 'remoteRateLimit', action: 'deny', reason: 'a limit is reached', since });
    const text = answer.body;
    const { limit, resetSeconds = 0 } = answer.lowest ?? {};
    const counted = unit === 'tokens' ? 'LLM tokens' : 'requests';
    if (resetSeconds > 0 && !headers.some(([name]) => name.toLowerCase() === 'retry-after'))
      headers.push(['retry-after', String(resetSeconds)]);
    const { text: exceeded } = ERRORS.rate_limited;
    const what = limit === undefined ? `a limit of ${counted}` : `a limit of ${limit} ${counted}`;
    const wait = resetSeconds > 0 ? `; try again in ${resetSeconds} s` : '';
    throw new AppError('rate_limited', {
      message: `${exceeded}: ${what} that a rate limit service counts${wait}`,
      logged: exceeded,
      detail: `${service.address}: domain ${domain}`,
      headers: headers.flat(),
      ...(text === '' ? {} : { body: { type: 'text/plain; charset=utf-8', text } }),
    });
  }
  answerHeaders.set(ctx, [...(answerHeaders.get(ctx) ?? []), ...headers]);
  for (const one of answer.requestHeaders) {
    const [name, value] = headerOf(one) ?? [];
    if (name !== undefined && value !== undefined) ctx.headers.set(name, value);
  }
  ctx.observer?.policy({ kind: 'remoteRateLimit', action: 'apply', reason: 'no limit is reached', since });
}

/** `x-ratelimit-*` of the limit with the fewest requests left. */
function statusHeaders({ lowest }: RateLimitAnswer): (readonly [string, string])[] {
  if (lowest === undefined) return [];
  return [
    ['x-ratelimit-limit', String(lowest.limit)],
    ['x-ratelimit-remaining', String(lowest.remaining)],
    ['x-ratelimit-reset', String(lowest.resetSeconds)],
  ];
}

/** Reports the tokens of a call that has ended. The client has its answer, so a failure is only logged. */
function reportTokens(
  ctx: RequestContext,
  { service, domain, timeout, log }: Limit,
  sent: readonly (Descriptor & { readonly descriptor: RateLimitDescriptor })[],
  tokens: number,
): void {
  const lookup = resolverFor(ctx);
  const descriptors = sent.flatMap(({ cost, descriptor }) => {
    const value = cost === undefined ? tokens : costOf(cost, lookup);
    return value === undefined ? [] : [{ ...descriptor, hits_addend: { value } }];
  });
  if (descriptors.length === 0) return;
  const options = { timeout, signal: AbortSignal.timeout(timeout) };
  service.call('ShouldRateLimit', { domain, descriptors }, options).catch((error: unknown) =>
    log.warn('proxy::rate_limit', 'tokens could not be reported to the rate limit service', {
      service: service.address,
      problem: messageOf(error),
    }),
  );
}
