import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, openSession, post } from '../../../../kit/mcp.ts';
import { until } from '../../../../kit/until.ts';

/** None of them may be seen anywhere: not by a client, not in a log, not in a trace. */
const SECRETS = /LEAK|hunter2|first-half|Pa55/;

/** What a server prints before it ends, and how it is started. */
const WORDS = [
  'db password=hunter2',
  '{"api_key":"hunter2"} Authorization: Bearer hunter2hunter2',
  'usage: server --token hunter2 postgres://user:hunter2@db/x',
].join('\n');
const DYING = `console.error(process.env.WORDS ?? ''); process.exit(3)`;
const ARGS = ['--token', 'sk-LEAK123', '--api-key=sk-LEAK456', 'https://me:Pa55@host/x'];

const dying = (env: Record<string, string> = {}): object => ({
  name: 'everything',
  stdio: { cmd: process.execPath, args: ['-e', DYING, '--', ...ARGS], env: { WORDS, ...env } },
});

describe('secrets of a stdio target that exits', () => {
  test('secrets of a stdio target that exits while a session begins are neither sent nor logged', async () => {
    await using gate = await gateway(mcpConfig([dying()]), { admin: true });
    const answer = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(answer.error).toEqual({
      code: -32603,
      message: 'failed to create session: target "everything" exited with code 3',
    });
    const line = await gate.accessLine(1);
    expect(line['error']).toBe('mcp: failed to create session: target "everything" exited with code 3');
    expect(line['error.detail']).toContain(
      '--token <redacted> --api-key=<redacted> https://<redacted>@host/x',
    );
    expect(line['error.detail']).toContain('last on stderr: db password=<redacted> | {"api_key":<redacted>}');
    expect(gate.log.join('')).toContain('db password=<redacted>');
    const overview = await (await fetch(`${gate.admin}/api/overview`)).text();
    for (const text of [answer.text, gate.accessLog.join(''), gate.log.join(''), overview])
      expect(text).not.toMatch(SECRETS);
  });

  test('secrets of a stdio target that exits during a call or fails to restart are neither sent nor logged', async () => {
    const { cmd, args } = chaos('a').stdio;
    const script = 'exec "$0" "$1" "$2"';
    const target = { name: 'a', stdio: { cmd: 'sh', args: ['-c', script, cmd, ...args, ...ARGS] } };
    // Longer than the test: a target that is tried again in between is available.
    const limits = { retryDelayMin: 60_000, retryDelayMax: 60_000 };
    await using gate = await gateway(mcpConfig([target, chaos('b')]), { limits });
    const session = await openSession(`${gate.url}/mcp`);
    const died = await session.request('tools/call', { name: 'a_die', arguments: { words: WORDS } });
    const again = await session.request('tools/call', { name: 'a_echo' });
    const list = await session.request('tools/list');
    expect(died.error).toEqual({ code: -32603, message: 'target "a" exited with code 3' });
    const next = '; the next attempt is made with a request after [56]\\d(?:\\.\\d)? s$';
    expect(again.error.message).toMatch(new RegExp(`^target "a" exited with code 3${next}`));
    expect(list.result._meta['agctl/unavailableTargets']).toEqual([
      { name: 'a', error: expect.stringMatching(new RegExp(`^exited with code 3${next}`)) },
    ]);
    await until(() => gate.accessLog.length === 5);
    const line = await gate.accessLine(3);
    expect(line['mcp.error.message']).toBe('target "a" exited with code 3');
    expect((await gate.accessLine(4))['mcp.error.message']).toBe(again.error.message);
    expect(line['error.detail']).toContain('last on stderr: db password=<redacted>');
    for (const text of [died.text, again.text, list.text, gate.accessLog.join(''), gate.log.join('')])
      expect(text).not.toMatch(SECRETS);
  });

  test('secrets from variables are redacted by value, also when split in two and longer than the kept text', async () => {
    const script = `
      const { KEY_OF_MINE: own, SERVICE_AUTH: inherited } = process.env;
      const { writeSync } = require('node:fs');
      writeSync(2, own + ' ' + inherited + ' ' + 'x'.repeat(480) + '\\n');
      writeSync(2, 'x'.repeat(65_530) + own + '\\n');
      const half = Buffer.from(own + ' and the end\\n');
      writeSync(2, half.subarray(0, 9));
      setTimeout(() => { writeSync(2, half.subarray(9)); process.exit(3); }, 50);`;
    const stdio = {
      cmd: process.execPath,
      args: ['-e', script],
      env: { KEY_OF_MINE: 'first-häälf-LEAK' },
      inheritEnv: true,
    };
    await using gate = await gateway(mcpConfig([{ name: 'x', stdio }]), {
      env: { SERVICE_AUTH: 'LEAK-auth' },
    });
    const { text } = await post(`${gate.url}/mcp`, INITIALIZE);
    const line = await gate.accessLine(1);
    expect(line['error.detail']).toContain('| (a line over 65536 bytes) | <redacted> and the end');
    for (const each of [text, gate.accessLog.join(''), gate.log.join('')])
      expect(each).not.toMatch(/LEAK|first-h|lf-/);
  });

  test('secrets in invalid lines on stdout are not logged', async () => {
    const script = `console.log('x'.repeat(60) + ' sk-LEAK123 and password=hunter2'); process.exit(3)`;
    const stdio = { cmd: process.execPath, args: ['-e', script, '--', ...ARGS] };
    await using gate = await gateway(mcpConfig([{ name: 'x', stdio }]));
    await post(`${gate.url}/mcp`, INITIALIZE);
    // The exit of the process may be seen before its last line is read.
    await until(() => gate.log.some((each) => each.includes('not a JSON-RPC message')));
    const line = gate.log.find((each) => each.includes('not a JSON-RPC message'));
    expect(line).toContain('xxx <redacted> and password=<redacted>');
    expect(gate.log.join('')).not.toMatch(SECRETS);
  });
});
