import fc from 'fast-check';
import type { Dispatcher } from 'undici';
import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../../../src/server/llm/chat/chat.ts';
import type { ChatFormat } from '../../../../src/server/llm/chat/chat-format.ts';
import { serverSentEvents } from '../../../../src/server/llm/chat/server-sent-events.ts';
import { chatFormats } from '../../../../src/server/llm/formats/index.ts';
import { TranslatedBody } from '../../../../src/server/llm/translation/translated-body.ts';
import { UpstreamBody } from '../../../../src/server/transport/upstream/upstream-body.ts';
import { APIS, type Api, STREAMS } from '../../../kit/llm-answers.ts';
import { repeats } from '../../../kit/thorough.ts';

const REQUEST: ChatRequest = {
  model: 'm',
  system: [],
  turns: [],
  tools: [],
  stream: true,
  streamUsage: true,
};

const formatOf = (api: Api): ChatFormat => chatFormats.find(({ key }) => key === api) as ChatFormat;

interface Received {
  text: string;
  end?: 'end' | string;
}

/** What a client gets of a provider's stream that arrives in these chunks. */
function translate(provider: Api, client: Api, chunks: readonly Buffer[]): Received {
  const controller = { pause: () => undefined, resume: () => undefined, abort: () => undefined };
  const source = new UpstreamBody(controller as unknown as Dispatcher.DispatchController);
  const { body } = new TranslatedBody(source, {
    splitter: serverSentEvents.splitter(1 << 20),
    reader: formatOf(provider).eventReader(),
    writer: formatOf(client).eventWriter(REQUEST),
    pingAfter: Number.POSITIVE_INFINITY,
    change: (event) => [event],
    onFailure: (error) => ({ type: 'error', error: { message: String(error), status: 502 } }),
  });
  const received: Received = { text: '' };
  body.consume({
    push: (chunk) => {
      received.text += chunk.toString('utf8');
      return true;
    },
    end: () => {
      received.end = 'end';
    },
    fail: (why) => {
      received.end = why;
    },
  });
  for (const chunk of chunks) source.push(chunk);
  source.end();
  // Messages have no creation time, so it is the time of the translation.
  received.text = received.text.replaceAll(/"created(?:_at)?":\d+/g, '"created":0');
  return received;
}

const PAIRS = APIS.flatMap((client) => APIS.map((provider) => [provider, client] as const));

describe('translated streams', () => {
  test.each(PAIRS)(
    'a stream of %s is the same for a client of %s wherever it is split',
    (provider, client) => {
      const bytes = Buffer.from(STREAMS[provider]);
      const whole = translate(provider, client, [bytes]);
      expect(whole.end).toBe('end');
      // Of all splits in two, every run tries other ones.
      const step = repeats(53, 1);
      for (let at = 1 + Math.floor(Math.random() * step); at < bytes.length; at += step)
        expect(translate(provider, client, [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
      const single = Array.from(bytes, (byte) => Buffer.from([byte]));
      expect(translate(provider, client, single)).toEqual(whole);
    },
  );

  test.each(PAIRS)(
    'a stream of %s that is closed anywhere before its last event fails for a client of %s, after a part of the whole',
    (provider, client) => {
      const stream = STREAMS[provider];
      const whole = translate(provider, client, [Buffer.from(stream)]);
      const frames = stream.split(/(?<=\n\n)/);
      // The end of a chat completion is its finish reason: some servers send no `[DONE]`.
      const last = provider === 'completions' ? frames.length - 3 : frames.length - 1;
      for (let count = 0; count < last; count += 1) {
        const received = translate(provider, client, [Buffer.from(frames.slice(0, count).join(''))]);
        expect(received.end).toBe('it closed the stream before the last event');
        expect(whole.text.startsWith(received.text)).toBe(true);
      }
    },
  );

  test.each(PAIRS)(
    'a stream of %s with lost, repeated, swapped or altered events ends for a client of %s, with an error or without',
    (provider, client) => {
      const frames = STREAMS[provider].split(/(?<=\n\n)/);
      const place = fc.nat(frames.length - 1);
      const change = fc.oneof(
        fc.record({ kind: fc.constantFrom('lose' as const, 'repeat' as const), at: place }),
        fc.record({ kind: fc.constant('swap' as const), at: place, other: place }),
        fc.record({
          kind: fc.constant('alter' as const),
          at: place,
          from: fc.constantFrom('"index":', '"delta":', '"type":', '"id":', '"content":', '"arguments":'),
          to: fc.constantFrom('null', '[]', '{}', '7', '-1', '"x"', '1e9', 'true'),
        }),
      );
      fc.assert(
        fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
          let altered = [...frames];
          for (const each of changes) {
            const frame = altered[each.at] ?? '';
            if (each.kind === 'alter')
              altered = altered.with(Math.min(each.at, altered.length - 1), alter(frame, each.from, each.to));
            else if (each.kind === 'swap') {
              altered[each.at] = altered[each.other] ?? '';
              altered[each.other] = frame;
            } else if (each.kind === 'lose') altered.splice(each.at, 1);
            else altered.splice(each.at, 0, frame);
          }
          const { end, text } = translate(provider, client, [Buffer.from(altered.join(''))]);
          expect(end).toBeDefined();
          // Whatever the provider sent, the client gets whole events.
          expect(text === '' || text.endsWith('\n\n')).toBe(true);
        }),
        { numRuns: repeats(60, 2_000) },
      );
    },
  );
});

/** The frame with another value of the first member of that name. */
function alter(frame: string, member: string, value: string): string {
  const at = frame.indexOf(member);
  return at === -1
    ? frame
    : `${frame.slice(0, at)}${member}${value},"was":${frame.slice(at + member.length)}`;
}
