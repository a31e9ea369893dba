import type { ServerResponse } from 'node:http';
import { formats } from '../../src/server/llm/formats/index.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { type HttpReply, send } from './send.ts';
import { type Answer, type HttpUpstream, httpUpstream } from './upstream.ts';

// LLM providers and guardrail webhooks for tests, and gateways in front of them.

export const USAGE = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 };

/** A chat completion as a provider answers it, compact. */
export function completion(content: string, more: object = {}): string {
  return JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'acme-mini-1',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: USAGE,
    ...more,
  });
}

/** One event of a streamed chat completion. */
export function chunk(delta: object | undefined, more: object = {}): string {
  const choices = delta === undefined ? [] : [{ index: 0, delta, finish_reason: null }];
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_760_000_000 };
  return `data: ${JSON.stringify({ ...head, model: 'acme-mini-1', choices, ...more })}\n\n`;
}

export const DONE = 'data: [DONE]\n\n';
export const FINISH = chunk(undefined, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });

/** A provider that answers every request with this text, as JSON. */
export function answering(text: string, status = 200, headers: Record<string, string> = {}): Answer {
  return (_, response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
}

/** A response without vectors, images or text that is one of every format that has them, or counts tokens. */
const NO_DATA = {
  data: [],
  results: [],
  text: '',
  embedding: {},
  embeddings: [],
  input_tokens: 0,
  totalTokens: 0,
};

/** A response without content that is one of every format. */
export const EMPTY_ANSWER = JSON.stringify({
  type: 'message',
  object: 'response',
  choices: [],
  candidates: [],
  ...NO_DATA,
});

/** A provider that streams; `write` gets the response after its head. */
export function streaming(write: (response: ServerResponse) => unknown): Answer {
  return (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    return write(response);
  };
}

const DATA_PATHS =
  /\/(?:embeddings|moderations|rerank|count_tokens|images\/\w+|audio\/trans\w+)$|mbedContents?$|:countTokens$/;

/** Says hello in the format of the path: a chat completion for all but these. */
const hello: Answer = (request, response, index) => {
  const path = request.url?.split('?')[0] ?? '';
  const usage = { input_tokens: 12, output_tokens: 7 };
  const text = path.endsWith('/messages')
    ? JSON.stringify({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'acme-mini-1',
        content: [{ type: 'text', text: 'Hello.' }],
        stop_reason: 'end_turn',
        usage,
      })
    : path.endsWith('/responses')
      ? JSON.stringify({
          id: 'resp_1',
          object: 'response',
          model: 'acme-mini-1',
          status: 'completed',
          output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hello.' }] }],
          usage,
        })
      : path.endsWith(':generateContent')
        ? JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text: 'Hello.' }] } }] })
        : DATA_PATHS.test(path)
          ? JSON.stringify({ ...NO_DATA, text: 'Hello.' })
          : completion('Hello.');
  answering(text)(request, response, index);
};

/** A provider that says hello to everything, unless told otherwise. */
export function llmProvider(answer: Answer = hello): Promise<HttpUpstream> {
  return httpUpstream(answer);
}

/** The body that an upstream got, parsed. Test upstreams keep bodies byte for byte. */
export function bodyOf(upstream: HttpUpstream, index = -1): Record<string, unknown> {
  return JSON.parse(textOf(upstream, index)) as Record<string, unknown>;
}

/** The body that an upstream got, as text. */
export function textOf({ received }: HttpUpstream, index = -1): string {
  return Buffer.from(received.at(index)?.body ?? '', 'latin1').toString('utf8');
}

/** The form that a provider got. */
export async function formOf({ received }: HttpUpstream): Promise<Map<string, string>> {
  const last = received.at(-1);
  const type = String(last?.headers['content-type']);
  const form = await new Response(Buffer.from(last?.body ?? '', 'latin1'), {
    headers: { 'content-type': type },
  }).formData();
  const entries = [...form.entries()].map(
    async ([name, value]) =>
      [name, typeof value === 'string' ? value : `${value.name} ${await value.text()}`] as const,
  );
  return new Map(await Promise.all(entries));
}

interface Parts {
  /** Members of the model entry beside name, provider and base URL. */
  readonly model?: Readonly<Record<string, unknown>>;
  readonly params?: object;
  /** Members of the `llm` section beside its models. */
  readonly llm?: object;
  /** Other sections. */
  readonly more?: Readonly<Record<string, unknown>>;
  readonly options?: TestGatewayOptions;
}

/** A provider that has every wire format of clients, so that nothing is translated. */
export const EVERY_FORMAT = {
  custom: { providerOverride: 'openai', formats: formats.map(({ key }) => ({ type: key })) },
};

/** A gateway with one model entry, `*` by default, that this provider answers. */
export function llmGateway(
  { address }: HttpUpstream | { address: string },
  parts: Parts = {},
): Promise<TestGateway> {
  const { model, params, llm, more, options } = parts;
  const entry = {
    name: '*',
    provider: EVERY_FORMAT,
    ...model,
    params: { baseUrl: `http://${address}/v1`, ...params },
  };
  return modelsGateway([entry], llm, more, options);
}

/** A gateway with these model entries. Open calls hardly delay its end. */
export function modelsGateway(
  models: readonly object[],
  llm: object = {},
  more: Readonly<Record<string, unknown>> = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const config = { adminAddr: 'off', connectionTerminationDeadline: '100ms', ...(more['config'] as object) };
  return gateway(JSON.stringify({ ...more, config, llm: { port: 0, models, ...llm } }), options);
}

export const CHAT = { model: 'acme-mini', messages: [{ role: 'user', content: 'Hi' }] };

/** Asks for a chat completion; a text goes as it is. */
export function chat(
  { url }: { url: string },
  body: object | string = CHAT,
  headers: Record<string, string> = {},
): Promise<HttpReply> {
  return send(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

export const errorOf = ({ text }: HttpReply): { message: string; type: string; code: string } =>
  (JSON.parse(text) as { error: { message: string; type: string; code: string } }).error;

/** What a webhook says of the body it gets: the `action` of its answer. */
export function guardrail(
  verdict: (body: { messages?: Text[]; choices?: { message: Text }[] }) => unknown,
): Promise<HttpUpstream> {
  return httpUpstream((_, response, { body }) => {
    const parsed = JSON.parse(Buffer.from(body, 'latin1').toString('utf8')) as {
      body: Parameters<typeof verdict>[0];
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ action: verdict(parsed.body) }));
  });
}

export interface Text {
  readonly role: string;
  readonly content: string;
}

/** A guardrail entry of the configuration. */
export const webhook = ({ address }: { address: string }, more: object = {}): object => ({
  webhook: { target: { host: address }, ...more },
});
