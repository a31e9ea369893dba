import { describe, expect, test } from 'vitest';
import { ERAS } from '../../kit/both-eras.ts';
import { chaos } from '../../kit/config.ts';
import {
  answering,
  chunk,
  completion,
  DONE,
  FINISH,
  llmProvider,
  streaming,
} from '../../kit/llm-provider.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { overHttp } from '../../kit/scripted-server.ts';
import { send } from '../../kit/send.ts';
import { type Answer, httpUpstream } from '../../kit/upstream.ts';
import { observed } from './observed.ts';
import { llmSection } from './recorded.ts';

// What guardrails mask or reject is kept nowhere: not in the log, the record, a trace, a page, the metrics or a file.

const RULES = [{ pattern: 'canary-[a-z0-9]+' }];
const found = (text: string): string[] => [...new Set(text.match(/canary-\w+/g))];

/** A text that no other case has. */
let cases = 0;
function canary(): string {
  cases += 1;
  return `canary-${cases}x`;
}

/** Reads what was said in every way that a log can. */
const EVERYTHING = {
  add: {
    a: 'mcp.tool.arguments',
    r: 'mcp.tool.result',
    e: 'mcp.tool.error',
    p: 'llm.prompt',
    c: 'llm.completion',
    t: 'llm.toolCalls',
    q: 'llm.params',
    b: 'request.body',
    f: 'request.bodyPrefix',
    o: 'response.body',
  },
  database: { payloads: 'full', redaction: { rules: [] } },
};

const frontendPolicies = { accessLog: EVERYTHING };

/** Reads what was said before guardrails check it. */
const RULE = { authorization: { rules: [{ require: 'string(request.body) != ""' }] } };

const UNREACHABLE = { kind: 'webhook', host: '127.0.0.1:1' };
const regex = (action: 'mask' | 'reject', phase: 'request' | 'response') => ({
  kind: 'regex',
  action,
  rules: RULES,
  methods: { 'tools/call': phase },
});

/** A tool call: what guards it, where it goes and what it says. */
interface Call {
  readonly processor: object;
  readonly targets: readonly object[];
  readonly name: string;
  readonly args?: object;
}

describe.each(ERAS)('in revision %s, of tool calls', (_, connect) => {
  /** Sends calls through one gateway, each through a route of its own, and returns the replies and all that is kept of them. */
  async function called(calls: readonly Call[]) {
    const deny = 'has(mcp.tool.arguments.text) && mcp.tool.arguments.text == "never"';
    const routes = calls.map(({ processor, targets }, at) => ({
      name: `tools${at}`,
      matches: [{ path: { pathPrefix: `/${at}` } }],
      policies: {
        ...RULE,
        mcpAuthorization: { rules: [{ deny }, 'true'] },
        mcpGuardrails: { processors: [processor] },
      },
      backends: [{ mcp: { targets } }],
    }));
    await using sinks = await observed({ frontendPolicies, gateways: { default: { port: 0, routes } } });
    const replies = await Promise.all(
      calls.map(async ({ name, args = {} }, at) => (await connect(`${sinks.url}/${at}`)).call(name, args)),
    );
    return { replies, found: found(await sinks.everything('tools/call', calls.length)) };
  }

  test('arguments that are rejected, masked or not checked as the webhook is away are kept nowhere', async () => {
    const places = [
      [[chaos('a', '--tools=echo')], 'echo'],
      [[chaos('a', '--tools=echo'), chaos('b')], 'a_echo'],
    ] as const;
    const ways = [
      [regex('reject', 'request'), -32001],
      [regex('mask', 'request'), undefined],
      [UNREACHABLE, -32603],
    ] as const;
    const calls = places.flatMap(([targets, name]) =>
      ways.map(([processor]) => {
        const secret = canary();
        return { processor, targets, name, args: { text: secret, deep: [`x ${secret}`] } };
      }),
    );
    const { replies, found: kept } = await called(calls);
    const codes = ways.map(([, code]) => code);
    expect(replies.map(({ error }) => error?.code)).toEqual([...codes, ...codes]);
    expect(kept).toEqual([]);
  });

  test('arguments that a webhook rejects are kept nowhere', async () => {
    const action = { body: 'not this', status_code: 403 };
    await using service = await httpUpstream((_request, response) =>
      response.end(JSON.stringify({ action })),
    );
    const processor = { kind: 'webhook', host: service.address };
    const targets = [chaos('a', '--tools=echo')];
    const { replies, found: kept } = await called([
      { processor, targets, name: 'echo', args: { text: canary() } },
    ]);
    expect(replies[0]?.error.message).toContain('not this');
    expect(kept).toEqual([]);
  });

  test('results and errors that are rejected or masked are kept nowhere', async () => {
    const secret = canary();
    const answer = (members: object): string =>
      JSON.stringify({ jsonrpc: '2.0', id: '@', ...members }).replace('"@"', '@id');
    const content = [{ type: 'text', text: secret }];
    const result = answer({ result: { content, structuredContent: { deep: [secret] } } });
    const error = answer({ error: { code: -32050, message: secret, data: { deep: [secret] } } });
    await using answering = await overHttp({ 'tools/call': result });
    await using failing = await overHttp({ 'tools/call': error });
    const { replies, found: kept } = await called(
      [answering, failing].flatMap(({ target }) =>
        (['reject', 'mask'] as const).map((action) => ({
          processor: regex(action, 'response'),
          targets: [target],
          name: 't',
        })),
      ),
    );
    expect(replies.map((reply) => reply.error?.code)).toEqual([-32001, undefined, -32001, -32050]);
    expect(replies.map(({ text }) => text).join()).not.toContain(secret);
    expect(kept).toEqual([]);
  });

  test('a page or an error of HTTP instead of a result is kept nowhere, and not sent to the client', async () => {
    const secret = canary();
    const pages = [
      [200, 'text/html'],
      [500, 'text/html'],
      [400, 'application/json'],
    ] as const;
    let asked = 0;
    await using servers = new AsyncDisposableStack();
    const calls: Call[] = [];
    for (const [status, type] of pages)
      for (const more of [[], [chaos('b')]]) {
        const server = servers.use(
          await mcpUpstream({
            script: ({ message }, response) => {
              if (message?.method !== 'tools/call') return false;
              asked += 1;
              response.writeHead(status, { 'content-type': type }).end(`{"error":"<b>${secret}</b>"}`);
              return true;
            },
          }),
        );
        calls.push({
          processor: regex('mask', 'response'),
          targets: [{ name: 'a', mcp: { host: server.url } }, ...more],
          name: more.length === 0 ? 'echo' : 'a_echo',
        });
      }
    const { replies, found: kept } = await called(calls);
    expect(asked).toBe(calls.length);
    expect(replies.map(({ text }) => text).join()).not.toContain(secret);
    expect(kept).toEqual([]);
  });
});

