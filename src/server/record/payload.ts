import { LIMITS } from '../../core/limits.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { llmCall } from '../llm/llm-call.ts';
import { mcpFields } from '../mcp/request-fields.ts';
import type { RecordPolicy } from './policy.ts';
import { withoutNul } from './request-record.ts';

/** What was said: redacted JSON texts, and the words by which they are found. */
export interface RecordedPayload {
  /** `{ messages }` of an LLM call, `{ arguments }` of a tool. */
  readonly request: string | null;
  /** `{ texts, toolCalls }` of an LLM call; `{ result }` or `{ error }` of a tool. */
  readonly response: string | null;
  readonly words: string;
}

/** The payload of a request that has ended. Undefined if none is kept, or there is none. */
export function payloadOf(ctx: RequestContext, policy: RecordPolicy): RecordedPayload | undefined {
  const llm = policy.keepsLlm ? llmCall.get(ctx) : undefined;
  if (llm !== undefined) {
    const completion = llm.streamed?.completion ?? llm.completion;
    return payload(llm.prompt && { messages: llm.prompt }, completion, policy);
  }
  const mcp = policy.keepsMcp ? mcpFields.get(ctx) : undefined;
  if (mcp?.toolArguments === undefined) return undefined;
  const { toolArguments, toolResult, toolError } = mcp;
  const response = toolError === undefined ? toolResult && { result: toolResult } : { error: toolError };
  return payload({ arguments: toolArguments }, response, policy);
}

function payload(request: unknown, response: unknown, policy: RecordPolicy): RecordedPayload | undefined {
  if (request === undefined && response === undefined) return undefined;
  const [asked, answered] = [request, response].map((each) =>
    each === undefined ? undefined : policy.value(each),
  );
  const texts: string[] = [];
  collect(asked, texts);
  collect(answered, texts);
  return {
    request: asked === undefined ? null : withoutNul(JSON.stringify(asked)),
    response: answered === undefined ? null : withoutNul(JSON.stringify(answered)),
    words: wordsOf(texts.join(' ').slice(0, LIMITS.recordWords)),
  };
}

/** All texts and keys of a JSON value. */
function collect(value: unknown, texts: string[]): void {
  if (typeof value === 'string') texts.push(value);
  else if (typeof value === 'number') texts.push(String(value));
  else if (Array.isArray(value)) for (const each of value) collect(each, texts);
  else if (typeof value === 'object' && value !== null)
    for (const [key, each] of Object.entries(value)) {
      texts.push(key);
      collect(each, texts);
    }
}

/**
 * The words of a text in lower case without accents, separated by spaces: SQLite, and PostgreSQL with any locale, then agree
 * on what a word is.
 */
export function wordsOf(text: string): string {
  const plain = text
    .toWellFormed()
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '');
  return plain
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
