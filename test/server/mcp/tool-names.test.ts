import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';
import { mcpUpstream, reply, type Script } from '../../kit/mcp-upstream.ts';

const LONG = 'n'.repeat(10_000);
const NAMES = ['good_name-1.2', '', LONG, '\u001b[2J', 'with space', 'same', 'same'];

const lists: Script = ({ message }, response) => {
  if (message?.method !== 'tools/list') return false;
  reply(response, message, { tools: NAMES.map((name) => ({ name, inputSchema: { type: 'object' } })) });
  return true;
};

const WARNINGS = [
  'target lists a tool whose name is empty\ttarget="odd" name="" count=1',
  `target lists a tool whose name is longer than 128 characters\ttarget="odd" name="${'n'.repeat(64)}" count=1`,
  'target lists a tool whose name has other characters than letters, digits, `_`, `-` and `.`\ttarget="odd" name="\\u001b[2J" count=2',
  'target lists a tool whose name is used twice\ttarget="odd" name="same" count=1',
];

describe('tool name warnings', () => {
  test.each([
    ['alone', []],
    ['among others', [chaos('other')]],
  ])('unusual tool names of a target %s are logged once per kind of name', async (_what, others) => {
    await using up = await mcpUpstream({ name: 'odd', script: lists });
    await using gate = await gateway(mcpConfig([{ name: 'odd', mcp: { host: up.url } }, ...others]));
    for (let count = 0; count < 2; count += 1) {
      const session = await openSession(`${gate.url}/mcp`);
      const { result } = await session.request('tools/list');
      expect(result.tools.length).toBeGreaterThanOrEqual(NAMES.length);
    }
    const told = gate.log.filter((line) => line.includes('target lists a tool'));
    expect(told.map((line) => line.slice(line.indexOf('target lists')).trimEnd())).toEqual(WARNINGS);
    expect(told.every((line) => line.includes('\twarn\t'))).toBe(true);
  });

  test('usual tool names are not logged', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', '--tools=a,B_c,d-e.f,0')]));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/list');
    expect(gate.log.join('')).not.toContain('target lists a tool');
  });
});
