import { expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { ERA_CLIENTS } from '../../kit/era-clients.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { type McpUpstream, mcpUpstream, reply, type Script } from '../../kit/mcp-upstream.ts';
import { freePort } from '../../kit/ports.ts';
import { until } from '../../kit/until.ts';

// What the official clients of both eras see of a shutdown. They report an error for each failed attempt to open their
// standing stream again, and none for a stream that ends.

const CAPABILITIES = { tools: { listChanged: true }, resources: { subscribe: true } };
const CHANGED = 'notifications/tools/list_changed';
const WATCHED = 'test://watched';

const announce = (up: McpUpstream): void => {
  for (const stream of up.streams)
    stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: CHANGED })}\n\n`);
};

/** Answers subscriptions, and calls of tools when `answer` is called. */
function holding(): { readonly script: Script; answer(): void } {
  let answer = (): void => undefined;
  const script: Script = ({ message }, response) => {
    if (message?.method === 'resources/subscribe') reply(response, message, {});
    else if (message?.method === 'tools/call')
      answer = () => reply(response, message, { content: [{ type: 'text', text: 'late' }] });
    else return false;
    return true;
  };
  return { script, answer: () => answer() };
}

const serving = (up: McpUpstream, port: number, limits = {}): Promise<TestGateway> =>
  gateway(
    mcpConfig([{ name: 'up', mcp: { host: up.url } }], {
      config: { connectionTerminationDeadline: '30s', session: { key: '5e'.repeat(32) } },
    }).replace('"port":0', `"port":${port}`),
    { limits },
  );

test.each(ERA_CLIENTS)(
  'the standing stream of $client ends after its call at a shutdown, and it reports no error',
  async ({ connect }) => {
    const calls = holding();
    await using up = await mcpUpstream({ script: calls.script, capabilities: CAPABILITIES });
    const gate = await serving(up, 0);
    const client = await connect(`${gate.url}/mcp`);
    await client.watch(WATCHED);
    await until(() => up.streams.length > 0);
    const call = client.call('say');
    await until(() => up.of('tools/call').length === 1);
    let isClosed = false;
    const closed = gate.close().then(() => (isClosed = true));
    await until(() =>
      fetch(gate.url).then(
        () => false,
        () => true,
      ),
    );
    announce(up);
    await until(() => client.changes.includes(CHANGED));
    expect(isClosed).toBe(false);
    calls.answer();
    expect(await call).toBe('late');
    await closed;
    await client[Symbol.asyncDispose]();
    expect(client.errors).toEqual([]);
  },
);

test.each(ERA_CLIENTS.filter(({ revision }) => revision === '2025-11-25'))(
  '$client opens its standing stream again at the next gateway, and reports no error',
  async ({ connect }) => {
    await using up = await mcpUpstream({ script: holding().script, capabilities: CAPABILITIES });
    const port = await freePort();
    // Longer than another gateway takes to start here, and than the clients would wait by themselves.
    const first = await serving(up, port, { drainRetry: 2_500 });
    await using client = await connect(`${first.url}/mcp`);
    await client.watch(WATCHED);
    await until(() => up.streams.length === 1);
    const ended = performance.now();
    await first.close();
    // Clients would be back by then, and again.
    await until(() => performance.now() - ended > 1_600, 10_000);
    await using second = await serving(up, port);
    expect(second.url).toBe(first.url);
    await until(() => up.streams.length === 2, 15_000);
    announce(up);
    await until(() => client.changes.includes(CHANGED));
    expect(client.errors).toEqual([]);
  },
);
