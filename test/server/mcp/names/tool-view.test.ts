import { describe, expect, test } from 'vitest';
import { namePattern } from '../../../../src/server/mcp/names/name-pattern.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, openSession } from '../../../kit/mcp.ts';

const target = (name: string, flags: string[], tools: object) => ({ ...chaos(name, ...flags), tools });

async function open(targets: object[], parts: Parameters<typeof mcpConfig>[1] = {}) {
  const gate = await gateway(mcpConfig(targets, parts));
  const session = await openSession(`${gate.url}/mcp`);
  return {
    gate,
    session,
    list: async () => session.request('tools/list'),
    tools: async (): Promise<string[]> =>
      (await session.request('tools/list')).result.tools.map(({ name }: Json) => name),
    call: async (name: string, args?: object): Promise<Json> =>
      session.request('tools/call', { name, ...(args && { arguments: args }) }),
    [Symbol.asyncDispose]: () => gate.close(),
  };
}

const unknown = (name: string) => ({ code: -32602, message: `Unknown tool: ${name}` });

describe('targets[].tools', () => {
  test('include and exclude with stars decide which tools of a single target are listed and can be called', async () => {
    const tools = { include: ['get_*', 'echo'], exclude: ['*_secret'] };
    await using own = await open([target('a', ['--tools=get_a,get_secret,drop_all,echo'], tools)]);
    expect(await own.tools()).toEqual(['get_a', 'echo']);
    expect((await own.call('get_a')).result.content[0].text).toBe('a get_a');
    for (const hidden of ['get_secret', 'drop_all', 'never_listed'])
      expect((await own.call(hidden)).error).toEqual(unknown(hidden));
  });

  test('a renamed tool of a single target is listed and called under its new name only, and other members stay as sent', async () => {
    const tools = { rename: { echo: 'say' }, descriptions: { echo: 'Says "it".' } };
    await using own = await open([target('a', ['--tools=echo,other'], tools)]);
    const { text, result } = await own.list();
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['say', 'other']);
    expect(result.tools[0]).toEqual({
      name: 'say',
      description: 'Says "it".',
      inputSchema: { type: 'object' },
      big: 1,
    });
    expect(text).toContain(
      '{"description":"Says \\"it\\".","name":"say","inputSchema":{"type":"object"},"big":1}',
    );
    expect((await own.call('say', { message: 'hi' })).result.content[0].text).toBe('hi');
    expect((await own.call('echo')).error).toEqual(unknown('echo'));
  });

  test('filters and names apply before the prefix of several targets', async () => {
    await using own = await open([
      target('a', ['--tools=echo,get'], { exclude: ['get'], rename: { echo: 'b_say' } }),
      target('b', ['--tools=say,get'], { include: ['get'] }),
    ]);
    expect(await own.tools()).toEqual(['a_b_say', 'b_get']);
    expect((await own.call('a_b_say', { message: 'hi' })).result.content[0].text).toBe('hi');
    expect((await own.call('b_get')).result.content[0].text).toBe('b get');
    for (const hidden of ['a_echo', 'a_get', 'b_say'])
      expect((await own.call(hidden)).error).toEqual(unknown(hidden));
  });

  test('with prefixMode never a new name makes a shared name of two targets unambiguous', async () => {
    await using own = await open(
      [
        chaos('a', '--tools=same'),
        target('b', ['--tools=same,gone'], { rename: { same: 'other' }, exclude: ['gone'] }),
      ],
      { backend: { prefixMode: 'never' } },
    );
    expect(await own.tools()).toEqual(['same', 'other']);
    expect((await own.call('same')).result.content[0].text).toBe('a same');
    expect((await own.call('other')).result.content[0].text).toBe('b same');
    expect((await own.call('gone')).error).toEqual(unknown('gone'));
  });

  test('two tools can swap their names, and a tool whose name another one takes is left out', async () => {
    const flags = ['--tools=one,two,three'];
    await using swapped = await open([target('a', flags, { rename: { one: 'two', two: 'one' } })]);
    expect(await swapped.tools()).toEqual(['two', 'one', 'three']);
    expect((await swapped.call('one')).result.content[0].text).toBe('a two');
    await using taken = await open([target('a', flags, { rename: { one: 'two' } })]);
    expect(await taken.tools()).toEqual(['two', 'three']);
    expect((await taken.call('two')).result.content[0].text).toBe('a one');
  });

  test('mcpAuthorization and the log use the name of a renamed tool at its target', async () => {
    const route = {
      policies: {
        mcpAuthorization: { rules: ['mcp.tool.name in ["echo", "hidden"] && mcp.tool.target == "a"'] },
      },
    };
    const tools = { rename: { echo: 'say' }, exclude: ['hidden'] };
    await using own = await open([target('a', ['--tools=echo,hidden,third'], tools)], { route });
    expect(await own.tools()).toEqual(['say']);
    expect((await own.call('say', { message: 'hi' })).result.content[0].text).toBe('hi');
    for (const hidden of ['third', 'hidden', 'echo'])
      expect((await own.call(hidden)).error).toEqual(unknown(hidden));
    const lines = own.gate.accessLog.filter((line) => line.includes('mcp.method.name=tools/call'));
    expect(lines[0]).toContain('gen_ai.tool.name=echo');
  });

  test('a name that the filter leaves out or that no pattern can produce is no way around it', async () => {
    await using own = await open([target('a', ['--tools=echo'], { include: ['e*o'] })]);
    for (const name of ['', 'eo ', 'E', '__proto__', 'echo\u0000', 'constructor'])
      expect((await own.call(name)).error.code).toBe(-32602);
  });
});

