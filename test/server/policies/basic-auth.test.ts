import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

// Written by `htpasswd` and `openssl passwd`; the password of each user is `pass-` and the name.
const USERS = {
  bcrypt: '$2b$05$rx3kv.hLXI.t4LslurB.PuxMUYBS.Je9j4c5Gexz1IZNjh5SWfwAS',
  apr1: '$apr1$abcdefgh$B3yT3tgxouZ4.AiSArvHf.',
  sha: '{SHA}DAQZCQEbf+4ltq84dNFKcCdGjl4=',
  crypt5: '$5$abcdefgh$hTSuB/RKv5zNtOw/ouZwCcnRjqW2arOLv.am9IfE7y3',
  crypt6:
    '$6$abcdefgh$xkTyN/0oKdMvpuPJasBr59HRKAxVHa9BJpIg0RfFMOeTY1mc5h/9pBm4Or7M4hdnnNPAVT7STLMU3ElXwTCYe/',
};
const ALL = Object.entries(USERS)
  .map(([name, hash]) => `${name}:${hash}`)
  .join('\n');
/** `$` begins an environment variable in a configuration. */
const inline = (text: string): string => text.replaceAll('$', '$$$$');
const basic = (text: string): { authorization: string } => ({
  authorization: `Basic ${Buffer.from(text).toString('base64')}`,
});
const policy = (more: object = {}): object => ({
  basicAuth: { mode: 'strict', htpasswd: inline(ALL), ...more },
});
const status = async (gate: TestGateway, headers: Record<string, string> = {}): Promise<number> =>
  (await send(gate.url, { headers })).status;

describe('passwords of basicAuth', () => {
  test.each(Object.keys(USERS))('basicAuth checks a password with a hash of the kind %s', async (name) => {
    await using gate = await answeringGateway(policy());
    expect(await status(gate, basic(`${name}:pass-${name}`))).toBe(200);
    expect(await status(gate, basic(`${name}:pass-${name}`))).toBe(200);
    expect(await status(gate, basic(`${name}:pass-${name}x`))).toBe(401);
    expect(await status(gate, basic(`${name}:`))).toBe(401);
  });

  test('basicAuth accepts a password with a colon and letters of other alphabets', async () => {
    const htpasswd = inline('ann:$apr1$abcdefgh$K9RJ38eueoE3qcz3ofxtv1');
    await using gate = await answeringGateway(policy({ htpasswd }));
    expect(await status(gate, basic('ann:pä:ss'))).toBe(200);
    expect(await status(gate, basic('ann:pä'))).toBe(401);
  });

  test.each([
    // The first hash of the file is that an unknown user is checked with.
    ['an unknown user with the password of the first one', basic('eve:pass-bcrypt')],
    ['the password of another user', basic('sha:pass-apr1')],
    ['text without a colon', basic('sha')],
    ['text that is not base64', { authorization: 'Basic !!' }],
    [
      'bytes that are not UTF-8',
      { authorization: `Basic ${Buffer.from([0xff, 0x3a, 0xff]).toString('base64')}` },
    ],
    ['another scheme', { authorization: 'Bearer x' }],
    ['nothing', {}],
  ])('basicAuth refuses %s', async (_, headers) => {
    await using gate = await answeringGateway(policy());
    expect(await status(gate, headers as Record<string, string>)).toBe(401);
  });
});

test('basicAuth refuses the right password if it is longer than the limit', async () => {
  const long = 'x'.repeat(1024);
  const hashOf = (text: string) => `{SHA}${createHash('sha1').update(text).digest('base64')}`;
  const htpasswd = `most:${hashOf(long)}\nmore:${hashOf(`${long}x`)}`;
  await using gate = await answeringGateway(policy({ htpasswd }));
  expect(await status(gate, basic(`most:${long}`))).toBe(200);
  expect(await status(gate, basic(`more:${long}x`))).toBe(401);
});

