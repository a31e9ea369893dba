import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, openSession } from '../../../kit/mcp.ts';
import { parseMetrics, sampleValue } from '../../../kit/open-metrics.ts';

/** A gateway that pins the tools `danger` and `other`, of which the server can list the first under another name. */
async function pinning(toolPinning: string) {
  const folder = await temporaryFolder();
  const definitions = join(folder.path, 'definitions.json');
  const list = (name: string): void => writeFileSync(definitions, JSON.stringify({ danger: { name } }));
  list('danger');
  const route = {
    policies: { mcpAuthorization: { rules: [{ deny: 'mcp.tool.name == "danger"' }, { allow: 'true' }] } },
  };
  const target = chaos('a', '--tools=danger,other', `--definitions=${definitions}`);
  const gate = await gateway(mcpConfig([target], { route, backend: { toolPinning } }), {
    folder: folder.path,
  });
  const pins = join(folder.path, 'tools.lock.yaml');
  const session = await openSession(`${gate.url}/mcp`);
  return {
    list,
    pins,
    tools: async (): Promise<string[]> =>
      (await session.request('tools/list')).result.tools.map(({ name }: Json) => name),
    call: (name: string): Promise<Json> => session.request('tools/call', { name, arguments: {} }),
    pinned: (): string[] => Object.keys(parse(readFileSync(pins, 'utf8')).targets.a),
    changes: () => gate.log.filter((line) => line.includes('a tool has changed since it was pinned')),
    counted: async () =>
      sampleValue(parseMetrics(await gate.running.metrics.render()), 'gw_mcp_tool_changes_total', {
        server: 'a',
      }),
    [Symbol.asyncDispose]: async () => {
      await session.end();
      await gate.close();
      await folder.remove();
    },
  };
}

describe('a tool that a server lists under a name that resembles that of a pinned tool', () => {
  test.each(['Danger', 'danger ', 'dan\u200bger', 'ｄanger'])(
    'is not pinned with enforce, but hidden, refused and reported once: %j',
    async (name) => {
      await using own = await pinning('enforce');
      expect(await own.tools()).toEqual(['other']);
      own.list(name);
      expect(await own.tools()).toEqual(['other']);
      expect(await own.tools()).toEqual(['other']);
      expect((await own.call(name)).error.code).toBe(-32602);
      expect((await own.call('other')).error).toBeUndefined();
      expect(own.pinned()).toEqual(['danger', 'other']);
      expect(own.changes()).toHaveLength(1);
      expect(own.changes()[0]).toContain('danger');
      expect(await own.counted()).toBe(1);
    },
  );

  test('is reported once with warn, and not pinned', async () => {
    await using own = await pinning('warn');
    await own.tools();
    own.list('Danger');
    expect(await own.tools()).toEqual(['Danger', 'other']);
    expect(await own.tools()).toEqual(['Danger', 'other']);
    expect(own.changes()).toHaveLength(1);
    expect(own.changes()[0]).toContain('tool="Danger"');
    expect(own.pinned()).toEqual(['danger', 'other']);
  });

  test('is pinned once the entry of the pinned tool was deleted', async () => {
    await using own = await pinning('enforce');
    await own.tools();
    own.list('Danger');
    await own.tools();
    rmSync(own.pins);
    expect(await own.tools()).toEqual(['Danger', 'other']);
    expect(own.pinned()).toEqual(['Danger', 'other']);
  });
});

test('tools of one list are all pinned, also if their names differ in case only, and so is one with another name', async () => {
  await using own = await pinning('enforce');
  own.list('OTHER');
  expect(await own.tools()).toEqual(['OTHER', 'other']);
  own.list('dangerous');
  expect(await own.tools()).toEqual(['dangerous', 'other']);
  expect(own.pinned()).toEqual(['OTHER', 'dangerous', 'other']);
  expect(own.changes()).toEqual([]);
});
