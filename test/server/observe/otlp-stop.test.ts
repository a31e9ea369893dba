import { expect, test } from 'vitest';
import { collector } from '../../kit/otlp.ts';
import { serve } from '../../kit/process.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { rawUpstream, refusingPort } from '../../kit/upstream.ts';

type Unreachable = { readonly url: string } & AsyncDisposable;

/** A port that accepts connections and says nothing. */
const silent = async (): Promise<Unreachable> => {
  const upstream = await rawUpstream(() => undefined);
  const dispose = upstream[Symbol.asyncDispose];
  return { url: `http://${upstream.address}`, [Symbol.asyncDispose]: dispose };
};

const refusing = async (): Promise<Unreachable> => ({
  url: `http://127.0.0.1:${await refusingPort()}`,
  [Symbol.asyncDispose]: () => Promise.resolve(),
});

test.each([
  ['takes spans and never answers', 'grpc', () => collector('grpc', { answers: false })],
  ['takes spans and never answers', 'http', () => collector('http', { answers: false })],
  ['accepts connections and says nothing', 'grpc', silent],
  ['refuses connections', 'http', refusing],
] satisfies [string, string, () => Promise<Unreachable>][])(
  'a collector that %s (%s) delays the exit after SIGTERM by at most 2 s',
  async (_, otlpProtocol, open) => {
    await using target = await open();
    const tracing = { otlpEndpoint: target.url, otlpProtocol, randomSampling: true };
    const route = { policies: { directResponse: { body: 'ok' } } };
    const otlp = { host: new URL(target.url).host, protocol: otlpProtocol };
    const more = { config: { tracing, metrics: { otlp } }, frontendPolicies: { accessLog: { otlp } } };
    await using running = await serve(routesConfig([route], more));
    // More than one export: the queued spans share one time limit.
    for (let count = 0; count < 12; count += 1)
      await Promise.all(Array.from({ length: 50 }, () => send(running.url)));
    const began = performance.now();
    running.kill('SIGTERM');
    const { code, stderr } = await running.finished;
    // 2 s, and the time to end a process on a busy machine; the exporter itself would wait for 10 s.
    expect(performance.now() - began).toBeLessThan(8_000);
    expect([code, stderr.includes('spans were lost')]).toEqual([0, true]);
    expect(stderr).toMatch(/access-log records were lost/);
  },
);
