import { setImmediate } from 'node:timers/promises';
import Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { compilePatterns } from '../../../src/server/guardrails/patterns.ts';
import type { CompileContext } from '../../../src/server/kernel/compile-context.ts';
import { formatOf } from '../../../src/server/llm/formats/index.ts';
import { type CheckTexts, StreamGuard } from '../../../src/server/llm/guardrails/stream-guard.ts';
import { eventsIn, KINDS, WIRES, type WireName } from '../../kit/llm-events.ts';
import { EVERY_FORMAT, llmGateway, llmProvider, streaming } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { repeats } from '../../kit/thorough.ts';

const CARD = '4111 1111 1111 1111';
const MASK = '<CREDIT_CARD>';
const GUARD = { response: [{ regex: { rules: [{ builtin: 'creditCard' }] } }] };
const CASES = (Object.keys(WIRES) as WireName[]).flatMap((format) =>
  KINDS.filter((kind) => format !== 'completions' || kind === 'content').map(
    (kind) => [format, kind] as const,
  ),
);

/** A gateway in front of a provider that sends the events of `next` as single writes. */
async function guardedStreams() {
  let events: readonly string[] = [];
  const provider = await llmProvider(
    streaming(async (response) => {
      for (const event of events) {
        response.write(event);
        // Most events arrive alone then.
        await setImmediate();
      }
      response.end();
    }),
  );
  const served = await llmGateway(provider, { model: { provider: EVERY_FORMAT, guardrails: GUARD } });
  return {
    url: served.url,
    /** What the provider sends from now on. */
    send(sent: readonly string[]) {
      events = sent;
    },
    async stream(format: WireName, sent: readonly string[]): Promise<string> {
      events = sent;
      const { path, request } = WIRES[format];
      const { text } = await send(served.url + path, { method: 'POST', body: JSON.stringify(request) });
      return text;
    },
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

const cut = (text: string, places: readonly number[]): string[] =>
  [0, ...places].map((from, index) => text.slice(from, places[index])).filter((part) => part !== '');

describe('guarded streams of every format', () => {
  test.each(CASES)(
    'a card number in a stream of %s (%s) is masked at every split into two events',
    async (format, kind) => {
      await using gate = await guardedStreams();
      const text = `{"card":"${CARD}"}`;
      for (let place = 0; place <= text.length; place += 1) {
        const stream = await gate.stream(format, WIRES[format].events(kind, cut(text, [place])));
        expect(stream).not.toMatch(/4111|1111/);
        expect(WIRES[format].text(kind, stream)).toBe(`{"card":"${MASK}"}`);
      }
    },
  );

  test.each(CASES.filter(([format, kind]) => kind === 'arguments' && format !== 'generateContent'))(
    'a bare number in the arguments of a stream of %s is masked as a string at every split into two events',
    async (format, kind) => {
      await using gate = await guardedStreams();
      const filler = `"${'x'.repeat(3_000)}"`;
      const text = `{"note":"a \\" 4111111111111111",${filler}:${filler},"card":4111111111111111,"n":[ 4111111111111111 ]}`;
      const end = text.length;
      for (const place of [0, 9, 12, 20, 3_000, ...Array.from({ length: 60 }, (_, back) => end - back)]) {
        const stream = await gate.stream(format, WIRES[format].events(kind, cut(text, [place])));
        expect(stream).not.toMatch(/4111/);
        const { note, card, n } = JSON.parse(WIRES[format].text(kind, stream)) as Record<string, unknown>;
        expect({ note, card, n }).toEqual({ note: `a " ${MASK}`, card: MASK, n: [MASK] });
      }
    },
  );

  test('numbers in values of tools are masked in streams of /v1/messages and generateContent', async () => {
    await using gate = await guardedStreams();
    const values = { card: 4111111111111111, amount: 5 };
    const masked = `{"card":"${MASK}","amount":5}`;
    const block = { type: 'tool_use', id: 't', name: 'pay', input: values };
    const started = { type: 'content_block_start', index: 0, content_block: block };
    const messages = `event: content_block_start\ndata: ${JSON.stringify(started)}\n\n`;
    expect(await gate.stream('messages', [messages])).toContain(`"input":${masked}`);
    const parts = [{ functionCall: { name: 'pay', args: values } }];
    const event = { candidates: [{ index: 0, content: { role: 'model', parts } }] };
    gate.send([`data: ${JSON.stringify(event)}\n\n`]);
    const { text } = await send(`${gate.url}/v1beta/models/m:streamGenerateContent?alt=sse`, {
      method: 'POST',
      body: JSON.stringify({ contents: [{ parts: [{ text: 'Hi' }] }] }),
    });
    expect(text).toContain(`"args":${masked}`);
  });

  test.each(CASES)(
    'card numbers in long streams of %s (%s) are masked wherever they are cut',
    async (format, kind) => {
      await using gate = await guardedStreams();
      const filler = fc.string({
        unit: fc.constantFrom('a', 'é', '😀', ' ', '"', '\\', '<', '\n'),
        maxLength: 2_500,
        size: 'max',
      });
      const cuts = fc.array(fc.nat(5_000), { maxLength: 80, size: 'max' });
      await fc.assert(
        fc.asyncProperty(filler, filler, cuts, async (before, after, at) => {
          const text = `${before} ${CARD} ${after}`;
          const places = [...new Set(at.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
          const stream = await gate.stream(format, WIRES[format].events(kind, cut(text, places)));
          expect(stream).not.toContain('1111');
          expect(WIRES[format].text(kind, stream)).toBe(`${before} ${MASK} ${after}`);
        }),
        { numRuns: repeats(3, 100), endOnFailure: true },
      );
    },
  );

  test.each(CASES)('a stream of %s (%s) without a match keeps its bytes', async (format, kind) => {
    await using gate = await guardedStreams();
    const parts = Array.from({ length: 400 }, (_, index) => `word ${index} `);
    const events = WIRES[format].events(kind, parts);
    expect(await gate.stream(format, events)).toBe(events.join(''));
  });

  test('a masked stream of /v1/messages loses the signature of its thinking', async () => {
    await using gate = await guardedStreams();
    const { messages } = WIRES;
    expect(await gate.stream('messages', messages.events('reasoning', ['pay with ', CARD]))).not.toContain(
      'c2lnbmVk',
    );
    expect(await gate.stream('messages', messages.events('reasoning', ['pay with cash']))).toContain(
      'c2lnbmVk',
    );
  });

  test('a masked stream of /v1/responses loses citations and probabilities, and its events stay numbered', async () => {
    await using gate = await guardedStreams();
    const events = WIRES.responses.events('content', ['Pay ', CARD, ' now']);
    const at = { item_id: 'i1', output_index: 0, content_index: 0, annotation_index: 0 };
    const annotation = {
      type: 'url_citation',
      url: 'http://a.example',
      title: 'x',
      start_index: 0,
      end_index: 9,
    };
    const added = { type: 'response.output_text.annotation.added', sequence_number: 6, ...at, annotation };
    const numbered = [...events.slice(0, 6), `data: ${JSON.stringify(added)}\n\n`, ...events.slice(6)].map(
      (event, index) => event.replace(/"sequence_number":\d+/, `"sequence_number":${index}`),
    );
    const token = JSON.stringify([{ token: CARD, logprob: -1 }]);
    const sent = numbered.map((event) =>
      !event.includes(CARD)
        ? event
        : event
            .replaceAll('"annotations":[]', `"annotations":[${JSON.stringify(annotation)}]`)
            .replaceAll('"logprobs":[]', `"logprobs":${token}`),
    );
    const stream = await gate.stream('responses', sent);
    expect(stream).not.toMatch(/1111|url_citation/);
    expect(WIRES.responses.text('content', stream)).toBe(`Pay ${MASK} now`);
  });

  test('a text that only the last events of a stream carry is masked', async () => {
    await using gate = await guardedStreams();
    const events = WIRES.responses
      .events('content', [`Pay ${CARD}`])
      .filter((event) => !event.includes('.delta'));
    const stream = await gate.stream('responses', events);
    expect(stream.match(/Pay <CREDIT_CARD>/g)).toHaveLength(4);
    expect(stream).not.toContain('1111');
  });

  test('data that is no JSON is masked', async () => {
    await using gate = await guardedStreams();
    const event = 'data: {"choices":[{}]}\n\n';
    const end = 'data: [DONE]\n\n';
    expect(await gate.stream('chat', [event, `data: ${CARD}\n\n`, end])).toBe(
      `${event}data: ${MASK}\n\n${end}`,
    );
  });
});

describe('guarded streams that are translated', () => {
  test.each(
    (['messages', 'responses', 'generateContent'] as const).flatMap((format) =>
      KINDS.map((kind) => [format, kind] as const),
    ),
  )(
    'a card number in a chat completion that is sent as a stream of %s (%s) is masked',
    async (format, kind) => {
      const text = `{"card":"${CARD}"}`;
      for (let place = 1; place < text.length; place += 3) {
        await using provider = await llmProvider(
          streaming((response) => response.end(WIRES.chat.events(kind, cut(text, [place])).join(''))),
        );
        const custom = { formats: [{ type: 'completions' }] };
        await using served = await llmGateway(provider, {
          model: { provider: { custom }, guardrails: GUARD },
        });
        const { path, request } = WIRES[format];
        const reply = await send(served.url + path, { method: 'POST', body: JSON.stringify(request) });
        expect(reply.text).not.toMatch(/4111|1111/);
        const events = eventsIn(reply.text);
        const deltas = events.map(({ delta }) => (typeof delta === 'string' ? delta : ''));
        const assembled = format === 'responses' ? deltas.join('') : WIRES[format].text(kind, reply.text);
        // A call of a function arrives in one event of generateContent.
        const isWhole = format === 'generateContent' && kind === 'arguments';
        const calls = events.flatMap(({ candidates }) => candidates?.[0].content?.parts ?? []);
        const card = isWhole
          ? calls.find(({ functionCall }) => functionCall).functionCall.args
          : JSON.parse(assembled);
        expect(card).toEqual({ card: MASK });
      }
    },
  );
});

describe('guarded streams of which every event arrives alone', () => {
  const FORMATS = {
    chat: 'completions',
    completions: 'textCompletions',
    messages: 'messages',
    responses: 'responses',
    generateContent: 'generateContent',
  } as const;

  async function guarded(format: WireName, events: readonly string[], check: CheckTexts): Promise<string> {
    const guard = new StreamGuard(formatOf(FORMATS[format]).eventTexts as never, check);
    const out: Buffer[] = [];
    for (const event of events) {
      guard.hold(Buffer.from(event));
      if (guard.isFull) out.push(...(await guard.release(false)));
    }
    out.push(...(await guard.release(true)));
    return Buffer.concat(out).toString('utf8');
  }

  const rules = [{ builtin: 'creditCard' }, { builtin: 'apiKey' }] as never;
  const patterns = compilePatterns({ action: 'mask', rules }, {} as CompileContext);
  const masking: CheckTexts = async (texts) => texts.map((text) => patterns.mask(text.content, text));

  test.each(CASES)(
    'card numbers and keys in streams of %s (%s) are masked wherever they are cut',
    async (format, kind) => {
      const filler = fc.string({
        unit: fc.constantFrom('a', 'é', '😀', ' ', '"', '\\', '<', '\n'),
        maxLength: 1_500,
        size: 'max',
      });
      const secret = fc.constantFrom([CARD, MASK], [`sk-${'aB3'.repeat(70)}`, '<API_KEY>']);
      const piece = fc.tuple(filler, secret, filler);
      const sizes = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 40, size: 'max' });
      await fc.assert(
        fc.asyncProperty(
          fc.array(piece, { minLength: 1, maxLength: 3, size: 'max' }),
          sizes,
          async (pieces, lengths) => {
            const text = pieces.map(([before, [plain], after]) => `${before} ${plain} ${after}`).join('');
            const expected = pieces.map(([before, [, mask], after]) => `${before} ${mask} ${after}`).join('');
            const parts: string[] = [];
            for (let at = 0, next = 0; at < text.length; next += 1) {
              const size = lengths[next % lengths.length] as number;
              parts.push(text.slice(at, at + size));
              at += size;
            }
            const stream = await guarded(format, WIRES[format].events(kind, parts), masking);
            expect(WIRES[format].text(kind, stream)).toBe(expected);
            // An event may have the number 4111.
            expect(stream).not.toMatch(/4111 1|aB3/);
          },
        ),
        { numRuns: repeats(6, 200), endOnFailure: true },
      );
    },
  );

  test('patterns change a stream as they would change the whole text', async () => {
    const all = ['creditCard', 'ssn', 'caSin', 'email', 'iban', 'apiKey'].map((builtin) => ({ builtin }));
    // Spaces around addresses: whether a sign before one belongs to it may depend on where the text is cut.
    const every = compilePatterns({ action: 'mask', rules: all as never }, {} as CompileContext);
    const unit = fc.constantFrom(
      ...['4111111111111111', '123-45-6789', '130692544', ' ann@example.com ', 'DE89370400440532013000'],
      ...['AKIAIOSFODNN7EXAMPLE', '1', '23', '456789', 'a', 'B', '-', ' ', ' ', ', ', 'word '],
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 40, size: 'max' });
    await fc.assert(
      fc.asyncProperty(fc.array(unit, { maxLength: 900, size: 'max' }), sizes, async (units, lengths) => {
        const text = units.join('').replaceAll(/[\w.@-]{60}/g, '$& ');
        const parts: string[] = [];
        for (let at = 0; at < text.length; at += lengths[(parts.length - 1) % lengths.length] as number)
          parts.push(text.slice(at, at + (lengths[parts.length % lengths.length] as number)));
        const check: CheckTexts = async (texts) => texts.map((each) => every.mask(each.content, each));
        const stream = await guarded('chat', WIRES.chat.events('content', parts), check);
        expect(WIRES.chat.text('content', stream)).toBe(every.mask(text));
      }),
      { numRuns: repeats(12, 300), endOnFailure: true },
    );
  });

  test('events that repeat a text carry what was sent, whatever the guardrail would answer now', async () => {
    let count = 0;
    const numbering: CheckTexts = async (texts) =>
      texts.map(({ content }) =>
        content.replaceAll(CARD, () => {
          count += 1;
          return `[${count}]`;
        }),
      );
    for (const kind of KINDS) {
      const parts = ['pay ', CARD, ' x'.repeat(900), ` ${CARD} `, 'y '.repeat(900)];
      const stream = await guarded('responses', WIRES.responses.events(kind, parts), numbering);
      expect(WIRES.responses.text(kind, stream)).toMatch(/^pay \[\d+\] x.* \[\d+\] y/);
    }
  });

  test('a stream is released block by block', async () => {
    const sent: string[] = [];
    const guard = new StreamGuard(formatOf('messages').eventTexts as never, async (texts) => {
      sent.push(...texts.map(({ content }) => content));
      return texts.map(({ content }) => content);
    });
    const events = WIRES.messages.events('content', ['a'.repeat(800)]);
    for (const event of events.slice(0, -1)) guard.hold(Buffer.from(event));
    // The end of the block is known, so no overlap is held.
    expect(guard.isFull).toBe(true);
    expect(Buffer.concat(await guard.release(false)).toString()).toBe(
      ['ping', ...events]
        .filter((event) => event !== 'ping')
        .slice(0, -1)
        .join(''),
    );
    expect(sent).toEqual(['a'.repeat(800)]);
  });

  describe('streams of generateContent', () => {
    const event = (parts: object[], more: object = {}): string =>
      `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts }, index: 0, ...more }] })}\r\n\r\n`;

    test('a card number is masked wherever it is cut, also if every event has a finish reason', async () => {
      for (let before = 740; before < 1_060; before += 16) {
        const text = `${'x'.repeat(before)} ${CARD} ${'y '.repeat(300)}`;
        const parts = text.match(/.{1,7}/gs) as string[];
        const events = parts.map((part) => event([{ text: part }], { finishReason: 'STOP' }));
        const guard = new StreamGuard(formatOf('generateContent').eventTexts as never, masking);
        const out: Buffer[] = [];
        for (const each of events) {
          guard.hold(Buffer.from(each));
          if (guard.isFull) out.push(...(await guard.release(false)));
        }
        out.push(...(await guard.release(true)));
        const sent = eventsIn(Buffer.concat(out).toString().replaceAll('\r', ''));
        expect(sent.map(({ candidates }) => candidates[0].content.parts[0].text).join('')).toBe(
          text.replace(CARD, MASK),
        );
      }
    });

    test('thoughts do not hold back the answer after them', async () => {
      const guard = new StreamGuard(formatOf('generateContent').eventTexts as never, masking);
      const events = [
        event([{ text: `use ${CARD}`, thought: true }]),
        ...Array.from({ length: 200 }, () => event([{ text: 'and so on ' }])),
      ];
      let sent = '';
      for (const each of events) {
        guard.hold(Buffer.from(each));
        if (guard.isFull) sent += Buffer.concat(await guard.release(false)).toString();
      }
      expect(sent).toContain(`use ${MASK}`);
      expect(sent.match(/and so on/g)?.length).toBeGreaterThan(100);
    });
  });

  test('the text at the start of a block and the deltas after it are one text', async () => {
    const [start, block, ...rest] = WIRES.messages.events('content', ['1111 1111 1111']) as [string, string];
    const begun = block.replace('"text":""', '"text":"4111 "');
    const stream = await guarded('messages', [start, begun, ...rest], masking);
    expect(stream).not.toMatch(/4111|1111/);
  });

  test('events that would have to wait for too long end the stream', async () => {
    const event = (delta: object): string =>
      `data: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta })}\n\n`;
    const long = event({ type: 'text_delta', text: 'x'.repeat(10_000) });
    const events = [
      event({ type: 'thinking_delta', thinking: 'short' }),
      ...Array.from({ length: 600 }, () => long),
    ];
    await expect(guarded('messages', events, masking)).rejects.toThrow('too many events wait');
  });
});

describe('guarded streams read by official clients', () => {
  const card = { card: CARD, note: 'x'.repeat(2_000) };
  const parts = cut(JSON.stringify(card), [3, 14, 15, 20, 400, 900]);
  const masked = { ...card, card: MASK };

  test.each(KINDS)('the Anthropic client assembles the masked %s of a stream', async (kind) => {
    await using gate = await guardedStreams();
    gate.send(WIRES.messages.events(kind, parts));
    const client = new Anthropic({ baseURL: gate.url, apiKey: 'k', maxRetries: 0 });
    const { content, stop_reason } = await client.messages
      .stream({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] })
      .finalMessage();
    const text = JSON.stringify(masked);
    expect(content).toEqual([
      {
        content: { type: 'text', text },
        reasoning: { type: 'thinking', thinking: text, signature: '' },
        arguments: { type: 'tool_use', id: 't1', name: 'pay', input: masked },
      }[kind],
    ]);
    expect(stop_reason).toBe(kind === 'arguments' ? 'tool_use' : 'end_turn');
  });

  test.each(KINDS)('the OpenAI client assembles the masked %s of a response', async (kind) => {
    await using gate = await guardedStreams();
    gate.send(WIRES.responses.events(kind, parts));
    const client = new OpenAI({ baseURL: `${gate.url}/v1`, apiKey: 'k', maxRetries: 0 });
    const deltas: string[] = [];
    const stream = client.responses.stream({ model: 'm', input: 'Hi' });
    for await (const event of stream)
      if ('delta' in event && typeof event.delta === 'string') deltas.push(event.delta);
    const { output } = await stream.finalResponse();
    const text = JSON.stringify(masked);
    expect(deltas.join('')).toBe(text);
    const part = {
      content: { content: [{ text }] },
      reasoning: { summary: [{ text }] },
      arguments: { arguments: text },
    };
    expect(output).toMatchObject([part[kind]]);
  });

  test('the OpenAI client assembles the masked tool call of a chat completion', async () => {
    await using gate = await guardedStreams();
    gate.send(WIRES.chat.events('arguments', parts));
    const client = new OpenAI({ baseURL: `${gate.url}/v1`, apiKey: 'k', maxRetries: 0 });
    const { choices } = await client.chat.completions
      .stream({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
      .finalChatCompletion();
    expect(choices[0]?.message.tool_calls).toMatchObject([
      { id: 'call_1', function: { name: 'pay', arguments: JSON.stringify(masked) } },
    ]);
  });
});
