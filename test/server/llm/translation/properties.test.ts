import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatRequest, Part, Tool, ToolResultPart, Turn } from '../../../../src/server/llm/chat/chat.ts';
import type { ChatFormat, Json } from '../../../../src/server/llm/chat/chat-format.ts';
import { joinTexts, mergeTurns, withoutLooseReasoning } from '../../../../src/server/llm/chat/turns.ts';
import { chatFormats } from '../../../../src/server/llm/formats/index.ts';
import { repeats } from '../../../kit/thorough.ts';
import { casesIn, FORMATS, formatOf, type Key, outcomeOf, TARGET } from './cases.ts';

const text = fc.string({ minLength: 1, maxLength: 20 }).filter((value) => value.trim() !== '');
const name = fc.stringMatching(/^[a-z]\w{0,10}$/);
const base64 = fc.base64String({ minLength: 4, maxLength: 20 });
const json = fc.dictionary(name, fc.oneof(fc.integer(), fc.boolean(), text), { maxKeys: 3 });
const schema = fc.constantFrom(
  { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false },
  { type: 'object', properties: {}, additionalProperties: false },
);
/** Numbers that JSON keeps. */
const share = fc.integer({ min: 0, max: 100 }).map((value) => value / 100);

/** What a format can express beyond what all can. */
interface Domain {
  readonly parts?: readonly fc.Arbitrary<Part>[];
  readonly answerParts?: readonly fc.Arbitrary<Part>[];
  readonly resultParts?: readonly fc.Arbitrary<ToolResultPart['parts'][number]>[];
  readonly tools?: readonly fc.Arbitrary<Tool>[];
  readonly members?: { readonly [Name in keyof ChatRequest]?: fc.Arbitrary<ChatRequest[Name]> };
  readonly hasErrors?: boolean;
}

const plain = text.map((value): Part => ({ type: 'text', text: value }));
const image = base64.map(
  (data) => ({ type: 'image', source: { kind: 'data', mediaType: 'image/png', data } }) as const,
);
/** `fc.webUrl()` spends a second on a table of all percent-encoded characters. */
const webUrl = fc
  .tuple(
    fc.constantFrom('http', 'https'),
    fc.domain(),
    fc.string({
      unit: fc.constantFrom(..."aZ0-._~!$&'()*+,;=:@/", '%20', '%C3%A9', '%F0%9F%98%80'),
      maxLength: 20,
    }),
    fc.constantFrom('', '?', '?q=%26&r=1', '#', '#a/b?c'),
  )
  .map(([scheme, host, path, rest]) => `${scheme}://${host}/${path}${rest}`);
const linked = webUrl.map((url) => ({ type: 'image', source: { kind: 'url', url } }) as const);
const pdf = fc.record({
  type: fc.constant('file' as const),
  source: fc.record({
    kind: fc.constant('data' as const),
    mediaType: fc.constant('application/pdf'),
    data: base64,
  }),
  name: text,
});
const call = fc
  .record({ id: name, name, input: json })
  .map(({ input, ...head }): Part => ({ type: 'toolCall', ...head, arguments: JSON.stringify(input) }));
const functionTool = fc.record(
  {
    kind: fc.constant('function' as const),
    name,
    description: text,
    parameters: schema,
    strict: fc.constant(true),
  },
  { requiredKeys: ['kind', 'name', 'parameters', 'strict'] },
);
const output = fc.record({
  type: fc.constant('schema' as const),
  name: fc.constant('answer'),
  schema,
  strict: fc.constant(true),
});

const cache = fc.constantFrom({}, { ttl: '1h' as const });

