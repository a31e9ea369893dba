import { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import { GuardrailError, type Phase } from '../../guardrails/webhook.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import { llmError } from '../errors.ts';
import { compileWebhook, type Webhook, webhookSchema } from './webhook.ts';

const itemSchema = z.strictObject({ webhook: webhookSchema }).describe('One guardrail.');

export const guardrailsSchema = z
  .strictObject({
    request: z
      .array(itemSchema)
      .default([])
      .describe('Guardrails for requests, in order. Each receives the texts left by the previous one.'),
    response: z
      .array(itemSchema)
      .default([])
      .describe('Guardrails for responses, in order. Streams are held back until they are checked.'),
  })
  .describe('Checks of requests and responses by webhooks.');

export interface Guardrails {
  readonly request: readonly Webhook[];
  readonly response: readonly Webhook[];
  close(): Promise<void>;
}

export function compileGuardrails(
  config: z.output<typeof guardrailsSchema>,
  context: CompileContext,
): Guardrails {
  const compile = (phase: Phase): Webhook[] =>
    config[phase].flatMap(
      ({ webhook }, index) => compileWebhook(webhook, phase, context.at(phase, index, 'webhook')) ?? [],
    );
  const request = compile('request');
  const response = compile('response');
  return {
    request,
    response,
    close: async () => {
      await Promise.all([...request, ...response].map((webhook) => webhook.close()));
    },
  };
}

/** A message or choice as sent to webhooks: one role, one text. */
export interface GuardedText {
  readonly role: string;
  readonly content: string;
}

/**
 * Runs webhooks in order; each receives the texts left by the previous one. Returns the texts, masked or not. Throws an
 * `AppError` if a webhook rejects (with its status and body) or fails (503).
 */
export async function checkMessages(
  webhooks: readonly Webhook[],
  texts: readonly GuardedText[],
  lookup: VariableResolver,
  signal: AbortSignal,
): Promise<readonly GuardedText[]> {
  return run(
    webhooks,
    texts,
    lookup,
    signal,
    (text) => text,
    (item) => item,
    'request',
  );
}

/**
 * As `checkMessages`, for model output with one text per choice. A mask must have the same number of choices (else
 * 503).
 */
export async function checkChoices(
  webhooks: readonly Webhook[],
  contents: readonly string[],
  lookup: VariableResolver,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const texts = contents.map((content): GuardedText => ({ role: 'assistant', content }));
  const checked = await run(
    webhooks,
    texts,
    lookup,
    signal,
    (message) => ({ message }),
    (item) => (item as { message?: unknown } | null)?.message,
    'response',
  );
  if (checked.length !== contents.length)
    throw failed('response', 'the mask has a different number of choices');
  return checked.map(({ content }) => content);
}

async function run(
  webhooks: readonly Webhook[],
  texts: readonly GuardedText[],
  lookup: VariableResolver,
  signal: AbortSignal,
  wrap: (text: GuardedText) => unknown,
  unwrap: (item: unknown) => unknown,
  phase: Phase,
): Promise<readonly GuardedText[]> {
  let current = texts;
  for (const webhook of webhooks) {
    try {
      const verdict = await webhook.check(current.map(wrap), lookup, signal);
      lookup.observed?.observer.guardrail(phase, verdict.kind, webhook.place);
      if (verdict.kind === 'reject') throw rejected(verdict.status, verdict.body);
      if (verdict.kind === 'mask') current = verdict.items.map((item) => guardedText(unwrap(item)));
    } catch (error) {
      if (error instanceof GuardrailError) {
        lookup.observed?.observer.guardrail(phase, 'failed', webhook.place, error.message);
        throw failed(phase, `${webhook.address}: ${error.message}`);
      }
      // The client disconnected during the check: the error is only for the log.
      if (signal.aborted) throw failed(phase, 'the client disconnected');
      throw error;
    }
  }
  return current;
}

function guardedText(item: unknown): GuardedText {
  const { role, content } = (item ?? {}) as { role?: unknown; content?: unknown };
  if (typeof role !== 'string' || typeof content !== 'string')
    throw new GuardrailError('the mask has an item without `role` and `content`');
  return { role, content };
}

/** 503: content that was not checked must not pass. `detail` is for the log. */
export function failed(phase: Phase, detail: string): AppError {
  return llmError(
    'guardrail_failed',
    'guardrail_failed',
    `failed to process LLM ${phase}: prompt guard failed`,
    detail,
  );
}

/** The webhook's rejection. The body is always sent as plain text, so that browsers do not render it. */
function rejected(status: number, body: string): AppError {
  return new AppError('guardrail_rejected', {
    status,
    body: { type: 'text/plain; charset=utf-8', text: body },
    headers: ['x-content-type-options', 'nosniff'],
  });
}
