import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { MCP_HEADERS, openSession } from '../../kit/mcp.ts';
import { until } from '../../kit/until.ts';

test('a client that stops reading and then disconnects does not block its session', async () => {
  await using gate = await gateway(mcpConfig([chaos('a')]));
  const session = await openSession(`${gate.url}/mcp`);
  const headers = { ...MCP_HEADERS, 'mcp-session-id': session.id };
  // More than sockets hold: the gateway stops to read from the child, too.
  const params = { progressToken: 'token', message: 'x'.repeat(100_000) };
  const flood = { method: 'notifications/progress', params, times: 200 };
  const leaving = request(session.url, { method: 'POST', headers });
  leaving.on('error', () => undefined);
  leaving.end(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'notify', arguments: flood, _meta: { progressToken: 'token' } },
    }),
  );
  const [response] = (await once(leaving, 'response')) as [IncomingMessage];
  await once(response, 'readable');
  const ping = (within: number) =>
    session.send({ id: 2, method: 'ping' }, { signal: AbortSignal.timeout(within) });
  // The gateway has stopped reading from the child.
  await until(async () =>
    ping(300).then(
      () => false,
      () => true,
    ),
  );
  response.on('error', () => undefined);
  leaving.destroy();
  expect((await ping(5_000)).result).toEqual({});
});
