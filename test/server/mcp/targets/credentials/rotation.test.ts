import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ERAS } from '../../../../kit/both-eras.ts';
import { mcpConfig } from '../../../../kit/config.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, openSession, post } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream } from '../../../../kit/mcp-upstream.ts';
import { send } from '../../../../kit/send.ts';
import { exchangeServer, issuedFor } from '../../../../kit/token-exchange.ts';

const CALL = { name: 'say', arguments: { message: 'hi' } };

const target = (url: string, key?: string): object => ({
  name: 'up',
  mcp: { host: url },
  ...(key === undefined ? {} : { policies: { backendAuth: { key } } }),
});

const keysOf = (up: McpUpstream): unknown[] =>
  up.of('tools/call').map(({ headers }) => headers.authorization);

/** A gateway whose file each call of `load` replaces. */
async function rotating(first: object) {
  const folder = await temporaryFolder();
  const gate = await gateway(mcpConfig([first]), { live: 'asked', folder: folder.path });
  return {
    gate,
    load: async (next: object): Promise<void> => {
      writeFileSync(join(folder.path, 'test.yaml'), mcpConfig([next]));
      expect(await gate.live.reload()).toBe(true);
    },
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await folder.remove();
    },
  };
}

describe('a credential that is changed while sessions are open', () => {
  test('is in their next request, also after several changes, and so is one that is added or removed', async () => {
    await using up = await mcpUpstream();
    await using at = await rotating(target(up.url));
    const session = await openSession(`${at.gate.url}/mcp`, { authorization: 'Bearer of-the-client' });
    for (const key of ['one', 'two', undefined, 'three']) {
      await at.load(target(up.url, key));
      expect((await session.request('tools/call', CALL)).error).toBeUndefined();
    }
    expect(keysOf(up)).toEqual(['Bearer one', 'Bearer two', 'Bearer of-the-client', 'Bearer three']);
    expect(up.of('initialize')).toHaveLength(1);
    await session.end();
    expect(up.received.at(-1)).toMatchObject({ verb: 'DELETE', headers: { authorization: 'Bearer three' } });
  });

  test.each<[string, (up: McpUpstream) => object]>([
    ['another port', ({ url }) => ({ mcp: { host: url.replace(/\d+\/mcp/, '1/mcp') } })],
    ['another path', ({ url }) => ({ mcp: { host: `${url}/tenant` } })],
    ['TLS', ({ url }) => ({ mcp: { host: url.replace('http', 'https') } })],
    ['another transport', ({ url }) => ({ mcp: undefined, sse: { host: url } })],
  ])('is not sent to a server that has moved to %s', async (_, moved) => {
    await using up = await mcpUpstream();
    await using at = await rotating(target(up.url, 'one'));
    const session = await openSession(`${at.gate.url}/mcp`);
    await at.load({ ...target(up.url, 'two'), ...moved(up) });
    await session.request('tools/call', CALL);
    expect(keysOf(up)).toEqual(['Bearer one']);
  });

  test('is the former one again once its server is configured no more, as that of the last configuration is closed', async () => {
    await using up = await mcpUpstream();
    await using other = await mcpUpstream();
    await using tokens = await exchangeServer();
    await using at = await rotating(target(up.url, 'one'));
    const session = await openSession(`${at.gate.url}/mcp`, { authorization: 'Bearer of-the-client' });
    const policies = { backendAuth: { oauthTokenExchange: tokens.exchange('x') } };
    await at.load({ ...target(up.url), policies });
    await session.request('tools/call', CALL);
    await at.load(target(other.url, 'three'));
    expect((await session.request('tools/call', CALL)).error).toBeUndefined();
    expect(keysOf(up)).toEqual([`Bearer ${issuedFor('of-the-client', 'x')}`, 'Bearer one']);
  });
});

const REFUSALS = {
  401: 'the server refused the credential that the gateway sent (HTTP 401): check `backendAuth`',
  403: 'the server does not allow this with the credential that the gateway sent (HTTP 403)',
};

describe('a server that refuses the credential of the gateway', () => {
  const refusing = (status: number) =>
    mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/call') return false;
        response.writeHead(status, { 'www-authenticate': 'Bearer scope="x"' }).end('no');
        return true;
      },
    });
  const key = { key: 'of-the-gateway' };

  // The client would take it for a refusal of its own credential, and sign in again, or end.
  test.each(ERAS)('is not available to clients of %s, which get no 401 or 403', async (_, connect) => {
    for (const status of [401, 403] as const)
      for (const route of [false, true]) {
        await using up = await refusing(status);
        const yaml = route
          ? mcpConfig([target(up.url)], { route: { policies: { backendAuth: key } } })
          : mcpConfig([target(up.url, key.key)]);
        await using gate = await gateway(yaml);
        const caller = await connect(`${gate.url}/mcp`);
        const reply = await caller.call('say', { message: 'hi' });
        expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([200, null]);
        expect(reply.error.message).toBe(`target "up" is not available: ${REFUSALS[status]}`);
      }
  });

  test('fails the start of a session, which is an error of the server on the Health page', async () => {
    await using up = await mcpUpstream({
      script: (_, response) => {
        response.writeHead(401).end('no');
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([target(up.url, 'k')]), { admin: true });
    const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
    expect(error.message).toContain('the server refused the credential that the gateway sent (HTTP 401)');
    await gate.accessLine(1);
    expect(JSON.parse((await send(`${gate.admin}/api/services`)).text)).toMatchObject({
      services: [{ kind: 'target', name: 'up', calls: 1, errors: 1 }],
    });
  });
});
