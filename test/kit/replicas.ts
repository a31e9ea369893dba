import { Agent } from 'node:http';
import { type ServeProcess, serve } from './process.ts';
import { type RedisServer, redisServer } from './redis.ts';
import { type HttpReply, send } from './send.ts';
import { httpUpstream } from './upstream.ts';

const SESSION_KEY = '5e'.repeat(32);

/** The section `config` of replicas that share a server. */
export const sharedConfig = ({ url }: RedisServer, more: object = {}): object => ({
  adminAddr: 'off',
  session: { key: SESSION_KEY },
  connectionTerminationDeadline: '100ms',
  shared: { redis: url },
  ...more,
});

/** A configuration whose only route has this limit and leads to a plain HTTP service. */
export const limitedConfig = (
  redis: RedisServer,
  backend: string,
  limit: object,
  more: object = {},
): string =>
  JSON.stringify({
    config: sharedConfig(redis, more),
    gateways: {
      default: {
        port: 0,
        routes: [{ name: 'limited', policies: { localRateLimit: [limit] }, backends: [{ host: backend }] }],
      },
    },
  });

/** Sends `count` requests over `connections` connections, in turn to these origins. Those without a response are undefined; `replied` is called after each other one. */
export async function load(
  origins: readonly (() => string)[],
  count: number,
  connections = 16,
  replied: () => void = () => undefined,
): Promise<(HttpReply | undefined)[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const replies: (HttpReply | undefined)[] = [];
  let sent = 0;
  const client = async (): Promise<void> => {
    while (sent < count) {
      sent += 1;
      const origin = origins[sent % origins.length] as () => string;
      const reply = await send(origin(), { agent }).catch(() => undefined);
      replies.push(reply);
      if (reply !== undefined) replied();
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  agent.destroy();
  return replies;
}

export interface KillOutcome {
  /** Requests for which clients got status 200. */
  readonly answered: number;
  /** Requests that the backend received. */
  readonly received: number;
  /** Tokens that were taken from the bucket. */
  readonly taken: number;
  /** Requests that were sent. */
  readonly sent: number;
  /** Requests that were in flight at kills, at most. */
  readonly inFlight: number;
}

/**
 * Keeps one replica, and kills another one `kills` times under load with SIGKILL, after which it is started again. The
 * bucket never becomes empty, so every token that is missing in it stands for a request.
 */
export async function killReplicas(kills: number): Promise<KillOutcome> {
  const SIZE = 1_000_000_000;
  const CONNECTIONS = 8;
  await using redis = await redisServer();
  await using backend = await httpUpstream();
  const config = limitedConfig(redis, backend.address, { maxTokens: SIZE, fillInterval: '24h' });
  await using stays = await serve(config);
  let answered = 0;
  let sent = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    const victim: ServeProcess = await serve(config);
    // Killed after another number of responses in each round, while requests are in flight at both.
    let left = 10 + ((kill * 37) % 150);
    const replies = await load([() => victim.url, () => stays.url], 200, CONNECTIONS, () => {
      left -= 1;
      if (left === 0) victim.kill('SIGKILL');
    });
    victim.kill('SIGKILL');
    await victim.finished;
    sent += replies.length;
    answered += replies.filter((reply) => reply?.status === 200).length;
  }
  const [key] = (await redis.client.keys('*:limit:*')) as [string];
  const [tokens] = String(await redis.client.get(key)).split(' ');
  return {
    answered,
    received: backend.received.length,
    taken: SIZE - Number(tokens),
    sent,
    inFlight: kills * CONNECTIONS,
  };
}
