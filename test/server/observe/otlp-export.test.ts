import { ROOT_CONTEXT, type SpanContext, SpanKind, TraceFlags, trace } from '@opentelemetry/api';
import {
  AlwaysOnSampler,
  type ReadableSpan,
  SamplingDecision,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import type { Log } from '../../../src/core/log.ts';
import { BoundedExport } from '../../../src/server/observe/otlp/exporter.ts';
import type { SamplingRule } from '../../../src/server/observe/otlp/settings.ts';
import { createSampler } from '../../../src/server/observe/otlp/tracing.ts';
import { gateway } from '../../kit/gateway.ts';
import { collector } from '../../kit/otlp.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';

type Done = Parameters<SpanExporter['export']>[1];

/** A span processor whose exporter completes on demand, and a tracer for it. */
function exportTo(exporter: Partial<SpanExporter>) {
  const warnings: unknown[] = [];
  const log = { warn: (...line: unknown[]) => void warnings.push(line) } as unknown as Log;
  const queue = new BoundedExport({ shutdown: () => Promise.resolve(), ...exporter } as SpanExporter, log);
  const provider = new TracerProvider({ sampler: new AlwaysOnSampler(), spanProcessors: [queue] });
  const tracer = provider.getTracer('test');
  const record = (count: number): void => {
    for (let index = 0; index < count; index += 1) tracer.startSpan('x').end();
  };
  return { queue, provider, record, warnings };
}

describe('span export', () => {
  test('the span exporter drops and counts spans over the queue limit and warns once', () => {
    const sent: ReadableSpan[][] = [];
    const { queue, record, warnings } = exportTo({ export: (spans) => void sent.push(spans) });
    record(LIMITS.spanBatch + LIMITS.spanQueue + 7);
    expect(sent.map(({ length }) => length)).toEqual([LIMITS.spanBatch]);
    expect([queue.queued, queue.dropped, warnings.length]).toEqual([LIMITS.spanQueue, 7, 1]);
  });

  test('the span exporter counts only the spans that the collector rejects', async () => {
    const answers: Done[] = [];
    const { queue, record } = exportTo({ export: (_, done) => void answers.push(done) });
    record(LIMITS.spanBatch);
    answers[0]?.({ code: 1, error: new Error('no') });
    await queue.forceFlush();
    expect([queue.queued, queue.dropped]).toEqual([0, LIMITS.spanBatch]);
  });

  test('the span exporter counts queued and in-flight spans once at shutdown', async () => {
    const answers: Done[] = [];
    const { queue, provider, record } = exportTo({ export: (_, done) => void answers.push(done) });
    record(LIMITS.spanBatch + 3);
    const began = performance.now();
    await provider.shutdown();
    expect(performance.now() - began).toBeLessThan(LIMITS.spanFlush + 500);
    expect(queue.dropped).toBe(LIMITS.spanBatch + 3);
    for (const done of answers) done({ code: 1 });
    expect(queue.dropped).toBe(LIMITS.spanBatch + 3);
  });

  test('the span exporter sends queued spans at shutdown and ends as soon as they are sent', async () => {
    const sizes: number[] = [];
    const { queue, provider, record } = exportTo({
      export: (spans, done) => {
        sizes.push(spans.length);
        done({ code: 0 });
      },
    });
    record(LIMITS.spanBatch - 1);
    const began = performance.now();
    await provider.shutdown();
    expect(performance.now() - began).toBeLessThan(LIMITS.spanFlush / 2);
    expect([sizes, queue.dropped]).toEqual([[LIMITS.spanBatch - 1], 0]);
  });
});

describe('the span sampler', () => {
  const parent: SpanContext = {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    traceFlags: TraceFlags.NONE,
    isRemote: true,
  };
  const remote = trace.setSpanContext(ROOT_CONTEXT, parent);
  const LOW = `${'0'.repeat(31)}1`;
  const HIGH = `ffffffff${'0'.repeat(24)}`;
  const decides = (random: SamplingRule, client: SamplingRule, context = ROOT_CONTEXT, id = LOW): boolean =>
    createSampler(random, client).shouldSample(context, id, '', SpanKind.SERVER, {}, []).decision ===
    SamplingDecision.RECORD_AND_SAMPLED;

  test.each<[SamplingRule, string, boolean]>([
    [true, HIGH, true],
    [false, LOW, false],
    [0.5, LOW, true],
    [0.5, HIGH, false],
    [() => true, HIGH, true],
    [() => 0.5, LOW, true],
    [() => 0.5, HIGH, false],
    [() => 'yes', LOW, false],
    [() => undefined, LOW, false],
  ])('the span sampler decides by %s about the trace %s: %s', (rule, id, expected) => {
    expect(decides(rule, !expected, ROOT_CONTEXT, id)).toBe(expected);
    expect(decides(!expected, rule, remote, id)).toBe(expected);
  });

  test('the span sampler ignores the sampled flag of the client', () => {
    const recorded = trace.setSpanContext(ROOT_CONTEXT, { ...parent, traceFlags: TraceFlags.SAMPLED });
    expect([decides(true, false, recorded), decides(false, true, recorded)]).toEqual([false, true]);
  });
});

test('OTEL_RESOURCE_ATTRIBUTES describe the process, and OTEL_SERVICE_NAME overrides its name', async () => {
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'service.name=low,deployment.environment.name=stage%201');
  try {
    const resources: unknown[] = [];
    for (const env of [{}, { OTEL_SERVICE_NAME: 'high' }]) {
      await using sink = await collector('http');
      const tracing = { otlpEndpoint: sink.url, otlpProtocol: 'http', randomSampling: true };
      const yaml = routesConfig([{ policies: { directResponse: { body: 'x' } } }], { config: { tracing } });
      const gate = await gateway(yaml, { env });
      await send(gate.url);
      await gate.accessLine(1);
      await gate.close();
      resources.push(sink.spans[0]?.resource);
    }
    expect(resources).toEqual([
      expect.objectContaining({ 'service.name': 'low', 'deployment.environment.name': 'stage 1' }),
      expect.objectContaining({ 'service.name': 'high', 'telemetry.sdk.language': 'nodejs' }),
    ]);
  } finally {
    vi.unstubAllEnvs();
  }
});
