import { describe, expect, test } from 'vitest';
import { ERAS } from '../../../kit/both-eras.ts';
import { chaos } from '../../../kit/config.ts';
import { give, LIMIT, limitedTo, lines, NEXT, opened, texts } from '../../../kit/cut-results.ts';
import type { Json } from '../../../kit/mcp.ts';
import { MODERN } from '../../../kit/modern.ts';

// Models read on in cut results with a tool, as few clients let them read resources.

describe.each(ERAS)('for a caller of revision %s,', (revision, connect) => {
  test.each([
    ['one target', [limitedTo(LIMIT)], {}, 'give', undefined],
    ['several targets', [limitedTo(LIMIT), chaos('b')], {}, 'a_give', undefined],
    [
      'no prefixes',
      [limitedTo(LIMIT, chaos('a', '--tools=give')), chaos('b', '--tools=other')],
      { prefixMode: 'never' },
      'give',
      undefined,
    ],
    ['tool search', [limitedTo(LIMIT)], { toolSearch: {} }, 'give', undefined],
    ['tool search, through call_tool', [limitedTo(LIMIT)], { toolSearch: {} }, 'give', 'call_tool'],
  ])('with %s, a tool that is listed reads on to the end', async (_what, targets, backend, name, through) => {
    await using own = await opened(connect, targets, { backend });
    const call = (tool: string, args: object) =>
      through === undefined
        ? own.caller.call(tool, args)
        : own.caller.call(through, { name: tool, arguments: args });
    const { result: list } = await own.caller.ask('tools/list');
    expect(list.tools.filter(({ name: each }: Json) => each === 'gateway_read_result')).toHaveLength(1);
    const { result } = await call(name, { result: texts(lines(60)) });
    let [shown, note] = result.content.map(({ text }: Json) => text);
    for (let uri = NEXT.exec(note)?.[0]; uri !== undefined; uri = NEXT.exec(note)?.[0]) {
      const { result: part } = await call('gateway_read_result', { uri });
      expect(part.isError).toBeUndefined();
      expect(part.content).toHaveLength(1);
      [, shown, note] =
        /^(.*)\n(\[agctl\] .*)$/s
          .exec(part.content[0].text)
          ?.map((text, at) => (at === 1 ? shown + text : text)) ?? [];
    }
    expect(shown).toBe(lines(60));
    expect(note).toBe('[agctl] Part 4 of 4: the end of the result.');
  });

  test('the tool that reads on says what is wrong with a URI, and the log has no id of a result', async () => {
    const frontendPolicies = { accessLog: { add: { args: 'mcp.tool.arguments', tool: 'mcp.tool.name' } } };
    await using own = await opened(connect, undefined, { frontendPolicies });
    const { result } = await give(own.caller, texts(lines(60)));
    const { uri } = result.content[2];
    const said = async (args: object): Promise<[boolean, string]> => {
      const { result: answer } = await own.caller.call('gateway_read_result', args);
      return [answer.isError, answer.content[0].text];
    };
    expect(await said({ uri: uri.replace(/\d+$/, '5') })).toEqual([true, 'the result has parts 2 to 4']);
    expect(await said({ uri: uri.replace(/..(?=\/\d+$)/, '__') })).toEqual([
      true,
      'the gateway no longer keeps this result; call the tool again',
    ]);
    for (const wrong of [{}, { uri: 2 }, { uri: 'file:///a' }])
      expect(await said(wrong)).toEqual([
        true,
        'expected `uri` to be agctl://results/…, as the cut result says',
      ]);
    const before = revision === MODERN ? 0 : 2;
    const line = await own.gate.accessLine(before + 2);
    expect(line).toMatchObject({ 'gen_ai.tool.name': 'gateway_read_result', 'error.type': 'tool_error' });
    expect(JSON.parse(line['args'] ?? '')).toEqual({ uri: 'agctl://results' });
    await own.gate.accessLine(before + 6);
    expect(own.gate.accessLog.join('\n')).not.toContain(uri.slice(16, 40));
  });
});