/** What each format expresses, so that reading what was written gives the same request. */
const DOMAINS: Readonly<Record<Key, Domain>> = {
  completions: {
    parts: [
      fc.record({ type: fc.constant('audio' as const), format: fc.constant('wav'), data: base64 }),
      name.map((id): Part => ({ type: 'file', source: { kind: 'id', id } })),
    ],
    answerParts: [text.map((value): Part => ({ type: 'reasoning', text: value, origin: 'completions' }))],
    members: {
      topK: fc.nat(100),
      stop: fc.array(text, { minLength: 1, maxLength: 3 }),
      presencePenalty: share.filter((value) => value !== 0),
      frequencyPenalty: share.filter((value) => value !== 0),
      seed: fc.integer(),
      count: fc.integer({ min: 2, max: 9 }),
      logitBias: fc.dictionary(fc.nat().map(String), fc.integer(), { minKeys: 1, maxKeys: 2 }),
      verbosity: fc.constantFrom('low', 'high'),
      reasoning: fc.record({ effort: fc.constantFrom('none', 'low', 'medium', 'high') }),
    },
  },
  messages: {
    parts: [
      fc.record({ type: fc.constant('text' as const), text, cache }),
      text.map((value): Part => ({ type: 'file', source: { kind: 'text', text: value } })),
      webUrl.map((url): Part => ({ type: 'file', source: { kind: 'url', url } })),
      name.map((id): Part => ({ type: 'image', source: { kind: 'id', id } })),
    ],
    answerParts: [
      fc.record({
        type: fc.constant('reasoning' as const),
        text: text,
        signature: text,
        origin: fc.constant('messages' as const),
      }),
      text.map((encrypted): Part => ({ type: 'reasoning', text: '', encrypted, origin: 'messages' })),
    ],
    resultParts: [image, pdf],
    hasErrors: true,
    members: {
      // Older models have budgets instead of efforts, and none reasons before a tool call that it has to make.
      model: fc.constant('claude-opus-4-8'),
      // It has no sampling parameters.
      temperature: fc.constant(undefined),
      topP: fc.constant(undefined),
      toolChoice: fc.constantFrom({ mode: 'auto' }, { mode: 'none' }),
      stop: fc.array(text, { minLength: 1, maxLength: 3 }),
      reasoning: fc.record({ effort: fc.constantFrom('low', 'high', 'max'), summary: fc.constant('auto') }),
    },
  },
  responses: {
    parts: [
      name.map((id): Part => ({ type: 'image', source: { kind: 'id', id }, detail: 'original' })),
      webUrl.map((url): Part => ({ type: 'file', source: { kind: 'url', url } })),
    ],
    answerParts: [
      fc.record({
        type: fc.constant('reasoning' as const),
        text,
        isSummary: fc.constant(true),
        encrypted: text,
        origin: fc.constant('responses' as const),
      }),
      fc.record({
        type: fc.constant('toolCall' as const),
        id: name.map((id) => `custom_${id}`),
        name,
        arguments: text,
        isCustom: fc.constant(true),
      }),
    ],
    resultParts: [image],
    tools: [
      fc.record({
        kind: fc.constant('custom' as const),
        name,
        format: fc.record({
          type: fc.constant('grammar'),
          syntax: fc.constant('lark'),
          definition: text,
        }),
      }),
    ],
    members: {
      verbosity: fc.constantFrom('low', 'medium', 'high'),
      metadata: fc.dictionary(name, text, { maxKeys: 2 }),
      reasoning: fc.record({
        effort: fc.constantFrom('none', 'minimal', 'xhigh'),
        summary: fc.constantFrom('auto', 'detailed'),
      }),
    },
  },
};

function requests({ parts = [], answerParts = [], resultParts = [], ...domain }: Domain) {
  const said = fc.array(fc.oneof(plain, image, linked, pdf, ...parts), { minLength: 1, maxLength: 3 });
  const answered = fc.tuple(
    fc.array(fc.oneof(plain, ...answerParts), { minLength: 1, maxLength: 2 }),
    fc.array(call, { maxLength: 2 }),
  );
  const result = fc.array(fc.oneof(plain as fc.Arbitrary<never>, ...resultParts), {
    minLength: 1,
    maxLength: 2,
  });
  const exchange = fc
    .tuple(said, answered, result, fc.boolean())
    .map(([user, [first, calls], found, failed]) => {
      const answer = [...first, ...calls];
      const results = answer
        .filter((part) => part.type === 'toolCall')
        .map(
          ({ id, isCustom }): Part => ({
            type: 'toolResult',
            callId: id,
            parts: found,
            ...(failed && domain.hasErrors === true ? { isError: true } : {}),
            ...(isCustom === true ? { isCustom } : {}),
          }),
        );
      return [
        { role: 'user', parts: user },
        { role: 'assistant', parts: answer },
        ...(results.length === 0 ? [] : [{ role: 'user', parts: results }]),
      ] as Turn[];
    });
  const turns = fc
    .tuple(fc.array(exchange, { maxLength: 2 }), said)
    .map(([exchanges, last]): Turn[] => [...exchanges.flat(), { role: 'user', parts: last }]);
  const required = {
    model: fc.constantFrom('some-model', 'gpt-5'),
    system: fc.array(plain as fc.Arbitrary<never>, { maxLength: 2 }),
    turns,
    // Two tools of one name cannot be told apart.
    tools: fc.uniqueArray(fc.oneof(functionTool, ...(domain.tools ?? [])), {
      minLength: 1,
      maxLength: 2,
      selector: ({ name }) => name,
    }),
    maxTokens: fc.integer({ min: 16, max: 100_000 }),
    stream: fc.boolean(),
  };
  const optional = {
    toolChoice: fc.constantFrom(
      { mode: 'auto' },
      { mode: 'none' },
      { mode: 'required' },
      { mode: 'tool', name: 'f' },
    ),
    temperature: share,
    topP: share,
    output,
    user: text,
    serviceTier: fc.constantFrom('auto', 'default'),
    ...domain.members,
  };
  return fc
    .record({ ...required, ...optional }, { requiredKeys: Object.keys(required) as never })
    .map((request) => ({ ...request, streamUsage: true }) as unknown as ChatRequest);
}

