import { expect, test } from 'vitest';
import type { PolicyDefinition } from '../../../../src/library/policy.ts';
import { assertThat, stubMcpServer, testGateway } from '../../../../src/library/testing/index.ts';
import { openSession } from '../../../kit/mcp.ts';
import { mcpUpstream, reply } from '../../../kit/mcp-upstream.ts';

test('the result of a tool that ran as a task is seen by mcpResult when it is fetched, without the name of the tool', async () => {
  await using server = await mcpUpstream({
    capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
    script: ({ message }, response) => {
      if (message?.method !== 'tasks/result') return false;
      reply(response, message, { content: [{ type: 'text', text: 'SECRET' }] });
      return true;
    },
  });
  const seen: unknown[] = [];
  const policies: PolicyDefinition[] = [
    {
      name: 'hiding',
      mcpResult(answer) {
        seen.push([answer.method, answer.target, answer.name]);
        answer.result = { content: [{ type: 'text', text: 'hidden' }] };
      },
    },
  ];
  await using gateway = await testGateway(
    {
      mcp: {
        targets: [{ name: 'a', mcp: { host: server.url } }],
        policies: { modules: [{ policy: 'hiding' }] },
      },
    },
    { policies },
  );
  const session = await openSession(`${gateway.url}/mcp`);
  const { result } = await session.request('tasks/result', { taskId: 't1' });
  expect(result.content[0].text).toBe('hidden');
  expect(seen).toEqual([['tools/call', 'a', '']]);
});

test('a call that mcpCall denies is denied by modules in the facts', async () => {
  await using server = await stubMcpServer({ read: () => 'content' });
  await using gateway = await testGateway(
    { mcp: { targets: [server.target('files')], policies: { modules: [{ policy: 'closed' }] } } },
    { policies: [{ name: 'closed', mcpCall: (_call, { deny }) => deny('closed') }] },
  );
  const session = await openSession(`${gateway.url}/mcp`);
  const { error } = await session.request('tools/call', { name: 'read', arguments: {} });
  expect(error.message).toContain('closed');
  await assertThat(gateway).toBeDeniedBy('modules');
});
