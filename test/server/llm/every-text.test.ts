import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NOT_READ } from '../../../src/server/llm/guardrails/every-text.ts';
import type { TestGateway } from '../../kit/gateway.ts';
import { callOf, type WIRE } from '../../kit/llm-formats.ts';
import { EVENTS } from '../../kit/llm-member-events.ts';
import { COUNT_TOKENS, REQUESTS } from '../../kit/llm-member-requests.ts';
import { RESPONSES } from '../../kit/llm-member-responses.ts';
import { EVERY_FORMAT, llmGateway } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

// Guardrails read every string of requests, responses and events, in whatever member it is. A marker is put in the place of each
// string and key of these samples, one after the other; it is found, or its place is one of `NOT_READ`. LiteLLM #41265 and
// #40380 (inputs of tools), agentgateway's and Portkey's lists of members: a text in any other member passed.

/** Like a sentence: even where an id or a type belongs, it is a text. */
const SENTENCE = 'the SECRET77 word';
/** Like an id. */
const WORD = 'SECRET77';
const BLOCKED = 'blocked by the test';
const PATTERN = { pattern: 'SECRET77' };

type FormatName = keyof typeof WIRE;
type Path = readonly (string | number)[];

/** The place of a string, or of a key. */
interface Place {
  readonly path: Path;
  readonly isKey: boolean;
}

function* placesIn(value: unknown, path: Path = []): Generator<Place> {
  if (typeof value === 'string') yield { path, isKey: false };
  if (typeof value !== 'object' || value === null) return;
  const isList = Array.isArray(value);
  for (const [key, member] of Object.entries(value)) {
    const inner = [...path, isList ? Number(key) : key];
    if (!isList) yield { path: inner, isKey: true };
    yield* placesIn(member, inner);
  }
}

/** The value with a marker at a place. A key is added beside the one at the place. */
function marked(value: unknown, { path, isKey }: Place, marker: string): unknown {
  const copy = structuredClone(value) as Record<string | number, unknown>;
  let owner = copy;
  for (const step of path.slice(0, -1)) owner = owner[step] as typeof owner;
  const last = path.at(-1) ?? '';
  if (isKey) owner[marker] = owner[last];
  else owner[last] = marker;
  return copy;
}

/** Values of tools and clients, where every string and key is read. */
function isData(path: Path, isKey: boolean): boolean {
  const owner = isKey ? path.slice(0, -1) : path;
  if (
    owner.some(
      (step) =>
        ['metadata', 'labels', 'args', 'action', 'input_examples'].includes(String(step)) &&
        step !== 'input_examples',
    )
  )
    return true;
  if (owner.some((step) => step === 'functionResponse') && owner.includes('response')) return true;
  const at = owner.indexOf('input');
  return at > 0 && typeof owner[at - 1] !== 'string';
}

/** Whether the documentation says that a word at this place is not read. */
function isListed(sample: unknown, { path, isKey }: Place): boolean {
  if (isData(path, isKey)) return false;
  if (isKey) return NOT_READ.key.values.test(WORD);
  const member = String(path.findLast((step) => typeof step === 'string') ?? '');
  if ([NOT_READ.id, NOT_READ.type].some(({ members }) => members.test(member))) return true;
  // The marker is base64, and the bytes beside a type of images are no text.
  const owner = path
    .slice(0, -1)
    .reduce((value, step) => (value as Members)[step] as Members, sample as Members);
  return (
    NOT_READ.bytes.members.test(member) && /^image/.test(String(owner['media_type'] ?? owner['mimeType']))
  );
}

type Members = Readonly<Record<string | number, unknown>>;

const shown = ({ path, isKey }: Place): string => `${isKey ? 'key ' : ''}${path.join('.')}`;

