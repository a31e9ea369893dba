import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../src/server/config/load.ts';
import { findProblems } from '../../src/server/runtime/find-problems.ts';
import { chat, guardrail, llmGateway, llmProvider, webhook } from '../kit/llm-provider.ts';
import { collector } from '../kit/otlp.ts';
import { answeringGateway } from '../kit/routes.ts';
import { send } from '../kit/send.ts';

/** Expressions that read variables never set in their scope. */

const route = (policies: object, backends: readonly object[] = [{ host: '127.0.0.1:9' }]) => ({
  gateways: { default: { port: 0, address: '127.0.0.1', routes: [{ name: 'r', policies, backends }] } },
});
const mcp = (rule: unknown) =>
  route({ mcpAuthorization: { rules: [rule] } }, [
    { mcp: { targets: [{ name: 'a', stdio: { cmd: 'x' } }] } },
  ]);
const model = (more: object) => ({ llm: { port: 0, models: [{ name: 'm', provider: 'echo', ...more }] } });
const hook = (source: string) => ({ webhook: { target: { host: '127.0.0.1:9' }, headers: { a: source } } });

/** A configuration with one expression, by scope. */
const PLACES = {
  request: (source: string) => route({ authorization: { rules: [source] } }),
  mcp,
  deny: (source: string) => mcp({ deny: source }),
  llmRequest: (source: string) => model({ transformation: { user: source } }),
  llmResponse: (source: string) => model({ guardrails: { response: [hook(source)] } }),
  providerReply: (source: string) => model({ health: { unhealthyExpression: source } }),
  sampling: (source: string) => ({
    ...route({}),
    frontendPolicies: { tracing: { host: '127.0.0.1:9', randomSampling: source } },
  }),
  log: (source: string) => ({ ...route({}), frontendPolicies: { accessLog: { add: { f: source } } } }),
};

/** Messages of the warnings on unset members, each with the marked text. */
async function warnings(place: keyof typeof PLACES, source: string): Promise<string[]> {
  const text = JSON.stringify(PLACES[place](source));
  const found = await findProblems(loadConfigText(text, 'x.yaml', {}), { folder: '/', env: {} });
  expect(found.filter(({ severity }) => severity === 'error')).toEqual([]);
  return found
    .filter(({ code }) => code === 'AGW0309' || code === 'AGW0319')
    .map(({ message, range }) => `${message} <${text.slice(range.start.offset, range.end.offset)}>`);
}

describe('validation warnings on variables', () => {
  test.each([
    ['request', 'proxy.bind == "a"', 'proxy.bind', 'this gateway never sets it'],
    ['log', 'source.unverifiedWorkload.name', 'source.unverifiedWorkload', 'this gateway never sets it'],
    ['log', 'llm.serviceTier', 'llm.serviceTier', 'this gateway never sets it'],
    ['log', 'proxy.route.kind', 'proxy.route.kind', 'this gateway never sets it'],
    ['request', 'request.path == "/" && backend.name == "b"', 'backend.name', 'no backend has been called'],
    ['request', 'request.endTime > request.startTime', 'request.endTime', 'the request has not ended'],
    ['mcp', 'mcp.tool.result.ok == true', 'mcp.tool.result', 'the tool has not been called'],
    ['mcp', 'mcp.sessionId == "a"', 'mcp.sessionId', 'it is set for the log only'],
    ['llmRequest', 'backend.name', 'backend.name', 'no backend has been called'],
    ['providerReply', 'response.body == b"a"', 'response.body', 'the response body has not been received'],
    ['sampling', 'jwt.sub == "a"', 'jwt', 'no policy has run'],
    ['sampling', 'proxy.route.name == "r"', 'proxy.route.name', 'the route is not known'],
  ] as const)('validation warns about a variable never set in %s: %s', async (place, source, member, why) => {
    const [found, ...others] = await warnings(place, source);
    expect(others).toEqual([]);
    expect(found).toContain(`\`${member}\` is never set here: ${why} <`);
    expect(source).toContain(/<(.*)>$/.exec(found ?? '')?.[1]);
    expect(/<(.*)>$/.exec(found ?? '')?.[1]).toContain(member);
  });

  test('validation warns about variables that no policy of the route sets', async () => {
    expect(await warnings('request', 'apiKey.team == "a" || extauthz.user == "b"')).toEqual([
      expect.stringContaining('route `default/r` reads `apiKey`, but none of its policies sets it'),
      expect.stringContaining('route `default/r` reads `extauthz`, but none of its policies sets it'),
    ]);
  });

  test.each([
    ['mcp', 'mcp.tool.name == "a" && mcp.tool.arguments.path == "/a"'],
    ['deny', 'mcp.tool.arguments["path"] == "/a"'],
    // `has` fails without `mcp.tool.arguments`, and a `deny` rule that fails denies.
    ['deny', 'has(mcp.tool.arguments.path) && mcp.tool.arguments.path == "/a"'],
  ] as const)('validation warns about a rule that hides tools from lists (%s): %s', async (place, source) => {
    expect(await warnings(place, source)).toEqual([
      expect.stringContaining('this rule also filters lists, where `mcp.tool.arguments` is not set'),
    ]);
  });
});

