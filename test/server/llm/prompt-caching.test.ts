import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { answering, llmProvider } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const MARK = { cache_control: { type: 'ephemeral' } };
const LONG = 'Be brief. '.repeat(500);
const ANSWER = JSON.stringify({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-x',
  content: [{ type: 'text', text: 'Hello.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
});
const text = (value: string, mark: object = {}) => ({ type: 'text', text: value, ...mark });
const TOOLS = [
  { name: 'a', input_schema: { type: 'object' } },
  { name: 'b', input_schema: { type: 'object' } },
];
const TURNS = [
  { role: 'user', content: 'One' },
  { role: 'assistant', content: [text('Two'), { type: 'thinking', thinking: 'x', signature: 'y' }] },
  { role: 'user', content: 'Three' },
];

/** The body that a provider with the Anthropic API gets for a message, or for a chat. */
async function sentText(promptCaching: object, body: object, isChat = false): Promise<string> {
  await using provider = await llmProvider(answering(ANSWER));
  const ai = { name: 'claude', provider: { anthropic: {} }, hostOverride: provider.address };
  const routes = [{ policies: { ai: { promptCaching } }, backends: [{ ai }] }];
  await using served = await gateway(
    JSON.stringify({ config: { adminAddr: 'off' }, gateways: { default: { port: 0 } }, routes }),
  );
  const call = { model: 'claude-x', max_tokens: 9, ...body };
  const path = isChat ? '/v1/chat/completions' : '/v1/messages';
  const json = JSON.stringify(call).replace('"LONG NUMBER"', '9007199254740993');
  expect((await send(served.url + path, { method: 'POST', body: json })).status).toBe(200);
  return provider.received[0]?.body ?? '';
}

const sent = async (...args: Parameters<typeof sentText>): Promise<Record<string, unknown>> =>
  JSON.parse(await sentText(...args)) as Record<string, unknown>;

describe('policies.ai.promptCaching with the Anthropic API', () => {
  test('the system prompt and the conversation before the last message are marked', async () => {
    const body = await sent({}, { system: LONG, messages: TURNS, tools: TOOLS });
    expect(body).toMatchObject({
      system: [text(LONG, MARK)],
      // Thinking cannot be marked.
      messages: [TURNS[0], { content: [text('Two', MARK), { type: 'thinking' }] }, TURNS[2]],
      tools: TOOLS,
    });
    expect(JSON.stringify(body).split('cache_control')).toHaveLength(3);
  });

  test('settings say what is marked: tools, short prompts, an earlier message', async () => {
    const caching = { cacheTools: true, minTokens: null, cacheMessageOffset: 1 };
    expect(await sent(caching, { system: [text('Short')], messages: TURNS, tools: TOOLS })).toMatchObject({
      system: [text('Short', MARK)],
      messages: [{ role: 'user', content: [text('One', MARK)] }, TURNS[1], TURNS[2]],
      tools: [TOOLS[0], { ...TOOLS[1], ...MARK }],
    });
    const off = { cacheSystem: false, cacheMessages: false };
    expect(JSON.stringify(await sent(off, { system: LONG, messages: TURNS }))).not.toContain('cache_control');
  });

  test('parts that the client has marked stay as they are, and there are never more than four marks', async () => {
    const own = { system: [text(LONG, MARK)], messages: TURNS };
    expect((await sent({}, own))['system']).toEqual(own.system);
    const four = [{ role: 'user', content: [1, 2, 3, 4].map((n) => text(`${n}`, MARK)) }, ...TURNS.slice(1)];
    const body = { system: LONG, messages: four, tools: TOOLS };
    expect(await sent({ cacheTools: true }, body)).toMatchObject(body);
  });

  test('a translated chat is marked', async () => {
    const messages = [
      { role: 'system', content: LONG },
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Two' },
      { role: 'user', content: 'Three' },
    ];
    expect(await sent({}, { messages }, true)).toMatchObject({
      system: [text(LONG, MARK)],
      messages: [{ role: 'user' }, { content: [text('Two', MARK)] }, { role: 'user' }],
    });
  });

  test('numbers of 64 bits in marked messages survive', async () => {
    const call = { type: 'tool_use', id: 't', name: 'a', input: { id: 'LONG NUMBER' } };
    const result = { type: 'tool_result', tool_use_id: 't', content: 'x' };
    const messages = [TURNS[0], { role: 'assistant', content: [call] }, { role: 'user', content: [result] }];
    expect(await sentText({}, { messages })).toContain(
      '"input":{"id":9007199254740993},"cache_control":{"type":"ephemeral"}',
    );
  });
});
