import { AppError } from '../../../core/errors.ts';
import { ResponseView } from '../../expressions/request-variables.ts';
import { resolverFor } from '../../expressions/variable.ts';
import { discardReply, replyToError } from '../../kernel/request/error-response.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { PathMode } from '../../kernel/request/request-target.ts';
import type { GrpcService } from '../../transport/services/grpc.ts';
import type { ImmediateAnswer } from '../envoy/external-processor.ts';
import { bytesSource, replyOutput, replySource, requestOutput, streamSource } from './bodies.ts';
import { callMetadata, type MetadataContext, messageContext, type Named } from './context.ts';
import { Exchange } from './exchange.ts';
import { changeReplyHeaders, changeRequestHeaders, replyHeaderMap, requestHeaderMap } from './headers.ts';
import { overridden, type ProcessingOptions, protocolConfig } from './modes.ts';
import { Side } from './side.ts';

/** A service, and what it is sent. */
export interface ProcessingPlan {
  readonly service: GrpcService;
  readonly options: ProcessingOptions;
  /** Whether messages are passed on as they were if the service fails. */
  readonly isOpen: boolean;
  /** How long the service may take for an answer, in ms. */
  readonly timeout: number;
  /** Bytes of a body that are buffered. */
  readonly limit: number;
  readonly paths: PathMode;
  readonly metadata: MetadataContext | undefined;
  readonly requestAttributes: Named | undefined;
  readonly responseAttributes: Named | undefined;
}

/** How the service has ended a request of which the backend has seen a part. */
type Late = { readonly immediate: ImmediateAnswer } | { readonly error: AppError };

/** A request and its response, as a service processes them. */
export class Processing {
  readonly #ctx: RequestContext;
  readonly #plan: ProcessingPlan;
  readonly #exchange: Exchange;
  #options: ProcessingOptions;
  #late: Late | undefined;
  /** Whether the service has failed, and the request was passed on without it. */
  #isSkipped = false;
  /** Whether the response is processed. */
  #hasResponse = false;

