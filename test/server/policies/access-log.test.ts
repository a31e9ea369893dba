import { describe, expect, test } from 'vitest';
import type { TestGateway } from '../../kit/gateway.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const logging = (accessLog: object, format = 'text'): Promise<TestGateway> =>
  answeringGateway(
    { apiKey: { keys: [{ key: 'k', metadata: { team: 'a', nested: { n: 1 } } }], mode: 'permissive' } },
    { config: { logging: { format } }, frontendPolicies: { accessLog } },
  );

/** The first line after one request. */
async function lineOf(accessLog: object, options = {}, format?: string): Promise<string> {
  await using gate = await logging(accessLog, format);
  await send(`${gate.url}/p?q=1`, { headers: { authorization: 'Bearer k' }, ...options });
  await until(() => gate.accessLog.length === 1);
  return gate.accessLog[0] ?? '';
}

describe('accessLog add', () => {
  test('accessLog.add appends fields in configuration order and quotes strings', async () => {
    const add = {
      'z.last': '"first"',
      team: 'apiKey.team',
      count: '1 + 1',
      share: '0.5',
      yes: 'true',
      status: 'response.code',
      agent: 'request.headers["user-agent"]',
    };
    const line = await lineOf({ add }, { headers: { authorization: 'Bearer k', 'user-agent': 'a "b"' } });
    expect(line.slice(line.indexOf(' z.last'))).toBe(
      ' z.last="first" team="a" count=2 share=0.5 yes=true status=200 agent="a \\"b\\""\n',
    );
  });

  test('accessLog.add omits a field whose expression fails or evaluates to null', async () => {
    const line = await lineOf({
      add: { fails: 'request.headers["x-not"]', absent: 'jwt.sub', nothing: 'null', there: '""' },
    });
    expect(line).toMatch(/ms there=""\n$/);
  });

  test('accessLog.add prints lists and objects as JSON and bytes as base64', async () => {
    const line = await lineOf({
      add: {
        list: '["a", 1, null]',
        object: 'apiKey.nested',
        made: '{"a": {"b": [true]}}',
        bytes: 'b"\\x00\\xff"',
      },
    });
    expect(line).toContain(' list=["a",1,null] object={"n":1} made={"a":{"b":[true]}} bytes="AP8="\n');
  });

  test('accessLog.add replaces a base field of the same name', async () => {
    const line = await lineOf({ add: { 'http.path': 'request.path', duration: '"fast"' } });
    expect(line.match(/ http\.path=/g)).toHaveLength(1);
    expect(line).toMatch(/ http\.path="\/p" duration="fast"\n$/);
  });

  test('accessLog.add omits a base field whose replacement fails', async () => {
    expect(await lineOf({ add: { 'http.path': 'jwt.path' } })).not.toContain('http.path');
  });

  test('accessLog.add escapes control characters so that a value cannot start a new line', async () => {
    const line = await lineOf(
      { add: { echo: 'url.decode(request.headers["x-in"])' } },
      { headers: { 'x-in': 'a%0Aforged%1B[2J%E2%80%A8%C2%85 http.status=999' } },
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(line.slice(0, -1)).not.toMatch(/[\n\r\u001b\u2028\u0085]/);
    expect(line).toContain(' echo="a\\nforged\\u001b[2J\\u{2028}\\u{85} http.status=999"\n');
  });

  test('accessLog.add truncates long values', async () => {
    const header = { 'x-long': 'x'.repeat(8000) };
    const line = await lineOf(
      { add: { long: 'request.headers["x-long"]', list: '[request.headers["x-long"]]' } },
      { headers: header },
    );
    expect(line.length).toBeLessThan(3000);
    expect(line).toMatch(/x…" list=\["x+…\n$/);
  });

  test('accessLog.add reads variables that were still unset when a rule read them', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(
      backend.address,
      { authorization: { rules: ['!has(jwt.sub) && backend.protocol == "http"'] } },
      { frontendPolicies: { accessLog: { add: { upstream: 'backend.name' } } } },
    );
    expect((await send(gate.url)).status).toBe(200);
    expect((await gate.accessLine(1))['upstream']).toBe(backend.address);
  });

  test('accessLog.add reads request.endTime and the response headers', async () => {
    await using gate = await logging({
      add: { took: 'request.endTime - request.startTime', type: 'response.headers["content-type"]' },
    });
    await send(gate.url);
    const line = await gate.accessLine(1);
    expect(line['type']).toBe('text/plain; charset=utf-8');
    expect(line).toHaveProperty('took');
  });

  test('accessLog.add reads request.body and response.body', async () => {
    await using backend = await httpUpstream((_, response) => response.end('{"answer":42}'));
    await using gate = await proxyGateway(
      backend.address,
      {},
      {
        frontendPolicies: {
          accessLog: {
            add: { asked: 'json(request.body).question', answered: 'json(response.body).answer' },
          },
        },
      },
    );
    await send(gate.url, { method: 'POST', body: '{"question":"why"}' });
    expect(await gate.accessLine(1)).toMatchObject({ asked: 'why', answered: '42' });
  });
});

