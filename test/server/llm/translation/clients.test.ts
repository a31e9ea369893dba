import { describe, expect, test } from 'vitest';
import { APIS, askAs, gatewayTo, providerOf, SEEN } from '../../../kit/llm-answers.ts';

const PATHS = { completions: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' };

const PAIRS = APIS.flatMap((client) => APIS.map((provider) => [client, provider] as const));

describe('official clients of one API and providers of another', () => {
  test.each(PAIRS)(
    'the official client of %s gets text, reasoning, parallel calls and usage from a provider of %s, streamed or not',
    async (client, api) => {
      await using provider = await providerOf(api);
      await using gate = await gatewayTo(provider, api);
      const whole = await askAs(client, gate, false);
      const streamed = await askAs(client, gate, true);
      expect(whole).toEqual(SEEN);
      expect(streamed).toEqual(SEEN);
      expect(provider.received.map(({ target }) => target)).toEqual([PATHS[api], PATHS[api]]);
      const { usage } = SEEN;
      for (const line of [1, 2])
        expect(await gate.accessLine(line)).toMatchObject({
          'gen_ai.usage.input_tokens': String(usage.input),
          'gen_ai.usage.output_tokens': String(usage.output),
        });
    },
  );
});