  /** `onMetadata` gets the `dynamic_metadata` of answers. */
  constructor(
    ctx: RequestContext,
    plan: ProcessingPlan,
    onMetadata: (values: Readonly<Record<string, unknown>>) => void,
  ) {
    this.#ctx = ctx;
    this.#plan = plan;
    this.#options = plan.options;
    const metadata = callMetadata(plan.metadata, resolverFor(ctx));
    this.#exchange = new Exchange({
      open: (handler) =>
        plan.service.stream('Process', handler, { signal: ctx.signal, span: ctx.span, metadata }),
      protocolConfig: protocolConfig(plan.options),
      timeout: plan.timeout,
      onMetadata,
    });
  }

  /** How the service has failed. */
  get problem(): string | undefined {
    return this.#exchange.problem;
  }

  /** Returns the reply of the service, if it has answered the request itself. @throws AppError */
  async request(): Promise<Reply | undefined> {
    const { body } = this.#ctx;
    const side = new Side(this.#exchange, {
      ...this.#common('request'),
      source: body.isPresent
        ? () => {
            const sent = body.forUpstream();
            return sent === null
              ? bytesSource(Buffer.alloc(0))
              : Buffer.isBuffer(sent)
                ? bytesSource(sent)
                : streamSource(sent);
          }
        : undefined,
      headers: () => requestHeaderMap(this.#ctx),
      output: requestOutput,
      changeHeaders: (mutation) => changeRequestHeaders(this.#ctx, mutation, this.#plan.paths),
      late: (late) => {
        this.#late = late;
      },
      tooLarge: () =>
        new AppError('body_too_large', {
          message: `request body is larger than ${this.#plan.limit} bytes`,
          headers: ['connection', 'close'],
        }),
      cutOff: (why) => new AppError('bad_request', { message: why }),
    });
    const outcome = await side.run();
    if ('immediate' in outcome) return immediateReply(outcome.immediate);
    this.#isSkipped = this.#exchange.problem !== undefined;
    if (outcome.body === undefined) return undefined;
    body.substitute(outcome.body, this.#ctx.headers.get('content-encoding'));
    this.#ctx.headers.delete('content-length');
    return undefined;
  }

  /** Processes the response of a backend. `context`: what the first message about it says besides. @throws AppError */
  async response(reply: Reply, context: object = {}): Promise<void> {
    if (this.#isSkipped || this.#late !== undefined) return;
    this.#hasResponse = true;
    const { body } = reply;
    const hasBody =
      body !== undefined &&
      body !== '' &&
      !(typeof body === 'object' && 'takeOver' in body) &&
      this.#ctx.method !== 'HEAD' &&
      reply.status !== 204 &&
      reply.status !== 304;
    const common = this.#common('response', reply);
    const side = new Side(this.#exchange, {
      ...common,
      context: { ...common.context, ...context },
      source: hasBody ? () => replySource(body) : undefined,
      headers: () => replyHeaderMap(reply),
      output: (control) => {
        const output = replyOutput(control);
        output.body.watcher = this.#ctx;
        return output;
      },
      changeHeaders: (mutation) => changeReplyHeaders(reply, mutation),
      late: () => undefined,
      tooLarge: () =>
        new AppError('upstream_invalid', {
          message: `response body is larger than ${this.#plan.limit} bytes`,
        }),
      cutOff: (why, isTimeout) =>
        new AppError(isTimeout ? 'upstream_timeout' : 'upstream_invalid', {
          message: `upstream call failed: ${why}`,
        }),
    });
    try {
      const outcome = await side.run();
      if ('immediate' in outcome) {
        discardReply(reply);
        replaceReply(reply, immediateReply(outcome.immediate));
      } else if (outcome.body !== undefined) {
        reply.body = outcome.body;
        reply.headers.delete('content-length');
      }
    } catch (error) {
      discardReply(reply);
      throw error;
    }
  }

  /** The response phase: a reply that the service was not asked about ends its call. */
  respond(reply: Reply): void {
    if (!this.#hasResponse) this.finish();
    const late = this.#late;
    if (late === undefined) return;
    discardReply(reply);
    replaceReply(
      reply,
      'immediate' in late ? immediateReply(late.immediate) : replyToError(late.error, this.#ctx),
    );
  }

  /** The call of the service ends: nothing more is sent. */
  finish(): void {
    this.#exchange.finish();
  }

  #common(direction: 'request' | 'response', reply?: Reply) {
    const { timeout, limit, isOpen, metadata, requestAttributes, responseAttributes } = this.#plan;
    const isRequest = direction === 'request';
    const { requestHeaderMode, responseHeaderMode } = this.#options;
    const lookup = resolverFor(
      this.#ctx,
      reply && { response: new ResponseView(reply.status, reply.headers.raw, () => undefined) },
    );
    return {
      direction,
      timeout,
      limit,
      isOpen,
      sendsHeaders: (isRequest ? requestHeaderMode : responseHeaderMode) === 'send',
      bodyMode: this.#modeOf(direction),
      context: messageContext(
        { metadata, attributes: isRequest ? requestAttributes : responseAttributes },
        lookup,
      ),
      override: (modes: Parameters<typeof overridden>[1]) => {
        this.#options = overridden(this.#options, modes);
        return this.#modeOf(direction);
      },
    } as const;
  }

  #modeOf(direction: 'request' | 'response'): ProcessingOptions['requestBodyMode'] {
    return direction === 'request' ? this.#options.requestBodyMode : this.#options.responseBodyMode;
  }
}

/** Envoy: 200 for a status that is missing or too small. */
function immediateReply({ status = 200, headers: mutation, body }: ImmediateAnswer): Reply {
  const reply: Reply = {
    status: status < 200 ? 200 : status > 599 ? 500 : status,
    headers: new HeaderList(),
    body: body.length === 0 ? undefined : body,
  };
  changeReplyHeaders(reply, mutation);
  if (body.length > 0 && !reply.headers.has('content-type'))
    reply.headers.set('content-type', 'text/plain; charset=utf-8');
  return reply;
}

function replaceReply(reply: Reply, { status, headers, body }: Reply): void {
  reply.status = status;
  reply.headers.raw.splice(0, reply.headers.raw.length, ...headers.raw);
  reply.body = body;
}
