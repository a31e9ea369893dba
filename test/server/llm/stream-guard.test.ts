import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AppError } from '../../../src/core/errors.ts';
import { chatEvents } from '../../../src/server/llm/formats/chat-completions/event-texts.ts';
import { type CheckTexts, StreamGuard } from '../../../src/server/llm/guardrails/stream-guard.ts';
import { chunk, DONE, FINISH, USAGE } from '../../kit/llm-provider.ts';
import { collected } from '../../kit/llm-stream.ts';
import { repeats } from '../../kit/thorough.ts';

const SECRET = 'sk-THE-SECRET-0123456789';
const hide = (text: string): string => text.replaceAll(SECRET, '[masked]');

const event = (index: number, delta: object, finish: string | null = null): string =>
  chunk(undefined, { choices: [{ index, delta, finish_reason: finish }] });

/** Sends events through a guard as a stream would, and returns what came out. */
async function guarded(events: readonly string[], guard: StreamGuard): Promise<string> {
  const out: Buffer[] = [];
  for (const text of events) {
    guard.hold(Buffer.from(text));
    if (guard.isFull) out.push(...(await guard.release(false)));
  }
  out.push(...(await guard.release(true)));
  return Buffer.concat(out).toString('utf8');
}

const chatGuard = (check: CheckTexts): StreamGuard => new StreamGuard(chatEvents, check);
const unchanged: CheckTexts = async (texts) => texts.map(({ content }) => content);
const masking = () => chatGuard(async (texts) => texts.map(({ content }) => hide(content)));

/** A text cut into deltas at any places. */
const deltas = (text: string, cuts: readonly number[]): string[] => {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, index) => text.slice(from, places[index]));
};

/** What a client collects of the first choice besides its content. */
function collectedMessage(stream: string): Record<string, unknown> {
  const message: Record<string, unknown> & { calls?: string[] } = {};
  for (const line of stream.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const [choice] = (JSON.parse(line.slice(6)) as { choices: Choice[] }).choices;
    for (const [key, value] of Object.entries(choice?.delta ?? {}))
      if (key !== 'role' && typeof value === 'string')
        message[key] = ((message[key] as string) ?? '') + value;
    for (const { index, id, function: { name, arguments: text } = {} } of choice?.delta?.tool_calls ?? []) {
      message.calls ??= [];
      const before = message.calls[index] ?? '';
      if (before === '' && id === undefined) throw new Error('arguments of a call without an id');
      message.calls[index] = `${before}${id === undefined ? '' : `${id} ${name} `}${text ?? ''}`;
    }
    if (choice?.finish_reason) message['end'] = choice.finish_reason;
  }
  return message;
}
interface Choice {
  readonly delta?: {
    tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
  };
  readonly finish_reason?: string | null;
}

