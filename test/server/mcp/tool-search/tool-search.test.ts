import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Connect, ERAS } from '../../../kit/both-eras.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { gateway, type TestGateway } from '../../../kit/gateway.ts';
import { type Json, type McpReply, post } from '../../../kit/mcp.ts';
import { until } from '../../../kit/until.ts';

const TARGETS = [chaos('a', '--tools=echo,received,read_file'), chaos('b', '--tools=echo,send_mail,notify')];

type Caller = Awaited<ReturnType<Connect>>;

/** Names of the tools that a search finds. */
async function found(caller: Caller, query: unknown, more: object = {}): Promise<string[]> {
  const { result } = await caller.call('search_tools', { query, ...more });
  expect(result.isError).toBeUndefined();
  return JSON.parse(result.content[0].text).map(({ name }: Json) => name);
}

const names = async (caller: Caller): Promise<string[]> =>
  (await caller.ask('tools/list')).result.tools.map(({ name }: Json) => name);

/** What a call answers, without what differs from call to call. */
const outcome = ({ status, result, error }: McpReply): object => ({ status, result, error });

describe.each(ERAS)('tool search for a caller of revision %s', (_revision, connect) => {
  let gate: TestGateway;
  let caller: Caller;
  const open = async (more: object = {}, targets: object[] = TARGETS, parts: object = {}) => {
    const own = await gateway(mcpConfig(targets, { ...parts, backend: { toolSearch: more } }));
    return { gate: own, caller: await connect(`${own.url}/mcp`), [Symbol.asyncDispose]: () => own.close() };
  };
  beforeAll(async () => {
    ({ gate, caller } = await open());
  });
  afterAll(() => gate.close());

  test('the list has the two tools of the gateway', async () => {
    const { result } = await caller.ask('tools/list');
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['search_tools', 'call_tool']);
    for (const { inputSchema, description } of result.tools) {
      expect(inputSchema.type).toBe('object');
      expect(description).not.toBe('');
    }
  });

  test('a search finds tools with their input schemas, best first', async () => {
    const { result } = await caller.call('search_tools', { query: 'read a file' });
    const [best] = JSON.parse(result.content[0].text);
    expect(best).toMatchObject({ name: 'a_read_file', inputSchema: { type: 'object' } });
    expect(await found(caller, 'email mail')).toEqual(['b_send_mail']);
    expect(await found(caller, 'echo', { limit: 1 })).toHaveLength(1);
  });

  test('tools whose names have the words come before tools with rarer synonyms in their names', async () => {
    const many = Array.from({ length: 12 }, (_, at) => `read_part_${at}`).join(',');
    await using own = await open({}, [chaos('a', `--tools=open_nodes,${many},remove,delete_file`)]);
    const first = async (query: string) => (await found(own.caller, query, { limit: 20 }))[0];
    expect(await first('read')).toMatch(/^read_part_/);
    expect(await found(own.caller, 'read', { limit: 20 })).toContain('open_nodes');
    expect(await first('open')).toBe('open_nodes');
    expect(await first('delete')).toBe('delete_file');
    expect(await first('read_part_7')).toBe('read_part_7');
  });

  test('a search without a match says so', async () => {
    const { result } = await caller.call('search_tools', { query: 'zebra' });
    expect(result.content[0].text).toBe('No tool matches these words. Try others.');
  });

  test.each([
    [{}, '`query`'],
    [{ query: '  ' }, '`query`'],
    [{ query: 7 }, '`query`'],
    [{ query: 'echo', limit: 0 }, '`limit`'],
    [{ query: 'echo', limit: 'many' }, '`limit`'],
  ])('a search with %j tells the model what is wrong', async (args, part) => {
    const { result } = await caller.call('search_tools', args);
    expect(result.isError).toBe(true);
    expect(result.content[0].text).toContain(`expected ${part}`);
  });

  test.each([[{}], [{ name: 7 }], [{ name: '' }], [{ name: 'a_echo', m: 1 }], [{ arguments: {} }]])(
    'call_tool with %j tells the model what is wrong',
    async (args) => {
      const { result } = await caller.call('call_tool', args);
      expect(result.isError).toBe(true);
      expect(result.content[0].text).toContain('expected {"name": "…", "arguments": {…}}');
    },
  );

  test('call_tool sends the server what a direct call sends', async () => {
    const received = async (): Promise<string[]> =>
      JSON.parse((await caller.call('a_received')).result.content[0].text);
    const params = (members: string) => {
      const { message, headers } = caller.request('tools/call', {
        name: 'a_echo',
        arguments: {},
        _meta: { progressToken: 'p' },
      });
      const { params: own } = message as Json;
      const meta = JSON.stringify(own._meta);
      return post(
        `${gate.url}/mcp`,
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${members},"_meta":${meta}}}`,
        { ...headers, ...(headers['mcp-name'] && { 'mcp-name': JSON.parse(`{${members}}`).name }) },
      );
    };
    const args = '"arguments":{"big":12345678901234567890,"text":"\\u00e9"}';
    const direct = await params(`"name":"a_echo",${args}`);
    const wrapped = await params(`"name":"call_tool","arguments":{"name":"a_echo",${args}}`);
    expect(outcome(wrapped)).toEqual(outcome(direct));
    const [one, two] = (await received()).slice(-3, -1);
    expect(one).toContain(args);
    const same = (line: string | undefined) => line?.replace(/"(?:id|progressToken)":"?\w+"?/g, '');
    expect(same(two)).toBe(same(one));
  });

  test('call_tool accepts arguments that a model wrote as a string with JSON, null, and none', async () => {
    const direct = outcome(await caller.call('a_echo', { m: 1 }));
    const wrapped = (args: object) => caller.call('call_tool', { name: 'a_echo', ...args });
    expect(outcome(await wrapped({ arguments: '{"m":1}' }))).toEqual(direct);
    const empty = outcome(await caller.call('a_echo'));
    expect(outcome(await wrapped({ arguments: null }))).toEqual(empty);
    expect(outcome(await wrapped({}))).toEqual(empty);
  });

  test('call_tool does not call itself or search', async () => {
    for (const name of ['call_tool', 'search_tools']) {
      const { error } = await caller.call('call_tool', {
        name,
        arguments: { name: 'a_echo', query: 'echo' },
      });
      expect(error.message).toBe(`Unknown tool: ${name}. Use search_tools to find tools.`);
    }
  });

  test('an unknown tool is answered with a hint at searches through call_tool only', async () => {
    const { error } = await caller.call('call_tool', { name: 'c_echo' });
    expect(error).toEqual({ code: -32602, message: 'Unknown tool: c_echo. Use search_tools to find tools.' });
    const { error: direct } = await caller.call('c_echo');
    expect(direct).toEqual({ code: -32602, message: 'Unknown tool: c_echo' });
  });

  test('a search shows annotations of tools, and schemas without the version of JSON Schema', async () => {
    await using folder = await temporaryFolder();
    const definitions = join(folder.path, 'tools.json');
    const annotations = { readOnlyHint: true, title: 'Reading' };
    const schema = { type: 'object', properties: { $schema: { type: 'string' } }, required: ['$schema'] };
    const read = {
      annotations,
      inputSchema: { $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema },
    };
    writeFileSync(definitions, JSON.stringify({ read }));
    await using own = await open({}, [chaos('a', '--tools=read', `--definitions=${definitions}`)]);
    const { result } = await own.caller.call('search_tools', { query: 'read' });
    expect(JSON.parse(result.content[0].text)).toEqual([{ name: 'read', annotations, inputSchema: schema }]);
  });

  test('pinned tools stay in the list', async () => {
    await using own = await open({ pinned: ['a_echo', 'b_s*'] });
    expect(await names(own.caller)).toEqual(['search_tools', 'call_tool', 'a_echo', 'b_send_mail']);
  });

  test('the tools of a single server keep their names', async () => {
    await using own = await open({}, [chaos('a', '--tools=echo,call_tool,search_tools')]);
    expect(await names(own.caller)).toEqual(['search_tools', 'call_tool']);
    expect(await found(own.caller, 'echo')).toEqual(['echo']);
    const { result } = await own.caller.call('call_tool', { name: 'call_tool', arguments: { own: 1 } });
    expect(result.isError).toBeUndefined();
  });

  test('names without prefix that several servers offer are not found', async () => {
    const backend = { toolSearch: {}, prefixMode: 'never' };
    await using own = await gateway(mcpConfig(TARGETS, { backend }));
    const other = await connect(`${own.url}/mcp`);
    const { result } = await other.call('search_tools', { query: 'echo' });
    expect(result.content[0].text).toContain('No tool matches');
    expect(await found(other, 'read file')).toEqual(['read_file']);
  });

  // NousResearch/hermes-agent#92693: names without prefix do not have the server's, for which models search too.
  test('tools are found by the name of their server, also if their names do not have it', async () => {
    const backend = { toolSearch: {}, prefixMode: 'never' };
    const targets = [chaos('linear', '--tools=create_issue'), chaos('files', '--tools=read')];
    await using own = await gateway(mcpConfig(targets, { backend }));
    expect(await found(await connect(`${own.url}/mcp`), 'linear')).toEqual(['create_issue']);
  });

  // PrefectHQ/fastmcp#5152: the words were the same, so the schema of an earlier version was shown.
  test('a search shows the schema that a tool has now, also if its words have not changed', async () => {
    await using folder = await temporaryFolder();
    const definitions = join(folder.path, 'tools.json');
    const define = (type: string): void =>
      writeFileSync(
        definitions,
        JSON.stringify({ read: { inputSchema: { type: 'object', properties: { path: { type } } } } }),
      );
    define('string');
    await using own = await open({}, [chaos('a', '--tools=read,notify', `--definitions=${definitions}`)]);
    const typeNow = async (): Promise<string> => {
      const { result } = await own.caller.call('search_tools', { query: 'read' });
      return JSON.parse(result.content[0].text)[0].inputSchema.properties.path.type;
    };
    expect(await typeNow()).toBe('string');
    define('number');
    await own.caller.call('notify', { method: 'notifications/tools/list_changed' });
    await until(async () => (await typeNow()) === 'number');
  });

  // stacklok/mecatl#1709: a tool that calls others was marked as one that only reads, so clients did not ask before calls.
  test('call_tool does not claim to be harmless', async () => {
    const { result } = await caller.ask('tools/list');
    expect(result.tools.map(({ annotations }: Json) => annotations?.readOnlyHint)).toEqual([true, undefined]);
  });

  test('a search says which servers did not answer', async () => {
    const gone = { name: 'gone', mcp: { host: 'http://127.0.0.1:1/mcp' } };
    await using own = await open({}, [...TARGETS, gone]);
    const { result } = await own.caller.call('search_tools', { query: 'echo' });
    expect(result.content[1].text).toContain('"gone"');
  });

  test('a tool that a server adds is found once the server reports the change', async () => {
    await using folder = await temporaryFolder();
    const definitions = join(folder.path, 'tools.json');
    writeFileSync(definitions, JSON.stringify({ read: { description: 'Reads a file.' } }));
    const target = chaos('a', '--tools=read,notify', `--definitions=${definitions}`);
    await using own = await open({}, [target]);
    expect(await found(own.caller, 'reads file')).toEqual(['read']);
    writeFileSync(definitions, JSON.stringify({ read: { description: 'Paints a zebra.' } }));
    await own.caller.call('call_tool', {
      name: 'notify',
      arguments: { method: 'notifications/tools/list_changed' },
    });
    await until(async () => (await found(own.caller, 'zebra')).length === 1);
  });
});
