import { parseAccessLine, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { modelsGateway } from './llm-provider.ts';
import { type HttpReply, send } from './send.ts';

// Batches of the OpenAI and the Messages API, and gateways that pass them on.

const RATES = { input: '1000', output: '1000', cacheRead: '100' };
export const BATCH_PRICES = {
  providers: {
    openai: {
      models: {
        one: { rates: RATES },
        two: { rates: { input: '2000', output: '4000' }, batch: { output: '4000' } },
        long: { rates: RATES, tiers: [{ contextOver: 1000, rates: { input: '9000' } }] },
      },
    },
    anthropic: {
      models: { 'claude-a': { rates: RATES }, 'claude-b': { rates: { input: '2000', output: '2000' } } },
    },
  },
};

export const PASSTHROUGH = [
  { path: '/v1/batches', methods: ['GET', 'POST'] },
  { path: '/v1/batches/*', methods: ['GET', 'POST'] },
  { path: '/v1/files/*', methods: ['GET'] },
  { path: '/v1/messages/batches', methods: ['GET', 'POST'] },
  { path: '/v1/messages/batches/*', methods: ['GET', 'POST'] },
];

export const USED = {
  input_tokens: 100,
  output_tokens: 50,
  total_tokens: 150,
  input_tokens_details: { cached_tokens: 40 },
  output_tokens_details: { reasoning_tokens: 20 },
};

export const batch = (more: object = {}): string =>
  JSON.stringify({
    id: 'batch_1',
    object: 'batch',
    endpoint: '/v1/responses',
    status: 'completed',
    output_file_id: 'file-out',
    error_file_id: null,
    request_counts: { total: 10, completed: 10, failed: 0 },
    model: 'one',
    usage: USED,
    ...more,
  });

export const output = (usage: object | undefined, model = 'one', id = 'a'): string =>
  `${JSON.stringify({ id: 'r', custom_id: id, response: { status_code: 200, body: { model, usage } }, error: null })}\n`;

export const result = (usage: unknown, model: unknown = 'claude-a', more: object = {}): string =>
  `${JSON.stringify({ custom_id: 'a', result: { type: 'succeeded', message: { type: 'message', model, usage, content: [{ type: 'text', text: 'Grüße \n' }] }, ...more } })}\n`;

export interface Setting {
  readonly model?: object;
  readonly config?: object;
  readonly llm?: object;
  readonly options?: TestGatewayOptions;
}

/** A gateway with prices that passes the paths of batches on. */
export function batchGateway(
  provider: { readonly address: string },
  { model, config, llm, options }: Setting = {},
): Promise<TestGateway> {
  const entry = {
    name: '*',
    provider: 'oaiCompat',
    params: { baseUrl: `http://${provider.address}/v1`, apiKey: 'sk-provider' },
    passthrough: PASSTHROUGH,
    ...model,
  };
  const settings = { modelCatalog: [{ inline: BATCH_PRICES }], ...config };
  return modelsGateway([entry], llm, { config: settings }, options);
}

export const get = (
  gate: { readonly url: string },
  path: string,
  headers: Record<string, string> = {},
): Promise<HttpReply> => send(gate.url + path, { headers });

/** What the lines of the access log so far, from this one, have counted. */
export async function counted(gate: TestGateway, count: number): Promise<Record<string, string>[]> {
  await gate.accessLine(count);
  return gate.accessLog
    .map((line) => parseAccessLine(line))
    .filter((line) => line['gen_ai.usage.input_tokens'] !== undefined);
}

export const OBJECT = '/v1/batches/batch_1';
export const FILE = '/v1/files/file-out/content';
export const RESULTS = '/v1/messages/batches/msgbatch_1/results';
