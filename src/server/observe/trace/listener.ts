import type { Redactor } from '../../../core/redact.ts';
import type { SecretNames } from '../../kernel/compile-context.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import { type CostOutcome, llmCall } from '../../llm/call.ts';
import type { Usage } from '../../llm/usage.ts';
import { traceListener } from './trace-observer.ts';
import type { Tracer } from './tracer.ts';

/** The part of `frontendPolicies` that traces show. */
interface FrontendConfig {
  readonly http: object;
  readonly accessLog: {
    readonly filter?: unknown;
    readonly remove: readonly unknown[];
    readonly add: object;
  };
}

/** Starts the trace of a request: emits the request and the policies that apply before routing. */
export function traceBegin(
  tracer: Tracer,
  frontendPolicies: FrontendConfig,
  {
    secretNames,
    redactor,
    tracing,
  }: { readonly secretNames: SecretNames; redactor(): Redactor; readonly tracing: object | undefined },
): void {
  tracer.begin({ names: secretNames, redactor: redactor() });
  const { accessLog, http } = frontendPolicies;
  const isChanged =
    accessLog.filter !== undefined || accessLog.remove.length > 0 || Object.keys(accessLog.add).length > 0;
  traceListener(tracer, {
    effective: { http, ...(isChanged ? { access_log: accessLog } : {}) },
    exportsSpans: tracing !== undefined,
  });
}

/** Ends the trace of a request after its access-log line: emits the cost of an LLM call first. */
export function traceEnd(tracer: Tracer, ctx: RequestContext): void {
  const llm = llmCall.get(ctx);
  if (llm?.cost !== undefined) {
    const { provider, responseModel, providerModel, requestModel, usage, cost } = llm;
    const model = responseModel ?? providerModel ?? requestModel;
    tracer.emit(
      {
        type: 'policyEvent',
        kind: 'llm_cost',
        details: { provider, model, ...costDetails(cost, usage) },
      },
      { severity: cost.status === 'Exact' ? 'info' : 'warn' },
    );
  }
  tracer.end();
}

function costDetails({ status, reason, total, parts, rates }: CostOutcome, usage: Usage | undefined): object {
  return {
    status: status.charAt(0).toLowerCase() + status.slice(1),
    ...(reason === undefined ? {} : { reason }),
    ...(usage === undefined ? {} : { usage: tokenCounts(usage) }),
    ...(rates === undefined ? {} : { rates }),
    ...(parts === undefined ? {} : { cost: { total, ...parts } }),
  };
}

/** Known token counts under their names in trace events. */
function tokenCounts(usage: Usage): Record<string, number> {
  const { input, output, cachedInput, cacheWrite, reasoning, inputAudio, outputAudio } = usage;
  const counts = {
    input_tokens: input,
    output_tokens: output,
    cache_read_input_tokens: cachedInput,
    cache_creation_input_tokens: cacheWrite,
    reasoning_tokens: reasoning,
    input_audio_tokens: inputAudio,
    output_audio_tokens: outputAudio,
  };
  return Object.fromEntries(
    Object.entries(counts).filter((entry): entry is [string, number] => entry[1] !== undefined),
  );
}