/** What each place of a sample has to be, by what `seen` says of the sample with a marker there. */
async function missed(sample: unknown, seen: (value: unknown) => Promise<boolean>): Promise<string[]> {
  const wrong: string[] = [];
  for (const place of placesIn(sample)) {
    // What is read however short it is, is read when it is longer.
    const [what, marker] = isListed(sample, place) ? ['a sentence', SENTENCE] : ['a word', WORD];
    if (!(await seen(marked(sample, place, marker)))) wrong.push(`${what} at ${shown(place)}`);
  }
  return wrong;
}

const REJECT = { regex: { action: 'reject', rules: [PATTERN] }, rejection: { body: BLOCKED } };
const SCOPE = ['systemPrompt', 'messages', 'toolInput', 'toolOutput', 'toolDefinitions'];

describe('guardrails that read every string', () => {
  let provider: HttpUpstream;
  let gate: TestGateway;
  let answer = '{}';
  let type = 'application/json';
  beforeAll(async () => {
    provider = await httpUpstream((_, response) =>
      response.writeHead(200, { 'content-type': type }).end(answer),
    );
    const guardrails = { request: [{ ...REJECT, scope: SCOPE }], response: [REJECT] };
    gate = await llmGateway(provider, { model: { provider: EVERY_FORMAT, guardrails } });
  });
  afterAll(async () => {
    await gate[Symbol.asyncDispose]();
    await provider.close();
  });

  async function asked(path: string, body: object): Promise<{ status: number; text: string }> {
    return await send(gate.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }
  const isBlocked = ({ text }: { text: string }): boolean =>
    text.includes(BLOCKED) && !text.includes('SECRET77');

  test.each(Object.keys(REQUESTS) as FormatName[])('of a request of %s', async (format) => {
    const { path } = callOf(format, 'm');
    const request = path.includes(':') ? REQUESTS[format] : { model: 'm', ...REQUESTS[format] };
    answer = JSON.stringify(RESPONSES[format] ?? {});
    type = 'application/json';
    expect((await asked(path, request as object)).text).not.toContain(BLOCKED);
    const { length } = provider.received;
    expect(await missed(request, async (body) => isBlocked(await asked(path, body as object)))).toEqual([]);
    // Listed places are the only ones that the provider saw.
    for (const { body } of provider.received.slice(length)) expect(body).not.toContain(SENTENCE);
  });

  test.each(['/v1beta/models/m:countTokens', '/v1/messages/count_tokens'])(
    'of a request of %s',
    async (path) => {
      const request = path.includes(':') ? COUNT_TOKENS : { model: 'm', ...REQUESTS.messages };
      answer = '{}';
      expect((await asked(path, request)).text).not.toContain(BLOCKED);
      expect(await missed(request, async (body) => isBlocked(await asked(path, body as object)))).toEqual([]);
    },
  );

  test.each(Object.keys(RESPONSES) as FormatName[])('of a response of %s', async (format) => {
    const call = callOf(format, 'm');
    const seen = async (body: unknown): Promise<boolean> => {
      answer = JSON.stringify(body);
      type = 'application/json';
      return isBlocked(await asked(call.path, JSON.parse(call.body) as object));
    };
    expect(await seen(RESPONSES[format])).toBe(false);
    expect(await missed(RESPONSES[format], seen)).toEqual([]);
  });

  test.each(Object.keys(EVENTS) as FormatName[])('of a stream of %s', async (format) => {
    const call = callOf(format, 'm', true);
    // Otherwise the gateway asks for the report, and removes it.
    const request = { ...(JSON.parse(call.body) as object), stream_options: { include_usage: true } };
    const seen = async (events: unknown): Promise<boolean> => {
      answer = (events as object[]).map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
      type = 'text/event-stream';
      return isBlocked(await asked(call.path, request));
    };
    expect(await seen(EVENTS[format])).toBe(false);
    expect(await missed(EVENTS[format], seen)).toEqual([]);
  });
});

test('the documentation lists what guardrails do not read', () => {
  const page = readFileSync(new URL('../../../docs/guardrails.md', import.meta.url), 'utf8');
  for (const { what, why } of Object.values(NOT_READ)) expect(page).toContain(`| ${what} | ${why} |`);
});
