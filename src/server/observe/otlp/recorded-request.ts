import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { withoutTokens } from '../../../core/credentials.ts';
import { LIMITS } from '../../../core/limits.ts';
import { byForm } from '../../../core/redact.ts';
import type { AttributeValue, CallSpan, HttpCall, RequestSpan } from '../../kernel/observer.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { Route } from '../../kernel/routing/route.ts';
import { type LlmCall, llmCall } from '../../llm/llm-call.ts';
import {
  type Failure,
  methodAttributes,
  modelAnswer,
  modelCall,
  seconds,
  serverAttributes,
} from './attributes.ts';

/**
 * The SDK spans of a sampled request. All spans end with the request, with their own end times: only then is it known
 * whether the request passes `filter`, and spans that never end are not exported.
 */
export class RecordedRequest implements RequestSpan {
  readonly traceId: string;
  readonly spanId: string;
  route: Route | undefined;
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #context: Context;
  readonly #request: RequestContext;
  /** Offset from the monotonic clock to Unix time in ms. One offset for all spans keeps calls within their request. */
  readonly #clockToEpoch: number;
  readonly #calls: RecordedCall[] = [];

  constructor(tracer: Tracer, context: Context, request: RequestContext) {
    const { timings } = request;
    const { startedAt } = timings;
    this.#request = request;
    this.#tracer = tracer;
    this.#clockToEpoch = startedAt - timings.started;
    this.#span = tracer.startSpan('unknown', { kind: SpanKind.SERVER, startTime: startedAt }, context);
    this.#context = trace.setSpan(context, this.#span);
    const { traceId, spanId } = this.#span.spanContext();
    this.traceId = traceId;
    this.spanId = spanId;
  }

  routed(route: Route | undefined): void {
    this.route = route;
  }

  setAttribute(name: string, value: AttributeValue): void {
    this.#span.setAttribute(name, value);
  }

  call(
    name: string,
    attributes: Readonly<Record<string, AttributeValue>>,
    address?: string,
  ): RecordedCall | undefined {
    if (this.#calls.length >= LIMITS.spansPerRequest) return undefined;
    const span = this.#tracer.startSpan(
      name,
      {
        kind: SpanKind.CLIENT,
        startTime: this.#now(),
        attributes: { ...attributes, ...(address === undefined ? {} : serverAttributes(address)) },
      },
      this.#context,
    );
    const call = new RecordedCall(span, () => this.#now());
    this.#calls.push(call);
    return call;
  }

  http({ kind, subtype, method, address, origin, path }: HttpCall): CallSpan | undefined {
    const llm = subtype === 'Llm' ? llmCall.get(this.#request) : undefined;
    const known = methodAttributes(method);
    const name = known['http.request.method'] === method ? method : 'HTTP';
    const model = llm && modelCall(llm);
    const attributes = {
      'agentgateway.outbound.kind': kind,
      'agentgateway.outbound.subtype': subtype,
      ...known,
      // Without the query, which may hold credentials.
      'url.full': origin + withoutTokens(path.split('?')[0] ?? ''),
      ...model?.attributes,
    };
    const call = this.call(
      model?.name ?? (kind === 'Policy' ? `${name} ${subtype}` : name),
      attributes,
      address,
    );
    if (call !== undefined) call.llm = llm;
    return call;
  }

  /** Whether the call to the model that answered has a span. */
  get hasModelCall(): boolean {
    const llm = llmCall.get(this.#request);
    return llm !== undefined && this.#calls.some((call) => call.llm === llm);
  }

  /** Ends the spans of the request, which hands them to the span processor. */
  end(name: string, attributes: Attributes, failure: Failure | undefined): void {
    const now = this.#now();
    for (const call of this.#calls) {
      call.export(now, this.#firstToken(call));
    }
    this.#span.updateName(name).setAttributes(attributes);
    if (failure !== undefined) setError(this.#span, failure.message);
    this.#span.end(now);
  }

  /** Seconds from an LLM call to the first token of its response. */
  #firstToken({ llm, startedAt }: RecordedCall): number | undefined {
    if (llm?.streaming !== true || llm.firstTokenAfter === undefined) return undefined;
    return seconds(this.#request.timings.startedAt + llm.firstTokenAfter - startedAt);
  }

  #now(): number {
    return performance.now() + this.#clockToEpoch;
  }
}

class RecordedCall implements CallSpan {
  /** Set if this is an LLM call. */
  llm: LlmCall | undefined;
  readonly startedAt: number;
  readonly #span: Span;
  readonly #now: () => number;
  #endedAt: number | undefined;

  constructor(span: Span, now: () => number) {
    this.#span = span;
    this.#now = now;
    this.startedAt = now();
  }

  get traceparent(): string {
    const { traceId, spanId } = this.#span.spanContext();
    return `00-${traceId}-${spanId}-01`;
  }

  setAttribute(name: string, value: AttributeValue): void {
    this.#span.setAttribute(name, value);
  }

  end(status?: number): void {
    if (this.#endedAt !== undefined) return;
    this.#endedAt = this.#now();
    if (status === undefined) return;
    this.#span.setAttribute('http.response.status_code', status);
    if (status < 400) return;
    // No description: it would repeat the status.
    setError(this.#span);
    this.#span.setAttribute('error.type', String(status));
  }

  fail(why: string, type = '_OTHER'): void {
    if (this.#endedAt !== undefined) return;
    setError(this.#span, why);
    this.#span.setAttribute('error.type', type);
    this.end();
  }

  /** Ends the span when the request ends, at `now`. A call without a response is marked as failed. */
  export(now: number, firstToken: number | undefined): void {
    this.fail('no response');
    if (this.llm !== undefined) this.#span.setAttributes(modelAnswer(this.llm, firstToken));
    // A provider may report an error in the body of a 2xx response.
    if (this.llm?.providerError !== undefined) setError(this.#span);
    this.#span.end(Math.min(this.#endedAt ?? now, now));
  }
}

function setError(span: Span, why?: string): void {
  span.setStatus({
    code: SpanStatusCode.ERROR,
    ...(why === undefined ? {} : { message: byForm.text(why) }),
  });
}
