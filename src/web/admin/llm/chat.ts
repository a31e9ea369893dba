import { createParser } from 'eventsource-parser';
import {
  elementsOf,
  isRecord,
  jsonIn,
  membersOf,
  numberIn,
  stringIn,
  textIn,
} from '../../../core/foreign.ts';
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

/** What the page reads of an answer, or of a part of a stream. Providers send members of any type. */
interface Chunk {
  readonly piece: string;
  readonly facts: Partial<ChatAnswer>;
  readonly error: string | undefined;
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
    const { piece, facts, error } = chunkIn(data);
    if (error !== undefined) throw new ApiError(error, answer.status);
    if (piece !== '' && text.length < MOST) {
      text += piece;
      said(text);
      found = { ...found, firstAfter: found.firstAfter ?? Math.round(performance.now() - started) };
    }
    found = { ...found, ...facts };
  };
  if (answer.status >= 400) {
    const problem = await readText(answer.body, MOST);
    const words = chunkIn(problem).error ?? problem.trim().slice(0, 500);
    throw new ApiError(`${answer.status}: ${words}`, answer.status);
  }
  if (answer.headers['content-type']?.includes('event-stream') === true) {
    const parser = createParser({ onEvent: ({ data }) => add(data) });
    for await (const part of parts(answer.body)) parser.feed(part);
  } else add(await readText(answer.body, MOST));
  return { ...found, took: Math.round(performance.now() - started) };
}

function chunkIn(data: string): Chunk {
  const { model, usage, choices, error } = membersOf(jsonIn(data));
  const choice = membersOf(elementsOf(choices)[0]);
  const finish = stringIn(choice['finish_reason']);
  const { prompt_tokens: input, completion_tokens: output } = membersOf(usage);
  return {
    piece: textIn(membersOf(choice['delta'])['content'] ?? membersOf(choice['message'])['content']),
    facts: {
      ...(typeof model === 'string' ? { model } : {}),
      ...(finish === undefined ? {} : { finish }),
      ...(isRecord(usage) ? { usage: { input: numberIn(input) ?? 0, output: numberIn(output) ?? 0 } } : {}),
    },
    error:
      error === undefined || error === null
        ? undefined
        : (stringIn(error) ?? stringIn(membersOf(error)['message']) ?? 'the model returned an error'),
  };
}
