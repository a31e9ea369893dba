import { Agent } from 'node:http';
import { expect, test } from 'vitest';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { type WorkerGateway, workerGateway } from '../../kit/workers.ts';

const CONFIG = {
  config: { connectionTerminationDeadline: '1s' },
  gateways: {
    default: {
      port: 0,
      routes: [
        {
          policies: {
            // No token is added while the test runs: one takes 172 s.
            localRateLimit: [{ maxTokens: 500, tokensPerFill: 500, fillInterval: '24h' }],
            directResponse: { status: 200, body: 'ok' },
          },
        },
      ],
    },
  },
};

/** A client with one connection, and so with one worker: connections go to workers in turn. */
class Client implements Disposable {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  admitted = 0;
  /** The last `x-ratelimit-remaining`. */
  remaining = Number.NaN;

  constructor(gate: WorkerGateway) {
    this.#url = gate.url;
  }

  /** Sends one request. Returns whether it was admitted. */
  async send(): Promise<boolean> {
    const { status, headers } = await send(this.#url, { agent: this.#agent });
    if (status === 200) this.admitted += 1;
    else expect(status).toBe(429);
    this.remaining = Number(headers['x-ratelimit-remaining']);
    return status === 200;
  }

  async sendMany(count: number): Promise<void> {
    for (let index = 0; index < count; index++) await this.send();
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

// test/server/workers/workers.test.ts sends requests in parallel.
test('of 500 requests exactly 500 are admitted: tokens that a worker holds and does not use are available to the other one', async () => {
  await using gate = await workerGateway(CONFIG);
  using first = new Client(gate);
  using second = new Client(gate);
  await first.sendMany(75);
  expect(first.remaining).toBeLessThanOrEqual(425);
  // It stops here, with tokens that it has not used.
  await until(async () => {
    while (await second.send());
    return first.admitted + second.admitted === 500;
  }, 20_000);
  expect(await first.send()).toBe(false);
  expect(await second.send()).toBe(false);
});
