import type { Attributes } from '@opentelemetry/api';
import { z } from 'zod';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { isOneReference, serviceFields, serviceMeta } from '../../transport/services/service-reference.ts';
import { type AccessLogPolicy, compileAccessLogPolicy, configuredFields, jsonValue } from '../access-log.ts';
import type { Field } from '../request-fields.ts';
import { logScope } from '../scopes.ts';
import { BatchQueue } from './batch-queue.ts';
import { collectorFields, compileCollector } from './collector.ts';
import { type CollectorTransport, sendRepeatedly } from './collector-transport.ts';
import type { AccessLogRecord } from './log-records.ts';
import type { ResourceSettings } from './settings.ts';

/** `frontendPolicies.accessLog.otlp`. */
export const accessLogExportSchema = z.lazy(() =>
  z
    .strictObject({
      ...serviceFields,
      ...collectorFields('/v1/logs'),
      filter: nonEmpty
        .optional()
        .describe(
          'CEL expression: only requests for which it is true are exported. That of the access log does not apply.',
        ),
      fields: mapping('Attributes, instead of `add` and `remove` of the access log.', {
        add: z
          .record(nonEmpty, nonEmpty)
          .default({})
          .describe('Attributes to add to each record, as CEL expressions.'),
        remove: z.array(nonEmpty).default([]).describe('Names of attributes to omit.'),
      }).optional(),
    })
    .check(isOneReference)
    .meta(serviceMeta)
    .describe('Also sends each line of the access log to an OTLP collector, as a log record.'),
);

/** Exports finished requests as log records. */
export interface AccessLogExport {
  /** Exports a finished request. `base`: its built-in fields; `policy`: that of the access log. */
  ended(ctx: RequestContext, base: readonly Field[], policy: AccessLogPolicy): void;
  /** Exports a connection whose bytes were passed on, unless there is a `filter`: expressions are for requests. */
  relayed(fields: readonly Field[], policy: AccessLogPolicy): void;
  /** Sends what is queued, for at most `LIMITS.spanFlush` ms. */
  close(): Promise<void>;
}

/** Compiles the export. Opens nothing: packages are loaded, and connections opened, for the first records. */
export function compileAccessLogExport(
  { filter, fields, ...config }: z.output<typeof accessLogExportSchema>,
  resource: ResourceSettings,
  context: CompileContext,
): AccessLogExport | undefined {
  const own = fields && compileAccessLogPolicy({ ...fields, filter: undefined }, context.at('fields'));
  const condition = filter === undefined ? undefined : context.at('filter').condition(filter, logScope);
  const collector = compileCollector(config, 'logs', 'accessLogRecordsLost', context);
  if (collector === undefined) return undefined;
  const { transport, lost } = collector;
  const queue = new BatchQueue<AccessLogRecord>({
    what: 'access-log records',
    target: 'telemetry::log',
    log: context.log,
    send: (records) =>
      send(records, resource, transport, (count) => queue.lost(count, 'the collector rejected them')),
    lost,
  });
  context.inspection.bounds.push({
    name: 'accessLog.otlp.records',
    at: context.path.join('.'),
    max: context.settings.limits.spanQueue,
    used: () => queue.queued,
  });
  let closed: Promise<void> | undefined;
  const add = (span: RequestContext['span'], all: readonly Field[]): void =>
    queue.add({
      time: Date.now(),
      span: span && { traceId: span.traceId, spanId: span.spanId },
      attributes: attributesOf(all),
    });
  return {
    ended(ctx, base, policy) {
      if (condition !== undefined && tryEvaluate(condition, resolverFor(ctx)) !== true) return;
      const { kept, added } = configuredFields(base, own ?? policy, ctx);
      add(ctx.span, [...kept, ...added]);
    },
    relayed(all, policy) {
      const { removed } = own ?? policy;
      if (condition === undefined)
        add(
          undefined,
          all.filter(([name]) => !removed.has(name)),
        );
    },
    close() {
      closed ??= queue.close().then(() => transport.close());
      return closed;
    },
  };
}

/** Rejects if all records were lost; `rejected` is called if some were. */
async function send(
  records: readonly AccessLogRecord[],
  resource: ResourceSettings,
  transport: CollectorTransport,
  rejected: (count: number) => void,
): Promise<void> {
  // Loaded for the first records together with the SDK: most gateways export none.
  const { encodeRecords, rejectedIn } = await import('./log-records.ts');
  const count = rejectedIn(await sendRepeatedly(transport, encodeRecords(records, resource)));
  if (count > 0) rejected(Math.min(count, records.length));
}

function attributesOf(fields: readonly Field[]): Attributes {
  const attributes: Attributes = {};
  for (const [name, value] of fields) {
    if (value === undefined || value === null) continue;
    const written = jsonValue(value);
    attributes[name] = typeof written === 'object' ? JSON.stringify(written) : written;
  }
  return attributes;
}
