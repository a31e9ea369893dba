import { AppError } from '../../../core/errors.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import { llmError } from '../errors.ts';
import { GuardrailFailure, type Phase } from './verdict.ts';
import type { Webhook } from './webhook.ts';

/** A flat message or choice as webhooks see it. */
export interface GuardedText {
  readonly role: string;
  readonly content: string;
}

/**
 * Asks webhooks one after the other; each sees what the one before left. Returns the texts, changed or not. Throws an
 * `AppError` when one rejects (its own status and body) or fails (503).
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

/** The same for what a model said, one text per choice. A mask must say as many choices as it was asked about. */
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
  if (checked.length !== contents.length) throw failed('response', 'the mask has another number of choices');
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
      if (error instanceof GuardrailFailure) {
        lookup.observed?.observer.guardrail(phase, 'failed', webhook.place, error.message);
        throw failed(phase, `${webhook.address}: ${error.message}`);
      }
      // The client left while the webhook thought: nobody is told, the log says why the call went no further.
      if (signal.aborted) throw failed(phase, 'the client left');
      throw error;
    }
  }
  return current;
}

function guardedText(item: unknown): GuardedText {
  const { role, content } = (item ?? {}) as { role?: unknown; content?: unknown };
  if (typeof role !== 'string' || typeof content !== 'string')
    throw new GuardrailFailure('the mask has an item without `role` and `content`');
  return { role, content };
}

/** 503: nothing passes that was not looked at. `detail` is for the log. */
export function failed(phase: Phase, detail: string): AppError {
  return llmError(
    'guardrail_failed',
    'guardrail_failed',
    `failed to process LLM ${phase}: prompt guard failed`,
    detail,
  );
}

/** Status and body are the webhook's; the body goes out as plain text, whatever it looks like. */
function rejected(status: number, body: string): AppError {
  return new AppError('guardrail_rejected', {
    status,
    body: { type: 'text/plain; charset=utf-8', text: body },
    headers: ['x-content-type-options', 'nosniff'],
  });
}
