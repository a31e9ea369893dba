import type { IncomingHttpHeaders } from 'node:http';
import { EventStreamCodec } from '@smithy/core/event-streams';
import { beforeAll } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import type { ChatFormatKey } from '../../../kit/llm-exchange.ts';
import { bodyOf, modelsGateway } from '../../../kit/llm-provider.ts';
import { send } from '../../../kit/send.ts';
import { httpUpstream } from '../../../kit/upstream.ts';

// Calls that users reported as broken in other gateways, servers and clients, through a gateway with every provider.

/** What is read in tests only. */
// biome-ignore lint/suspicious/noExplicitAny: bodies and events of five APIs, which each test knows.
export type Loose = any;

/** Models by the name that clients use. */
const MODELS = {
  completions: { custom: { formats: [{ type: 'completions' }] } },
  messages: { custom: { formats: [{ type: 'messages' }] } },
  responses: { custom: { formats: [{ type: 'responses' }] } },
  generateContent: { custom: { formats: [{ type: 'generateContent' }] } },
  embeddings: 'oaiCompat',
  bedrock: 'bedrock',
  vertex: 'vertex',
};
export type Provider = keyof typeof MODELS;

const NAMES: Readonly<Record<Provider, string>> = {
  completions: 'qwen3-coder',
  messages: 'claude-sonnet-4-5',
  responses: 'gpt-5',
  generateContent: 'gemini-3-pro-preview',
  embeddings: 'nomic-embed-text',
  bedrock: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
  vertex: 'claude-sonnet-4-5@20250929',
};

/** What a provider answers: a body, or the events of a stream; those of Bedrock with their type. */
export interface Answered {
  readonly status?: number;
  readonly body?: object;
  readonly events?: readonly (object | string | readonly [type: string, body: object])[];
  /** The connection breaks after the events, when the client has got the head of the answer. */
  readonly isCut?: boolean;
}

export interface Exchanged {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body of the answer, or the bodies of its events. */
  readonly got: Loose;
  /** The body that the provider got. */
  readonly sent: Loose;
  /** Fields of the access log. */
  readonly line: Readonly<Record<string, string>>;
}

type Ask = (
  client: ChatFormatKey | 'embeddings' | 'count_tokens',
  provider: Provider,
  request: object,
  answered: Answered,
) => Promise<Exchanged>;

/** A gateway with a model for each provider, for the tests of a file. A request may name another one of the provider. */
export function field(more: object = {}): Ask {
  let answered: Answered = {};
  let gate: TestGateway;
  let provider: Awaited<ReturnType<typeof httpUpstream>>;
  let calls = 0;
  let cut: (() => void) | undefined;

  beforeAll(async () => {
    provider = await httpUpstream((_, response) => {
      const { status = 200, body, events, isCut = false } = answered;
      const binary = events?.some((event) => Array.isArray(event)) === true;
      const stream = binary ? 'application/vnd.amazon.eventstream' : 'text/event-stream';
      response.writeHead(status, { 'content-type': events === undefined ? 'application/json' : stream });
      for (const event of events ?? []) response.write(bytesOf(event));
      if (isCut) {
        cut = () => response.socket?.destroySoon();
        return;
      }
      response.end(events === undefined ? JSON.stringify(body ?? {}) : undefined);
    });
    const url = `http://${provider.address}`;
    const params: Partial<Record<Provider, object>> = {
      bedrock: { baseUrl: url, awsRegion: 'eu-west-1' },
      vertex: { baseUrl: `${url}/v1/projects/acme/locations/global`, vertexProject: 'acme' },
    };
    gate = await modelsGateway(
      (Object.keys(MODELS) as Provider[]).flatMap((name) => {
        const entry = { provider: MODELS[name], ...more };
        const common = { baseUrl: `${url}/v1`, apiKey: 'sk-provider', ...params[name] };
        return [
          { ...entry, name, params: { ...common, model: NAMES[name] } },
          { ...entry, name: `${name}/*`, params: { ...common, model: '*' } },
        ];
      }),
    );
    return async () => {
      await gate[Symbol.asyncDispose]();
      await provider.close();
    };
  });

  return async (client, model, request, answer) => {
    answered = answer;
    cut = undefined;
    calls += 1;
    const before = provider.received.length;
    const isStream = 'stream' in request && request.stream === true;
    const { stream: _, ...contents } = request as { stream?: boolean };
    const named = 'model' in request ? `${model}/${String(request.model)}` : model;
    const method = isStream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    const path = {
      completions: '/v1/chat/completions',
      messages: '/v1/messages',
      responses: '/v1/responses',
      generateContent: `/v1beta/models/${model}:${method}`,
      embeddings: '/v1/embeddings',
      count_tokens: '/v1/messages/count_tokens',
    }[client];
    const { status, headers, text } = await send(`${gate.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(client === 'generateContent' ? contents : { ...request, model: named }),
      onHead: () => cut?.(),
    });
    return {
      status,
      headers,
      text,
      got: text.startsWith('{') ? JSON.parse(text) : eventsOf(text),
      sent: provider.received.length > before ? bodyOf(provider) : undefined,
      line: await gate.accessLine(calls),
    };
  };
}

const eventsOf = (text: string): Loose[] =>
  text
    .split('\n')
    .filter((each) => each.startsWith('data: {'))
    .map((each) => JSON.parse(each.slice('data: '.length)));

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
  (text) => Buffer.from(text),
);

function bytesOf(event: object | string | readonly [string, object]): string | Uint8Array {
  if (typeof event === 'string') return event;
  if (Array.isArray(event)) {
    const [type] = event as [string];
    const kind = type.endsWith('Exception') ? 'exception' : 'event';
    return codec.encode({
      headers: {
        [`:${kind}-type`]: { type: 'string', value: type },
        ':message-type': { type: 'string', value: kind },
      },
      body: Buffer.from(JSON.stringify(event[1])),
    });
  }
  const name = 'type' in event && typeof event.type === 'string' ? `event: ${event.type}\n` : '';
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

/** An answer that says hello, for tests of what is sent. */
export const HELLO: Readonly<Record<Provider, Answered>> = (() => {
  const chat = {
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  };
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Hello.' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  const item = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'Hello.' }],
  };
  return {
    completions: { body: { id: 'c', object: 'chat.completion', model: 'm', ...chat } },
    messages: { body: message },
    responses: {
      body: { id: 'resp_1', object: 'response', status: 'completed', model: 'm', output: [item] },
    },
    generateContent: {
      body: {
        candidates: [{ content: { role: 'model', parts: [{ text: 'Hello.' }] }, finishReason: 'STOP' }],
      },
    },
    embeddings: {
      body: { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }] },
    },
    bedrock: {
      body: {
        output: { message: { role: 'assistant', content: [{ text: 'Hello.' }] } },
        stopReason: 'end_turn',
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      },
    },
    vertex: { body: message },
  };
})();

export const user = (content: unknown) => ({ role: 'user', content });
export const weather = {
  name: 'weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
};
export const TOOLS = [{ type: 'function', function: weather }];
/** A call of the tool in Chat Completions. */
export const call = (id: string, city: string) => ({
  id,
  type: 'function',
  function: { name: 'weather', arguments: JSON.stringify({ city }) },
});

/** A chunk of a streamed chat completion. */
export const chunk = (delta: object, finish: string | null = null): object => ({
  ...CHUNK,
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const CHUNK = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
/** The chunk with token counts. */
export const USAGE = {
  ...CHUNK,
  choices: [],
  usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
};
export const DONE = 'data: [DONE]\n\n';
