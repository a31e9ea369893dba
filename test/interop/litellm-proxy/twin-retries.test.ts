import { afterAll, beforeAll, test } from 'vitest';
import { PROXY_KEY } from './proxy.ts';
import { type Case, compareTwins, startTwins, type Twins } from './twins.ts';

// How often calls that fail are repeated, with the numbers that LiteLLM has by default.

const STATUSES = [400, 401, 403, 404, 408, 409, 429, 500, 503];

const configFor = (base: string): string => `
model_list:
${STATUSES.map(
  (status) =>
    `- { model_name: alone-${status}, litellm_params: { model: openai/fails-${status}, api_base: ${base}/v1, api_key: k } }`,
).join('\n')}
- { model_name: plain, litellm_params: { model: openai/gpt-plain, api_base: ${base}/v1, api_key: k } }
- { model_name: broken, litellm_params: { model: openai/fails-500, api_base: ${base}/v1, api_key: k } }
- { model_name: pair, litellm_params: { model: openai/fails-500, api_base: ${base}/v1, api_key: k } }
- { model_name: pair, litellm_params: { model: openai/fails-500, api_base: ${base}/v1, api_key: k } }
router_settings: { disable_cooldowns: true, fallbacks: [{ broken: [plain] }] }
general_settings: { master_key: ${PROXY_KEY} }
`;

const DIFFERENCES: Readonly<Record<number, Case['differs']>> = {
  401: { in: ['status'], because: 'a key of the gateway that is refused is no failure of the client: 502' },
  403: { in: ['count'], because: 'a 403 is not repeated: it stays one' },
};

const CASES: readonly Case[] = [
  ...STATUSES.map((status) => {
    const differs = DIFFERENCES[status];
    const each = { name: `a failure with ${status}`, model: `alone-${status}` };
    return differs === undefined ? each : { ...each, differs };
  }),
  { name: 'a stream that fails', model: 'alone-500', body: { stream: true } },
  {
    ...{ name: 'a group that fails', model: 'pair' },
    differs: { in: ['count'], because: 'each repetition tries every target once' },
  },
  {
    ...{ name: 'a fallback', model: 'broken' },
    differs: { in: ['count'], because: 'the next target is tried at once, before any repetition' },
  },
];

const stack = new AsyncDisposableStack();
let twins: Twins;
beforeAll(async () => {
  twins = stack.use(await startTwins(configFor));
}, 300_000);
afterAll(() => stack.disposeAsync());

test.each(CASES)('LiteLLM and the gateway repeat a call equally often: $name', (each) =>
  compareTwins(twins, each),
);
