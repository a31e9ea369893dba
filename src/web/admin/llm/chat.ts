import { createParser } from 'eventsource-parser';
import { ApiError } from '../../shared/api.ts';
import type { Endpoint } from '../playground/endpoints.ts';
import { parts, readText, sendToGateway } from '../playground/send.ts';
import { authorization } from '../playground/token.tsx';

export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

export interface Settings {
  readonly model: string;
  readonly system: string;
  /** As text; empty for the model's default. */
  readonly temperature: string;
  readonly maxTokens: string;
  readonly isStreaming: boolean;
}

/** The request body in OpenAI's format. */
export function requestBody(
  { model, system, temperature, maxTokens, isStreaming }: Settings,
  turns: readonly Turn[],
): Readonly<Record<string, unknown>> {
  return {
    model,
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...turns],
    ...(temperature === '' ? {} : { temperature: Number(temperature) }),
    ...(maxTokens === '' ? {} : { max_tokens: Number(maxTokens) }),
    ...(isStreaming ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
}

export interface Usage {
  readonly input: number;
  readonly output: number;
}

export interface ChatAnswer {
  readonly model: string | undefined;
  readonly usage: Usage | undefined;
  readonly finish: string | undefined;
  /** Time until the first piece of text and until the end, in ms. */
  readonly firstAfter: number | undefined;
  readonly took: number;
}

interface Chunk {
  readonly model?: string;
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
  readonly choices?: readonly {
    readonly delta?: { readonly content?: unknown };
    readonly message?: { readonly content?: unknown; readonly refusal?: unknown };
    readonly finish_reason?: string | null;
  }[];
  readonly error?: { readonly message?: string } | string;
}

/** Characters of an answer that are displayed. */
const MOST = 1_000_000;

/** Sends the conversation; calls `said` with the answer as it grows. Throws `ApiError` with the gateway's message. */
export async function chat(
  endpoint: Endpoint,
  token: string,
  body: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>>,
  said: (text: string) => void,
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const started = performance.now();
  const answer = await sendToGateway(
    {
      port: endpoint.port,
      path: endpoint.path,
      headers: {
        'content-type': 'application/json',
        ...(endpoint.host === undefined ? {} : { host: endpoint.host }),
        ...authorization(token),
        ...headers,
      },
      body: JSON.stringify(body),
    },
    signal,
  );
  let text = '';
  let found: Omit<ChatAnswer, 'took'> = {
    model: undefined,
    usage: undefined,
    finish: undefined,
    firstAfter: undefined,
  };
  const add = (data: string): void => {
    if (data === '[DONE]') return;
    const chunk = parsed(data);
    if (chunk?.error !== undefined) throw new ApiError(errorText(chunk.error), answer.status);
    const piece = chunk?.choices?.[0]?.delta?.content ?? chunk?.choices?.[0]?.message?.content;
    if (typeof piece === 'string' && piece !== '' && text.length < MOST) {
      text += piece;
      said(text);
      found = { ...found, firstAfter: found.firstAfter ?? Math.round(performance.now() - started) };
    }
    found = { ...found, ...factsOf(chunk) };
  };
  if (answer.status >= 400) {
    const problem = await readText(answer.body, MOST);
    const { error } = parsed(problem) ?? {};
    const words = error === undefined ? problem.trim().slice(0, 500) : errorText(error);
    throw new ApiError(`${answer.status}: ${words}`, answer.status);
  }
  if (answer.headers['content-type']?.includes('event-stream') === true) {
    const parser = createParser({ onEvent: ({ data }) => add(data) });
    for await (const part of parts(answer.body)) parser.feed(part);
  } else add(await readText(answer.body, MOST));
  return { ...found, took: Math.round(performance.now() - started) };
}

const errorText = (error: NonNullable<Chunk['error']>): string =>
  typeof error === 'string' ? error : (error.message ?? 'the model returned an error');

function factsOf(chunk: Chunk | undefined): Partial<ChatAnswer> {
  const finish = chunk?.choices?.[0]?.finish_reason;
  const usage = chunk?.usage;
  return {
    ...(typeof chunk?.model === 'string' ? { model: chunk.model } : {}),
    ...(typeof finish === 'string' ? { finish } : {}),
    ...(usage === undefined || usage === null
      ? {}
      : { usage: { input: usage.prompt_tokens ?? 0, output: usage.completion_tokens ?? 0 } }),
  };
}

function parsed(data: string): Chunk | undefined {
  try {
    return JSON.parse(data) as Chunk;
  } catch {
    return undefined;
  }
}
