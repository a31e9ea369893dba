import { describe, expect, test } from 'vitest';
import { openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { serve } from '../../kit/process.ts';
import { REDIS_SERVER, redisServer } from '../../kit/redis.ts';
import { killReplicas, limitedConfig, load, sharedConfig } from '../../kit/replicas.ts';
import { repeats } from '../../kit/thorough.ts';
import { httpUpstream } from '../../kit/upstream.ts';

describe.skipIf(REDIS_SERVER === undefined)('processes that share a real Redis', () => {
  test('two processes, one with two workers, admit exactly 300 of 600 requests per minute under parallel load', async () => {
    await using redis = await redisServer();
    await using backend = await httpUpstream();
    const limit = { maxTokens: 300, tokensPerFill: 300, fillInterval: '10m' };
    await using one = await serve(limitedConfig(redis, backend.address, limit));
    await using two = await serve(limitedConfig(redis, backend.address, limit, { workers: 2 }));
    const replies = await load([() => one.url, () => two.url], 600, 32);
    const counts = Object.groupBy(replies, (reply) => String(reply?.status));
    expect([counts['200']?.length, counts['429']?.length]).toEqual([300, 300]);
    expect(backend.received).toHaveLength(300);
    // One connection for each process that handles requests, besides that of the test.
    expect(String(await redis.client.client('LIST')).match(/ name=agctl /g)).toHaveLength(3);
  });

  test('a replica that is killed under load holds no tokens: each one taken stands for a request', async () => {
    const outcome = await killReplicas(repeats(1, 50));
    // Those of the replica that stays, and some of the others.
    expect(outcome.answered).toBeGreaterThan(outcome.sent / 2);
    expect(outcome.received).toBeGreaterThanOrEqual(outcome.answered);
    expect(outcome.taken).toBeGreaterThanOrEqual(outcome.received);
    expect(outcome.taken - outcome.answered).toBeLessThanOrEqual(outcome.inFlight);
    expect(outcome.taken).toBeLessThanOrEqual(outcome.sent);
  });

  test('20 sessions with an HTTP target go on at the other process after theirs was killed', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    const config = JSON.stringify({
      config: sharedConfig(redis),
      gateways: { default: { port: 0 } },
      mcp: { targets: [{ name: 'up', mcp: { host: server.url } }] },
    });
    await using one = await serve(config);
    await using two = await serve(config);
    const sessions = await Promise.all(Array.from({ length: 20 }, () => openSession(`${one.url}/mcp`)));
    one.kill('SIGKILL');
    await one.finished;
    const statuses = await Promise.all(
      sessions.map(async ({ id }) => {
        const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
        return (await post(`${two.url}/mcp`, message, { 'mcp-session-id': id })).status;
      }),
    );
    expect(statuses).toEqual(sessions.map(() => 200));
    expect(server.of('initialize')).toHaveLength(20);
  });
});
