import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import fc from 'fast-check';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { describe, expect, test } from 'vitest';
import type { ChatFormat } from '../../../../src/server/llm/chat/chat-format.ts';
import { chatFormats } from '../../../../src/server/llm/formats/index.ts';
import type { Api } from '../../../kit/llm-answers.ts';
import { anyResponse, interleaved, STREAM_REQUEST, written } from '../../../kit/llm-responses.ts';

const formatOf = (api: Api): ChatFormat => chatFormats.find(({ key }) => key === api) as ChatFormat;

/** The data of the events of a stream. */
const dataOf = (stream: string): string[] =>
  stream.split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice('data: '.length)] : []));

/** The events as the accumulators of the official clients read them: one JSON value per line. */
const lines = (stream: string): ReadableStream => new Blob([dataOf(stream).join('\n')]).stream();

const sizes = fc.integer({ min: 1, max: 9 });

describe('accumulators of official clients', () => {
  test('the Anthropic client assembles a written stream into the message that is written as a whole', async () => {
    await fc.assert(
      fc.asyncProperty(anyResponse, sizes, async (whole, size) => {
        const stream = written(formatOf('messages'), interleaved(whole, size));
        const { content, usage, ...rest } = await MessageStream.fromReadableStream(
          lines(stream),
        ).finalMessage();
        const message = formatOf('messages').writeResponse(whole, STREAM_REQUEST);
        expect({ ...rest, content, usage }).toMatchObject(message);
        expect(content).toHaveLength((message['content'] as unknown[]).length);
      }),
      { numRuns: 100 },
    );
  });

  test('the OpenAI client assembles written chunks into the completion that is written as a whole', async () => {
    await fc.assert(
      fc.asyncProperty(anyResponse, sizes, async (whole, size) => {
        const stream = written(formatOf('completions'), interleaved(whole, size));
        const { choices, usage, id, model } = await ChatCompletionStream.fromReadableStream(
          lines(stream),
        ).finalChatCompletion();
        const completion = formatOf('completions').writeResponse(whole, STREAM_REQUEST) as {
          choices: { message: { content: string | null; tool_calls?: unknown }; finish_reason: string }[];
        };
        const [expected] = completion.choices;
        expect({ usage, id, model }).toEqual({
          usage: (completion as { usage?: unknown }).usage,
          id: whole.id,
          model: whole.model,
        });
        expect(choices[0]?.finish_reason).toBe(expected?.finish_reason);
        expect(choices[0]?.message.tool_calls).toEqual(expected?.message.tool_calls);
        expect(choices[0]?.message.content ?? '').toBe(expected?.message.content ?? '');
      }),
      { numRuns: 100 },
    );
  });

  test('the OpenAI client assembles written events into the response that the last event repeats and that is written as a whole', () => {
    fc.assert(
      fc.property(anyResponse, sizes, (whole, size) => {
        const stream = written(formatOf('responses'), interleaved(whole, size));
        const events = dataOf(stream).map((data) => JSON.parse(data) as ResponseStreamEvent);
        expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
        let snapshot: Response | undefined;
        for (const event of events.slice(0, -1)) snapshot = accumulateResponse(event, snapshot);
        const last = events.at(-1) as Extract<ResponseStreamEvent, { type: 'response.completed' }>;
        expect(last.type).toBe('response.completed');
        expect(snapshot?.output).toEqual(last.response.output);
        expect(last.response).toEqual(formatOf('responses').writeResponse(whole, STREAM_REQUEST));
      }),
      { numRuns: 100 },
    );
  });
});
