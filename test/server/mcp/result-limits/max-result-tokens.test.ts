import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ERAS } from '../../../kit/both-eras.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import {
  BYTES,
  give,
  LIMIT,
  limitedTo,
  lines,
  NEXT,
  opened,
  read,
  texts,
  whole,
} from '../../../kit/cut-results.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, openSession } from '../../../kit/mcp.ts';
import { MODERN } from '../../../kit/modern.ts';
import { recorded } from '../../../kit/trace.ts';

// Models get results of tools in parts (`maxResultTokens`). Elsewhere, results were cut without a word (github/copilot-cli#1732,
// lucianfialho/effect-gates#69) or so that nothing could read the rest (amd/gaia#3378).

describe.each(ERAS)('with maxResultTokens, for a caller of revision %s,', (revision, connect) => {
  let own: Awaited<ReturnType<typeof opened>>;
  beforeAll(async () => {
    own = await opened(connect);
  });
  afterAll(() => own[Symbol.asyncDispose]());

  test('a result over the limit is cut at a line end, says so, and can be read to its end in parts', async () => {
    const all = lines(100);
    const { result } = await give(own.caller, texts(all));
    const [shown, note, link] = result.content;
    expect(shown.text.endsWith('\n')).toBe(true);
    expect(note.text).toMatch(
      /^\[agctl\] This result is cut: about \d+ of 548 tokens are shown\. It goes on in the resource agctl:\S+\/2 \(part 2 of 6\): read it with gateway_read_result or resources\/read, or call/,
    );
    // Some clients drop links (agno-agi/agno#10009), so the text has the URI too.
    expect(link).toEqual({
      type: 'resource_link',
      uri: NEXT.exec(note.text)?.[0],
      name: 'give (part 2 of 6)',
      mimeType: 'text/plain',
    });
    expect(result.content).toHaveLength(3);
    const parts = await whole(own.caller, result);
    expect(parts).toHaveLength(6);
    expect(parts.join('')).toBe(all);
    for (const part of parts) {
      expect(Buffer.byteLength(part)).toBeLessThanOrEqual(BYTES);
      expect(part.endsWith('\n')).toBe(true);
    }
  });

  test('a result within the limit stays as sent', async () => {
    const within = { ...texts('x'.repeat(BYTES)), structuredContent: { x: 1 }, _meta: { y: 2 } };
    const { result } = await give(own.caller, within);
    expect(result).toMatchObject(within);
    expect(result.content).toHaveLength(1);
  });

  test('text without line ends is cut between characters, never inside a surrogate pair', async () => {
    for (let before = 0; before < 4; before += 1) {
      const all = 'x'.repeat(before) + '🎉é'.repeat(300);
      const { result } = await give(own.caller, texts(all));
      const parts = await whole(own.caller, result);
      expect(parts.length).toBeGreaterThan(4);
      expect(parts.join('')).toBe(all);
      expect(parts.filter((part) => !part.isWellFormed() || part.includes('\ufffd'))).toEqual([]);
    }
  });

  test('a text of which nothing fits is not shown empty', async () => {
    const { result } = await give(own.caller, texts('x'.repeat(BYTES), 'b'));
    expect(result.content.map(({ type }: Json) => type)).toEqual(['text', 'text', 'resource_link']);
    expect((await whole(own.caller, result)).slice(1)).toEqual(['b']);
  });

  test('what fits into the last part is not cut at a line end', async () => {
    const last = `${'y'.repeat(300)}\n${'z'.repeat(99)}`;
    for (const all of ['x'.repeat(BYTES) + last, 'x'.repeat(2 * BYTES) + last]) {
      const { result } = await give(own.caller, texts(all));
      expect((await whole(own.caller, result)).at(-1)).toBe(last);
    }
  });

  test('texts are kept in order up to the limit, and images and links where they are', async () => {
    const image = { type: 'image', data: 'AAAA'.repeat(1000), mimeType: 'image/png' };
    const other = { type: 'resource_link', uri: 'file:///x', name: 'x' };
    const { result } = await give(own.caller, {
      content: [...texts('first').content, image, ...texts('b'.repeat(BYTES), 'third').content, other],
    });
    expect(result.content.slice(0, 4)).toEqual([
      { type: 'text', text: 'first' },
      image,
      { type: 'text', text: 'b'.repeat(BYTES - 5) },
      other,
    ]);
    expect(result.content).toHaveLength(6);
    const { result: rest } = await read(own.caller, result.content[5].uri);
    expect(rest.contents[0].text).toMatch(/^bbbbb\nthird\n\[agctl\] Part 2 of 2: the end of the result\.$/);
  });

  test('texts of embedded resources count and are cut', async () => {
    const embedded = (uri: string, text: string) => ({ type: 'resource', resource: { uri, text } });
    const { result } = await give(own.caller, {
      content: [embedded('file:///a', 'a'.repeat(BYTES + 4)), embedded('file:///b', 'b')],
    });
    expect(result.content[0]).toEqual(embedded('file:///a', 'a'.repeat(BYTES)));
    expect(result.content).toHaveLength(3);
    const { result: rest } = await read(own.caller, result.content[2].uri);
    expect(rest.contents[0].text).toMatch(/^aaaa\nfile:\/\/\/b\nb\n/);
  });

  test('an error of a tool is cut the same way', async () => {
    const { result } = await give(own.caller, { ...texts(lines(50)), isError: true });
    expect(result.isError).toBe(true);
    expect((await whole(own.caller, result)).join('')).toBe(lines(50));
  });

  // Clients refuse results without the structured content that was promised (IBM/mcp-context-forge#4042, MikkoParkkola/mcp-gateway#158).
  test('structured content over the limit is removed, and tools with a limit are listed without outputSchema', async () => {
    await using folder = await temporaryFolder();
    const definitions = join(folder.path, 'tools.json');
    const schema = { title: 'T', outputSchema: { type: 'object' } };
    writeFileSync(definitions, JSON.stringify({ give: schema, echo: schema }));
    const target = chaos('a', '--tools=give,echo', `--definitions=${definitions}`);
    await using own = await opened(connect, [limitedTo({ give: LIMIT }, target)]);
    const { result: list } = await own.caller.ask('tools/list');
    expect(list.tools).toEqual([
      { name: 'give', inputSchema: { type: 'object' }, big: 1, title: 'T' },
      { name: 'echo', inputSchema: { type: 'object' }, big: 1, ...schema },
      expect.objectContaining({ name: 'gateway_read_result' }),
    ]);
    const structured = { rows: Array.from({ length: 200 }, (_, index) => index) };
    const both = { ...texts(JSON.stringify(structured, null, 2)), structuredContent: structured };
    const { result } = await give(own.caller, both);
    expect(result).not.toHaveProperty('structuredContent');
    expect((await whole(own.caller, result)).join('')).toBe(both.content[0]?.text);
  });

  test('structured content over the limit that no text repeats becomes text', async () => {
    const structured = { rows: Array.from({ length: 200 }, (_, index) => index) };
    for (const content of [{ content: [] }, {}]) {
      const { result } = await give(own.caller, { ...content, structuredContent: structured });
      expect(result).not.toHaveProperty('structuredContent');
      expect(JSON.parse((await whole(own.caller, result)).join(''))).toEqual(structured);
    }
  });

  // The first Python SDK wraps what is no object in `result`, and makes a text of each element of a list.
  test.each([
    ['a text that has it with other spaces', (rows: number[]) => texts(JSON.stringify({ rows }, null, 1)), 1],
    ['a text of its only member', (rows: number[]) => texts(JSON.stringify(rows)), 1],
    ['texts of its elements', (rows: number[]) => texts(...rows.map(String)), 0],
    ['another text', () => texts('x'.repeat(BYTES * 2)), 2],
  ])('with %s, structured content over the limit can be read once', async (_what, textsOf, separately) => {
    const rows = Array.from({ length: 300 }, (_, index) => 1000 + index);
    const content = textsOf(rows);
    const { result } = await give(own.caller, { ...content, structuredContent: { rows } });
    expect(result).not.toHaveProperty('structuredContent');
    const all = (await whole(own.caller, result)).join('');
    expect(all.split(/\b1299\b/)).toHaveLength(2);
    if (separately === 2) expect(all).toBe(`${content.content[0]?.text}\n${JSON.stringify({ rows })}`);
    else if (separately === 1) expect(all).toBe(content.content[0]?.text);
  });

  test('an exact name counts before patterns, and a longer pattern before a shorter one', async () => {
    const tools = { '*': 100, 'gi*': 200, give: 300, 'ech*': 400 };
    await using own = await opened(connect, [limitedTo(tools), limitedTo({ other: 100 }, chaos('b'))]);
    const shown = async (name: string): Promise<number> =>
      (await give(own.caller, texts('x'.repeat(5000)), name)).result.content[0].text.length;
    expect(await shown('a_give')).toBe(1200);
    expect(await shown('b_give')).toBe(5000);
    const { result } = await own.caller.call('a_echo', { message: 'x'.repeat(5000) });
    expect(result.content[0].text).toHaveLength(1600);
  });

  test('of several targets, the result of a renamed tool can be read under the URI without a target', async () => {
    const target = { ...chaos('a'), tools: { maxResultTokens: { give: LIMIT }, rename: { give: 'fetch' } } };
    await using own = await opened(connect, [target, chaos('b', '--resources=file:///b')]);
    const { result } = await give(own.caller, texts(lines(60)), 'a_fetch');
    expect(result.content[2]).toMatchObject({ name: 'a_fetch (part 2 of 4)' });
    expect(result.content[2].uri).toMatch(/^agctl:/);
    expect((await whole(own.caller, result)).join('')).toBe(lines(60));
    const { result: other } = await read(own.caller, 'b+file:///b');
    expect(other.contents[0].text).toBe('b file:///b');
  });

  test('a call through call_tool of tool search is cut as a direct one', async () => {
    await using own = await opened(connect, [limitedTo(LIMIT)], { backend: { toolSearch: {} } });
    const inner = { name: 'give', arguments: { result: texts(lines(60)) } };
    const { result } = await own.caller.call('call_tool', inner);
    expect(result.content[2]).toMatchObject({ name: 'give (part 2 of 4)' });
    expect((await whole(own.caller, result)).join('')).toBe(lines(60));
  });

  test('a bundle does not hide the rest of a call that it has', async () => {
    const bundles = [{ name: 'some', targets: ['a'], tools: ['a_give'] }];
    const targets = [limitedTo(LIMIT), chaos('b', '--resources=file:///b')];
    await using own = await opened(connect, targets, { backend: { bundles } });
    const caller = await connect(`${own.url}/some`);
    const { result } = await give(caller, texts(lines(60)), 'a_give');
    expect((await whole(caller, result)).join('')).toBe(lines(60));
    expect((await read(caller, 'b+file:///b')).error.message).toBe('Unknown resource: b+file:///b');
  });

  test('guardrails check the whole result, so that what is kept is checked', async () => {
    const rules = [{ builtin: 'email' }];
    const policies = {
      mcpGuardrails: { processors: [{ kind: 'regex', rules, methods: { 'tools/call': 'response' } }] },
    };
    await using own = await opened(connect, [limitedTo(LIMIT)], { route: { policies } });
    // On the place of the cut, and after it.
    const all = `${'x '.repeat(BYTES / 2 - 5)}ann@example.com ${lines(40)} bob@example.com`;
    const { result } = await give(own.caller, texts(all));
    const left = (await whole(own.caller, result)).join('');
    expect(left).not.toContain('example.com');
    expect(left.match(/<EMAIL_ADDRESS>/g)).toHaveLength(2);
  });

  test.each([
    ['that allow tools only', ['mcp.tool.name == "give"']],
    ['that deny all resources', [{ deny: 'has(mcp.resource)' }, 'true']],
  ])('rules %s do not hide the rest of a call that they allowed', async (_what, rules) => {
    const policies = { mcpAuthorization: { rules } };
    const target = limitedTo(LIMIT, chaos('a', '--resources=file:///a'));
    await using own = await opened(connect, [target], { route: { policies } });
    const { result } = await give(own.caller, texts(lines(60)));
    expect((await whole(own.caller, result)).join('')).toBe(lines(60));
    expect((await read(own.caller, 'file:///a')).error.message).toBe('Unknown resource: file:///a');
  });

  test('another caller cannot read what is kept', async () => {
    const policies = { apiKey: { mode: 'strict', keys: [{ key: 'key-of-ann' }, { key: 'key-of-bob' }] } };
    const gate = await gateway(mcpConfig([limitedTo(LIMIT)], { route: { policies } }));
    await using _ = { [Symbol.asyncDispose]: () => gate.close() };
    const [ann, bob] = [
      await connect(`${gate.url}/mcp`, 'key-of-ann'),
      await connect(`${gate.url}/mcp`, 'key-of-bob'),
    ];
    const { result } = await give(ann, texts(lines(60)));
    const { uri } = result.content[2];
    const { error } = await read(bob, uri);
    expect(error).toEqual({
      code: -32602,
      message: `Unknown resource: ${uri}: the gateway no longer keeps this result; call the tool again`,
    });
    // With other characters at its end, the id is that of no result.
    expect((await read(ann, uri.replace(/..(?=\/\d+$)/, '__'))).error).toBeDefined();
    expect((await read(ann, uri)).result.contents[0].text).toContain('Part 2 of 4');
  });

  test('a part that does not exist is an unknown resource', async () => {
    const { result } = await give(own.caller, texts(lines(60)));
    const { uri } = result.content[2];
    for (const wrong of ['0', '1', '5', '99999999', '999999999', '02', '2/', '2%0A', '']) {
      const other = uri.replace(/\d+$/, wrong);
      expect((await read(own.caller, other)).error).toEqual({
        code: -32602,
        message: `Unknown resource: ${other}: the result has parts 2 to 4`,
      });
    }
    const { error } = await own.caller.ask('resources/subscribe', { uri });
    if (revision !== MODERN)
      expect(error.message).toBe(`Unknown resource: ${uri}: parts of results are only read`);
    expect((await read(own.caller, uri)).result).toBeDefined();
  });

  test.each([
    ['a server', [limitedTo(LIMIT)]],
    ['two servers', [limitedTo(LIMIT), chaos('b')]],
  ])('resources are announced, also for %s without any, which are listed as none', async (_what, targets) => {
    await using own = await opened(connect, targets);
    for (const method of ['resources/list', 'resources/templates/list']) {
      const { result, error } = await own.caller.ask(method);
      expect(error).toBeUndefined();
      expect(result).toMatchObject({ [method === 'resources/list' ? 'resources' : 'resourceTemplates']: [] });
    }
    const capabilities =
      revision === MODERN
        ? (await own.caller.ask('server/discover')).result.capabilities
        : (await openSession(own.url)).initialize.result.capabilities;
    expect(capabilities).toMatchObject({ resources: {}, tools: { listChanged: true } });
  });

  test('without the setting, neither resources nor the tool that reads on are announced', async () => {
    await using own = await opened(connect, [chaos('a')]);
    expect(JSON.stringify((await own.caller.ask('tools/list')).result)).not.toContain('gateway_read_result');
    const capabilities =
      revision === MODERN
        ? (await own.caller.ask('server/discover')).result.capabilities
        : (await openSession(own.url)).initialize.result.capabilities;
    expect(capabilities).not.toHaveProperty('resources');
  });

  test('log line and trace say how much was cut', async () => {
    await using own = await opened(connect);
    const before = revision === MODERN ? 0 : 2;
    const events = await recorded(own.gate, () => give(own.caller, texts('x'.repeat(10 * BYTES))));
    await give(own.caller, texts('x'));
    const [cut, whole] = [await own.gate.accessLine(before + 1), await own.gate.accessLine(before + 2)];
    expect(cut['gw.mcp.result.cut_tokens']).toBe('900');
    expect(whole).not.toHaveProperty('gw.mcp.result.cut_tokens');
    expect(events.find(({ message }) => message.type === 'policyEvent')).toMatchObject({
      scope: ['mcp'],
      message: { kind: 'mcp_result_cut', details: { tokens: 1000, shown: 100, parts: 10 } },
    });
  });

  test('the log has no id of a kept result', async () => {
    await using own = await opened(connect);
    const { result } = await give(own.caller, texts(lines(60)));
    await read(own.caller, result.content[2].uri);
    await own.gate.accessLine(revision === MODERN ? 2 : 4);
    const log = own.gate.accessLog.join('\n');
    expect(log).toContain('agctl://results');
    expect(log).not.toContain(result.content[2].uri);
  });
});
