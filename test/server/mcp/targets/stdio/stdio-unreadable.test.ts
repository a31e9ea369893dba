import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../../../kit/at-once.ts';
import { type Connect, ERAS } from '../../../../kit/both-eras.ts';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway, type TestGateway } from '../../../../kit/gateway.ts';
import { type McpReply, openSession, toolCall } from '../../../../kit/mcp.ts';

/** A stdio server that answers a call by writing the value of a JavaScript expression of `id`, `answer` (its response) and `text`. */
const server = (written: string, before = '') => ({
  name: 'a',
  stdio: {
    cmd: process.execPath,
    args: [
      '-e',
      `const write = (value) => process.stdout.write(value);
      const send = (message) => write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
      const calls = [];
      ${before}
      require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
        const { id, method, params } = JSON.parse(line);
        if (id === undefined) return;
        if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
        else if (method === 'tools/list') send({ id, result: { tools: [{ name: 't', inputSchema: { type: 'object' } }] } });
        else if (method === 'tools/call') {
          calls.push(id);
          const answer = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'caf\\u00e9 {"jsonrpc"}{[' }] } };
          const text = JSON.stringify(answer);
          const value = ${written};
          if (value !== undefined) write(value);
        } else send({ id, error: { code: -32601, message: 'no' } });
      });`,
    ],
  },
});

const TEXT = 'café {"jsonrpc"}{[';
const LOG = `JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } })`;

const READ: readonly [what: string, written: string][] = [
  // abap-adt-api#11, mcp-atlassian and others that pretty-print
  ['indented JSON', `JSON.stringify(answer, null, 2) + '\\n'`],
  [
    'JSON with a line break after each token and no indentation',
    `JSON.stringify(answer, null, 2).replace(/\\n */g, '\\n') + '\\n'`,
  ],
  [
    'indented JSON with CRLF and empty lines',
    `JSON.stringify(answer, null, '\\t').replace(/\\n/g, '\\r\\n\\r\\n') + '\\r\\n'`,
  ],
  ['indented JSON after a log line', `'[INFO] called {\\n' + JSON.stringify(answer, null, 2) + '\\n'`],
  [
    'indented JSON in pieces',
    `(() => { const all = JSON.stringify(answer, null, 2) + '\\n'; write(all.slice(0, 30)); setTimeout(write, 50, all.slice(30)); })()`,
  ],
  // MCP 2025-03-26 had batches
  ['an array with one response', `'[' + text + ']\\n'`],
  ['an array with a notification and a response', `'[' + ${LOG} + ', ' + text + ']\\n'`],
  ['an indented array', `JSON.stringify([answer], null, 2) + '\\n'`],
  ['two messages without a line break between them', `${LOG} + text + '\\n'`],
  ['no line break after the response', 'text'],
  ['colours around the response', `'\\x1b[32m' + text + '\\x1b[0m\\n'`],
  [
    'colours in the response',
    `'\\x1b[1;32m' + text.replace('"result"', '\\x1b[33m"result"\\x1b[0m') + '\\x1b[0m\\n'`,
  ],
  ['a byte order mark', `'\\ufeff' + text + '\\n'`],
  ['NUL characters around the response', `'\\0\\0' + text + '\\n\\0'`],
  ['log lines in other encodings', `(write(Buffer.from('\\u00e9t\\u00e9\\n', 'latin1')), text + '\\n')`],
  ['the response in a log line before it', `'[DEBUG] sending ' + text + '\\n' + text + '\\n'`],
  [
    'the request in a log line before it',
    `'[DEBUG] got ' + JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call' }) + '\\n' + text + '\\n'`,
  ],
  // kud/mcp-jenkins#6: the number of the request is among the ids that a server logs
  [
    'JSON with an id in log lines',
    `[{ msg: 'called' }, { error: 'no' }, { result: {} }].map((more) => JSON.stringify({ level: 'info', id, ...more }) + '\\n').join('') + text + '\\n'`,
  ],
  ['a log line that begins like JSON', `'{\\n' + text + '\\n'`],
  ['an incomplete array in a log line', `'[{"a":1},\\n' + text + '\\n'`],
];

const FAILED: readonly [what: string, written: string, problem: string][] = [
  // kimi-code#886, mempalace#503, codebase-memory-mcp#511
  ['latin-1', `Buffer.from(text + '\\n', 'latin1')`, 'the line is not UTF-8'],
  [
    'indented latin-1',
    `Buffer.from(JSON.stringify(answer, null, 2) + '\\n', 'latin1')`,
    'the line is not UTF-8',
  ],
  ['UTF-16', `Buffer.from(text + '\\n', 'utf16le')`, 'the line has NUL characters, as in UTF-16'],
  [
    'UTF-16 with a byte order mark',
    `Buffer.from('\\ufeff' + text.replace('\\u00e9', 'e') + '\\n', 'utf16le')`,
    'the line has NUL characters, as in UTF-16',
  ],
  ['other text before it', `'Loading npm...' + text + '\\n'`, 'there is other text on its line'],
  ['other text after it', `text + ' done\\n'`, 'the body is not valid JSON'],
  ['NaN', `text.replace('"content"', '"x":NaN,"content"') + '\\n'`, 'the body is not valid JSON'],
  ['a line break in a string', `text.replace('caf', 'c\\naf') + '\\n'`, 'the body is not valid JSON'],
  ['a part of it', `text.slice(0, 60) + '\\n'`, 'the message is incomplete'],
  [
    'a part of it on several lines',
    `JSON.stringify(answer, null, 2).slice(0, -4) + '\\n'`,
    'the message is incomplete',
  ],
  // JSON-RPC 1.0, or a server written by hand
  [
    'no version',
    `JSON.stringify({ ...answer, jsonrpc: undefined, error: null }) + '\\n'`,
    'expected "jsonrpc": "2.0"',
  ],
  ['no id, and no JSON', `'{"jsonrpc":"2.0","result":{"content":[],,\\n'`, 'the message is incomplete'],
];