/** A request of each format that says a text, and its answer. */
const FORMATS: readonly [path: string, request: (text: string) => object][] = [
  ['/v1/chat/completions', (text) => ({ model: 'm', messages: [{ role: 'user', content: text }] })],
  ['/v1/messages', (text) => ({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: text }] })],
  ['/v1/responses', (text) => ({ model: 'm', input: text })],
  ['/v1beta/models/m:generateContent', (text) => ({ contents: [{ role: 'user', parts: [{ text }] }] })],
];

describe('of a model call', () => {
  /** Sends calls through a gateway with these guardrails, and returns the replies and all that is kept of them. */
  async function called(
    guardrails: object,
    answer: Answer | undefined,
    ...calls: readonly (readonly [path: string, body: object])[]
  ) {
    await using provider = await llmProvider(answer);
    await using sinks = await observed({
      frontendPolicies,
      ...llmSection(provider, { guardrails, policies: RULE }),
    });
    const headers = { 'content-type': 'application/json' };
    const replies = await Promise.all(
      calls.map(([path, body]) =>
        send(`${sinks.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
      ),
    );
    return {
      statuses: replies.map(({ status }) => status),
      text: replies.map(({ text }) => text).join(''),
      found: found(await sinks.everything('POST', calls.length)),
    };
  }

  const request = (action: string) => ({ request: [{ regex: { action, rules: RULES } }] });
  const response = (action: string) => ({ response: [{ regex: { action, rules: RULES } }] });

  test.each([
    ['masked', 'mask', 200],
    ['rejected', 'reject', 403],
  ])('a prompt in any format that is %s is kept nowhere', async (_what, action, status) => {
    const calls = FORMATS.map(([path, body]) => [path, body(canary())] as const);
    const reply = await called(request(action), undefined, ...calls);
    expect([reply.statuses, reply.found]).toEqual([FORMATS.map(() => status), []]);
  });

  test('a prompt is kept nowhere if the webhook that checks it rejects it, answers nonsense or is away', async () => {
    const [, body] = FORMATS[0] ?? [];
    const rejection = { action: { body: 'not this', status_code: 422 } };
    await using rejecting = await httpUpstream((_, reply) => reply.end(JSON.stringify(rejection)));
    await using echoing = await httpUpstream((_, reply, { body: asked }) => reply.end(asked));
    for (const [host, status] of [
      [rejecting.address, 422],
      [echoing.address, 503],
      ['127.0.0.1:1', 503],
    ] as const) {
      const guardrails = { request: [{ webhook: { target: { host } } }] };
      const call = ['/v1/chat/completions', body?.(canary()) ?? {}] as const;
      const reply = await called(guardrails, undefined, call);
      expect([reply.statuses, reply.found]).toEqual([[status], []]);
    }
  });

  const streamed = (text: string): Answer =>
    streaming((reply) => reply.end([chunk({ content: text }), FINISH, DONE].join('')));

  test.each([
    ['an answer', false, 'mask', 200],
    ['an answer', false, 'reject', 403],
    ['a stream', true, 'mask', 200],
    ['a stream', true, 'reject', 200],
  ])('%s (stream: %s) with %s is kept nowhere', async (_what, stream, action, status) => {
    const secret = canary();
    const answer = stream ? streamed(`say ${secret} now`) : answering(completion(`say ${secret} now`));
    const body = { model: 'm', stream, messages: [{ role: 'user', content: 'Hi' }] };
    const reply = await called(response(action), answer, ['/v1/chat/completions', body]);
    expect([reply.statuses, reply.found]).toEqual([[status], []]);
    expect(reply.text).not.toContain(secret);
  });
});
