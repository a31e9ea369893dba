import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { servicePoliciesSchema } from '../../transport/services/service-policies.ts';
import { compileService } from '../../transport/services/service-reference.ts';
import { type CollectorTransport, grpcTransport, httpTransport } from './collector-transport.ts';

/** Settings of every export to an OTLP collector, besides its address. `path`: the default one of the signal. */
export const collectorFields = (path: string) => ({
  protocol: z
    .enum(['grpc', 'http'])
    .default('grpc')
    .describe(
      'Protocol of the collector. `grpc` requires the packages `@grpc/grpc-js` and `@grpc/proto-loader`, installed next to agctl.',
    ),
  path: z
    .string()
    .startsWith('/')
    .default(path)
    .describe('URL path of the collector. Only for the protocol `http`.'),
  policies: servicePoliciesSchema.optional(),
});

interface CollectorConfig extends Readonly<Parameters<typeof compileService>[0]> {
  readonly protocol: 'grpc' | 'http';
  readonly path: string;
}

/** A collector, and the counter of what does not reach it. */
export interface Collector {
  readonly transport: CollectorTransport;
  readonly lost: (count: number) => void;
}

/** Compiles the way to a collector; opens nothing. `series`: the metric of losses. Undefined after a reported problem. */
export function compileCollector(
  { protocol, path, ...reference }: CollectorConfig,
  signal: Parameters<typeof grpcTransport>[1],
  series: Parameters<CompileContext['settings']['counter']>[0],
  context: CompileContext,
): Collector | undefined {
  const service = compileService(reference, context);
  if (service === undefined) return undefined;
  const transport =
    protocol === 'grpc'
      ? grpcTransport(service, signal, context)
      : httpTransport(service, signal, path, context);
  if (transport === undefined) return undefined;
  const count = context.settings.counter(series);
  // The series begins before the first loss, which alerts would not see otherwise.
  count([], 0);
  return { transport, lost: (lost) => count([], lost) };
}
