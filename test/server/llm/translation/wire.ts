import { beforeAll } from 'vitest';
import type { Json } from '../../../../src/server/llm/chat/chat-format.ts';
import type { TestGateway } from '../../../kit/gateway.ts';
import { bodyOf, llmGateway, textOf } from '../../../kit/llm-provider.ts';
import { send } from '../../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../../kit/upstream.ts';
import { FORMATS, type Key } from './cases.ts';

const PATHS: Readonly<Record<Key, string>> = {
  completions: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
};

/** What a provider answers; a text is sent as it is. */
export interface Answered {
  readonly status: number;
  readonly body: unknown;
}

/** One call through a gateway. */
export interface Exchange {
  readonly status: number;
  readonly body: Json;
  /** The body that the provider got; undefined if it was not called. */
  readonly received: Json | undefined;
  /** The bodies as text: what the client got, and the provider. */
  readonly texts: { readonly client: string; readonly provider: string };
}

/** Gateways in front of providers that know one format each, for the tests of a file. */
export function wire(): (client: Key, provider: Key, body: Json, answer: Answered) => Promise<Exchange> {
  const open = new Map<Key, { provider: HttpUpstream; gate: TestGateway }>();
  let answered: Answered;

  beforeAll(async () => {
    for (const type of FORMATS) {
      const provider = await httpUpstream((_, response) => {
        const { status, body } = answered;
        const isJson = typeof body !== 'string';
        response.writeHead(status, { 'content-type': isJson ? 'application/json' : 'text/html' });
        response.end(isJson ? JSON.stringify(body) : body);
      });
      const model = { provider: { custom: { formats: [{ type }] } } };
      open.set(type, { provider, gate: await llmGateway(provider, { model }) });
    }
    return async () => {
      for (const { provider, gate } of open.values()) {
        await gate[Symbol.asyncDispose]();
        await provider.close();
      }
    };
  });

  return async (client, key, body, answer) => {
    answered = answer;
    const { gate, provider } = open.get(key) ?? {};
    if (gate === undefined || provider === undefined) throw new Error(`no provider with ${key}`);
    const before = provider.received.length;
    const { status, text } = await send(`${gate.url}${PATHS[client]}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return {
      status,
      body: text.startsWith('{') ? (JSON.parse(text) as Json) : { text },
      received: provider.received.length > before ? bodyOf(provider) : undefined,
      texts: { client: text, provider: textOf(provider) },
    };
  };
}
