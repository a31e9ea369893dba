import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  assembled,
  CHAT_FORMATS,
  type ChatFormatKey,
  type Exchange,
  exchange,
} from '../../../kit/llm-exchange.ts';

let llm: Exchange;
beforeAll(async () => {
  llm = await exchange();
});
afterAll(() => llm[Symbol.asyncDispose]());

/** Numbers that are no index, and some that are no number. */
const NO_INDEX = [10_000_000, 4_294_967_295, 1e308, -1, 0.5, '3', null, true, [], {}];

const translatedTo = (provider: ChatFormatKey) => CHAT_FORMATS.filter((client) => client !== provider);

/** Either the text or an error, soon, and a gateway that answers the next call. */
async function survives(
  provider: ChatFormatKey,
  client: ChatFormatKey,
  events: readonly (object | string)[],
): Promise<void> {
  const { status, text } = await llm.call(provider, { events }, { client });
  const { text: received, error, hasEnded } = assembled(client, text);
  expect({ status, isText: received === 'yes' && hasEnded, isError: error !== undefined }).toEqual({
    status: 200,
    isText: error === undefined,
    isError: !hasEnded,
  });
}

describe.each(NO_INDEX.map((index) => [JSON.stringify(index), index]))('an index of %s', (_, index) => {
  // Gateways in between number candidates as they like.
  test.each(translatedTo('generateContent'))('of a Gemini candidate, for a client of %s', (client) =>
    survives('generateContent', client, [
      { candidates: [{ index, content: { parts: [{ text: 'yes' }] }, finishReason: 'STOP' }] },
    ]),
  );

  test.each(translatedTo('completions'))('of a choice, for a client of %s', (client) =>
    survives('completions', client, [
      { id: 'c', choices: [{ index, delta: { content: 'yes' }, finish_reason: null }] },
      { id: 'c', choices: [{ index, delta: {}, finish_reason: 'stop' }] },
      'data: [DONE]\n\n',
    ]),
  );

  test.each(translatedTo('messages'))('of a content block, for a client of %s', (client) =>
    survives('messages', client, [
      { type: 'message_start', message: { id: 'm' } },
      { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'yes' } },
      { type: 'content_block_stop', index },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
      { type: 'message_stop' },
    ]),
  );

  test.each(translatedTo('responses'))('of an output item and its part, for a client of %s', (client) =>
    survives('responses', client, [
      { type: 'response.created', response: { id: 'r' } },
      { type: 'response.output_item.added', output_index: index, item: { type: 'message' } },
      { type: 'response.output_text.delta', output_index: index, content_index: index, delta: 'yes' },
      { type: 'response.output_item.done', output_index: index, item: { type: 'message' } },
      { type: 'response.completed', response: { status: 'completed' } },
    ]),
  );
});
