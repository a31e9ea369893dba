import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { jsonIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Expression, ExpressionScope, VariableResolver } from '../kernel/expression.ts';
import { members } from '../kernel/json/json-text.ts';
import {
  HeaderList,
  isHeaderValue,
  isSettableHeader,
  SETTABLE_HEADER,
} from '../kernel/request/header-list.ts';
import { canonicalAuthority } from '../kernel/request/request-target.ts';
import { createUpstream, parseAddress, type Upstream } from '../transport/upstream/upstream.ts';
import { explainUpstreamError } from '../transport/upstream/upstream-error.ts';
import type { UpstreamRequest } from '../transport/upstream/upstream-request.ts';
import { ACTIONS, GuardrailError, PHASES, type Phase } from './outcome.ts';
import { responseOf } from './service-response.ts';

/** The part of a webhook guardrail that LLM and MCP guardrails share: the call, its verdict, and what a failure means. */

const PSEUDO = [':path', ':method', ':authority'];
const headerName = z.string().refine((name) => PSEUDO.includes(name) || isSettableHeader(name), {
  error: `${SETTABLE_HEADER}, or \`:path\`, \`:method\`, \`:authority\``,
});

/** Settings of a webhook by key. */
export const webhookFields = {
  host: z.string().min(1).describe('Address: `host:port`, a URL without a path, or `unix:/path`.'),
  headers: z
    .record(headerName, z.string().min(1))
    .default({})
    .describe(
      "Headers of the webhook call, as CEL expressions over the client's request. `:path`, `:method` and `:authority` change the call itself; write a literal path as a quoted CEL string. A header whose expression fails is omitted.",
    ),
  failureMode: z.enum(['failClosed', 'failOpen']).default('failClosed'),
};

/** The decision of a guardrail. `text` is the whole answer, for masks whose JSON text must be kept. */
export type Verdict<Mask> =
  | { readonly kind: 'pass' }
  | { readonly kind: 'mask'; readonly mask: Mask; readonly text: string }
  | { readonly kind: 'reject'; readonly status: number; readonly body: string };

/** What is sent to a webhook. `body`: JSON text. `mask`: the shape of `action.body` in a mask. */
export interface Question<Mask> {
  readonly phase: Phase;
  /** Path of the call, unless the header `:path` sets another one. */
  readonly path: string;
  readonly body: string;
  readonly mask: z.ZodType<Mask>;
}

export interface WebhookService {
  readonly place: TracePlace;
  /** `host:port` or `unix:path`, for logs. */
  readonly address: string;
  /**
   * Sends `{"body": …}` and returns the verdict. Takes at most `LIMITS.guardrailTimeout` ms. Throws `GuardrailError` if the
   * webhook fails and `failureMode` is `failClosed`.
   */
  ask<Mask>(question: Question<Mask>, lookup: VariableResolver, signal: AbortSignal): Promise<Verdict<Mask>>;
  close(): Promise<void>;
}

export interface WebhookConfig {
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly failureMode: 'failClosed' | 'failOpen';
}

/** `at`: the contexts of `host` and `headers`. `logModule` is the module of its log lines, such as `llm::guardrail`. */
export function compileWebhookService(
  { host, headers, failureMode }: WebhookConfig,
  scope: ExpressionScope,
  logModule: string,
  context: CompileContext,
  at: { readonly host: CompileContext; readonly headers: CompileContext },
): WebhookService | undefined {
  const address = parseAddress(host, at.host);
  const expressions = Object.entries(headers).map(
    ([name, source]) => [name, at.headers.at(name).cel(source, scope)] as const,
  );
  if (address === undefined) return undefined;
  const place = context.place();
  const counted = context.settings.counter('guardrails');
  const { guardrailConnections, guardrailTimeout } = context.settings.limits;
  const upstream = createUpstream(address, {
    connections: guardrailConnections,
    meter: context.settings.callMeter('Policy', 'Guardrail'),
    log: context.log,
  });
  context.inspection.bounds.push({
    name: 'guardrail.connections',
    at: context.path.join('.'),
    max: guardrailConnections,
    used: () => upstream.connected,
  });
  return {
    place,
    address: upstream.address,
    async ask({ phase, path, body, mask }, lookup, signal) {
      const count = (action: string): void => counted([PHASES[phase], action]);
      const call = { ...requestOf(path, upstream, expressions, lookup), span: lookup.span };
      const observer = lookup.observed?.observer;
      try {
        const request = { ...call, body: `{"body":${body}}` };
        const answer = await responseOf(upstream, request, {
          service: 'webhook',
          timeoutMs: guardrailTimeout,
          signal,
          observer,
        });
        const verdict = parseVerdict(answer, mask);
        count(ACTIONS[verdict.kind]);
        return verdict;
      } catch (error) {
        if (signal.aborted) throw error;
        const problem = error instanceof GuardrailError ? error.message : explainUpstreamError(error);
        count(failureMode === 'failOpen' ? 'FailOpen' : 'Reject');
        if (failureMode === 'failClosed') throw new GuardrailError(problem);
        observer?.guardrail(phase, 'failed', place, `${problem}; the call continues (failOpen)`);
        context.log.warn(logModule, 'a webhook failed; the call continues (failOpen)', {
          phase,
          webhook: upstream.address,
          problem,
        });
        return { kind: 'pass' };
      }
    },
    close: () => upstream.close(),
  };
}