test.each([
  ['mcp.tool.arguments.path.contains("x")', 'mcp.tool.arguments.path'],
  ['mcp.tool.arguments.?a.path.orValue("").contains("x")', 'mcp.tool.arguments.?a.path.orValue("")'],
  ['default(mcp.tool.arguments["path"], "").contains("x")', 'default(mcp.tool.arguments["path"], "")'],
  ['(type(mcp.tool.arguments.path) != string || mcp.tool.arguments.path.contains("x"))', undefined],
  ['string(mcp.tool.arguments.path).contains("x")', undefined],
  ['mcp.tool.name.contains("x")', undefined],
])('validation warns about a `deny` rule that a list evades: %s', async (search, searched) => {
  const found = await warnings('deny', `has(mcp.tool) && has(mcp.tool.arguments) && ${search}`);
  expect(found).toEqual(
    searched === undefined ? [] : [expect.stringContaining(`where \`${searched}\` is a list`)],
  );
});

describe('variables without a warning', () => {
  test.each([
    ['log', 'llm.prompt[0].content + llm.completion[0] + mcp.tool.result.a + mcp.tool.arguments.a'],
    ['log', 'string(request.endTime) + backend.name + mcp.sessionId + llm.toolCalls[0].name'],
    ['log', 'toJson(source) + toJson(proxy)'],
    ['llmResponse', 'backend.name'],
    ['providerReply', 'response.code == 500 && backend.name == "a"'],
    ['mcp', '!has(mcp.tool.arguments) || mcp.tool.arguments.path == "/a"'],
    ['mcp', 'mcp.tool.?arguments.path.orValue("") == "/a"'],
    ['mcp', 'default(mcp.tool.arguments.path, "") == "/a"'],
    ['deny', 'has(mcp.tool) && has(mcp.tool.arguments) && mcp.tool.arguments.path == "/a"'],
    ['deny', 'has(mcp.tool) && "arguments" in mcp.tool && mcp.tool.arguments.path == "/a"'],
    ['deny', 'default(mcp.tool.name, "") == "a"'],
    ['deny', 'has(mcp.tool) && mcp.tool.name == "a"'],
    ['deny', 'has(mcp.tool) && mcp.tool.name in ["a"]'],
    ['deny', 'mcp.?tool.?name.orValue("") == "a"'],
  ] as const)('validation does not warn about variables set in %s: %s', async (place, source) => {
    expect(await warnings(place, source)).toEqual([]);
  });
});

describe('`in` on strings', () => {
  const found = async (source: string): Promise<string[]> => {
    const text = JSON.stringify(PLACES.request(source));
    const all = await findProblems(loadConfigText(text, 'x.yaml', {}), { folder: '/', env: {} });
    const marked = all.filter(({ code }) => code === 'AGW0310');
    return marked.map(({ range }) => text.slice(range.start.offset, range.end.offset));
  };

  test.each([
    ['"admin" in request.path', 'request.path'],
    ["'a' in 'abc'", "'abc'"],
    ['request.method == "GET" && !("x" in request.path.lowerAscii())', 'request.path.lowerAscii()'],
  ])('validation warns about `in` on a string: %s', async (source, marked) => {
    expect(await found(source)).toEqual([marked]);
  });

  test.each([
    '"a" in jwt.roles || "a" in request.headers["x"] || "a" in request.headers',
    '"a" in request.path.split("/")',
    'cel.bind(request, {"path": ["a"]}, "a" in request.path)',
    '"a" in default(jwt.roles, "")',
  ])('validation does not warn about `in` on a value that may be a list or map: %s', async (source) => {
    expect(await found(source)).toEqual([]);
  });
});

test('a rule reads proxy.route.name although an earlier expression read proxy before routing', async () => {
  await using receiver = await collector('http');
  const tracing = { host: receiver.url, protocol: 'http', randomSampling: 'proxy.gateway.name == "x"' };
  await using gate = await answeringGateway(
    { authorization: { rules: ['proxy.route.name.endsWith("route0")'] } },
    { frontendPolicies: { tracing } },
  );
  expect((await send(gate.url)).status).toBe(200);
});

test('a response webhook header reads backend.name although a transformation read it before a backend was selected', async () => {
  await using provider = await llmProvider();
  await using guard = await guardrail(() => ({}));
  const response = [webhook(guard, { headers: { 'x-backend': 'backend.name' } })];
  const transformation = { user: 'default(backend.name, "none")' };
  await using served = await llmGateway(provider, {
    model: { transformation },
    llm: { guardrails: { response } },
  });
  expect((await chat(served)).status).toBe(200);
  expect(guard.received[0]?.headers['x-backend']).toBe(provider.address);
});
