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

describe.each(ERAS)('in revision %s, of a tool call', (_, connect) => {
  /** Calls a tool through a gateway with these processors, and returns the reply and all that is kept of it. */
  async function called(processor: object, targets: object[], name: string, args: object = {}) {
    const deny = 'has(mcp.tool.arguments.text) && mcp.tool.arguments.text == "never"';
    const policies = {
      ...RULE,
      mcpAuthorization: { rules: [{ deny }, 'true'] },
      mcpGuardrails: { processors: [processor] },
    };
    const routes = [{ name: 'tools', policies, backends: [{ mcp: { targets } }] }];
    await using sinks = await observed({ frontendPolicies, gateways: { default: { port: 0, routes } } });
    const caller = await connect(`${sinks.url}/mcp`);
    const { text, error } = await caller.call(name, args);
    return { text, error, found: found(await sinks.everything('tools/call')) };
  }

  describe.each([
    ['one target', [chaos('a', '--tools=echo')], 'echo'],
    ['two targets', [chaos('a', '--tools=echo'), chaos('b')], 'a_echo'],
  ])('with %s', (_targets, targets, name) => {
    test.each([
      ['rejected by a pattern', regex('reject', 'request'), -32001],
      ['masked by a pattern', regex('mask', 'request'), undefined],
      ['not checked because the webhook is away', UNREACHABLE, -32603],
    ])('arguments that are %s are kept nowhere', async (_how, processor, code) => {
      const secret = canary();
      const reply = await called(processor, targets, name, { text: secret, deep: [`x ${secret}`] });
      expect(reply.error?.code).toBe(code);
      expect(reply.found).toEqual([]);
    });
  });

  test('arguments that a webhook rejects are kept nowhere', async () => {
    const action = { body: 'not this', status_code: 403 };
    await using service = await httpUpstream((_request, response) =>
      response.end(JSON.stringify({ action })),
    );
    const processor = { kind: 'webhook', host: service.address };
    const reply = await called(processor, [chaos('a', '--tools=echo')], 'echo', { text: canary() });
    expect(reply.error.message).toContain('not this');
    expect(reply.found).toEqual([]);
  });

  test.each([
    ['a result', 'rejected', regex('reject', 'response'), -32001],
    ['a result', 'masked', regex('mask', 'response'), undefined],
    ['an error', 'rejected', regex('reject', 'response'), -32001],
    ['an error', 'masked', regex('mask', 'response'), -32050],
  ])('%s that is %s is kept nowhere', async (what, _how, processor, code) => {
    const secret = canary();
    const answer =
      what === 'an error'
        ? { error: { code: -32050, message: secret, data: { deep: [secret] } } }
        : { result: { content: [{ type: 'text', text: secret }], structuredContent: { deep: [secret] } } };
    const text = JSON.stringify({ jsonrpc: '2.0', id: '@', ...answer }).replace('"@"', '@id');
    await using server = await overHttp({ 'tools/call': text });
    const reply = await called(processor, [server.target], 't');
    expect(reply.error?.code).toBe(code);
    expect(reply.text).not.toContain(secret);
    expect(reply.found).toEqual([]);
  });

  test.each([
    ['a page with status 200', 200, 'text/html'],
    ['a page with status 500', 500, 'text/html'],
    ['a JSON error with status 400', 400, 'application/json'],
  ])('%s instead of a result is kept nowhere, and not sent to the client', async (_what, status, type) => {
    for (const more of [[], [chaos('b')]]) {
      const secret = canary();
      await using server = await mcpUpstream({
        script: ({ message }, response) => {
          if (message?.method !== 'tools/call') return false;
          response.writeHead(status, { 'content-type': type }).end(`{"error":"<b>${secret}</b>"}`);
          return true;
        },
      });
      const targets = [{ name: 'a', mcp: { host: server.url } }, ...more];
      const name = more.length === 0 ? 'echo' : 'a_echo';
      const reply = await called(regex('mask', 'response'), targets, name);
      expect(server.of('tools/call')).not.toEqual([]);
      expect(reply.text).not.toContain(secret);
      expect(reply.found).toEqual([]);
    }
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
  /** Sends a call through a gateway with these guardrails, and returns the reply and all that is kept of it. */
  async function called(guardrails: object, answer: Answer | undefined, path: string, body: object) {
    await using provider = await llmProvider(answer);
    await using sinks = await observed({
      frontendPolicies,
      ...llmSection(provider, { guardrails, policies: RULE }),
    });
    const headers = { 'content-type': 'application/json' };
    const reply = await send(`${sinks.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: reply.status, text: reply.text, found: found(await sinks.everything('POST')) };
  }

  const request = (action: string) => ({ request: [{ regex: { action, rules: RULES } }] });
  const response = (action: string) => ({ response: [{ regex: { action, rules: RULES } }] });

  test.each(FORMATS)('a prompt to %s that is masked or rejected is kept nowhere', async (path, body) => {
    for (const [action, status] of [
      ['mask', 200],
      ['reject', 403],
    ] as const) {
      const reply = await called(request(action), undefined, path, body(canary()));
      expect([reply.status, reply.found]).toEqual([status, []]);
    }
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
      const reply = await called(guardrails, undefined, '/v1/chat/completions', body?.(canary()) ?? {});
      expect([reply.status, reply.found]).toEqual([status, []]);
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
    const reply = await called(response(action), answer, '/v1/chat/completions', body);
    expect([reply.status, reply.found]).toEqual([status, []]);
    expect(reply.text).not.toContain(secret);
  });
});
