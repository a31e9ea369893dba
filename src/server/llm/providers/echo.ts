import { randomUUID } from 'node:crypto';
import { HeaderList } from '../../kernel/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import type { LlmCall } from '../call.ts';
import { envelope } from '../errors.ts';
import { defineProvider } from './provider.ts';

type Body = Readonly<Record<string, unknown>>;

/**
 * A built-in model for tests and demos that repeats its prompt, without a key or a network. Words count as tokens.
 * Supports chat and text completions, with streaming, and embeddings; other calls return 404 as the OpenAI API does.
 */
export const echo = defineProvider({
  key: 'echo',
  aliases: [],
  telemetryName: 'echo',
  baseUrl: undefined,
  formats: [],
  answer,
});

function answer(ctx: RequestContext, { operation, streaming }: LlmCall, body: Body): Reply {
  switch (operation) {
    case 'chat':
      return missing(body, 'messages') ?? chat(body, streaming);
    case 'text_completion':
      return missing(body, 'prompt') ?? textCompletion(body, streaming);
    case 'embeddings':
      return missing(body, 'input') ?? embeddings(body);
    default:
      return refusal(
        404,
        'unknown_url',
        `the echo model does not support ${ctx.method} ${ctx.path}: ${ENDPOINTS}`,
      );
  }
}

const ENDPOINTS = 'it supports /v1/chat/completions, /v1/completions and /v1/embeddings';

function missing(body: Body, name: string): Reply | undefined {
  const value = body[name];
  const isMissing = value === undefined || value === null;
  return isMissing
    ? refusal(400, 'missing_required_parameter', `Missing required parameter: '${name}'.`)
    : undefined;
}

/** Returned, not thrown: an invalid request must not count as a failure of the model. */
function refusal(status: number, code: string, message: string): Reply {
  const { type, text } = envelope(message, 'invalid_request_error', code);
  return { status, headers: new HeaderList(['content-type', type]), body: text };
}

function chat(body: Body, streaming: boolean): Reply {
  const { messages } = body;
  const isList =
    Array.isArray(messages) &&
    messages.length > 0 &&
    (messages as unknown[]).every(
      (message) => typeof message === 'object' && message !== null && !Array.isArray(message),
    );
  if (!isList)
    return refusal(
      400,
      'invalid_type',
      "Invalid type for 'messages': expected a list with at least one message.",
    );
  const { content } = messages.at(-1) as { content?: unknown };
  const outputs = [echoWords(textOf(content ?? ''), body['max_completion_tokens'] ?? body['max_tokens'])];
  const head = { id: `chatcmpl-${randomUUID()}`, ...stamp(body) };
  if (streaming) {
    const shape = {
      word: (content: string, isFirst: boolean) => ({
        delta: { ...(isFirst ? { role: 'assistant' } : {}), content },
      }),
      end: { delta: {} },
    };
    return streamed({ ...head, object: 'chat.completion.chunk' }, outputs, shape, body);
  }
  const choices = outputs.map(({ words, finish }, index) => ({
    index,
    message: { role: 'assistant', content: words.join(' ') },
    finish_reason: finish,
  }));
  return json({ ...head, object: 'chat.completion', choices, usage: usageOf(outputs) });
}

/** One choice for each prompt of a list. */
function textCompletion(body: Body, streaming: boolean): Reply {
  const outputs = textsOf(body['prompt']).map((prompt) => echoWords(prompt, body['max_tokens']));
  const head = { id: `cmpl-${randomUUID()}`, object: 'text_completion', ...stamp(body) };
  if (streaming) {
    const shape = {
      word: (text: string) => ({ text, logprobs: null }),
      end: { text: '', logprobs: null },
    };
    return streamed(head, outputs, shape, body);
  }
  const choices = outputs.map(({ words, finish }, index) => ({
    text: words.join(' '),
    index,
    logprobs: null,
    finish_reason: finish,
  }));
  return json({ ...head, choices, usage: usageOf(outputs) });
}

/** One embedding for each text of a list. */
function embeddings(body: Body): Reply {
  const texts = textsOf(body['input']);
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length, 0);
  // The default of the official clients.
  const isPacked = body['encoding_format'] === 'base64';
  const data = texts.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: isPacked ? packed(embedding(text)) : embedding(text),
  }));
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return json({ object: 'list', data, model: String(body['model']), usage });
}

/** Three numbers that depend only on the text: enough to see that embeddings work. */
function embedding(text: string): number[] {
  return [text.length / 100, text.split(' ').length / 10, (text.codePointAt(0) ?? 0) / 1000];
}

/** Base64 of little-endian 32-bit floats. */
function packed(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * 4);
  return bytes.toString('base64');
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** One or several texts. A list of token numbers counts as one text. */
function textsOf(value: unknown): string[] {
  const isList = Array.isArray(value) && value.length > 0 && typeof value[0] !== 'number';
  return isList ? (value as unknown[]).map(textOf) : [textOf(value)];
}

const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

/** The output for one prompt, in words. */
interface EchoOutput {
  readonly promptWords: number;
  readonly words: readonly string[];
  readonly finish: 'stop' | 'length';
}

function echoWords(prompt: string, limit: unknown): EchoOutput {
  const all = wordsOf(prompt);
  const words = typeof limit === 'number' ? all.slice(0, Math.max(0, limit)) : all;
  return { promptWords: all.length, words, finish: words.length < all.length ? 'length' : 'stop' };
}

function usageOf(outputs: readonly EchoOutput[]): object {
  const prompt = outputs.reduce((sum, { promptWords }) => sum + promptWords, 0);
  const completion = outputs.reduce((sum, { words }) => sum + words.length, 0);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

const stamp = (body: Body): object => ({
  created: Math.floor(Date.now() / 1000),
  model: String(body['model']),
});

function json(value: object): Reply {
  return {
    status: 200,
    headers: new HeaderList(['content-type', 'application/json']),
    body: JSON.stringify(value),
  };
}

/** The stream format of a choice: an event for a word, and the final event. */
interface Shape {
  word(text: string, isFirst: boolean): object;
  readonly end: object;
}

function streamed(head: object, outputs: readonly EchoOutput[], { word, end }: Shape, body: Body): Reply {
  const event = (choices: readonly object[], more: object = {}): string =>
    `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
  const choices = outputs.flatMap(({ words, finish }, index) => [
    ...words.map((text, at) =>
      event([{ index, ...word(at === 0 ? text : ` ${text}`, at === 0), finish_reason: null }]),
    ),
    event([{ index, ...end, finish_reason: finish }]),
  ]);
  const counted = wantsUsage(body) ? event([], { usage: usageOf(outputs) }) : '';
  return {
    status: 200,
    headers: new HeaderList(['content-type', 'text/event-stream']),
    body: `${choices.join('')}${counted}data: [DONE]\n\n`,
  };
}

function wantsUsage(body: Body): boolean {
  return (body['stream_options'] as { include_usage?: unknown } | null | undefined)?.include_usage === true;
}