/** The request in the form in which all formats agree: neighbouring turns and texts are one, results come first. */
function normalized(request: ChatRequest): object {
  // An answer that broke off while the model was still thinking is left out.
  const turns = mergeTurns(withoutLooseReasoning(request.turns)).map(({ role, parts }) => ({
    role,
    parts: ordered(parts),
  }));
  const { output: format, streamUsage: _, ...rest } = request;
  return {
    ...rest,
    system: joinTexts(request.system),
    turns,
    // The Messages API has no names of schemas.
    ...(format?.type === 'schema' ? { output: { ...format, name: undefined } } : {}),
  };
}

function ordered(parts: readonly Part[]): Part[] {
  const results = parts
    .filter((part) => part.type === 'toolResult')
    .map((part) => ({ ...part, parts: joined(part.parts) as never }));
  const calls = parts.filter(({ type }) => type === 'toolCall');
  const reasoning = parts.filter(({ type }) => type === 'reasoning');
  const others = parts.filter(({ type }) => !['toolResult', 'toolCall', 'reasoning'].includes(type));
  return [...results, ...joinedReasoning(reasoning), ...joined(others), ...calls];
}

function joined(parts: readonly Part[]): Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    const areMarked =
      part.type === 'text' && last?.type === 'text' && (part.cache ?? last.cache) !== undefined;
    if (part.type === 'text' && last?.type === 'text' && !areMarked)
      all[all.length - 1] = { ...last, text: joinTexts([last, part]) };
    else all.push(part);
  }
  return all;
}

function joinedReasoning(parts: readonly Part[]): Part[] {
  const [first] = parts;
  if (first?.type !== 'reasoning' || first.origin !== 'completions') return [...parts];
  return [{ ...first, text: joinTexts(parts.map((part) => ('text' in part ? part.text : ''))) }];
}

const runs = { numRuns: repeats(100, 2000) };

describe('a request that is written and read again', () => {
  for (const key of FORMATS)
    test(`keeps everything that ${key} expresses`, () => {
      fc.assert(
        fc.property(requests(DOMAINS[key]), (request) => {
          expect(normalized(again(formatOf(key), request))).toEqual(normalized(request));
        }),
        runs,
      );
    });

  test('keeps through all formats what each of them expresses', () => {
    const formats = FORMATS.map(formatOf);
    fc.assert(
      fc.property(requests({}), (request) => {
        expect(normalized(formats.reduce((each, format) => again(format, each), request))).toEqual(
          normalized(request),
        );
      }),
      runs,
    );
  });
});

function again(format: ChatFormat, request: ChatRequest): ChatRequest {
  return format.readRequest(JSON.parse(JSON.stringify(format.writeRequest(request))) as Json, TARGET);
}

/** A body with one value replaced by any other. */
function damaged(body: Json, value: unknown, choose: number): Json {
  const paths: (string | number)[][] = [];
  const walk = (node: unknown, path: (string | number)[]): void => {
    if (path.length > 0) paths.push(path);
    if (typeof node === 'object' && node !== null)
      for (const key of Object.keys(node)) walk((node as Record<string, unknown>)[key], [...path, key]);
  };
  walk(body, []);
  const path = paths[choose % paths.length] as string[];
  const copy = structuredClone(body) as Record<string, never>;
  const parent = path.slice(0, -1).reduce<Record<string, never>>((node, key) => node[key] as never, copy);
  parent[path.at(-1) as string] = value as never;
  return copy;
}

for (const [folder, read] of [
  ['requests', 'readRequest'],
  ['answers', 'readResponse'],
] as const)
  test(`damaged ${folder} are refused with the name of a member, or translated`, () => {
    const bodies = casesIn(folder).flatMap(({ from, cases }) =>
      cases.map(({ input }) => ({ from: formatOf(from), input })),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...bodies),
        fc.constantFrom(...chatFormats),
        fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('', 'text', 0.5, -1, {}, [], [{}])),
        fc.nat(),
        ({ from, input }, to, value, choose) => {
          const body = damaged(input, value, choose);
          // Throws anything but `Untranslatable`.
          outcomeOf(() => {
            if (read === 'readRequest') return to.writeRequest(from.readRequest(body, TARGET));
            const request = {
              model: 'm',
              system: [],
              turns: [],
              tools: [],
              stream: false,
              streamUsage: false,
            };
            return to.writeResponse(from.readResponse(body), request);
          });
        },
      ),
      { numRuns: repeats(1000, 20_000) },
    );
  });
