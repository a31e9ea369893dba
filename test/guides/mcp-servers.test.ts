import { expect, test } from 'vitest';
import { startIdp } from '../kit/idp.ts';
import { mcpUpstream, reply, type Script } from '../kit/mcp-upstream.ts';
import { freePort } from '../kit/ports.ts';
import { exchangeServer, issuedFor } from '../kit/token-exchange.ts';
import { until } from '../kit/until.ts';
import { FILES, followGuide } from './guide.ts';

// Guides on MCP servers of a team.

test('the guide on many tools: two tools and a pinned one are listed, and the others are found', async () => {
  await using github = await mcpUpstream({ name: 'github' });
  await using followed = await followGuide('many-tools.md', {
    3000: String(await freePort()),
    'https://api.githubcopilot.com/mcp/': github.url,
    ...FILES,
  });
  const [, answers = '', connected] = followed.printed;
  expect(answers.match(/"name":"[a-z_]*"/g)?.slice(0, 3)).toEqual([
    '"name":"search_tools"',
    '"name":"call_tool"',
    '"name":"files_read_text_file"',
  ]);
  expect(answers).toContain('files_create_directory');
  expect(answers).not.toContain('files_move_file');
  expect(connected).toMatch(/"Authorization": "Bearer \$\{AGENT_KEY\}"/);
  expect(github.of('tools/list')[0]?.headers['authorization']).toBe('Bearer github_pat_...');
});

test('the guide on bundles: each caller has the tools of its bundle, and no other bundle', async () => {
  await using github = await mcpUpstream({ name: 'github' });
  await using followed = await followGuide('tool-bundles.md', {
    3000: String(await freePort()),
    'https://api.githubcopilot.com/mcp/': github.url,
    ...FILES,
  });
  const [, reviews = '', files = '', status] =
    /^reviews\n([\s\S]*)files\n([\s\S]*)closed\n(\d+)\n$/.exec(followed.printed[1] ?? '') ?? [];
  expect(reviews).toContain('"name":"github_');
  expect(reviews.match(/"name":"files_\w+"/g)).toEqual(['"name":"files_read_text_file"']);
  expect(files).toContain('"name":"files_write_file"');
  expect(files).not.toContain('github_');
  expect(status).toBe('404');
  for (const [name, key] of Object.entries({ reviews: 'REVIEWER_KEY', files: 'WRITER_KEY' })) {
    expect(followed.printed[2]).toMatch(new RegExp(`"url": "http://127.0.0.1:\\d+/mcp/${name}"`));
    expect(followed.printed[2]).toContain(`Bearer \${${key}}`);
  }
});

test('the guide on smaller results: a long result is cut, says so, and is read on with the tool of the gateway', async () => {
  const issues = Array.from({ length: 2000 }, (_, index) => `issue ${index}\n`).join('');
  const script: Script = ({ message }, response) => {
    if (message?.method !== 'tools/call') return false;
    reply(response, message, { content: [{ type: 'text', text: issues }] });
    return true;
  };
  await using github = await mcpUpstream({ name: 'github', script });
  await using followed = await followGuide('smaller-results.md', {
    3000: String(await freePort()),
    'https://api.githubcopilot.com/mcp/': github.url,
  });
  const [checked, called = '', connected] = followed.printed;
  const [cut, part] = called.split('\n');
  expect(checked).toMatch(/github {3}1 tool, \d+ tokens/);
  expect(cut).toMatch(
    /^\[agctl\] This result is cut: about \d{4} of \d{4} tokens are shown\. .*gateway_read_result/,
  );
  expect(part).toMatch(/^\[agctl\] Part 2 of 2: the end of the result\.$/);
  expect(connected).toMatch(/"Authorization": "Bearer \$\{AGENT_KEY\}"/);
  await until(() => followed.log.includes('gw.mcp.result.cut_tokens='));
});

test('the guide on credentials of servers: each server gets its own, and none that of another', async () => {
  await using idp = await startIdp();
  await using exchange = await exchangeServer();
  await using tickets = await mcpUpstream({ name: 'tickets' });
  await using wiki = await mcpUpstream({ name: 'wiki' });
  await using search = await mcpUpstream({ name: 'search' });
  const token = idp.token({ aud: 'gateway', sub: 'ann' });
  await using followed = await followGuide('credentials-of-servers.md', {
    3000: String(await freePort()),
    'host: https://idp.example.com': `host: ${exchange.address}`,
    'https://idp.example.com/realms/main': idp.issuer,
    'https://tickets.example.com/mcp': tickets.url,
    'https://wiki.example.com/mcp': wiki.url,
    'https://search.example.com/mcp': search.url,
    'CLIENT_SECRET=... SEARCH_KEY=...': 'CLIENT_SECRET=of-the-gateway SEARCH_KEY=of-the-team',
    'eyJ...': token,
  });
  expect(followed.printed.at(-1)).toBe('"name":"tickets_say"\n"name":"wiki_say"\n"name":"search_say"\n');
  const got = [tickets, wiki, search].map(({ received }) => {
    const { authorization, 'x-api-key': key, 'x-user': user } = received.at(-1)?.headers ?? {};
    return [authorization, key, user];
  });
  expect(got).toEqual([
    [`Bearer ${issuedFor(token, 'tickets')}`, undefined, undefined],
    [`Bearer ${token}`, undefined, undefined],
    [undefined, 'of-the-team', 'ann'],
  ]);
});
