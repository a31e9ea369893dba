import { expect } from 'vitest';
import type { Json } from '../../../../src/server/llm/chat/chat-format.ts';
import { type Case, formatOf, type Key, outcomeOf, runCases } from './cases.ts';
import { wire } from './wire.ts';

const call = wire();

interface AnswerCase extends Case {
  /** Names of custom tools in the client's request. */
  readonly customTools?: readonly string[];
}

const CONVERSATION = { model: 'some-model', messages: [{ role: 'user', content: 'Hi' }] };

const REQUESTS: Readonly<Record<Key, (names: readonly string[]) => Json>> = {
  completions: (names) => ({
    ...CONVERSATION,
    tools: names.map((name) => ({ type: 'custom', custom: { name } })),
  }),
  messages: () => ({ ...CONVERSATION, max_tokens: 10 }),
  responses: (names) => ({
    model: 'some-model',
    input: 'Hi',
    tools: names.map((name) => ({ type: 'custom', name })),
  }),
};

runCases<AnswerCase>('answers', async ({ input, customTools = [] }, from, to) => {
  const { status, body } = await call(to, from, REQUESTS[to](customTools), { status: 200, body: input });
  if (status === 200) return withoutTime(body, input);
  // The client does not learn what the provider's answer has; the access log does.
  expect(status).toBe(502);
  return outcomeOf(() => formatOf(from).readResponse(input) as unknown as Json);
});

/** The Messages API has no time, so that the current one is written. */
function withoutTime(body: Json, input: Json): Json {
  const time = input['created'] ?? input['created_at'] ?? 1;
  const [name] = ['created', 'created_at'].filter((each) => each in body);
  if (name === undefined) return body;
  if (time === 1) expect(body[name]).toBeGreaterThan(1_700_000_000);
  return { ...body, [name]: time };
}
