import { type Attributes, SeverityNumber, TraceFlags } from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import { ProtobufLogsSerializer } from '@opentelemetry/otlp-transformer';
import type { Resource } from '@opentelemetry/resources';
import { VERSION } from '../../../core/version.ts';
import { resourceOf } from './resource.ts';
import type { ResourceSettings } from './settings.ts';

/** A finished request, or a connection that was passed on. */
export interface AccessLogRecord {
  /** Unix time in ms. */
  readonly time: number;
  /** The span of the request, if it is recorded. */
  readonly span: { readonly traceId: string; readonly spanId: string } | undefined;
  readonly attributes: Attributes;
}

/** What backends show in lists of records; some show nothing for one without a body. */
const REQUEST = 'request';
const SCOPE = { name: 'agctl', version: VERSION };
const resources = new WeakMap<ResourceSettings, Resource>();

/** Encodes an `ExportLogsServiceRequest`. */
export function encodeRecords(records: readonly AccessLogRecord[], settings: ResourceSettings): Uint8Array {
  const resource = resources.get(settings) ?? resourceOf(settings);
  resources.set(settings, resource);
  const encoded = ProtobufLogsSerializer.serializeRequest(
    records.map(({ time, span, attributes }) => ({
      hrTime: millisToHrTime(time),
      hrTimeObserved: millisToHrTime(time),
      ...(span && {
        spanContext: { traceId: span.traceId, spanId: span.spanId, traceFlags: TraceFlags.SAMPLED },
      }),
      severityNumber: SeverityNumber.INFO,
      severityText: 'INFO',
      body: REQUEST,
      eventName: REQUEST,
      resource,
      instrumentationScope: SCOPE,
      attributes,
      droppedAttributesCount: 0,
    })),
  );
  if (encoded === undefined) throw new Error('the records cannot be encoded');
  return encoded;
}

/** Number of records that the collector has rejected. Throws if this is not an `ExportLogsServiceResponse`. */
export function rejectedIn(answer: Uint8Array): number {
  if (answer.length === 0) return 0;
  try {
    return Number(ProtobufLogsSerializer.deserializeResponse(answer).partialSuccess?.rejectedLogRecords ?? 0);
  } catch {
    throw new Error('the answer is not OTLP: is this a collector?');
  }
}
