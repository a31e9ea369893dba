import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AppError } from '../../../src/core/errors.ts';
import { StreamGuard } from '../../../src/server/llm/guardrails/stream-guard.ts';
import {
  CHAT,
  chat,
  chunk,
  DONE,
  FINISH,
  guardrail,
  llmGateway,
  llmProvider,
  streaming,
  USAGE,
  webhook,
} from '../../kit/llm-provider.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const SECRET = 'sk-THE-SECRET-0123456789';
const hide = (text: string): string => text.replaceAll(SECRET, '[masked]');

interface Event {
  readonly choices?: { index: number; delta?: Delta; finish_reason?: string | null }[];
}
interface Delta {
  readonly content?: string;
  readonly tool_calls?: { function: { arguments: string } }[];
}

/** What a client collects of a stream: per choice its text, tool arguments and end, and whether [DONE] came last. */
function collected(stream: string): {
  texts: string[];
  calls: string[];
  ends: (string | undefined)[];
  done: boolean;
} {
  const texts: string[] = [];
  const calls: string[] = [];
  const ends: (string | undefined)[] = [];
  for (const line of stream.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    for (const { index, delta, finish_reason: end } of (JSON.parse(line.slice(6)) as Event).choices ?? []) {
      if (delta?.content && ends[index] !== undefined) throw new Error('text after the end of its choice');
      texts[index] = (texts[index] ?? '') + (delta?.content ?? '');
      calls[index] = (calls[index] ?? '') + (delta?.tool_calls?.[0]?.function.arguments ?? '');
      ends[index] ??= end ?? undefined;
    }
  }
  return { texts, calls, ends, done: stream.endsWith(DONE) };
}

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

const masking = () => new StreamGuard(async (contents) => contents.map(hide));

/** A text cut into deltas at any places. */
const deltas = (text: string, cuts: readonly number[]): string[] => {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, index) => text.slice(from, places[index]));
};

