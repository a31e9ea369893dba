import { expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { secondSdk } from '../../kit/era-clients.ts';
import { gateway } from '../../kit/gateway.ts';
import { startTarget } from '../served.ts';

// A server that ends the stream of a call before the result ("polling", MCP 2025-11-25, "Streamable HTTP"). Only one that has
// given its events ids has stored the rest; the SDK's own client gives up without them, too.

const program = process.env['GO_SDK'] as string;

/** The text of a call, or of its error, for a client of the official TypeScript SDK, which is polled in turn. */
async function outcome(mode: string): Promise<string> {
  const { target, stop } = await startTarget({ program: [program, mode], transport: 'http' });
  try {
    await using gate = await gateway(mcpConfig([target]));
    await using client = await secondSdk('legacy')(`${gate.url}/mcp`);
    return await client.call('test_reconnection').catch((error: Error) => error.message);
  } finally {
    stop();
  }
}

test('a call whose stream a server of the Go SDK with event ids ends early has its result', async () => {
  expect(await outcome('resumable')).toBe('fetched later');
});

test('a call whose stream a server of the Go SDK without event ids ends early has an error', async () => {
  expect(await outcome('http')).toContain('the server ended its answer without a response');
});
