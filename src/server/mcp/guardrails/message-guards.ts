import { resolverFor } from '../../expressions/variable.ts';
import { GuardrailError, type Phase } from '../../guardrails/webhook.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import { edit, type Span, valueAt } from '../../kernel/json-text.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import { parseMessage, type RpcMessage, TARGET_BOUNDS } from '../message.ts';
import { errorMessage, RPC, RpcError } from '../protocol.ts';
import { type MessageGuards, mcpFields } from '../request-fields.ts';
import { guardedMethod, type Phases } from './methods.ts';
import type { GuardedMessage, Processor } from './processor.ts';

/** A compiled entry of `processors[]`. */
export interface Guard {
  readonly processor: Processor;
  /** Its position and kind for messages, such as `processors[0] (regex)`. */
  readonly name: string;
  readonly phases: ReadonlyMap<string, Phases>;
}

/** Runs the processors on the messages of one request, in order: each gets what the previous one left. */
export class ProcessorChain implements MessageGuards {
  readonly #ctx: RequestContext;
  readonly #guards: readonly Guard[];

  constructor(ctx: RequestContext, guards: readonly Guard[]) {
    this.#ctx = ctx;
    this.#guards = guards;
  }

  request(message: RpcMessage, target: string, signal: AbortSignal): Promise<RpcMessage> | undefined {
    const guards = this.#guardsOf(message.method, 'request');
    return guards.length === 0 ? undefined : this.#checkRequest(guards, message, target, signal);
  }

  response(
    text: string,
    request: RpcMessage,
    targets: readonly string[],
    signal: AbortSignal,
  ): Promise<RpcMessage | undefined> | undefined {
    const guards = this.#guardsOf(request.method, 'response');
    const span = guards.length === 0 ? undefined : valueAt(text, ['result']);
    // Errors have no content (upstream).
    return span === undefined ? undefined : this.#checkResponse(guards, text, span, request, targets, signal);
  }

  #guardsOf(method: string, phase: Phase): Guard[] {
    const guarded = guardedMethod(method);
    // The parameters of `tasks/result` name the task only.
    if (phase === 'request' && guarded !== method) return [];
    return this.#guards.filter(({ phases }) => {
      const own = phases.get(guarded);
      return own === phase || own === 'full';
    });
  }

  async #checkRequest(
    guards: readonly Guard[],
    message: RpcMessage,
    target: string,
    signal: AbortSignal,
  ): Promise<RpcMessage> {
    const { method, text } = message;
    const span = valueAt(text, ['params']);
    const params = span === undefined ? '{}' : text.slice(span.start, span.end);
    const checked = await this.#run(
      guards,
      { phase: 'request', method, targets: [target], params, result: undefined, headers: this.#headers },
      signal,
    );
    if (checked === params || span === undefined) return message;
    return parseMessage(edit(text, [{ ...span, text: checked }]));
  }

  async #checkResponse(
    guards: readonly Guard[],
    text: string,
    span: Span,
    request: RpcMessage,
    targets: readonly string[],
    signal: AbortSignal,
  ): Promise<RpcMessage | undefined> {
    const method = guardedMethod(request.method);
    const sent = valueAt(request.text, ['params']);
    const params = sent === undefined ? '{}' : request.text.slice(sent.start, sent.end);
    const result = text.slice(span.start, span.end);
    try {
      const checked = await this.#run(
        guards,
        { phase: 'response', method, targets, params, result, headers: this.#headers },
        signal,
      );
      if (checked === result) return undefined;
      return parseMessage(edit(text, [{ ...span, text: checked }]), TARGET_BOUNDS);
    } catch (error) {
      const { code, message, data } =
        error instanceof RpcError ? error : new RpcError(RPC.internalError, 'internal error');
      const id = valueAt(text, ['id']);
      const own = id === undefined ? 'null' : text.slice(id.start, id.end);
      return parseMessage(errorMessage(own, code, message, data));
    }
  }

  readonly #headers = (): [string, string][] => {
    const { method, host, path, query, headers } = this.#ctx;
    const pseudo: [string, string][] = [
      [':method', method],
      [':scheme', 'http'],
      [':authority', host],
      [':path', path + query],
    ];
    const pairs: [string, string][] = [];
    const { raw } = headers;
    for (let index = 0; index + 1 < raw.length; index += 2)
      pairs.push([(raw[index] as string).toLowerCase(), raw[index + 1] as string]);
    return [...pseudo, ...pairs];
  };

  /** Returns the parameters or the result that the processors leave. Throws `RpcError` if one rejects or fails. */
  async #run(guards: readonly Guard[], message: GuardedMessage, signal: AbortSignal): Promise<string> {
    const lookup = resolverFor(this.#ctx);
    let current = message;
    for (const guard of guards) current = await this.#apply(guard, current, lookup, signal);
    return current.result ?? current.params;
  }

  async #apply(
    { processor, name }: Guard,
    message: GuardedMessage,
    lookup: VariableResolver,
    signal: AbortSignal,
  ): Promise<GuardedMessage> {
    const { phase, result } = message;
    const { observer } = this.#ctx;
    try {
      const verdict = await processor.check(message, lookup, signal);
      observer?.guardrail(phase, verdict.kind, processor.place);
      if (verdict.kind === 'reject')
        throw new RpcError(
          verdict.code,
          `the ${phase} was rejected by mcpGuardrails.${name}: ${verdict.reason}`,
          verdict.data,
        );
      if (verdict.kind === 'pass') return message;
      return result === undefined
        ? { ...message, params: verdict.text }
        : { ...message, result: verdict.text };
    } catch (error) {
      if (error instanceof RpcError) throw error;
      const problem = error instanceof GuardrailError ? error.message : undefined;
      observer?.guardrail(phase, 'failed', processor.place, problem);
      const fields = mcpFields.get(this.#ctx);
      if (fields !== undefined && problem !== undefined) fields.errorDetail = problem;
      throw new RpcError(RPC.internalError, `the ${phase} could not be checked by mcpGuardrails.${name}`);
    }
  }
}
