import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answered, assembled, type Exchange, exchange } from '../../kit/llm-exchange.ts';
import { chunk, completion, DONE, FINISH } from '../../kit/llm-provider.ts';

// A provider that is configured with a format it does not have.

let llm: Exchange;
beforeAll(async () => {
  llm = await exchange();
});
afterAll(() => llm[Symbol.asyncDispose]());

const chat = [chunk({ role: 'assistant', content: 'foreign' }), FINISH, DONE];
const gemini = { candidates: [{ content: { parts: [{ text: 'foreign' }] }, finishReason: 'STOP' }] };
const message = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'foreign' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
};
const response = { id: 'r', object: 'response', status: 'completed', output: [], usage: message.usage };

/** The error in the format of the client, and nothing that the provider sent or that was counted. */
async function fails(client: 'messages' | 'responses', stream: boolean, answered: Answered): Promise<string> {
  const { status, text, line } = await llm.call(client, answered, { stream });
  expect(text).not.toContain('foreign');
  expect(line).not.toHaveProperty(['gen_ai.usage.output_tokens']);
  expect(line).toMatchObject({ reason: 'UpstreamFailure' });
  if (text.startsWith('{')) {
    expect(status).toBe(502);
    return (JSON.parse(text) as { error: { message: string } }).error.message;
  }
  expect([status, text]).toEqual([200, expect.stringMatching(/^event: error\n/)]);
  return assembled(client, text).error ?? '';
}

describe.each(['messages', 'responses'] as const)('a client of %s', (client) => {
  const other = client === 'messages' ? response : message;
  const own = client === 'messages' ? message : response;

  test.each<[string, boolean, Answered, string]>([
    ['chat chunks', true, { events: chat }, 'Chat Completions'],
    ['chat chunks after a comment', true, { events: [': ping\n\n', ...chat] }, 'Chat Completions'],
    ['events of Gemini', true, { events: [gemini] }, 'Gemini'],
    [
      'events of the other API',
      true,
      { events: [{ type: client === 'messages' ? 'response.created' : 'message_start' }] },
      'in the format of',
    ],
    ['a chat completion', false, { body: completion('foreign') }, 'Chat Completions'],
    ['a response of Gemini', false, { body: gemini }, 'Gemini'],
    ['a body of the other API', false, { body: other }, 'in the format of'],
    ['JSON in place of a stream', true, { body: own }, 'whole response'],
    ['a chat completion in place of a stream', true, { body: completion('foreign') }, 'whole response'],
    ['a stream in place of JSON', false, { events: chat }, 'with a stream'],
    ['a page', false, { body: '<html>foreign</html>', type: 'text/html' }, 'web page'],
    ['a page in place of a stream', true, { body: '<html>foreign</html>', type: 'text/html' }, 'web page'],
    ['a page with the type of JSON', false, { body: '<html>foreign</html>' }, 'JSON object'],
    ['a page with another type', false, { body: '<html>foreign</html>', type: 'text/plain' }, 'JSON object'],
    ['a long page', false, { body: `<html>${'foreign'.repeat(30_000)}` }, 'JSON object'],
    ...[null, [], 'foreign', 5, true].map((body): [string, boolean, Answered, string] => [
      `the body ${JSON.stringify(body)}`,
      false,
      { body },
      'JSON object',
    ]),
    ['an empty body', false, { body: '' }, 'JSON object'],
  ])('gets an error for %s', async (_, stream, answered, what) => {
    expect(await fails(client, stream, answered)).toContain(what);
  });

  test('gets what has its format unchanged, also if it is long', async () => {
    for (const body of [own, { ...own, padding: 'x'.repeat(300_000) }]) {
      const { status, text } = await llm.call(client, { body }, { stream: false });
      expect([status, text === JSON.stringify(body)]).toEqual([200, true]);
    }
  });
});
