import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WIRES } from '../../kit/llm-events.ts';
import { type Answered, assembled, CHAT_FORMATS, type Exchange, exchange } from '../../kit/llm-exchange.ts';
import { chunk, completion, DONE, FINISH } from '../../kit/llm-provider.ts';

// A provider that is configured with a format it does not have.

let llm: Exchange;
beforeAll(async () => {
  llm = await exchange();
});
afterAll(() => llm[Symbol.asyncDispose]());

const chat = [chunk({ role: 'assistant', content: 'foreign' }), FINISH, DONE];
const gemini = { candidates: [{ content: { parts: [{ text: 'foreign' }] }, finishReason: 'STOP' }] };
const usage = { input_tokens: 1, output_tokens: 1 };
const BODIES = {
  completions: JSON.parse(completion('foreign')) as object,
  messages: {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'foreign' }],
    stop_reason: 'end_turn',
    usage,
  },
  responses: {
    id: 'r',
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'foreign' }] }],
    usage,
  },
  generateContent: gemini,
};

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
  const other = BODIES[client === 'messages' ? 'responses' : 'messages'];
  const own = BODIES[client];

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
    ['another JSON in place of a stream', true, { body: other }, 'whole response'],
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

// Official clients read an empty answer from a whole chat in place of a stream, and a text from a chat without its type.
describe.each(CHAT_FORMATS)('a provider of %s', (provider) => {
  const { events } = WIRES[provider === 'completions' ? 'chat' : provider];
  const stream: Answered = { events: events('content', ['for', 'eign']) };
  const clients = [provider, provider === 'messages' ? 'completions' : 'messages'] as const;

  test.each<[string, boolean, Answered]>([
    ['JSON', true, { body: BODIES[provider] }],
    ['JSON as a text', true, { body: BODIES[provider], type: 'text/plain; charset=utf-8' }],
    ['JSON of no type', true, { body: BODIES[provider], type: null }],
    ['events as JSON', true, { ...stream, type: 'application/json' }],
    ['events as a text', true, { ...stream, type: 'text/plain' }],
    ['events of no type', true, { events: ['\uFEFF\n', ...(stream.events ?? [])], type: null }],
    ['events', false, stream],
    ['events of no type', false, { ...stream, type: null }],
    ['JSON as a text', false, { body: BODIES[provider], type: 'text/plain' }],
    ['JSON of no type', false, { body: `\n ${JSON.stringify(BODIES[provider])}`, type: null }],
  ])('that answers with %s gives clients what they asked for (stream: %j)', async (_, isStream, answered) => {
    for (const client of clients) {
      const { status, type, text, line } = await llm.call(provider, answered, { client, stream: isStream });
      expect([client, status, type]).toEqual([
        client,
        200,
        expect.stringMatching(isStream ? /^text\/event-stream/ : /^application\/json/),
      ]);
      if (isStream) expect(assembled(client, text)).toMatchObject({ text: 'foreign', hasEnded: true });
      else expect(JSON.stringify(JSON.parse(text))).toContain('"foreign"');
      expect(line).not.toHaveProperty('error');
    }
  });

  test.each<[string, Answered]>([
    ['an error', { body: { error: { message: 'hidden error' } } }],
    ['an error of no type', { body: { error: { message: 'hidden error' } }, type: null }],
    ['an error as a text', { body: { error: { message: 'hidden error' } }, type: 'text/plain' }],
    ['{}', { body: '{}' }],
    ['a text', { body: 'busy', type: 'text/plain' }],
    ['nothing', { body: '', type: null }],
    ['a list', { body: [BODIES[provider]], type: 'text/plain' }],
  ])('that answers a request for a stream with %s is a 502', async (what, answered) => {
    for (const client of clients) {
      const { status, type, text, line } = await llm.call(provider, answered, { client });
      expect([client, status, type, text]).toEqual([
        client,
        502,
        'application/json',
        expect.stringContaining(what.includes('error') ? 'hidden error' : 'failed'),
      ]);
      expect(line).toMatchObject({ 'http.status': '502' });
      if (client === provider) expect(line).not.toHaveProperty(['gen_ai.usage.output_tokens']);
    }
  });
});
