import { ERRORS } from '../../../core/errors.ts';
import { resolverFor } from '../../expressions/variable.ts';
import { GuardrailError, type Phase, UncheckableError } from '../../guardrails/outcome.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import { edit, type Span, valueAt } from '../../kernel/json/json-text.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { originalWithheld } from '../../kernel/request/shared-slots.ts';
import { parseMessage, type RpcMessage, TARGET_BOUNDS } from '../protocol/message.ts';
import { errorMessage, RPC, RpcError } from '../protocol/protocol.ts';
import { type GuardedRequest, type MessageGuards, mcpFields } from '../request-fields.ts';
import { extMcpValues } from './ext-mcp-variable.ts';
import { guardedMethod, type Phases } from './methods.ts';
import type { Effects, GuardedMessage, HeaderMutation, Processor } from './processor.ts';

/** A compiled entry of `processors[]`. */
export interface Guard {
  readonly processor: Processor;
  /** What it is in messages, such as `mcpGuardrails.processors[0] (regex)`. */
  readonly name: string;
  readonly phases: ReadonlyMap<string, Phases>;
}

/** Requests of servers whose results are input for a tool. */
const ASKS_FOR_INPUT = /^(?:elicitation|sampling|roots)\//;

/** Runs the processors on the messages of one request, in order: each gets what the previous one left. */
export class ProcessorChain implements MessageGuards {
  readonly guards: readonly Guard[];
  readonly #ctx: RequestContext;

  constructor(ctx: RequestContext, guards: readonly Guard[]) {
    this.#ctx = ctx;
    this.guards = guards;
  }

  request(message: RpcMessage, target: string, signal: AbortSignal): Promise<GuardedRequest> | undefined {
    const guards = this.#guardsOf(message.method, 'request');
    return guards.length === 0 ? undefined : this.#checkRequest(guards, message, target, signal);
  }

  answer(response: RpcMessage, method: string, target: string): Promise<GuardedRequest> | undefined {
    const guards = this.#guardsOf('tools/call', 'request');
    const span =
      guards.length > 0 && ASKS_FOR_INPUT.test(method) ? valueAt(response.text, ['result']) : undefined;
    return span === undefined ? undefined : this.#checkAnswer(guards, response, span, method, target);
  }

  checksRequest(method: string): boolean {
    return this.#guardsOf(method, 'request').length > 0;
  }

  checksResponse(method: string): boolean {
    return this.#guardsOf(method, 'response').length > 0;
  }

  response(
    text: string,
    request: RpcMessage,
    targets: readonly string[],
    signal: AbortSignal,
  ): Promise<RpcMessage | undefined> | undefined {
    const guards = this.#guardsOf(request.method, 'response');
    if (guards.length === 0) return undefined;
    const result = valueAt(text, ['result']);
    const span = result ?? valueAt(text, ['error']);
    if (span === undefined) return undefined;
    const part = result === undefined ? 'error' : 'result';
    return this.#checkResponse(guards, text, { ...span, part }, request, targets, signal);
  }

