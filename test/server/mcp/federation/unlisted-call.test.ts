import { describe, expect, test } from 'vitest';
import { type Connect, ERAS } from '../../../kit/both-eras.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, openSession } from '../../../kit/mcp.ts';

// The servers of these tests run every tool that they are asked for, as lenient ones may do with other forms of a name.

const TOOLS = 'danger,send_file,kill,received';
const ONE = [chaos('a', `--tools=${TOOLS}`)];
const TWO = [...ONE, chaos('b')];

const RESEMBLING = [
  ...[
    'DANGER',
    'Danger',
    'danger ',
    ' danger',
    'dan ger',
    'danger\n',
    'danger\t',
    'danger\u00a0',
    'danger\u3000',
  ],
  ...['dan\u200bger', '\ufeffdanger', 'danger\u2060', 'dan\u00adger', 'danger\u202e', 'danger\ufe0f'],
  ...['danger\u{e0041}', 'd\u034fanger', 'danger\u3164', 'danger\u007f', 'ｄａｎｇｅｒ', 'dⓐnger', '𝐝𝐚𝐧𝐠𝐞𝐫'],
  ...['send_ﬁle', 'ſend_file', 'SEND＿FILE', '\u212aill', 'ki\u2113l', 'KI\u200dLL '],
  ...['send_f\u0130le', 'SEND_F\u0130LE', 'send_f\u0131le', 'kI\u0307ll'],
];

const OTHERS = ['dangers', 'anger', 'send-file', 'hidden', 'дanger'];

const WAYS: [string, { targets?: object[]; route?: object; backend?: object; path?: string }][] = [
  ['a deny rule', { route: deny('mcp.tool.name in ["danger", "send_file", "kill"]') }],
  ['a deny rule with a pattern', { route: deny('mcp.tool.name.matches("^(danger|send_file|kill)$")') }],
  ['tools.exclude', { targets: [{ ...ONE[0], tools: { exclude: ['danger', 'send_file', 'kill'] } }] }],
  [
    'tools.rename',
    { targets: [{ ...ONE[0], tools: { rename: { danger: 'x', send_file: 'y', kill: 'z' } } }] },
  ],
];

function deny(rule: string): object {
  return { policies: { mcpAuthorization: { rules: [{ deny: rule }, { allow: 'true' }] } } };
}

/** Names of the tools that the server `a` was asked to run. */
async function received(call: (name: string) => Promise<Json>, name: string): Promise<string[]> {
  const { result } = await call(name);
  return JSON.parse(result.content[0].text)
    .map((line: string) => JSON.parse(line))
    .filter(({ method }: Json) => method === 'tools/call')
    .map(({ params }: Json) => params.name)
    .filter((each: string) => each !== 'received');
}

describe.each([
  ['one target', '', ONE],
  ['targets with prefixes', 'a_', TWO],
])('with %s, a name that only resembles that of a listed tool', (_what, prefix, targets) => {
  test.each(WAYS)('is unknown with %s, and other unlisted names reach the server', async (_way, own) => {
    const all = [own.targets?.[0] ?? targets[0] ?? {}, ...targets.slice(1)];
    await using gate = await gateway(mcpConfig(all, own));
    const session = await openSession(`${gate.url}/mcp`);
    const call = (name: string) => session.request('tools/call', { name, arguments: {} });
    for (const name of ['danger', ...RESEMBLING]) {
      const { error } = await call(prefix + name);
      expect(error, JSON.stringify(name)).toMatchObject({
        code: -32602,
        message: `Unknown tool: ${prefix}${name}`,
      });
    }
    for (const name of OTHERS) expect((await call(prefix + name)).error, name).toBeUndefined();
    expect(await received(call, `${prefix}received`)).toEqual(OTHERS);
    await session.end();
  });

  test('reaches the server if nothing decides by names', async () => {
    const route = deny('mcp.tool.target == "b"');
    await using gate = await gateway(mcpConfig(targets, { route }));
    const session = await openSession(`${gate.url}/mcp`);
    const call = (name: string) => session.request('tools/call', { name, arguments: {} });
    for (const name of RESEMBLING) await call(prefix + name);
    expect(await received(call, `${prefix}received`)).toEqual(RESEMBLING);
    await session.end();
  });
});

describe.each(ERAS)('for a caller of revision %s', (_revision, connect: Connect) => {
  test('a name that only resembles that of a listed tool is unknown through call_tool', async () => {
    const route = deny('mcp.tool.name == "danger"');
    await using gate = await gateway(mcpConfig(TWO, { route, backend: { toolSearch: {} } }));
    const caller = await connect(`${gate.url}/mcp`);
    const call = (name: string) => caller.call('call_tool', { name: `a_${name}`, arguments: {} });
    for (const name of RESEMBLING) expect((await call(name)).error, JSON.stringify(name)).toBeDefined();
    expect(await received(call, 'received')).toEqual([]);
  });

  test('a name that only resembles that of a tool of a bundle is unknown there', async () => {
    const bundles = [{ name: 'some', tools: ['a_received', 'a_d*'] }];
    await using gate = await gateway(mcpConfig(TWO, { backend: { bundles, toolSearch: {} } }));
    const caller = await connect(`${gate.url}/mcp/some`);
    const call = (name: string) => caller.call('call_tool', { name: `a_${name}`, arguments: {} });
    for (const name of RESEMBLING) expect((await call(name)).error, JSON.stringify(name)).toBeDefined();
    expect(await received(call, 'received')).toEqual([]);
  });
});

test('a name that is listed is called, whatever other names it resembles, and the list is requested once', async () => {
  const route = deny('mcp.tool.name == "danger"');
  await using gate = await gateway(mcpConfig([chaos('a', '--tools=danger,Danger,received')], { route }));
  const lists = async (): Promise<number> => {
    const session = await openSession(`${gate.url}/mcp`);
    const call = (name: string) => session.request('tools/call', { name, arguments: {} });
    expect((await call('Danger')).result.content[0].text).toBe('a Danger');
    expect((await call('DANGER')).error).toBeDefined();
    expect((await call('unlisted')).error).toBeUndefined();
    expect((await call('unlisted')).error).toBeUndefined();
    const { result } = await call('received');
    await session.end();
    return JSON.parse(result.content[0].text).filter((line: string) => line.includes('"tools/list"')).length;
  };
  expect(await lists()).toBe(1);
});
