import { describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import type { TestGateway } from '../../kit/gateway.ts';
import { modelsGateway } from '../../kit/llm-provider.ts';
import {
  type RealtimeClient,
  type RealtimeProvider,
  realtimeClient,
  realtimeProvider,
} from '../../kit/realtime.ts';
import { until } from '../../kit/until.ts';

const CARD = '4111 1111 1111 1111';
const MASK = { regex: { rules: [{ builtin: 'creditCard' }] } };
const REJECT = { regex: { rules: [{ builtin: 'creditCard' }], action: 'reject' } };

const guarded = ({ baseUrl }: RealtimeProvider, ...response: object[]): Promise<TestGateway> =>
  modelsGateway([{ name: 'live', provider: 'oaiCompat', params: { baseUrl }, guardrails: { response } }]);

const connect = ({ url }: TestGateway): Promise<RealtimeClient> =>
  realtimeClient(`${url}/v1/realtime?model=live`);

interface Event {
  readonly type: string;
  readonly delta?: string;
  readonly [member: string]: unknown;
}

/** The events of one response with this text in pieces. */
function response(id: string, pieces: readonly string[], kind = 'output_text', member = 'text'): Event[] {
  const place = { response_id: id, item_id: `item_${id}`, output_index: 0, content_index: 0 };
  const whole = pieces.join('');
  const part = { type: kind === 'output_text' ? 'output_text' : 'output_audio', [member]: whole };
  const item = { id: `item_${id}`, type: 'message', role: 'assistant', content: [part] };
  return [
    { type: 'response.created', response: { id, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', response_id: id, output_index: 0, item: { ...item, content: [] } },
    ...pieces.map((delta) => ({ type: `response.${kind}.delta`, event_id: 'event_4', ...place, delta })),
    { type: `response.${kind}.done`, ...place, [member]: whole },
    { type: 'response.content_part.done', ...place, part },
    { type: 'response.output_item.done', response_id: id, output_index: 0, item },
    { type: 'conversation.item.done', previous_item_id: null, item },
    { type: 'response.done', response: { id, status: 'completed', output: [item] } },
  ];
}

const eventsOf = ({ received }: RealtimeClient): Event[] =>
  received.map((message) => JSON.parse(String(message)) as Event);

/** A provider that sends these events for every message. */
const sending = (...events: readonly Event[]): Promise<RealtimeProvider> =>
  realtimeProvider((session: WebSocket) => {
    for (const event of events) session.send(JSON.stringify(event));
  });

describe('a realtime session with guardrails for responses', () => {
  test.each(Array.from({ length: CARD.length - 1 }, (_, at) => at + 1))(
    'a card number that is split after %i characters is masked in every event of a realtime session',
    async (at) => {
      const pieces = ['Use ', CARD.slice(0, at), CARD.slice(at), ' now.'];
      await using provider = await sending(...response('r1', pieces));
      await using gate = await guarded(provider, MASK);
      await using client = await connect(gate);
      client.socket.send('{}');
      await until(() => eventsOf(client).at(-1)?.type === 'response.done');
      const events = eventsOf(client).slice(1);
      expect(events.map(({ type }) => type)).toEqual(response('r1', pieces).map(({ type }) => type));
      expect(client.received.join('')).not.toMatch(/1111/);
      const said = events.map(({ delta = '' }) => delta).join('');
      expect(said).toMatch(/^Use <.+> now\.$/);
      expect(JSON.stringify(events.at(-1))).toContain(said);
      expect(events.find(({ delta }) => delta !== undefined)).toMatchObject({ event_id: 'event_4' });
    },
  );

  test('texts of realtime responses one after another and at the same time are masked apart', async () => {
    const [first, second] = [
      response('r1', ['A 4111 1111', ' 1111 1111.']),
      response('r2', ['B 4111 11', '11 1111 1111!']),
    ];
    const mixed = first.flatMap((event, at) => [event, second[at] as Event]);
    await using provider = await sending(...first, ...mixed);
    await using gate = await guarded(provider, MASK);
    await using client = await connect(gate);
    client.socket.send('{}');
    await until(() => eventsOf(client).filter(({ type }) => type === 'response.done').length === 3);
    expect(client.received).toHaveLength(1 + first.length + mixed.length);
    const saidBy = (id: string): string =>
      eventsOf(client)
        .flatMap(({ response_id: by, delta = '' }) => (by === id ? [delta] : []))
        .join('');
    expect(saidBy('r1')).toMatch(/^A <.+>\.A <.+>\.$/);
    expect(saidBy('r2')).toMatch(/^B <.+>!$/);
  });

  test('transcripts of a realtime response are masked', async () => {
    const events = response('r1', ['4111 1111 ', '1111 1111'], 'output_audio_transcript', 'transcript');
    await using provider = await sending(...events);
    await using gate = await guarded(provider, MASK);
    await using client = await connect(gate);
    client.socket.send('{}');
    await until(() => eventsOf(client).at(-1)?.type === 'response.done');
    expect(client.received.join('')).not.toMatch(/1111/);
  });

  test('what users wrote and settings of a realtime session pass byte for byte', async () => {
    const texts = [
      `{"type":"session.updated", "session":{"instructions":"${CARD}"}}`,
      `{"type":"conversation.item.added","item":{"role":"user","content":[{"text":"${CARD}"}]}}`,
      `{"type":"conversation.item.input_audio_transcription.completed","transcript":"${CARD}"}`,
      '{"type":"rate_limits.updated",\n "rate_limits":[1.0]}',
      '{"type":"conversation.item.input_audio_transcription.delta","delta":"4111"}',
    ];
    await using provider = await realtimeProvider((session) => {
      for (const text of texts) session.send(text);
    });
    await using gate = await guarded(provider, REJECT);
    await using client = await connect(gate);
    client.socket.send('{}');
    await until(() => client.received.length === texts.length + 1);
    expect(client.received.slice(1)).toEqual(texts);
  });

  test.each([
    ['a text that a guardrail rejects', response('r1', ['4111 1111 ', '1111 1111']), 'guardrail_rejected'],
    ['speech', [{ type: 'response.output_audio.delta', delta: 'AAAA' }], 'guardrail_failed'],
  ])('%s ends a realtime session with an error', async (_, events, code) => {
    await using provider = await sending(...events);
    await using gate = await guarded(provider, REJECT);
    await using client = await connect(gate);
    client.socket.send('{}');
    expect(await client.closed).toEqual([1008, 'a message was blocked']);
    expect(eventsOf(client).at(-1)).toMatchObject({ type: 'error', error: { code } });
    expect(client.received.join('')).not.toMatch(/1111|AAAA/);
    await until(() => provider.closed.length === 1);
    expect(await gate.accessLine(1)).toMatchObject({ reason: 'Guardrail' });
  });

  test('the built-in model is checked in a realtime session, too', async () => {
    const models = [{ name: 'live', provider: 'echo', guardrails: { response: [MASK] } }];
    await using gate = await modelsGateway(models);
    await using client = await connect(gate);
    const content = [{ type: 'input_text', text: `It is ${CARD}` }];
    const item = { type: 'message', role: 'user', content };
    client.socket.send(JSON.stringify({ type: 'conversation.item.create', item }));
    client.socket.send('{"type":"response.create"}');
    await until(() => eventsOf(client).at(-1)?.type === 'response.done');
    const answered = eventsOf(client).filter(({ type }) => type.startsWith('response.'));
    expect(JSON.stringify(answered)).toContain('It is <');
    expect(JSON.stringify(answered)).not.toContain('1111');
  });
});

test('token limits are charged after each response of a realtime session', async () => {
  const done = {
    type: 'response.done',
    response: { id: 'r1', usage: { input_tokens: 60, output_tokens: 40 } },
  };
  await using provider = await sending(done as Event);
  const params = { baseUrl: provider.baseUrl };
  await using gate = await modelsGateway([{ name: 'live', provider: 'oaiCompat', params }], {
    policies: { localRateLimit: [{ maxTokens: 150, fillInterval: '1h', type: 'tokens' }] },
  });
  await using client = await connect(gate);
  client.socket.send('{}');
  await until(() => client.received.length === 2);
  await using second = await connect(gate);
  client.socket.send('{}');
  await until(() => client.received.length === 3);
  await expect(connect(gate)).rejects.toThrow(/^429 /);
  await second[Symbol.asyncDispose]();
});