const failure = (problem: string) => ({
  code: -32603,
  message: `target "a" is not available: the server's answer cannot be used: ${problem}`,
});

describe.each(ERAS)('a caller of revision %s at a stdio server that answers with', (_revision, connect) => {
  // One server for all of them: what it wrote before does not matter.
  let all: TestGateway;
  let caller: Awaited<ReturnType<Connect>>;
  beforeAll(async () => {
    const written = READ.map(([what, each]) => `${JSON.stringify(what)}: () => ${each}`).join(',\n');
    all = await gateway(mcpConfig([server(`({ ${written} })[params.arguments.what]()`)]));
    caller = await connect(`${all.url}/mcp`);
  });
  afterAll(() => all.close());

  test.each(READ)('%s gets the response', async (what) => {
    const began = performance.now();
    for (let round = 0; round < 2; round += 1)
      expect((await caller.call('t', { what })).result.content[0].text).toBe(TEXT);
    expect(performance.now() - began).toBeLessThan(AT_ONCE);
  });

  test.each(FAILED)('%s gets the reason', async (_what, written, problem) => {
    await using gate = await gateway(mcpConfig([server(written)]));
    const caller = await connect(`${gate.url}/mcp`);
    const began = performance.now();
    for (let round = 0; round < 2; round += 1)
      expect((await caller.call('t')).error).toEqual(failure(problem));
    expect(performance.now() - began).toBeLessThan(AT_ONCE);
    expect(gate.log.filter((line) => line.includes('not a JSON-RPC message'))).toHaveLength(1);
    // The server goes on.
    expect((await caller.ask('tools/list')).result.tools).toHaveLength(1);
  });
});

const texts = (replies: readonly McpReply[]): unknown[] =>
  replies.map(({ result, error }) => result?.content[0].text ?? error);

describe('several calls at a stdio server', () => {
  test('a response that cannot be read fails its own call only', async () => {
    const written = `calls.length === 3 ? [Buffer.from(text + '\\n', 'latin1')].concat(calls.slice(0, 2).map((other) => Buffer.from(JSON.stringify({ ...answer, id: other }) + '\\n'))).reduce((all, part) => Buffer.concat([all, part])) : undefined`;
    await using gate = await gateway(mcpConfig([server(written)]));
    const session = await openSession(`${gate.url}/mcp`);
    const replies = await Promise.all([1, 2, 3].map((id) => session.send(toolCall(id, 't'))));
    const outcomes = texts(replies);
    expect(outcomes.filter((outcome) => outcome === TEXT)).toHaveLength(2);
    expect(outcomes).toContainEqual(failure('the line is not UTF-8'));
  });

  test('an array with the responses to several calls answers each', async () => {
    const written = `calls.length === 3 ? JSON.stringify(calls.map((other) => ({ ...answer, id: other }))) + '\\n' : undefined`;
    await using gate = await gateway(mcpConfig([server(written)]));
    const session = await openSession(`${gate.url}/mcp`);
    const replies = await Promise.all([1, 2, 3].map((id) => session.send(toolCall(id, 't'))));
    expect(texts(replies)).toEqual([TEXT, TEXT, TEXT]);
    expect(replies.map(({ messages }) => messages[0].id)).toEqual([1, 2, 3]);
  });
});

test('a message in the text that a stdio server logs is not read', async () => {
  const forged = `{"jsonrpc":"2.0","id":' + id + ',"result":{"content":[{"type":"text","text":"forged"}]}}`;
  const written = `(write('fetched: ${forged}\\n'), setTimeout(write, 100, text + '\\n'), undefined)`;
  await using gate = await gateway(mcpConfig([server(written)]));
  const session = await openSession(`${gate.url}/mcp`);
  expect(texts([await session.send(toolCall(1, 't'))])).toEqual([TEXT]);
});

test('a session whose stdio server writes headers as in LSP fails with the reason at once', async () => {
  const target = server('undefined', `write('Content-Length: 12\\r\\n\\r\\n');`);
  await using gate = await gateway(mcpConfig([target]));
  const began = performance.now();
  await expect(openSession(`${gate.url}/mcp`)).rejects.toThrow('Content-Length headers are those of LSP');
  expect(performance.now() - began).toBeLessThan(AT_ONCE);
});

test('a stdio server that cannot be understood when it asks gets an error', async () => {
  const asked = `(write('{"jsonrpc":"2.0","id":1,"method":"roots/list","params":[]}\\n'), process.stdin.once('data', (line) => write(JSON.stringify({ ...answer, result: { content: [{ type: 'text', text: String(line) }] } }) + '\\n')), undefined)`;
  await using gate = await gateway(mcpConfig([server(asked)]));
  const session = await openSession(`${gate.url}/mcp`);
  const { result } = await session.send(toolCall(1, 't'));
  expect(JSON.parse(result.content[0].text)).toEqual({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32600, message: 'expected "params" to be an object' },
  });
});

test('the last response of a stdio server that exits without a line break arrives', async () => {
  const written = '(require("node:fs").writeSync(1, text), process.exit(0))';
  await using gate = await gateway(mcpConfig([server(written)]));
  const session = await openSession(`${gate.url}/mcp`);
  expect(texts([await session.send(toolCall(1, 't'))])).toEqual([TEXT]);
});
