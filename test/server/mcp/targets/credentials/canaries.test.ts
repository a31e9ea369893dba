import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { openSession, toolCall } from '../../../../kit/mcp.ts';
import { mcpUpstream, type Received, reply } from '../../../../kit/mcp-upstream.ts';
import { collector } from '../../../../kit/otlp.ts';
import { send } from '../../../../kit/send.ts';
import { exchangeServer } from '../../../../kit/token-exchange.ts';
import { openTrace, traceServer } from '../../../../kit/trace.ts';
import { until } from '../../../../kit/until.ts';

/** A server that repeats the credential which it got, in a form of its own. */
type Repeat = (seen: string, response: ServerResponse, received: Received) => unknown;

// BerriAI/litellm#29936: an error that contained the token of a server.
const FORMS: readonly [name: string, repeat: Repeat][] = [
  ['a 500 with text', (seen, response) => response.writeHead(500).end(`no access with ${seen}`)],
  [
    'a 403 with JSON',
    (seen, response) =>
      response.writeHead(403, { 'content-type': 'application/json' }).end(JSON.stringify({ seen })),
  ],
  [
    'a 401 with a challenge',
    (seen, response) =>
      response.writeHead(401, { 'www-authenticate': `Bearer error_description="${seen} is unknown"` }).end(),
  ],
  [
    'a page',
    (seen, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${seen}</p>`),
  ],
  [
    'text that is no JSON',
    (seen, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(`{${seen}`),
  ],
  [
    'a JSON-RPC error',
    (seen, response, { message }) =>
      reply(response, message, { error: { code: -32000, message: `bad ${seen}` } }),
  ],
  [
    'a result',
    (seen, response, { message }) =>
      reply(response, message, { isError: true, content: [{ type: 'text', text: `you sent ${seen}` }] }),
  ],
  [
    'an event',
    (seen, response, { message: { id } }) => {
      const content = [{ type: 'text', text: seen }];
      const text = JSON.stringify({ jsonrpc: '2.0', id, result: { content } });
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${text}\n\n`);
    },
  ],
  [
    'a redirect',
    (seen, response) => response.writeHead(302, { location: `https://elsewhere.example/${seen}` }).end(),
  ],
];

test.concurrent.each(FORMS)(
  'a credential that a server repeats in %s is in no answer, log, trace, span or dump',
  async (_, repeat) => {
    await using server = await exchangeServer();
    await using spans = await collector('http');
    await using up = await mcpUpstream({
      script: (received, response) => {
        if (received.message?.method !== 'tools/call') return false;
        repeat(String(received.headers['authorization']).replace('Bearer ', ''), response, received);
        return true;
      },
    });
    const policies = {
      backendAuth: {
        oauthTokenExchange: server.exchange('x'),
        credentials: [{ key: 'canary-of-the-configuration', location: { header: { name: 'x-2' } } }],
      },
    };
    const config = { tracing: { otlpEndpoint: spans.url, otlpProtocol: 'http', randomSampling: true } };
    const text = mcpConfig([{ name: 'up', mcp: { host: up.url }, policies }], { config });
    await using gate = await gateway(text, { admin: true, level: 'trace' });
    await using traces = await traceServer(gate.running);
    await using trace = await openTrace(traces, '?follow=true');
    const session = await openSession(`${gate.url}/mcp`, { authorization: 'Bearer canary-of-alice' });
    const answer = await session.send(toolCall(1, 'say', { message: 'hi' }));
    const dump = await send(`${gate.admin}/config_dump`);
    await session.end();
    await until(() => spans.spans.some(({ name }) => name.includes('tools/call')));
    expect(up.of('tools/call')[0]?.headers['authorization']).toContain('canary-x-canary-of-alice');
    const written = {
      answer: answer.text + JSON.stringify([...answer.headers]),
      log: gate.log.join(''),
      accessLog: gate.accessLog.join(''),
      trace: trace.text,
      spans: JSON.stringify(spans.spans),
      dump: dump.text,
    };
    expect(written.trace).toContain('tools/call');
    expect(written.dump).toMatch(/"audiences": \[\s+"x"/);
    for (const [place, found] of Object.entries(written))
      expect([place, /.{0,60}canary.{0,60}/.exec(found)?.[0]]).toEqual([place, undefined]);
  },
);