describe('basicAuth', () => {
  test('basicAuth mode optional, the default, lets requests without credentials through', async () => {
    await using gate = await answeringGateway(policy({ mode: undefined }));
    expect(await status(gate)).toBe(200);
    expect(await status(gate, basic('sha:wrong'))).toBe(401);
    expect(gate.log.join('')).not.toContain('pass-');
  });

  test('basicAuth challenges with its realm, and refusals do not tell the user or password', async () => {
    await using gate = await answeringGateway(policy({ realm: 'the "inner" ring' }));
    const missing = await send(gate.url);
    expect(missing.text).toBe('basic authentication failure: no basic authentication credentials found');
    expect(missing.headers['www-authenticate']).toBe('Basic realm="the \\"inner\\" ring", charset="UTF-8"');
    const wrong = await send(gate.url, { headers: basic('sha:canary-1') });
    expect(wrong.text).toBe('basic authentication failure: invalid credentials');
    expect(await gate.accessLine(2)).toMatchObject({ reason: 'BasicAuth', 'http.status': '401' });
    expect([...gate.accessLog, ...gate.log].join('')).not.toContain('canary');
  });

  test('basicAuth sets basicAuth.username, and removes valid credentials from the request', async () => {
    await using upstream = await httpUpstream((_, response) => response.end('ok'));
    await using gate = await proxyGateway(upstream.address, {
      ...policy(),
      authorization: { rules: ['basicAuth.username == "sha"'] },
    });
    expect(await status(gate, basic('sha:pass-sha'))).toBe(200);
    expect(await status(gate, basic('apr1:pass-apr1'))).toBe(403);
    expect(upstream.received.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  test('an MCP session is not found by a user whose name differs in case', async () => {
    const htpasswd = `ann:${USERS.sha}\nAnn:${USERS.sha}`;
    await using target = await mcpUpstream();
    const targets = [{ name: 'remote', mcp: { host: target.url } }];
    await using gate = await gateway(mcpConfig(targets, { route: { policies: policy({ htpasswd }) } }));
    const session = await openSession(gate.url, basic('ann:pass-sha'));
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const headers = { ...basic('Ann:pass-sha'), 'mcp-session-id': session.id };
    expect((await post(gate.url, list, headers)).status).toBe(404);
    expect((await session.request('tools/list')).status).toBe(200);
  });

  test('basicAuth of a gateway protects its routes', async () => {
    const route = { policies: { directResponse: { body: 'reached' } } };
    await using gate = await gateway(
      JSON.stringify({ gateways: { default: { port: 0, ...policy(), routes: [route] } } }),
    );
    expect(await status(gate)).toBe(401);
    expect(await status(gate, basic('sha:pass-sha'))).toBe(200);
  });

  test('basicAuth reads its file again when it changes, and remembers no removed password', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'users');
    writeFileSync(file, `sha:${USERS.sha}\n# comment\n\n`);
    const route = {
      policies: { directResponse: { body: 'reached' }, ...policy({ htpasswd: { file: 'users' } }) },
    };
    await using gate = await gateway(
      JSON.stringify({ gateways: { default: { port: 0, routes: [route] } } }),
      { folder: folder.path, live: 'watched' },
    );
    expect(await status(gate, basic('sha:pass-sha'))).toBe(200);
    writeFileSync(file, `apr1:${USERS.apr1}\n`);
    await until(async () => (await status(gate, basic('apr1:pass-apr1'))) === 200);
    expect(await status(gate, basic('sha:pass-sha'))).toBe(401);
    // Nobody is locked out by a file that is gone, or is being written.
    for (const [change, problem] of [
      [() => writeFileSync(file, ''), 'there are no users'],
      [() => rmSync(file), 'ENOENT'],
    ] as const) {
      change();
      await until(() =>
        gate.log.some((line) => line.includes('users could not be read') && line.includes(problem)),
      );
      expect(await status(gate, basic('apr1:pass-apr1'))).toBe(200);
    }
  });

  test('basicAuth answers 503 while too many passwords are checked', async () => {
    // Cost 13: bcryptjs lets other requests run every 100 ms, and a check takes longer on any machine.
    const htpasswd = inline('slow:$2b$13$OID9beN6rcRT0KFFzDqRZez.aMCum6JVf4nZYFGuBTLOC7mzBOiXm');
    await using gate = await answeringGateway(policy({ htpasswd }), {}, { limits: { passwordChecks: 1 } });
    const both = await Promise.all([1, 2].map((n) => status(gate, basic(`slow:wrong-${n}`))));
    expect(both.sort()).toEqual([401, 503]);
    expect(await status(gate, basic('slow:pass-slow'))).toBe(200);
  });
});

describe('basicAuth configuration', () => {
  test.each([
    ['a line without a hash', 'ann', /line 1 is not a user/],
    ['a plain password', 'a:\nb:secret', /line 1 is not a user/],
    ['an excessive number of rounds', `a:$$5$$rounds=999999$$abc$$${'a'.repeat(43)}`, /line 1 is not a user/],
    ['no users', '# nobody', /there are no users/],
    ['a file that is not there', { file: '/nowhere/users' }, /file not found: \/nowhere\/users/],
  ])('basicAuth with %s is refused', async (_, htpasswd, expected) => {
    await expect(answeringGateway(policy({ htpasswd }))).rejects.toThrow(expected);
  });
});
