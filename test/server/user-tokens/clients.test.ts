import { describe, expect, test } from 'vitest';
import { openEvents } from '../../kit/event-stream.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { type Json, type McpReply, type McpSession, openSession } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { modern, modernCall } from '../../kit/modern.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { recorded } from '../../kit/trace.ts';
import {
  actors,
  basic,
  linkIn,
  PASSWORDS,
  protectedServer,
  signInGateway,
  UserBrowser,
} from '../../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };
const URLS = { elicitation: { form: {}, url: {} } };
const call = (session: McpSession, name = 'say', args: object = SAY.arguments) =>
  session.request('tools/call', { name, arguments: args });
const names = ({ result }: McpReply): string[] => result.tools.map(({ name }: Json) => name);

async function scene(names: readonly string[], more: Parameters<typeof signInGateway>[2] = {}) {
  const folder = await temporaryFolder();
  const provider = await startOidcProvider();
  const servers = await Promise.all(
    names.map(async (name) => [name, await protectedServer(provider.issuer)] as const),
  );
  const gate = await signInGateway(folder.path, Object.fromEntries(servers), more);
  return {
    gate,
    server: servers[0]?.[1] ?? (await mcpUpstream()),
    mcp: `${gate.url}/mcp`,
    signIn: (reply: McpReply) => new UserBrowser(basic('ann')).signIn(linkIn(reply)),
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      for (const [, server] of servers) await server[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
      await folder.remove();
    },
  };
}

