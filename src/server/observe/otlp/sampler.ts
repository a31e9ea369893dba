import { type Context, createContextKey } from '@opentelemetry/api';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { RequestContext } from '../../kernel/request-context.ts';
import type { SamplingRule } from './settings.ts';

/** Key of the request context in the OpenTelemetry context passed to samplers. */
export const REQUEST = createContextKey('agctl request');

/**
 * Samples requests without a trace by `random` and those that continue a client's trace by `client`, whether or not the
 * client sampled its own part.
 */
export function createSampler(random: SamplingRule, client: SamplingRule): Sampler {
  const remote = samplerOf(client);
  return new ParentBasedSampler({
    root: samplerOf(random),
    remoteParentSampled: remote,
    remoteParentNotSampled: remote,
  });
}

function samplerOf(rule: SamplingRule): Sampler {
  if (typeof rule === 'function') return new ExpressionSampler(rule);
  if (typeof rule === 'number') return new TraceIdRatioBasedSampler(rule);
  return rule ? new AlwaysOnSampler() : new AlwaysOffSampler();
}

/** Samples by a CEL expression that returns a boolean or a ratio. Any other result does not sample. */
class ExpressionSampler implements Sampler {
  readonly #rule: (ctx: RequestContext) => unknown;

  constructor(rule: (ctx: RequestContext) => unknown) {
    this.#rule = rule;
  }

  shouldSample(context: Context, traceId: string): SamplingResult {
    const value = this.#rule(context.getValue(REQUEST) as RequestContext);
    if (typeof value === 'number') return new TraceIdRatioBasedSampler(value).shouldSample(context, traceId);
    return { decision: value === true ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
  }

  toString(): string {
    return 'Expression';
  }
}