interface Call {
  readonly span?: UpstreamRequest['span'];
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
}

function requestOf(
  defaultPath: string,
  upstream: Upstream,
  expressions: readonly (readonly [string, Expression])[],
  lookup: VariableResolver,
): Call {
  let method = 'POST';
  let path = defaultPath;
  let authority = upstream.authority;
  const headers = new HeaderList(['content-type', 'application/json']);
  for (const [name, expression] of expressions) {
    const value = textOf(expression, lookup);
    if (value === undefined || !isHeaderValue(value)) continue;
    if (name === ':path') path = isPath(value) ? value : path;
    else if (name === ':method') method = /^[A-Z]+$/.test(value) ? value : method;
    else if (name === ':authority') authority = canonicalAuthority(value) ?? authority;
    else headers.set(name, value);
  }
  headers.set('host', authority);
  return { method, path, headers: headers.raw };
}

/** Some servers read two leading slashes as the start of a host. */
const isPath = (value: string): boolean => /^\/(?!\/)[\x21-\x7e]*$/.test(value) && !value.includes('#');

function textOf(expression: Expression, lookup: VariableResolver): string | undefined {
  const value = tryEvaluate(expression, lookup);
  if (typeof value === 'string') return value;
  return value === null || typeof value === 'object' || value === undefined ? undefined : String(value);
}

const reason = z.string().nullish();
const passSchema = z.strictObject({ reason });
const rejectSchema = z.strictObject({ body: z.string(), status_code: z.int().min(400).max(599), reason });

/**
 * Parses a verdict. Verdicts have no tag and are distinguished by their members, so anything that does not match one of
 * the three exactly is an error: a misspelt rejection must not pass. Throws `GuardrailError`.
 */
function parseVerdict<Mask>(bytes: Buffer, mask: z.ZodType<Mask>): Verdict<Mask> {
  const text = isUtf8(bytes) ? bytes.toString('utf8') : '';
  const action = actionOf(text);
  if (passSchema.safeParse(action).success) return { kind: 'pass' };
  const { data: rejection } = rejectSchema.safeParse(action);
  if (rejection !== undefined)
    return {
      kind: 'reject',
      status: rejection.status_code,
      body: rejection.body.slice(0, LIMITS.guardrailRejection),
    };
  const masked = z.strictObject({ body: mask, reason }).safeParse(action);
  if (masked.success) return { kind: 'mask', mask: masked.data.body, text };
  throw new GuardrailError('the `action` of the webhook is neither pass, mask nor reject');
}

function actionOf(text: string): object {
  const value = jsonIn(text);
  if (value === undefined) throw new GuardrailError('the webhook response is not JSON');
  if (!isObject(value) || !isObject(value['action']))
    throw new GuardrailError('the webhook response has no `action` object');
  if (Object.keys(value).length > 1)
    throw new GuardrailError('the webhook response has members besides `action`');
  const outer = members(text);
  const inner = members(text, outer[0]?.[1].start);
  // `JSON.parse` keeps the last of duplicate members, so the counts differ. Which one was meant is unknown.
  if (outer.length !== 1 || inner.length !== Object.keys(value['action']).length)
    throw new GuardrailError('the webhook response has a duplicate member');
  return value['action'];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