describe('the configuration of targets[].tools', () => {
  test('two tools with the same new name are refused', async () => {
    const tools = { rename: { one: 'x', two: 'x' } };
    await expect(gateway(mcpConfig([target('a', [], tools)]))).rejects.toThrow(
      'two tools are renamed to `x`',
    );
  });

  test('a new name with other characters than MCP allows is refused', async () => {
    const tools = { rename: { one: 'a b' } };
    await expect(gateway(mcpConfig([target('a', [], tools)]))).rejects.toThrow();
  });

  test.each(['rename', 'descriptions'])('a pattern as a key of %s is refused', async (key) => {
    const tools = { include: ['h*'], [key]: { 'h*': 'x' } };
    await expect(gateway(mcpConfig([target('a', [], tools)]))).rejects.toThrow(
      `\`${key}\` takes exact names, no patterns`,
    );
  });

  test('a new name or description of a tool that is left out is a warning at its key', async () => {
    const tools = { include: ['get_*'], rename: { one: 'x' }, descriptions: { two: 'y' } };
    await using gate = await gateway(mcpConfig([target('a', [], tools)]));
    const diagnostics = gate.live.served.diagnostics.filter(({ code }) => code !== 'AGW0312');
    expect(diagnostics.map(({ code, severity, message }) => [code, severity, message])).toEqual([
      ['AGW0303', 'warning', '`tools.rename` has no effect on `one`, which is left out'],
      ['AGW0303', 'warning', '`tools.descriptions` has no effect on `two`, which is left out'],
    ]);
  });
});

describe('name patterns', () => {
  test.each([
    ['*', '', true],
    ['*', 'anything', true],
    ['a*', 'a', true],
    ['a*', 'ba', false],
    ['*a', 'ba', true],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['a**c', 'abc', true],
    ['a.c', 'abc', false],
    ['*ab*ab', 'abab', true],
    ['*ab*ab', 'aab', false],
    ['', 'a', false],
  ])('%j on %j is %j', (pattern, name, expected) => {
    expect(namePattern([pattern])(name)).toBe(expected);
  });

  test('a pattern of many stars on a long name does not backtrack', () => {
    const steps = namePattern([`${'*a'.repeat(200)}*b`]);
    expect(steps('a'.repeat(100_000))).toBe(false);
  });
});

describe('names in tools of a target that no tool has', () => {
  const tools = {
    include: ['echo*', 'get_*', 'gte_*'],
    exclude: ['secret'],
    rename: { 'echo-2': 'again', ecco: 'say' },
    descriptions: { get_a: 'Gets it.' },
  };
  const MISSING = 'names="include: gte_*, exclude: secret, rename: ecco"';
  const warnings = (log: readonly string[]): string[] =>
    log.filter((line) => line.includes('match none of its tools'));

  test('they are logged once, when a client has read all pages of the list of a single target', async () => {
    await using own = await open([target('a', ['--tools=echo,get_a', '--pages=2'], tools)]);
    const first = await own.list();
    expect(warnings(own.gate.log)).toEqual([]);
    for (let time = 0; time < 2; time += 1)
      await own.session.request('tools/list', { cursor: first.result.nextCursor });
    await own.list();
    expect(warnings(own.gate.log)).toEqual([expect.stringContaining(`target="a" ${MISSING}`)]);
  });

  test('they are logged once for each of several targets', async () => {
    await using own = await open([
      target('a', ['--tools=echo,get_a', '--pages=2'], tools),
      target('b', ['--tools=echo'], { rename: { echo: 'say' } }),
    ]);
    await own.tools();
    await own.tools();
    expect(warnings(own.gate.log)).toEqual([expect.stringContaining(`target="a" ${MISSING}`)]);
  });
});