describe('guarded streams', () => {
  test('a guarded stream never passes a secret, wherever it occurs and however it is split', async () => {
    const filler = fc.string({ unit: 'grapheme-ascii', maxLength: 3_000, size: 'max' });
    const cuts = fc.array(fc.nat(7_000), { maxLength: 120, size: 'max' });
    const said = fc.tuple(filler, filler, cuts).map(([before, after, places]) => ({
      text: `${hide(before)}${SECRET}${hide(after)}`,
      places,
    }));
    await fc.assert(
      fc.asyncProperty(said, said, async (first, second) => {
        const streams = [first, second].map(({ text, places }, index) => [
          event(index, { role: 'assistant', content: '' }),
          ...deltas(text, places).map((content) => event(index, { content })),
          event(index, { tool_calls: [{ index: 0, function: { arguments: `{"n":${index}}` } }] }),
          event(index, {}, 'stop'),
        ]);
        const longest = Math.max(...streams.map(({ length }) => length));
        const mixed = Array.from({ length: longest }, (_, at) =>
          streams.flatMap((events) => events[at] ?? []),
        );
        const result = collected(
          await guarded([...mixed.flat(), chunk(undefined, { usage: USAGE }), DONE], masking()),
        );
        expect(result).toEqual({
          texts: [hide(first.text), hide(second.text)],
          calls: ['{"n":0}', '{"n":1}'],
          ends: ['stop', 'stop'],
          done: true,
        });
      }),
      { numRuns: repeats(50, 500) },
    );
  });

  test('a guarded stream never passes a secret in reasoning, a refusal or tool call arguments', async () => {
    const filler = fc.string({ unit: 'grapheme-ascii', maxLength: 2_000, size: 'max' });
    const cuts = fc.array(fc.nat(4_500), { maxLength: 60, size: 'max' });
    const said = fc.tuple(filler, filler, cuts).map(([before, after, places]) => ({
      text: `${hide(before)}${SECRET}${hide(after)}`,
      places,
    }));
    const kinds: readonly ((text: string) => object)[] = [
      (text) => ({ reasoning_content: text }),
      (text) => ({ refusal: text }),
      (text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] }),
      (text) => ({ tool_calls: [{ index: 1, function: { arguments: text } }] }),
    ];
    await fc.assert(
      fc.asyncProperty(fc.tuple(said, said, said, said), fc.boolean(), async (all, isMixed) => {
        const texts = all.map(({ text, places }, kind) => {
          const id = { index: kind - 2, id: `call_${kind}`, type: 'function' };
          const begin =
            kind < 2 ? [] : [event(0, { tool_calls: [{ ...id, function: { name: 'pay', arguments: '' } }] })];
          return [...begin, ...deltas(text, places).map((part) => event(0, kinds[kind]?.(part) ?? {}))];
        });
        const longest = Math.max(...texts.map(({ length }) => length));
        const mixed = Array.from({ length: longest }, (_, at) => texts.flatMap((events) => events[at] ?? []));
        const events = [...(isMixed ? mixed.flat() : texts.flat()), event(0, {}, 'tool_calls'), DONE];
        const result = collectedMessage(await guarded(events, masking()));
        const expected = all.map(({ text }) => hide(text));
        expect(result).toEqual({
          reasoning_content: expected[0],
          refusal: expected[1],
          calls: [`call_2 pay ${expected[2]}`, `call_3 pay ${expected[3]}`],
          end: 'tool_calls',
        });
      }),
      { numRuns: repeats(25, 200) },
    );
  });

  test('a guarded stream keeps the id and name of a tool call before its masked arguments, in one event or several', async () => {
    const call = { index: 0, id: 'c1', type: 'function', function: { name: 'pay', arguments: SECRET } };
    const out = await guarded(
      [event(0, { role: 'assistant', tool_calls: [call] }, 'tool_calls'), DONE],
      masking(),
    );
    expect(out).not.toContain(SECRET);
    expect(collectedMessage(out)).toEqual({ calls: ['c1 pay [masked]'], end: 'tool_calls' });
  });

  test('a guarded stream does not repeat a masked text in the token log probabilities', async () => {
    const logprobs = { content: [{ token: SECRET, logprob: -1 }] };
    const text = chunk(undefined, { choices: [{ index: 0, delta: { content: SECRET }, logprobs }] });
    expect(await guarded([text, DONE], masking())).not.toContain(SECRET);
  });

  test('a guarded stream keeps its bytes when nothing is masked', async () => {
    const words = Array.from({ length: 600 }, (_, index) => chunk({ content: `word ${index} ` }));
    const events = [':\n\n', ...words, FINISH, chunk(undefined, { usage: USAGE }), DONE];
    expect(await guarded(events, masking())).toBe(events.join(''));
  });

  test('a guarded stream is checked about once per 768 characters, also beside a choice with little text', async () => {
    let checks = 0;
    const guard = chatGuard(async (texts) => {
      checks += 1;
      return unchanged(texts);
    });
    const long = Array.from({ length: 1_000 }, () => event(0, { content: 'ten chars ' }));
    await guarded([event(1, { content: 'short' }), event(1, {}, 'stop'), ...long, DONE], guard);
    expect(checks).toBeLessThan(20);
  });

  test("a guarded stream keeps the order of a choice's texts when an event waits for another choice", async () => {
    const guard = chatGuard(unchanged);
    const both = [
      { index: 0, delta: { content: 'a' } },
      { index: 1, delta: { content: 'first ' } },
    ];
    const events = [chunk(undefined, { choices: both }), event(1, { content: 'second ' })];
    const more = Array.from({ length: 200 }, () => event(1, { content: 'and so on ' }));
    const { texts } = collected(await guarded([...events, ...more], guard));
    expect(texts).toEqual(['a', `first second ${'and so on '.repeat(200)}`]);
  });

  test('a guarded stream forwards a long tool call before a short pending text and holds and checks little at a time', async () => {
    let most = 0;
    const guard = chatGuard(async (texts) => {
      const contents = texts.map(({ content }) => content);
      most = Math.max(most, contents.join('').length);
      return contents.map(hide);
    });
    const call = event(0, { tool_calls: [{ index: 0, function: { arguments: 'x'.repeat(10_000) } }] });
    guard.hold(Buffer.from(chunk({ content: `key ${SECRET}` })));
    let passed = 0;
    for (let count = 0; count < 100; count += 1) {
      guard.hold(Buffer.from(call));
      if (guard.isFull) passed += (await guard.release(false)).length;
    }
    expect(passed).toBeGreaterThan(70);
    expect(most).toBeLessThan(25_000);
    expect(Buffer.concat(await guard.release(true)).toString()).toContain('key [masked]');
  });

  test.each([
    ['a byte order mark', `\uFEFF${chunk({ content: SECRET })}`],
    ['CRLF', chunk({ content: SECRET }).replaceAll('\n', '\r\n')],
    ['no space after the field', chunk({ content: SECRET }).replace('data: ', 'data:')],
    [
      'one choice twice',
      chunk(undefined, {
        choices: [SECRET.slice(0, 9), SECRET.slice(9)].map((content) => ({ index: 0, delta: { content } })),
      }),
    ],
  ])('a guarded stream checks the text of an event with %s', async (_, text) => {
    const out = await guarded([text, DONE], masking());
    expect(out).not.toContain(SECRET);
    expect(collected(out)).toMatchObject({ texts: ['[masked]'], done: true });
  });

  test('a guarded stream keeps the end of a choice when text before it is masked twice', async () => {
    let round = 0;
    const guard = chatGuard(async (texts) => {
      round += 1;
      return texts.map(() => `mask ${round} ${'y'.repeat(2_000)}`);
    });
    const events = [chunk({ content: 'x'.repeat(1_500) }), event(0, { content: 'end' }, 'stop'), DONE];
    expect(collected(await guarded(events, guard))).toMatchObject({ ends: ['stop'], done: true });
  });
});

test('a failed guardrail check blocks the held text', async () => {
  const guard = chatGuard(() => Promise.reject(new AppError('guardrail_failed')));
  guard.hold(Buffer.from(chunk({ content: SECRET })));
  await expect(guard.release(true)).rejects.toThrow('prompt guard failed');
});