describe('clients with sessions', () => {
  test('a client that opens links gets the link in an error of the protocol, and hears when the user has signed in', async () => {
    await using at = await scene(['github']);
    const session = await at.gate.session(basic('ann'), URLS);
    await using events = await openEvents(at.mcp, { session: session.id, headers: basic('ann') });
    await call(session);
    const refused = await call(session);
    const [elicitation] = refused.error.data.elicitations;
    expect(refused.error).toMatchObject({ code: -32042, data: { elicitations: [{ mode: 'url' }] } });
    expect(elicitation.message).toContain('"github"');
    await at.signIn(refused);
    const done = await events.next(({ method }) => method === 'notifications/elicitation/complete');
    expect(done.params).toEqual({ elicitationId: elicitation.elicitationId });
    await events.next(({ method }) => method === 'notifications/tools/list_changed');
    expect(events.messages.filter(({ method }) => method === done.method)).toHaveLength(1);
    expect(names(await session.request('tools/list'))).toContain('say');
  });

  test.each([
    ['which opens forms only', { elicitation: { form: {} } }],
    ['which says nothing', {}],
  ])('a client %s gets the link as the result of the tool', async (_, capabilities) => {
    await using at = await scene(['github']);
    const { result } = await call(await at.gate.session(basic('ann'), capabilities));
    expect(result).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: expect.stringContaining('/sign-in?link_token=') }],
    });
  });

  test('lists of a single target have the tool that leads to the link, and nothing else', async () => {
    await using at = await scene(['github']);
    const session = await at.gate.session(basic('ann'), URLS);
    expect(names(await session.request('tools/list'))).toEqual(['gateway_sign_in']);
    expect((await session.request('prompts/list')).result.prompts).toEqual([]);
    expect((await session.request('resources/list')).result.resources).toEqual([]);
    expect((await session.request('prompts/get', { name: 'p' })).error.code).toBe(-32042);
  });

  test('other targets go on, and the reason is in the list', async () => {
    await using at = await scene(['github', 'slack']);
    const session = await at.gate.session(basic('ann'));
    const { result } = await session.request('tools/list');
    expect(result._meta['agctl/unavailableTargets']).toEqual([
      { name: 'github', error: expect.stringContaining('/sign-in?link_token=') },
      { name: 'slack', error: expect.stringContaining('/sign-in?link_token=') },
    ]);
    const [{ error }] = result._meta['agctl/unavailableTargets'];
    expect(error).toMatch(/^The user has to sign in\. Show the user .*: http\S+[\w-]$/);
    expect((await session.request('prompts/list')).result.prompts).toEqual([]);
    await at.signIn(await call(session, 'github_gateway_sign_in'));
    expect((await call(session, 'github_gateway_sign_in')).text).toContain('has signed in at');
    const listed = names(await session.request('tools/list'));
    expect(listed).toContain('github_say');
    expect(listed).toContain('slack_gateway_sign_in');
    expect(listed).not.toContain('slack_say');
    expect((await call(session, 'github_say')).result.isError).toBeUndefined();
  });

  test('a bundle shows the links of its own targets only', async () => {
    const bundles = [
      { name: 'one', targets: ['github'] },
      { name: 'two', tools: ['slack_s*'] },
      { name: 'all', tools: ['*_say'] },
    ];
    await using at = await scene(['github', 'slack'], { mcp: { bundles } });
    const listed = async (bundle: string) => {
      const session = await openSession(`${at.mcp}/${bundle}`, basic('ann'));
      const reply = await session.request('tools/list');
      return [names(reply), reply.result._meta['agctl/unavailableTargets'].map(({ name }: Json) => name)];
    };
    expect(await listed('one')).toEqual([['github_gateway_sign_in'], ['github']]);
    expect(await listed('two')).toEqual([['slack_gateway_sign_in'], ['slack']]);
    expect(await listed('all')).toEqual([
      ['github_gateway_sign_in', 'slack_gateway_sign_in'],
      ['github', 'slack'],
    ]);
  });

  test('the tool that leads to the link has not failed, calls of other tools have', async () => {
    await using at = await scene(['github']);
    const session = await at.gate.session(basic('ann'));
    const led = await call(session, 'gateway_sign_in');
    expect(led.result).not.toHaveProperty('isError');
    expect(led.text).toContain('Afterwards, list the tools again');
    expect(linkIn(led).url).toContain('/sign-in?link_token=');
    expect((await call(session)).result.isError).toBe(true);
    const [first, second] = at.gate.accessLog.filter((line) => line.includes('tools/call'));
    expect([first, second]).toEqual([
      expect.not.stringMatching(/isToolError|tool_error|has to sign in/),
      expect.stringContaining('has to sign in'),
    ]);
  });

  test.each(['basicAuth', 'code'] as const)(
    'texts have link and code at the ends of lines, with users: %s',
    async (users) => {
      const isCode = users === 'code';
      const more = isCode ? { signIn: { users }, pagePolicies: {} } : {};
      await using at = await scene(['github', 'slack'], { ...more, mcp: { toolSearch: {} } });
      const session = await at.gate.session(basic('ann'));
      const found = await call(session, 'search_tools', { query: 'say' });
      const replies = [
        await call(session, 'github_gateway_sign_in'),
        await call(session, 'github_say'),
        found,
      ];
      const shown = replies.flatMap(({ result }) => result.content.map(({ text }: Json) => text)).join('\n');
      const lines = shown.split('\n').filter((line) => line.includes('link_token'));
      expect(lines.map((line) => /link_token=[\w-]{32}$/.test(line))).toEqual([true, true, true, true]);
      expect(shown.match(/[B-Z]{4}-[B-Z]{4}$/gm) ?? []).toHaveLength(isCode ? 4 : 0);
    },
  );

  test('without prefixes, each of several targets has the tool, under the name of the target', async () => {
    await using at = await scene(['github', 'slack'], { mcp: { prefixMode: 'never' } });
    const session = await at.gate.session(basic('ann'));
    expect(names(await session.request('tools/list'))).toEqual([
      'github_gateway_sign_in',
      'slack_gateway_sign_in',
    ]);
    expect((await call(session, 'gateway_sign_in')).error.message).toContain('gateway_sign_in');
    await at.signIn(await call(session, 'slack_gateway_sign_in'));
    const listed = names(await session.request('tools/list'));
    expect([listed.includes('say'), listed.includes('github_gateway_sign_in')]).toEqual([true, true]);
    expect(listed).not.toContain('slack_gateway_sign_in');
  });

  const BOB = 'basicAuth.username == "bob"';
  test.each([
    ['every rule is about another target', ['mcp.tool.target == "slack"']],
    ['no rule is for the caller, whatever the name', [`mcp.tool.name == "say" && ${BOB}`]],
    ['a rule denies the target', [{ deny: 'mcp.tool.target == "github"' }]],
    ['a rule requires another caller', [{ require: `${BOB} && mcp.tool.name != "x"` }]],
    [
      'a rule denies the target, and another one allows a name',
      [{ deny: 'mcp.tool.target == "github"' }, { allow: 'mcp.tool.name == "say"' }],
    ],
    ['a claim that a rule needs is missing', ['"admin" in jwt.roles && mcp.tool.name == "say"']],
    ['a claim is missing, behind the name', [{ require: 'mcp.tool.name == "say" && "admin" in jwt.roles' }]],
    ['every allow rule fails', ['jwt.none.at == mcp.tool.target']],
  ])('rules leave nothing of a target, and no link to it: %s', async (_, rules) => {
    await using at = await scene(['github'], {
      policies: { ...PASSWORDS, mcpAuthorization: { rules } },
      pagePolicies: PASSWORDS,
    });
    const session = await at.gate.session(basic('ann'));
    const { result } = await session.request('tools/list');
    expect(result.tools).toEqual([]);
    expect(JSON.stringify(result)).not.toContain('link_token');
    const called = await call(session, 'gateway_sign_in');
    expect([called.error?.message, called.text.includes('link_token')]).toEqual([
      'Unknown tool: gateway_sign_in',
      false,
    ]);
  });

  test.each([
    ['a rule allows one name', ['mcp.tool.name == "say"']],
    ['a rule allows some names', ['mcp.tool.name.matches("^s")']],
    ['a rule allows the target', ['mcp.tool.target == "github"', 'mcp.tool.target == "slack"']],
    ['a rule denies one name', [{ deny: 'mcp.tool.name == "say"' }]],
    ['a rule excepts a name from the others', [{ require: 'has(mcp.tool) && mcp.tool.name != "x"' }]],
    ['a rule is for the caller or some names', [`${BOB} || mcp.tool.name == "say"`]],
    ['a name is enough without a claim', ['mcp.tool.name == "say" || "admin" in jwt.roles']],
    ['a claim that is missing is not needed', ['("admin" in jwt.roles && false) || mcp.tool.name == "say"']],
    ['a claim may be missing', [{ require: '!("admin" in [""]) && mcp.tool.name == "say"' }]],
    ['a rule denies a name without a claim', [{ deny: '!("admin" in jwt.roles) && mcp.tool.name == "say"' }]],
    ['only a prompt is allowed', ['mcp.prompt.name == "p"']],
  ])('rules may leave something of a target, and the link is shown: %s', async (_, rules) => {
    await using at = await scene(['github'], {
      policies: { ...PASSWORDS, mcpAuthorization: { rules } },
      pagePolicies: PASSWORDS,
    });
    const session = await at.gate.session(basic('ann'));
    expect(names(await session.request('tools/list'))).toEqual(['gateway_sign_in']);
    expect(linkIn(await call(session, 'gateway_sign_in')).url).toContain('link_token');
  });

  test('with failClosed too, a session begins before its user has signed in', async () => {
    await using at = await scene(['github', 'slack'], { mcp: { failureMode: 'failClosed' } });
    const session = await at.gate.session(basic('ann'));
    expect(names(await session.request('tools/list'))).toEqual([
      'github_gateway_sign_in',
      'slack_gateway_sign_in',
    ]);
  });

  test('with toolSearch, the tool that leads to the link is listed, and a search says who has to sign in', async () => {
    await using at = await scene(['github', 'slack'], { mcp: { toolSearch: {} }, admin: true });
    const session = await at.gate.session(basic('ann'));
    const search = () => session.request('tools/call', { name: 'search_tools', arguments: { query: 'say' } });
    // Both share one list. Traces have no link.
    const traces: string[] = [];
    const found: McpReply[] = [];
    for (const event of await recorded(at.gate, async () =>
      found.push(...(await Promise.all([search(), search()]))),
    ))
      traces.push(JSON.stringify(event));
    for (const { text } of found) {
      expect(text).toContain('Tools of \\"github\\" are missing, because the user has not signed in there.');
      expect(text).not.toContain('did not answer');
      expect(linkIn({ text: text.slice(text.indexOf('slack')) }).url).toContain('link_token=');
      for (const [token = ''] of text.matchAll(/(?<=link_token=)[\w-]+/g))
        expect([token.length, traces.join('').includes(token)]).toEqual([32, false]);
    }
    expect(names(await session.request('tools/list'))).toContain('github_gateway_sign_in');
    await at.signIn(await call(session, 'github_gateway_sign_in'));
    expect(names(await session.request('tools/list'))).not.toContain('github_gateway_sign_in');
  });
});

