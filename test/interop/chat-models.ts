import type { TestGateway } from '../kit/gateway.ts';
import { modelsGateway } from '../kit/llm-provider.ts';
import { type ChatServer, chatServer } from './chat-server.ts';

// Models for client programs in other languages: the same server, reached by one translation or by two.

/** Formats of the providers behind the gateway; each is also the name of a model. */
export const MODELS = ['completions', 'messages', 'responses', 'generateContent'] as const;

/** The key that clients have, and the one that the gateway has at its providers. */
export const KEY = 'sk-client';
const PROVIDER_KEY = 'sk-provider';

export interface ChatModels extends AsyncDisposable {
  readonly url: string;
  readonly server: ChatServer;
  readonly gateway: TestGateway;
}

/**
 * A gateway with the built-in model `echo`, and a model for each format. A second gateway translates the other formats to the
 * chat completions of the server. A client with another key than `KEY` is refused.
 */
export async function chatModels(): Promise<ChatModels> {
  const server = await chatServer();
  const other = await modelsGateway([
    {
      name: '*',
      provider: { custom: { formats: [{ type: 'completions' }] } },
      params: { baseUrl: `http://${server.address}/v1` },
    },
  ]);
  const model = (type: string, origin: string): object => ({
    name: type,
    provider: { custom: { formats: [{ type }] } },
    params: { baseUrl: `${origin}/v1`, apiKey: PROVIDER_KEY, model: 'acme-mini' },
  });
  const outer = await modelsGateway(
    [
      { name: 'echo', provider: 'echo' },
      ...MODELS.map((type) => model(type, type === 'completions' ? `http://${server.address}` : other.url)),
    ],
    { policies: { apiKey: { mode: 'optional', keys: [{ key: KEY }] } } },
  );
  return {
    url: outer.url,
    server,
    gateway: outer,
    [Symbol.asyncDispose]: async () => {
      await outer.close();
      await other.close();
      await server.close();
    },
  };
}
