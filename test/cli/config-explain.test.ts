import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { troublesIn } from '../../src/cli/troubleshooting.ts';
import { DIAGNOSTIC_CODES } from '../../src/core/diagnostic.ts';
import { ERRORS } from '../../src/core/errors.ts';
import { cli } from '../kit/cli.ts';

const explain = (...args: readonly string[]) => cli(['config', 'explain', ...args]);

describe('codes', () => {
  test.each(Object.entries(DIAGNOSTIC_CODES))('explain %s prints its description', async (code, text) => {
    expect(await explain(code)).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(text) });
  });

  test('explain takes a code in lower case, and the codes of request errors', async () => {
    expect((await explain('agw0101')).stdout).toContain(DIAGNOSTIC_CODES.AGW0101);
    const { stdout } = await explain('token_missing');
    expect(stdout).toContain('status 401');
    expect(stdout).toContain(ERRORS.token_missing.text);
  });

  test('explain takes the text of a request error, and a status', async () => {
    for (const kind of ['webhook', 'regex'])
      expect((await explain(`request rejected by ${kind} guardrail`)).stdout).toMatch(/^guardrail_rejected /);
    expect((await explain('Route not found')).stdout).toMatch(
      /^\w+ {2}a request gets status 404.*reason=NotFound/,
    );
    const { stdout } = await explain('413');
    expect(stdout).toMatch(/^body_too_large {2}/m);
    expect(stdout).not.toContain('status 404');
  });
});

describe('messages', () => {
  test.each([
    ['api key authentication failure: invalid credentials', /^api_key_failed .*\n[\s\S]*Fix: /],
    ['the provider ended the stream early', /^upstream_invalid [\s\S]*Cause: the connection was cut/],
    ["upstream call failed: the provider did not accept the gateway's credentials", /^upstream_invalid /],
    ['upstream call failed: connect ECONNREFUSED', /^upstream_unreachable [\s\S]*^upstream_invalid /m],
    ['virtual key ann (1USD/day) is used up; it does not reset', /^budget_exceeded /],
    ['unknown endpoint POST /v1/foo: send a POST with a `model`, such as /v1/x', /^llm_unknown_call /],
    ['Unknown tool: nosuch', /^`Unknown tool`\n\nCause: .*left out/],
    ['provider_auth_failed', /^upstream_invalid /],
    ['insufficient_quota', /^budget_exceeded /],
  ])('explain %j says what is behind it', async (message, expected) => {
    const { code, stdout } = await explain(message);
    expect([code, stdout]).toEqual([0, expect.stringMatching(expected)]);
  });

  test('the program can say every message of docs/troubleshooting.md', () => {
    const root = new URL('../../', import.meta.url);
    const files = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' });
    const source = files
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(new URL(`src/${file}`, root), 'utf8'))
      .join('\n')
      .replaceAll("\\'", "'");
    const messages = troublesIn(readFileSync(new URL('docs/troubleshooting.md', root), 'utf8'));
    expect(messages.length).toBeGreaterThan(30);
    const pieces = messages.flatMap(({ message }) => message.split('…').map((piece) => piece.trim()));
    expect(pieces.filter((piece) => !source.includes(piece))).toEqual([]);
  });
});

describe('keys', () => {
  test.each([
    ['mcp.targets[0].stdio.cmd', /^mcp\.targets\.stdio\.cmd\n\nstring, required\nCommand that starts/],
    ['/mcp/targets/0/stdio/cmd', /Command that starts/],
    ['llm.models[].params.apiKey', /secret: masked/],
    ['gateways.mine.port', /Port/],
    ['mcp', /Keys:\n[\s\S]* {2}targets +MCP servers that this endpoint offers together\. \(required\)/],
    ['mcp.failureMode', /`failOpen` or `failClosed`, default `failOpen`/],
  ])('explain %s describes the key', async (path, expected) => {
    expect(await explain(path)).toMatchObject({ code: 0, stdout: expect.stringMatching(expected) });
  });

  test('keys of alternatives are not required, unless all of them need the key', async () => {
    const { stdout } = await explain('backends.ai');
    expect(stdout).toMatch(/^ {2}provider /m);
    expect(stdout).toMatch(/^ {2}groups /m);
    expect(stdout).not.toContain('(required)');
    const backends = (await explain('backends')).stdout;
    expect(backends).toMatch(/^ {2}name .*\(required\)$/m);
    expect(backends).toMatch(/^ {2}mcp .*\.$/m);
    expect((await explain('backends.mcp')).stdout).not.toMatch(/^.*required$/m);
  });

  test('a key without its path is found, with the places where it can be written', async () => {
    const { code, stdout } = await explain('localRateLimit');
    expect([code, stdout]).toEqual([0, expect.stringContaining('localRateLimit is a key at several places')]);
    expect(stdout).toContain('maxTokens                Size of the bucket: the largest burst. (required)\n');
  });

  test('a key is found by the end of its path, such as a path inside a target', async () => {
    const { code, stdout } = await explain('stdio.warm');
    expect(code).toBe(0);
    expect(stdout).toContain('stdio.warm is a key at several places:\n\n  mcp.targets.stdio.warm\n');
    expect(stdout).toContain('\nmcp.targets.stdio.warm\n\ninteger');
  });
});

test.each([
  ['AGW9999', 'unknown code AGW9999\n  = help: codes: AGW0001, '],
  ['agw302', 'unknown code agw302\n  = help: did you mean AGW0302?'],
  ['mcp.target', 'did you mean mcp.targets?'],
  ['mcp.targtes', 'no key `mcp.targtes` in a configuration\n  = help: did you mean mcp.targets?'],
  ['mcp.localRateLimit', 'did you mean'],
])('explain %s is a usage error', async (word, message) => {
  expect(await explain(word)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining(message),
  });
});

test('explain names the file of the manual page of expressions, which is there', async () => {
  const { stdout } = await explain('expressions');
  const [, path = ''] = /^man (\S+)\n$/.exec(stdout) ?? [];
  expect(readFileSync(path, 'utf8')).toContain('.SH FUNCTIONS');
});