describe('accessLog remove', () => {
  test('accessLog.remove omits base fields and ignores unknown names', async () => {
    const line = await lineOf({ remove: ['gateway', 'listener', 'http.host', 'duration', 'no.such.field'] });
    expect(line).toMatch(/\trequest route=default\/route0 src\.addr=\S+ http\.method=GET http\.path=/);
    for (const name of ['gateway=', 'listener=', 'http.host=', 'duration='])
      expect(line).not.toContain(` ${name}`);
  });
});

describe('accessLog filter', () => {
  test('accessLog.filter keeps only the lines for which it is true', async () => {
    await using gate = await logging({ filter: 'request.path != "/healthz" && response.code < 500' });
    await send(`${gate.url}/healthz`);
    await send(`${gate.url}/a`);
    await send(`${gate.url}/healthz`);
    await send(`${gate.url}/b`);
    await until(() => gate.accessLog.length === 2);
    expect(gate.accessLog.map((line) => / http\.path=(\S+)/.exec(line)?.[1])).toEqual(['/a', '/b']);
  });

  test.each(['jwt.sub == "a"', 'default("true", 1)', 'json("1")'])(
    'accessLog.filter %s drops every line',
    async (filter) => {
      await using gate = await logging({ filter });
      await using other = await logging({ filter: 'true' });
      await send(gate.url);
      await send(other.url);
      // Lines are written when a response has ended; the second gateway's line comes after the first's would.
      await until(() => other.accessLog.length === 1);
      expect(gate.accessLog).toEqual([]);
    },
  );
});

describe('accessLog in JSON', () => {
  test('JSON access log lines keep the types of the configured fields', async () => {
    const add = {
      team: 'apiKey.team',
      count: '1 + 1',
      object: 'apiKey.nested',
      fails: 'jwt.sub',
      bytes: 'b"\\xff"',
    };
    const line = await lineOf({ add, remove: ['listener'], filter: 'true' }, {}, 'json');
    expect(line.endsWith('}\n')).toBe(true);
    const fields = JSON.parse(line);
    expect(fields).toMatchObject({
      level: 'info',
      scope: 'request',
      gateway: 'default/default',
      route: 'default/route0',
      'http.status': 200,
      'http.path': '/p?q=1',
      team: 'a',
      count: 2,
      object: { n: 1 },
      bytes: '/w==',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    expect(fields).not.toHaveProperty('fails');
    expect(fields).not.toHaveProperty('listener');
  });

  test('JSON access log lines escape control characters in values', async () => {
    const line = await lineOf(
      { add: { echo: 'url.decode(request.headers["x-in"])' } },
      { headers: { 'x-in': 'a%0A%1B%E2%80%A8' } },
      'json',
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(line.slice(0, -1)).not.toMatch(/[\n\r\u001b\u2028]/);
    expect(JSON.parse(line).echo).toBe('a\n\u001b\u2028');
  });
});
