import { fileURLToPath } from 'node:url';
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader';

const file = fileURLToPath(new URL('./prometheus-metrics.proto', import.meta.url));
const service = loadSync(file, { keepCase: true, longs: Number, enums: String })[
  'io.prometheus.client.Scrapes'
] as ServiceDefinition;

export const PROTOBUF_ACCEPT =
  'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;q=0.5';

export interface DecodedHistogram {
  readonly sample_count: number;
  readonly sample_sum: number;
  readonly bucket?: readonly { readonly cumulative_count: number; readonly upper_bound: number }[];
  readonly schema?: number;
  readonly zero_threshold?: number;
  readonly zero_count?: number;
  readonly positive_span?: readonly { readonly offset: number; readonly length: number }[];
  readonly positive_delta?: readonly number[];
}

export interface DecodedFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly metric: readonly {
    readonly label?: readonly { readonly name: string; readonly value: string }[];
    readonly gauge?: { readonly value: number };
    readonly counter?: { readonly value: number };
    readonly histogram?: DecodedHistogram;
  }[];
}

/** Decodes length-delimited families with protobufjs, by name. */
export function decodeFamilies(bytes: Uint8Array): Map<string, DecodedFamily> {
  const families = new Map<string, DecodedFamily>();
  for (let at = 0; at < bytes.length; ) {
    let length = 0;
    let shift = 0;
    for (let byte = 128; byte > 127; shift += 7) {
      byte = bytes[at++] as number;
      length += (byte & 127) << shift;
    }
    const message = Buffer.from(bytes.subarray(at, at + length));
    at += length;
    const family = service.Scrape?.requestDeserialize(message) as DecodedFamily;
    families.set(family.name, family);
  }
  return families;
}

/** Index and count of the native buckets, from their spans and deltas. */
export function nativeCounts({ positive_span = [], positive_delta = [] }: DecodedHistogram) {
  const counts: [index: number, count: number][] = [];
  let index = 0;
  let count = 0;
  for (const { offset, length } of positive_span) {
    index += offset;
    for (let position = 0; position < length; position++) {
      count += positive_delta[counts.length] as number;
      counts.push([index++, count]);
    }
  }
  return counts;
}
