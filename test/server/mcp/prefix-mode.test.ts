import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, openSession } from '../../kit/mcp.ts';

const A = chaos('a', '--tools=one,same', '--prompts=ask', '--resources=file:///1,file:///same');
const B = chaos('b', '--tools=two,same', '--resources=file:///2,file:///same');

async function listsOf(targets: object[], backend: object) {
  const gate = await gateway(mcpConfig(targets, { backend }));
  const session = await openSession(`${gate.url}/mcp`);
  const list = async (method: string, member: string, key: string): Promise<string[]> =>
    (await session.request(method)).result[member].map((item: Json) => item[key]);
  const call = async (name: string): Promise<Json> => session.request('tools/call', { name });
  return {
    gate,
    session,
    call,
    tools: () => list('tools/list', 'tools', 'name'),
    resources: () => list('resources/list', 'resources', 'uri'),
    prompts: () => list('prompts/list', 'prompts', 'name'),
    [Symbol.asyncDispose]: () => gate.close(),
  };
}

describe('prefixMode', () => {
  test('prefixMode conditional, the default, keeps the names of a single target and forwards the whole protocol', async () => {
    await using own = await listsOf([A], {});
    expect(await own.tools()).toEqual(['one', 'same']);
    expect(await own.resources()).toEqual(['file:///1', 'file:///same']);
    expect((await own.call('one')).result.content[0].text).toBe('a one');
  });

  test('prefixMode always prefixes names even with a single target', async () => {
    await using own = await listsOf([A], { prefixMode: 'always' });
    expect(await own.tools()).toEqual(['a_one', 'a_same']);
    expect(await own.resources()).toEqual(['a+file:///1', 'a+file:///same']);
    expect((await own.call('a_one')).result.content[0].text).toBe('a one');
    expect((await own.call('one')).error.message).toBe('Unknown tool: one');
  });

  test('prefixMode never keeps names, and a name that two targets share is rejected as ambiguous', async () => {
    await using own = await listsOf([A, B], { prefixMode: 'never' });
    expect(await own.tools()).toEqual(['one', 'two']);
    expect(await own.resources()).toEqual(['file:///1', 'file:///2']);
    expect(await own.prompts()).toEqual(['ask']);
    expect((await own.call('one')).result.content[0].text).toBe('a one');
    expect((await own.call('two')).result.content[0].text).toBe('b two');
    expect((await own.call('same')).error).toEqual({
      code: -32602,
      message: 'several targets offer the tool "same": set prefixMode to tell them apart',
    });
    expect((await own.call('three')).error.message).toBe('Unknown tool: three');
    expect(own.gate.log.join('')).toContain('several targets offer the same name; it is omitted');
  });

  test('prefixMode never routes resources and completions to their owner', async () => {
    await using own = await listsOf([A, B], { prefixMode: 'never' });
    const { result } = await own.session.request('resources/read', { uri: 'file:///2' });
    expect(result.contents).toEqual([{ uri: 'file:///2', text: 'b file:///2' }]);
    const ref = { type: 'ref/prompt', name: 'ask' };
    const completion = await own.session.request('completion/complete', {
      ref,
      argument: { name: 'x', value: '' },
    });
    expect(completion.result.completion.values).toEqual(['a ask']);
    // Neither target lists it and both have resources, so its owner is unknown.
    expect((await own.session.request('resources/read', { uri: 'file:///9' })).error.message).toBe(
      'Unknown resource: file:///9',
    );
  });

  test('prefixMode never routes an unlisted resource to the only target that has resources', async () => {
    await using own = await listsOf([A, chaos('c')], { prefixMode: 'never' });
    const { result } = await own.session.request('resources/read', { uri: 'file:///from-a-template' });
    expect(result.contents[0].text).toBe('a file:///from-a-template');
  });
});