  #guardsOf(method: string, phase: Phase): Guard[] {
    const guarded = guardedMethod(method);
    // The parameters of `tasks/result` name the task only.
    if (phase === 'request' && guarded !== method) return [];
    return this.guards.filter(({ phases }) => {
      const own = phases.get(guarded);
      return own === phase || own === 'full';
    });
  }

  async #checkRequest(
    guards: readonly Guard[],
    message: RpcMessage,
    target: string,
    signal: AbortSignal,
  ): Promise<GuardedRequest> {
    const { method, text } = message;
    const span = valueAt(text, ['params']);
    const params = span === undefined ? '{}' : text.slice(span.start, span.end);
    const mutations: HeaderMutation[] = [];
    let checked: string | undefined;
    try {
      checked = await this.#run(guards, this.#requestOf(method, target, params), signal, mutations);
    } finally {
      if (checked !== params) originalWithheld.set(this.#ctx, true);
    }
    const headers = mutations.length === 0 ? undefined : applying(mutations);
    if (checked === params || span === undefined) return { message, headers };
    return { message: parseMessage(edit(text, [{ ...span, text: checked }])), headers };
  }

  /** The answer is checked in the shape that it has in revision 2026-07-28, with the method as its key. */
  async #checkAnswer(
    guards: readonly Guard[],
    response: RpcMessage,
    span: Span,
    method: string,
    target: string,
  ): Promise<GuardedRequest> {
    const { text } = response;
    const mutations: HeaderMutation[] = [];
    const params = `{"inputResponses":{${JSON.stringify(method)}:${text.slice(span.start, span.end)}}}`;
    try {
      // Not aborted with the POST: it ends before the answer is checked.
      const { signal } = new AbortController();
      const checked = await this.#run(
        guards,
        this.#requestOf('tools/call', target, params),
        signal,
        mutations,
      );
      const headers = mutations.length === 0 ? undefined : applying(mutations);
      const own = checked === params ? undefined : valueAt(checked, ['inputResponses', method]);
      if (own === undefined && checked !== params) throw new GuardrailError('the answer has no such input');
      if (own === undefined) return { message: response, headers };
      const changed = edit(text, [{ ...span, text: checked.slice(own.start, own.end) }]);
      return { message: parseMessage(changed), headers };
    } catch (error) {
      return { message: asError(error, text), headers: undefined };
    }
  }

  #requestOf(method: string, target: string, params: string): GuardedMessage {
    return {
      phase: 'request',
      method,
      targets: [target],
      params,
      part: 'params',
      text: params,
      headers: this.#headers,
    };
  }

  async #checkResponse(
    guards: readonly Guard[],
    text: string,
    { part, ...span }: Span & { readonly part: 'result' | 'error' },
    request: RpcMessage,
    targets: readonly string[],
    signal: AbortSignal,
  ): Promise<RpcMessage | undefined> {
    const method = guardedMethod(request.method);
    const sent = valueAt(request.text, ['params']);
    const params = sent === undefined ? '{}' : request.text.slice(sent.start, sent.end);
    const own = text.slice(span.start, span.end);
    try {
      const message = { phase: 'response', method, targets, params, part, text: own } as const;
      const checked = await this.#run(guards, { ...message, headers: this.#headers }, signal);
      if (checked === own) return undefined;
      return parseMessage(edit(text, [{ ...span, text: checked }]), TARGET_BOUNDS);
    } catch (error) {
      return asError(error, text);
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
      pairs.push([raw[index]?.toLowerCase() ?? '', raw[index + 1] ?? '']);
    return [...pseudo, ...pairs];
  };

  /**
   * Returns the text that the processors leave, and adds their changes of headers. Throws `RpcError` if one rejects or
   * fails.
   */
  async #run(
    guards: readonly Guard[],
    message: GuardedMessage,
    signal: AbortSignal,
    mutations: HeaderMutation[] = [],
  ): Promise<string> {
    const lookup = resolverFor(this.#ctx);
    let current = message;
    for (const guard of guards) current = await this.#apply(guard, current, lookup, signal, mutations);
    return current.text;
  }

  #keep({ headers, values }: Effects, mutations: HeaderMutation[]): void {
    if (headers !== undefined) mutations.push(headers);
    if (values === undefined) return;
    extMcpValues.set(this.#ctx, { ...extMcpValues.get(this.#ctx), ...values });
    for (const name of ['extMcp', 'mcpGuardrails']) this.#ctx.invalidateVariable(name);
  }

  async #apply(
    { processor, name }: Guard,
    message: GuardedMessage,
    lookup: VariableResolver,
    signal: AbortSignal,
    mutations: HeaderMutation[],
  ): Promise<GuardedMessage> {
    const { phase, part } = message;
    const { observer } = this.#ctx;
    try {
      const verdict = await processor.check(message, lookup, signal);
      observer?.guardrail(phase, verdict.kind, processor.place);
      if (verdict.kind === 'reject') {
        this.#ctx.reason = processor.reason ?? ERRORS.guardrail_rejected.reason;
        throw new RpcError(
          verdict.code,
          `the ${phase} was rejected by ${name}: ${verdict.reason}`,
          verdict.data,
        );
      }
      if (verdict.effects !== undefined) this.#keep(verdict.effects, mutations);
      if (verdict.kind === 'pass') return message;
      const { text } = verdict;
      return part === 'params' ? { ...message, params: text, text } : { ...message, text };
    } catch (error) {
      if (error instanceof RpcError) throw error;
      const problem = error instanceof GuardrailError ? error.message : undefined;
      observer?.guardrail(phase, 'failed', processor.place, problem);
      this.#ctx.reason = processor.reason ?? ERRORS.guardrail_failed.reason;
      const fields = mcpFields.get(this.#ctx);
      if (fields !== undefined && problem !== undefined) fields.errorDetail = problem;
      // What a service said of its failure is not for the client.
      const why = error instanceof UncheckableError ? `: ${error.message}` : '';
      throw new RpcError(RPC.internalError, `the ${phase} could not be checked by ${name}${why}`);
    }
  }
}

/** The failure of a check as the response with the id of that one. */
function asError(error: unknown, text: string): RpcMessage {
  const { code, message, data } =
    error instanceof RpcError ? error : new RpcError(RPC.internalError, 'internal error');
  const id = valueAt(text, ['id']);
  const own = id === undefined ? 'null' : text.slice(id.start, id.end);
  return parseMessage(errorMessage(own, code, message, data));
}

/** A function that applies the changes of the processors, in order, to a copy. */
const applying =
  (mutations: readonly HeaderMutation[]) =>
  (headers: readonly string[]): readonly string[] => {
    const list = new HeaderList(headers);
    for (const { set, remove } of mutations) {
      for (const [name] of set) list.delete(name);
      for (const [name, value] of set) list.append(name, value);
      for (const name of remove) list.delete(name);
    }
    return list.raw;
  };