describe('a guarded stream', () => {
  test('never lets a secret pass, wherever it stands and however it is cut', async () => {
    const filler = fc.string({ unit: 'grapheme-ascii', maxLength: 3_000 });
    const cuts = fc.array(fc.nat(7_000), { maxLength: 120 });
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
      { numRuns: 150 },
    );
  });

  test('keeps its bytes when nothing is masked', async () => {
    const words = Array.from({ length: 600 }, (_, index) => chunk({ content: `word ${index} ` }));
    const events = [': hello\n\n', ...words, FINISH, chunk(undefined, { usage: USAGE }), DONE];
    expect(await guarded(events, masking())).toBe(events.join(''));
  });

  test('is checked about once per 768 characters, also beside a choice that says little', async () => {
    let checks = 0;
    const guard = new StreamGuard(async (contents) => {
      checks += 1;
      return contents;
    });
    const long = Array.from({ length: 1_000 }, () => event(0, { content: 'ten chars ' }));
    await guarded([event(1, { content: 'short' }), event(1, {}, 'stop'), ...long, DONE], guard);
    expect(checks).toBeLessThan(20);
  });

  test('lets no text overtake an earlier one of its choice in an event that waits for another choice', async () => {
    const guard = new StreamGuard(async (contents) => contents);
    const both = [
      { index: 0, delta: { content: 'a' } },
      { index: 1, delta: { content: 'first ' } },
    ];
    const events = [chunk(undefined, { choices: both }), event(1, { content: 'second ' })];
    const more = Array.from({ length: 200 }, () => event(1, { content: 'and so on ' }));
    const { texts } = collected(await guarded([...events, ...more], guard));
    expect(texts).toEqual(['a', `first second ${'and so on '.repeat(200)}`]);
  });

  test('lets a long tool call pass a short text before it, holds little and asks about the text once', async () => {
    let checks = 0;
    const guard = new StreamGuard(async (contents) => {
      checks += 1;
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
    expect(checks).toBe(1);
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
  ])('finds text in an event with %s', async (_, text) => {
    const out = await guarded([text, DONE], masking());
    expect(out).not.toContain(SECRET);
    expect(collected(out)).toMatchObject({ texts: ['[masked]'], done: true });
  });

  test('keeps the end of a choice when text before it is masked twice', async () => {
    let round = 0;
    const guard = new StreamGuard(async (contents) => {
      round += 1;
      return contents.map(() => `mask ${round} ${'y'.repeat(2_000)}`);
    });
    const events = [chunk({ content: 'x'.repeat(1_500) }), event(0, { content: 'end' }, 'stop'), DONE];
    expect(collected(await guarded(events, guard))).toMatchObject({ ends: ['stop'], done: true });
  });
});

const STREAM = { ...CHAT, stream: true };
const long = Array.from({ length: 300 }, (_, index) => chunk({ content: `word ${index} ` })).join('');

describe('a guarded stream over the wire', () => {
  test('is masked, and says how long it was held', async () => {
    const parts = [chunk({ content: SECRET.slice(0, 5) }), chunk({ content: SECRET.slice(5) })].join('');
    await using provider = await llmProvider(
      streaming((response) => response.end(long + parts + long + FINISH + DONE)),
    );
    await using hook = await guardrail(({ choices }) => ({
      body: {
        choices: choices?.map(({ message: { role, content } }) => ({
          message: { role, content: hide(content) },
        })),
      },
    }));
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const result = collected((await chat(served, STREAM)).text);
    const words = collected(long).texts[0] as string;
    expect(result).toMatchObject({ texts: [`${words}[masked]${words}`], ends: ['stop'], done: true });
    expect((await served.accessLine(1))['gw.ai.stream.held']).toMatch(/^\d+ms$/);
  });

  test('that is rejected ends with an error event and without [DONE], and the provider is left', async () => {
    let left = false;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(long + chunk({ content: SECRET }) + long);
        response.once('close', () => {
          left = true;
        });
      }),
    );
    await using hook = await guardrail(({ choices }) =>
      choices?.[0]?.message.content.includes(SECRET) ? { body: 'not for you', status_code: 403 } : {},
    );
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const { text } = await chat(served, STREAM);
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain('[DONE]');
    expect(
      text.endsWith(
        'data: {"error":{"message":"not for you","type":"guardrail_blocked","code":"guardrail_intervention"}}\n\n',
      ),
    ).toBe(true);
    await until(() => left);
    expect(await served.accessLine(1)).toMatchObject({ reason: 'Guardrail' });
  });

  test('whose webhook fails is blocked', async () => {
    await using provider = await llmProvider(streaming((response) => response.end(long + DONE)));
    await using hook = await httpUpstream((_, response) => response.writeHead(500).end('{"action":{}}'));
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const { text } = await chat(served, STREAM);
    expect(text).toBe(
      'data: {"error":{"message":"Content blocked by guardrail policy","type":"guardrail_blocked","code":"guardrail_intervention"}}\n\n',
    );
    expect((await served.accessLine(1))['error.detail']).toBe('the webhook answered 500');
  });

  test('of a client that does not read is held up at the provider', async () => {
    let written = 0;
    const text = chunk({ content: 'x'.repeat(8_000) });
    await using provider = await llmProvider(
      streaming((response) => {
        const more = (): void => {
          while (!response.destroyed && written < 100_000_000) {
            written += text.length;
            if (!response.write(text)) break;
          }
        };
        response.on('drain', more);
        more();
      }),
    );
    await using hook = await guardrail(() => ({}));
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const call = request(`${served.url}/v1/chat/completions`, { method: 'POST' });
    call.on('error', () => undefined).end(JSON.stringify(STREAM));
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    response.on('error', () => undefined).pause();
    let before = -1;
    // Webhooks answer within milliseconds here: once nothing moves, it is the client that is waited for.
    await until(async () => {
      before = hook.received.length;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return before > 0 && hook.received.length === before;
    });
    expect(written).toBeLessThan(30_000_000);
    response.destroy();
  });

  test('whose client leaves while a webhook thinks harms nothing', async () => {
    await using provider = await llmProvider(streaming((response) => response.write(long)));
    let asked = 0;
    let left = 0;
    await using hook = await httpUpstream((_, response) => {
      asked += 1;
      response.once('close', () => {
        left += 1;
      });
    });
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const call = request(`${served.url}/v1/chat/completions`, { method: 'POST' });
    call.on('error', () => undefined).end(JSON.stringify(STREAM));
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    response.on('error', () => undefined).resume();
    await until(() => asked === 1);
    response.destroy();
    await until(() => left === 1);
    // A rejection that nobody handles would fail the run here.
    await served.accessLine(1);
    expect(served.accessLog).toHaveLength(1);
  });

  test('of an endpoint whose events are not understood is refused before the provider is asked', async () => {
    await using provider = await llmProvider();
    await using hook = await guardrail(() => ({}));
    await using served = await llmGateway(provider, { model: { guardrails: { response: [webhook(hook)] } } });
    const reply = await fetch(`${served.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', input: 'x', stream: true }),
    });
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ error: { code: 'guardrail_unsupported' } });
    expect(provider.received).toEqual([]);
  });
});

test('a failure of a check blocks what was held', async () => {
  const guard = new StreamGuard(() => Promise.reject(new AppError('guardrail_failed')));
  guard.hold(Buffer.from(chunk({ content: SECRET })));
  await expect(guard.release(true)).rejects.toThrow('prompt guard failed');
});