describe('clients of revision 2026-07-28', () => {
  const asking = { capabilities: URLS, headers: basic('ann') };

  test('a call is answered with a request for input, and runs when the user has signed in', async () => {
    await using at = await scene(['github']);
    const { result } = await modernCall(at.mcp, 'say', { message: 'hello' }, asking);
    const [[key, input]] = Object.entries(result.inputRequests) as [[string, Json]];
    expect(result.resultType).toBe('input_required');
    expect(input).toMatchObject({ method: 'elicitation/create', params: { mode: 'url' } });
    await new UserBrowser(basic('ann')).signIn(linkIn({ text: input.params.url }));
    const inputResponses = { [key]: { action: 'accept' } };
    const said = await modernCall(at.mcp, 'say', { message: 'hello' }, asking, { inputResponses });
    expect(said.result).toMatchObject({ resultType: 'complete' });
    expect(said.result.isError).toBeUndefined();
    expect(actors(at.server)).toEqual(['alice']);
    expect(at.server.of('tools/call')[0]?.text).not.toContain('sign-in');
  });

  test('a client that has answered without a sign-in is not asked in a circle', async () => {
    await using at = await scene(['github']);
    const inputResponses = { 'agctl/sign-in': { action: 'decline' } };
    const { result } = await modernCall(at.mcp, 'say', {}, asking, { inputResponses });
    expect(result).toMatchObject({ resultType: 'complete', isError: true });
  });

  test('lists have the tool that leads to the link, and discovery works', async () => {
    await using at = await scene(['github']);
    expect((await modern(at.mcp, 'server/discover', {}, asking)).result.capabilities).toHaveProperty('tools');
    const { result } = await modern(at.mcp, 'tools/list', {}, { headers: basic('ann') });
    expect(result).toMatchObject({ resultType: 'complete', tools: [{ name: 'gateway_sign_in' }] });
    const called = await modernCall(at.mcp, 'gateway_sign_in', {}, { headers: basic('ann') });
    expect(called.result).not.toHaveProperty('isError');
    expect(linkIn(called).url).toContain('/sign-in?link_token=');
  });
});
